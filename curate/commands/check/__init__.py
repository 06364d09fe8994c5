"""Checks of a run beside its stages: they change no label, and write their figures into `checks/` of the run folder."""
