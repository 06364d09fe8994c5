"""Recognisers of personal names, by the words of the name and the words around it."""
