"""Models scored by mteb on exported tasks, and what the scores prove; mteb is imported inside functions only."""
