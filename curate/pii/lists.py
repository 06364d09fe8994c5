"""Word lists beside the recognisers as patterns, and spans as a recogniser returns them."""

import re
from collections.abc import Iterable
from functools import cache

from curate.config import parse_yaml
from curate.records import Span
from curate.resources import data_file


@cache
def words(name: str) -> dict[str, list[str]]:
    """Return the word lists in `pii/NAME.yaml`, longest word first, as a pattern must try them."""
    lists: dict[str, list[str]] = parse_yaml(data_file(f"pii/{name}.yaml").read_text("utf-8"))  # type: ignore[assignment]
    return {key: sorted(entries, key=len, reverse=True) for key, entries in lists.items()}


def any_of(entries: Iterable[str]) -> str:
    """Return a pattern for any of the words in a narrowed text; Latin letters in front make it another word."""
    fronted = (("(?<![A-Za-z])" if word[0].isascii() else "") + re.escape(word) for word in entries)
    return f"(?:{'|'.join(fronted)})"


def raw(entries: Iterable[str]) -> str:
    """Return a pattern for any of the words in a text as it was written, for a trigger: full-width or not, any case."""
    return "(?i:" + "|".join("".join(map(_raw, word)) for word in entries) + ")"


def _raw(character: str) -> str:
    if character == " ":
        return r"\s"
    wide = f"|{chr(ord(character) + 0xFEE0)}" if "!" <= character <= "~" else ""
    return f"(?:{re.escape(character)}{wide})"


def apart(found: Iterable[Span]) -> list[Span]:
    """Return spans in their order; of overlapping ones the first, and of those that start together the longest."""
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
