"""Language tags and the choice of a translation; another language needs only another entry in the YAML files."""

from collections.abc import Collection, Mapping
from typing import TypeVar

FALLBACK = "en"
"""Language of words and prompts that are not translated into the requested language."""
Translation = TypeVar("Translation")


def base_language(language: str) -> str:
    """Return a tag without region and script: `zh` of `zh-CN`."""
    return language.partition("-")[0]


def served_by(language: str, tags: Collection[str]) -> str:
    """Return the tag of the translation to use: that of the language without region if in `tags`, else `FALLBACK`."""
    tag = base_language(language)
    return tag if tag in tags else FALLBACK


def in_language(translations: Mapping[str, Translation], language: str) -> Translation:
    """Return the translation for a language, else that of `FALLBACK`, else the first.

    `translations` must not be empty.
    """
    tag = served_by(language, translations)
    return translations[tag] if tag in translations else next(iter(translations.values()))
