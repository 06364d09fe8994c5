"""Two versions of a benchmark: labels that differ, why, and what that does to systems."""
