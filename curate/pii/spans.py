"""Spans as a recogniser returns them: in order, never overlapping."""

import re
from collections.abc import Iterable

from curate.records import Span


def apart(found: Iterable[Span]) -> list[Span]:
    """Return spans in their order; of overlapping ones the first, and of those that start together the longest."""
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def in_order(places: Iterable[tuple[int, int]], kind: str, recogniser: str) -> list[Span]:
    """Return the places (start, end) as spans, apart."""
    return apart(Span(start, end, kind, recogniser) for start, end in places)


def value_spans(found: Iterable[re.Match[str]], kind: str, recogniser: str) -> list[Span]:
    """Return the places of the groups `value` of matches, apart."""
    return in_order((match.span("value") for match in found), kind, recogniser)


def behind_found(text: str, place: int) -> tuple[str, int]:
    """Return what follows a place at which something found ends, behind a boundary, and by how much offsets shrink.

    What is found right behind something found is so found at once: else it would be when that is masked, one by one,
    and a line of nothing but names would take the square of its length.
    """
    return f"]{text[place : place + 80]}", place - 1
