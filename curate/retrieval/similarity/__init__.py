"""Exact and approximate similarity search, near-duplicates, and the diversity rule."""
