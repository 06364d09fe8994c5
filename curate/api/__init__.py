"""The Python API: runs opened, run and planned, and what the commands compute, as values and frames.

Its names are those of `curate`; from here nothing is to be imported.
"""
