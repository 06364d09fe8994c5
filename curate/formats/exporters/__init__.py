"""What is left of exporters."""
