"""Families of language models, guessed from their names."""

import re

_NAME = re.compile(r"[a-z]+")


def family(model: str) -> str | None:
    """Return what a model's name begins with, as a guess at its family: `gpt` of openai/gpt-4o-mini."""
    found = _NAME.match(model.rpartition("/")[2].lower())
    return found[0] if found else None
