"""Cutting of long documents into passages, at the ends of paragraphs and sentences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from curate.llm.cost import tokens
from curate.tables.readers.items import Item
from curate.tables.readers.settings import PassageSettings

_SENTENCE = re.compile(r"[。！？；!?;…]+[\"'”’」』）)]*\s*|(?<=\S)\.[\"'”’)]*\s+|\n+\s*")
"""End of a sentence, with the white space behind it; a line break ends one, too."""
_CLAUSE = re.compile(r"[，、,:：]\s*|\s+")
_PARAGRAPH = re.compile(r"\n\s*$")
_HEADING = re.compile(r"#{1,6}\s|[\d一二三四五六七八九十百]+[.、．)）]\s*\S{0,40}\s*$|[^。！？；.!?;]{1,40}\s*$")
"""A line that heads what follows: with marks of a heading, a number, or short and without an end."""
_FULL = 0.6
"""Share of a passage's tokens from which it ends at the next paragraph."""


@dataclass(frozen=True)
class _Unit:
    """A sentence, or a part of one that is too long alone."""

    start: int
    end: int
    tokens: int
    ends_paragraph: bool
    is_heading: bool


def passages(document: Item, settings: PassageSettings) -> list[tuple[Item, int, int]]:
    """Return (passage, start, end) of a document in order; the only one is the document itself, with its id.

    The ids are that of the document with #0, #1, ... The extents, in code points of the text, cover it without a gap.
    """
    extents = [*extents_of(document.text, settings)]
    if len(extents) < 2:
        return [(document, 0, len(document.text))]
    title = document.title if settings.title else ""
    return [
        (
            replace(document, id=f"{document.id}#{number}", title=title, text=document.text[start:end].strip()),
            start,
            end,
        )
        for number, (start, end) in enumerate(extents)
    ]


def extents_of(text: str, settings: PassageSettings) -> Iterator[tuple[int, int]]:
    """Yield start and end of each passage; a passage begins where the one before ends, or by the overlap before."""
    units = _units(text, settings.tokens)
    first = 0
    while first < len(units):
        last = _last(units, first, settings.tokens)
        yield units[first].start, units[last].end
        if last + 1 == len(units):
            return
        first = max(_overlapping(units, last, settings.overlap), first + 1)


def _last(units: Sequence[_Unit], first: int, most: int) -> int:
    """Return the last unit of the passage that begins with the unit `first`."""
    size = units[first].tokens
    last = first
    while last + 1 < len(units) and size + units[last + 1].tokens <= most:
        if units[last].ends_paragraph and size >= _FULL * most and not units[last].is_heading:
            break
        last += 1
        size += units[last].tokens
    while last > first and last + 1 < len(units) and units[last].is_heading:
        last -= 1  # a heading stands before what it heads
    return last


def _overlapping(units: Sequence[_Unit], last: int, overlap: int) -> int:
    """Return the first unit of the next passage, which repeats at most `overlap` tokens."""
    first, size = last + 1, 0
    while first > 0 and size + units[first - 1].tokens <= overlap:
        first -= 1
        size += units[first].tokens
    return first


def _units(text: str, most: int) -> list[_Unit]:
    units: list[_Unit] = []
    for start, end in _cut(text, 0, len(text), _SENTENCE):
        extents = [(start, end)] if tokens(text[start:end]) <= most else _shorter(text, start, end, most)
        for begin, stop in extents:
            sentence = text[begin:stop]
            ends = bool(_PARAGRAPH.search(sentence)) or stop == len(text)
            heading = ends and bool(_HEADING.fullmatch(sentence.strip()))
            units.append(_Unit(begin, stop, tokens(sentence), ends, heading))
    return units


def _cut(text: str, start: int, end: int, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the extents between the matches, each with the match that ends it."""
    ends = [match.end() for match in pattern.finditer(text, start, end)]
    yield from (pair for pair in pairwise([start, *ends, end]) if pair[0] < pair[1])


def _shorter(text: str, start: int, end: int, most: int) -> list[tuple[int, int]]:
    """Return the extents of a long sentence: of clauses, else of as many characters as have so many tokens."""
    extents: list[tuple[int, int]] = []
    for begin, stop in _cut(text, start, end, _CLAUSE):
        if extents and tokens(text[extents[-1][0] : stop]) <= most:
            extents[-1] = extents[-1][0], stop
            continue
        step = max(1, (stop - begin) * most // (tokens(text[begin:stop]) + 1))
        extents += (
            [(first, min(first + step, stop)) for first in range(begin, stop, step)]
            if step < stop - begin
            else [(begin, stop)]
        )
    return extents
