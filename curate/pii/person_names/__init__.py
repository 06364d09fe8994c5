"""Recognisers of the names of persons, by their words and by the words around them."""
