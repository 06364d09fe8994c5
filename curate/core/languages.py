"""Language tags, and the choice among translations: a further language is a further entry of a YAML file."""

from collections.abc import Collection, Mapping
from typing import TypeVar

FALLBACK = "en"
"""Language of words and prompts where there are none in the language that is asked for."""
Translation = TypeVar("Translation")


def base_language(language: str) -> str:
    """Return a tag without region and script: `zh` of `zh-CN`."""
    return language.partition("-")[0]


def served_by(language: str, tags: Collection[str]) -> str:
    """Return the tag that serves a language: its own without region if that is among `tags`, else `FALLBACK`."""
    tag = base_language(language)
    return tag if tag in tags else FALLBACK


def in_language(translations: Mapping[str, Translation], language: str) -> Translation:
    """Return the entry of a language, else that of `FALLBACK`, else the first; `translations` has one at least."""
    tag = served_by(language, translations)
    return translations[tag] if tag in translations else next(iter(translations.values()))
