"""Helpers that make a recogniser's result: spans in order and without overlap, also of a text with replacements."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from curate.core.records import Span

Recognisers = Sequence[Callable[[str], list[Span]]]


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


def behind_found(text: str, position: int) -> tuple[str, int]:
    """Return the 80 characters after a match, preceded by a boundary `]`, and the shift of offsets in them.

    With it, adjacent matches are found in one pass. Otherwise each would be found only after the previous one is
    masked, which takes quadratic time for a line of names.
    """
    return f"]{text[position : position + 80]}", position - 1


# A text with replacements, and the mapping of its offsets to the original.


@dataclass(frozen=True)
class Rewritten:
    """A rewritten text; each replacement maps to the complete stretch of the original that it replaces."""

    text: str
    stretches: tuple[tuple[int, int, int, int], ...]
    """Per replacement: start and end in the rewritten text, start and end in the original."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return an interval of the rewritten text in offsets of the original.

        A partly covered replacement counts completely.
        """
        return self._original_offset(start, first=True), self._original_offset(end - 1, first=False)

    def _original_offset(self, position: int, *, first: bool) -> int:
        index = bisect_right(self.stretches, position, key=lambda stretch: stretch[0]) - 1
        if index < 0:
            return position if first else position + 1
        _, end, raw_start, raw_end = self.stretches[index]
        if position < end:
            return raw_start if first else raw_end
        return raw_end + position - end + (not first)

    def touches(self, start: int, end: int) -> bool:
        """Return whether any part of an interval of the original text was replaced."""
        index = bisect_right(self.stretches, end - 1, key=lambda stretch: stretch[2]) - 1
        return index >= 0 and self.stretches[index][3] > start


def rewrite(text: str, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> Rewritten:
    """Return the text with every match replaced."""
    pieces, stretches, copied, length = list[str](), list[tuple[int, int, int, int]](), 0, 0
    for match in pattern.finditer(text):
        pieces += [text[copied : match.start()], new := by(match)]
        length += match.start() - copied
        stretches.append((length, length + len(new), *match.span()))
        length, copied = length + len(new), match.end()
    return Rewritten("".join([*pieces, text[copied:]]), tuple(stretches))


def found(rewritten: Rewritten, recognisers: Recognisers, name: str) -> Iterator[Span]:
    """Yield the spans that contain a replacement, with offsets in the original text and `name` as their recogniser."""
    if rewritten.stretches:
        for span in (span for recogniser in recognisers for span in recogniser(rewritten.text)):
            start, end = rewritten.original(span.start, span.end)
            if rewritten.touches(start, end):
                yield Span(start, end, span.kind, name)
