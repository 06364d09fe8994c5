"""The stage `queries`."""
