"""`curate tokens`: comparison of tokenizers."""
