"""Statistics of raters, samples and systems, from numbers alone."""
