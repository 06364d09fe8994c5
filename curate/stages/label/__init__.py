"""The stage `label`."""
