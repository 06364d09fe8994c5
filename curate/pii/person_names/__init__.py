"""Recognisers of the names of persons, by their words and by what stands around them."""
