"""The stage `resolve`: whose labels count."""
