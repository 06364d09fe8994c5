"""Meaning-changing edits of questions, and the dictionary of synonyms that some of them need: shared by stages."""
