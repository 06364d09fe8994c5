"""Language tags, and the choice among translations: a further language is a further entry of a YAML file."""

from collections.abc import Mapping
from typing import TypeVar

FALLBACK = "en"
"""Language of words and prompts where there are none in the language that is asked for."""
Translation = TypeVar("Translation")


def base_language(language: str) -> str:
    """Return a tag without region and script: `zh` of `zh-CN`."""
    return language.partition("-")[0]


def in_language(translations: Mapping[str, Translation], language: str) -> Translation:
    """Return the entry of a language, else that of `FALLBACK`, else the first; StopIteration if there is none."""
    tags = (base_language(language), FALLBACK)
    return next((translations[tag] for tag in tags if tag in translations), next(iter(translations.values())))
