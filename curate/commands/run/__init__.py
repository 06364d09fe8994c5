"""The command `run`: what its stages would ask, and what that costs."""
