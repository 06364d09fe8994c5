"""The stage `diversify`."""
