"""A text with replacements, and the mapping of its offsets to the original."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from curate.core.records import Span

Recognisers = Sequence[Callable[[str], list[Span]]]


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
