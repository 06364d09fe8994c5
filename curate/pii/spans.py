"""Helpers that make a recogniser's result: spans in order and without overlap."""

import re
from collections.abc import Iterable

from curate.core.records import Span


def apart(spans: Iterable[Span]) -> list[Span]:
    """Return spans sorted, without overlaps: the first of overlapping ones stays, on equal starts the longest."""
    chosen: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not chosen or span.start >= chosen[-1].end:
            chosen.append(span)
    return chosen


def in_order(extents: Iterable[tuple[int, int]], kind: str, recogniser: str) -> list[Span]:
    """Return intervals (start, end) as sorted spans without overlaps."""
    return apart(Span(start, end, kind, recogniser) for start, end in extents)


def value_spans(matches: Iterable[re.Match[str]], kind: str, recogniser: str) -> list[Span]:
    """Return the groups `value` of matches as sorted spans without overlaps."""
    return in_order((match.span("value") for match in matches), kind, recogniser)


def behind_found(text: str, position: int) -> tuple[str, int]:
    """Return the 80 characters after a match, preceded by a boundary `]`, and the shift of offsets in them.

    With it, adjacent matches are found in one pass. Otherwise each would be found only after the previous one is
    masked, which takes quadratic time for a line of names.
    """
    return f"]{text[position : position + 80]}", position - 1
