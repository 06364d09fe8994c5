"""The command `evaluate`: scores of models on a benchmark."""
