"""The command `run`: cost estimate of a whole pipeline's model calls."""
