"""Tables and figures of a run for a paper: CSV, LaTeX and vector PDF."""
