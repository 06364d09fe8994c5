"""From texts to vectors, ranked lists and pools."""
