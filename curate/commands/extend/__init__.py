"""`curate extend`: the next version of a benchmark."""
