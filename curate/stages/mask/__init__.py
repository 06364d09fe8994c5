"""The stage `mask`."""
