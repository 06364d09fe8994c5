"""Mask a text: what recognisers find gives way to something else, until they find nothing more."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from curate.pii import Recogniser
from curate.records import Span

Writer = Callable[[str, str], str]
"""(kind, value) -> what is written in its place."""
Interval = tuple[int, int]


@dataclass(frozen=True)
class Masked:
    """A masked text, and where in the raw text something was found, first one first, never overlapping."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Masker:
    """What is looked for, and what is written in its place.

    A masked text is not changed again, whatever the recognisers are: they look at what was written until they find
    nothing. `a@b.com010@c.com` shows its second address only once the first one is gone.
    """

    recognisers: Sequence[Recogniser]
    write: Writer
    placeholder: Writer
    """What is written where `write` gave something that is found again, as a made-up number may be in its context."""
    untouched: re.Pattern[str]
    """What is known for a placeholder: no span reaches into it."""

    def mask(self, text: str, known: Sequence[Span] = (), likely: Sequence[Recogniser] | None = None) -> Masked:
        """Return the masked text; `known` are spans that somebody else found in it, such as a model.

        `likely` are the recognisers that can find something in the raw text, if that was looked up before.
        """
        draft = _Draft(text, (), self.untouched)
        found = draft.raw(resolve([*known, *_found(self.recognisers if likely is None else likely, text)]))
        while found:
            pieces = [*draft.pieces, *(_Piece(span) for span in found)]
            draft = _Draft(text, [self._piece(text, group) for group in _groups(pieces)], self.untouched)
            found = draft.raw(resolve(_found(self.recognisers, draft.text)))
        return Masked(draft.text, tuple(piece.span for piece in draft.pieces))

    def _piece(self, raw: str, group: Sequence["_Piece"]) -> "_Piece":
        if len(group) == 1 and group[0].written:
            return group[0]
        span = _joined([piece.span for piece in group])
        value = raw[span.start : span.end]
        last = self.placeholder(span.kind, value)
        written = last if any(piece.written for piece in group) else self.write(span.kind, value)
        return _Piece(span, written, final=written == last)


@dataclass(frozen=True)
class _Piece:
    """A stretch of the raw text, and what is written in its place; nothing yet if it was only found."""

    span: Span
    written: str = ""
    final: bool = False
    """No recogniser looks into it any more."""


class _Draft:
    """A raw text with pieces of it replaced, and the way back from its offsets to those of the raw text."""

    def __init__(self, raw: str, pieces: Sequence[_Piece], untouched: re.Pattern[str]) -> None:
        self.pieces = pieces
        parts, self._starts, done, length = [], [], 0, 0
        for piece in pieces:
            parts += [raw[done : piece.span.start], piece.written]
            length += piece.span.start - done
            self._starts.append(length)
            length += len(piece.written)
            done = piece.span.end
        self.text = "".join([*parts, raw[done:]])
        self._closed = self._intervals(untouched)

    def _intervals(self, untouched: re.Pattern[str]) -> list[Interval]:
        """Return the stretches of the text that no span may reach into, first one first."""
        final = [
            (start, start + len(piece.written))
            for start, piece in zip(self._starts, self.pieces, strict=True)
            if piece.final
        ]
        return sorted({*final, *(match.span() for match in untouched.finditer(self.text))})

    def raw(self, spans: Iterable[Span]) -> list[Span]:
        """Return spans of this text as spans of the raw one, less what is closed to them."""
        return [
            Span(self._back(start, 0), self._back(end, 1), span.kind, span.recogniser)
            for span in spans
            for start, end in _outside((span.start, span.end), self._closed)
        ]

    def _back(self, place: int, edge: int) -> int:
        """Return the offset in the raw text; inside a piece that of its start (edge 0) or its end (edge 1)."""
        last = bisect_right(self._starts, place) - 1
        if last < 0:
            return place
        piece, beyond = self.pieces[last], place - self._starts[last] - len(self.pieces[last].written)
        if beyond >= 0:
            return piece.span.end + beyond
        return piece.span.end if edge and place > self._starts[last] else piece.span.start


def _found(recognisers: Iterable[Recogniser], text: str) -> list[Span]:
    return [span for recogniser in recognisers for span in recogniser(text)]


def resolve(found: Iterable[Span]) -> list[Span]:
    """Return spans that do not overlap, covering everything that was found.

    Overlapping spans become one, with the kind and recogniser of the longest; of equally long ones the first, then the
    one whose recogniser's name comes first.
    """
    return [_joined([piece.span for piece in group]) for group in _groups(map(_Piece, found))]


def _groups(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Yield pieces that overlap together; those that only touch stay apart, empty ones are left out."""
    group: list[_Piece] = []
    end = -1
    for piece in sorted(pieces, key=lambda piece: (piece.span.start, piece.span.end)):
        if piece.span.start == piece.span.end:
            continue
        if group and piece.span.start >= end:
            yield group
            group = []
        group.append(piece)
        end = max(end, piece.span.end)
    if group:
        yield group


def _joined(group: Sequence[Span]) -> Span:
    longest = min(group, key=lambda span: (span.start - span.end, span.start, span.recogniser))
    return Span(group[0].start, max(span.end for span in group), longest.kind, longest.recogniser)


def _outside(span: Interval, closed: Sequence[Interval]) -> Iterator[Interval]:
    """Yield what is left of a span outside of the closed intervals."""
    start, end = span
    for low, high in closed[max(bisect_right(closed, (start, start)) - 1, 0) :]:
        if low >= end:
            break
        if start < low:
            yield start, low
        start = max(start, high)
    if start < end:
        yield start, end
