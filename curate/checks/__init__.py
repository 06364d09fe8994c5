"""What is left of checks."""
