"""The stage `ingest`."""
