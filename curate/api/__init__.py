"""Implementation of the Python API: running and opening runs, cost estimates, and results of commands as frames.

The public names are those of the package `curate`; import them from there, not from here.
"""
