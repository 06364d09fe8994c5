"""The commands `check`: diagnostics of a run that change no label and write figures to `checks/` in the run folder."""
