"""What is left of stages."""
