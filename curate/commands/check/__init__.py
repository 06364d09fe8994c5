"""Checks of a run outside its stages: they change no label and write figures to `checks/` in the run folder."""
