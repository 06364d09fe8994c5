"""The stage `gradient`."""
