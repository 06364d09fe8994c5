"""Fertility of tokenizers on texts: how many tokens a word costs, what is cut, what could be saved."""
