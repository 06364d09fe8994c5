"""Runs, as a person looks at them."""
