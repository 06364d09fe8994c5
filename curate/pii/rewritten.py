"""A text rewritten to be read, with the way back: where in the original each of its characters stands."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from curate.core.records import Span

Recognisers = Sequence[Callable[[str], list[Span]]]


@dataclass(frozen=True)
class Rewritten:
    """The text in which stretches were replaced; each replacement stands for the whole stretch."""

    text: str
    stretches: tuple[tuple[int, int, int, int], ...]
    """Start and end in the rewritten text, start and end in the original one."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return a stretch of the rewritten text as one of the original; a cut replacement is taken whole."""
        return self._place(start, first=True), self._place(end - 1, first=False)

    def _place(self, place: int, *, first: bool) -> int:
        found = bisect_right(self.stretches, place, key=lambda stretch: stretch[0]) - 1
        if found < 0:
            return place if first else place + 1
        _, end, raw_start, raw_end = self.stretches[found]
        if place < end:
            return raw_start if first else raw_end
        return raw_end + place - end + (not first)

    def touches(self, start: int, end: int) -> bool:
        """Say whether anything of a stretch of the original text was replaced."""
        before = bisect_right(self.stretches, end - 1, key=lambda stretch: stretch[2]) - 1
        return before >= 0 and self.stretches[before][3] > start


def rewrite(text: str, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> Rewritten:
    """Return the text with every match replaced."""
    parts, stretches, done, length = list[str](), list[tuple[int, int, int, int]](), 0, 0
    for match in pattern.finditer(text):
        parts += [text[done : match.start()], new := by(match)]
        length += match.start() - done
        stretches.append((length, length + len(new), *match.span()))
        length, done = length + len(new), match.end()
    return Rewritten("".join([*parts, text[done:]]), tuple(stretches))


def found(rewritten: Rewritten, recognisers: Recognisers, name: str) -> Iterator[Span]:
    """Yield what recognisers find in the rewritten text, where it stands in the original, if a replacement is in it."""
    if rewritten.stretches:
        for span in (span for recogniser in recognisers for span in recogniser(rewritten.text)):
            start, end = rewritten.original(span.start, span.end)
            if rewritten.touches(start, end):
                yield Span(start, end, span.kind, name)
