"""`curate train-set` and the stage `train_set`."""
