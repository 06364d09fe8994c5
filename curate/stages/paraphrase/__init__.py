"""The stage `paraphrase`."""
