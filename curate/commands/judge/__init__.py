"""The stage `judge`."""
