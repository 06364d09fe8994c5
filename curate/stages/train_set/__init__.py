"""The stage `train_set`."""
