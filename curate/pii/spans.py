"""Spans as a recogniser returns them: in order, without overlap."""

import re
from collections.abc import Iterable

from curate.core.records import Span


def apart(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order; of overlapping ones only the first, and of those with the same start the longest."""
    chosen: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not chosen or span.start >= chosen[-1].end:
            chosen.append(span)
    return chosen


def in_order(extents: Iterable[tuple[int, int]], kind: str, recogniser: str) -> list[Span]:
    """Return the extents (start, end) as spans without overlap."""
    return apart(Span(start, end, kind, recogniser) for start, end in extents)


def value_spans(matches: Iterable[re.Match[str]], kind: str, recogniser: str) -> list[Span]:
    """Return the groups `value` of matches as spans without overlap."""
    return in_order((match.span("value") for match in matches), kind, recogniser)


def behind_found(text: str, position: int) -> tuple[str, int]:
    """Return the text after the end of a match, with a boundary before it, and the decrease of its offsets.

    So adjacent matches are found in one pass. Otherwise each would be found only after the previous one is masked,
    which is quadratic for a line of names.
    """
    return f"]{text[position : position + 80]}", position - 1
