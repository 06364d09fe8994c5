"""The stage `sts`."""
