"""Kinds of personal data, and the placeholders that stand in their place."""

import hashlib
import hmac
import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from operator import itemgetter
from typing import Literal, cast

from curate.core.config import parse_yaml
from curate.core.records import Span
from curate.pii import Recogniser
from curate.pii.text import narrow, script
from curate.system.resources import data_file

FILLER = "＊"
"""Fills a placeholder up to the length of what it stands for."""
GONE = "■"
"""Stands for a character where there is no room for a word; like a bracket, it is part of no recogniser's pattern."""


@cache
def kinds() -> Mapping[str, Mapping[str, str]]:
    """Return kind -> language -> its word."""
    found = parse_yaml(data_file("pii/kinds.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def placeholder(kind: str, language: str) -> str:
    """Return what stands in the place of a kind, such as `[电话]`; a kind of a user's own is its own word."""
    words = kinds().get(kind)
    return f"[{kind if words is None else words['zh' if language.startswith('zh') else 'en']}]"


def tag(kind: str, language: str, length: int) -> str:
    """Return a placeholder of exactly that length, such as `[电话＊＊＊＊＊＊＊]`; `■` where its word has no room."""
    whole = placeholder(kind, language)
    return GONE * length if length < len(whole) else f"{whole[:-1]}{FILLER * (length - len(whole))}]"


def placeholders(own: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of all placeholders and tags in every language, those of a user's own kinds included."""
    words = {word for kind in kinds().values() for word in kind.values()} | set(own)
    listed = "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))
    return re.compile(rf"\[(?:{listed}){FILLER}*\]|{GONE}+")


# Mask a text: what recognisers find gives way to something else, until they find nothing more.

Writer = Callable[[str, str], str]
"""(kind, value) -> what is written in its place."""
Interval = tuple[int, int]


@dataclass(frozen=True)
class Masked:
    """A masked text, and where in the raw text something was found, first one first, never overlapping."""

    text: str
    spans: tuple[Span, ...] = ()
    written: tuple[Interval, ...] = field(default=(), compare=False)
    """Where in the masked text each span's replacement stands."""

    def raw(self, start: int, end: int) -> Interval:
        """Return a stretch of the masked text as one of the raw text; one that cuts a replacement takes it whole."""
        return _raw(start, end, self.spans, self.written)

    def restored(self, raw: str, recogniser: str) -> str:
        """Return the masked text with what one recogniser found as it stood in the raw text."""
        parts, done = [], 0
        for span, (start, end) in zip(self.spans, self.written, strict=True):
            if span.recogniser == recogniser:
                parts += [self.text[done:start], raw[span.start : span.end]]
                done = end
        return "".join([*parts, self.text[done:]])


Work = Generator[str, Sequence[Span], Masked]


@dataclass(frozen=True)
class Masker:
    """What is looked for, and what is written in its place.

    A masked text is not changed again, with any recognisers: they look at what was written until they find
    nothing. `a@b.com010@c.com` shows its second address only once the first one is gone.
    """

    recognisers: Sequence[Recogniser]
    write: Writer
    placeholder: Writer
    """What is written where `write` gave something that is found again, as a made-up number may be in its context."""
    untouched: re.Pattern[str]
    """What is known for a placeholder: no span reaches into it."""
    by_script: Mapping[str | None, tuple[Writer, Writer]] = field(default_factory=dict)
    """Script of what is not masked of a text -> what is used in it instead of `write` and `placeholder`."""

    def mask(self, text: str, known: Sequence[Span] = ()) -> Masked:
        """Return the masked text; `known` are spans found in it by other means, such as a model."""
        work = self.work(text, known)
        seen = next(work)
        while True:
            try:
                seen = work.send(found(self.recognisers, seen))
            except StopIteration as done:
                return cast("Masked", done.value)

    def work(self, text: str, known: Sequence[Span] = ()) -> Work:
        """Mask a text: yield it and then what is written, take what is found there each time; return it masked."""
        draft, write = _Draft(text, (), self.untouched), (self.write, self.placeholder)
        spans = draft.raw(resolve([*known, *(yield text)]))
        if spans:
            write = self.by_script.get(script(_without(text, spans)), write)
        while spans:
            pieces = [*draft.pieces, *(_Piece(span) for span in spans)]
            draft = _Draft(text, [_piece(text, group, *write) for group in _groups(pieces)], self.untouched)
            spans = draft.raw(resolve((yield draft.text)))
        return Masked(draft.text, draft.spans, tuple(draft.written))


@dataclass(frozen=True)
class _Piece:
    """A stretch of the raw text, and what is written in its place; nothing yet if it was only found."""

    span: Span
    written: str = ""
    final: bool = False
    """No recogniser looks into it any more."""


def _piece(raw: str, group: Sequence[_Piece], write: Writer, placeholder: Writer) -> _Piece:
    if len(group) == 1 and group[0].written:
        return group[0]
    span = _joined([piece.span for piece in group])
    value = raw[span.start : span.end]
    last = placeholder(span.kind, value)
    written = last if any(piece.written for piece in group) else write(span.kind, value)
    return _Piece(span, written, final=written == last)


class _Draft:
    """A raw text with pieces of it replaced, and the way back from its offsets to those of the raw text."""

    def __init__(self, raw: str, pieces: Sequence[_Piece], untouched: re.Pattern[str]) -> None:
        self.pieces = pieces
        self.spans = tuple(piece.span for piece in pieces)
        self.written: list[Interval] = []
        parts, done, length = [], 0, 0
        for piece in pieces:
            parts += [raw[done : piece.span.start], piece.written]
            start = length + piece.span.start - done
            length = start + len(piece.written)
            self.written.append((start, length))
            done = piece.span.end
        self.text = "".join([*parts, raw[done:]])
        self._closed = self._intervals(untouched)

    def _intervals(self, untouched: re.Pattern[str]) -> list[Interval]:
        """Return the stretches of the text that no span may reach into, first one first."""
        final = [place for place, piece in zip(self.written, self.pieces, strict=True) if piece.final]
        return sorted({*final, *(match.span() for match in untouched.finditer(self.text))})

    def raw(self, spans: Iterable[Span]) -> list[Span]:
        """Return spans of this text as spans of the raw one, less what is closed to them."""
        return [
            Span(*_raw(start, end, self.spans, self.written), span.kind, span.recogniser)
            for span in spans
            for start, end in _outside((span.start, span.end), self._closed)
        ]


def _raw(start: int, end: int, spans: Sequence[Span], written: Sequence[Interval]) -> Interval:
    """Return a stretch of a text with replacements as one of the raw text."""
    return _back(start, 0, spans, written), _back(end, 1, spans, written)


def _back(place: int, edge: int, spans: Sequence[Span], written: Sequence[Interval]) -> int:
    """Return the offset in the raw text; inside a replacement that of its span's start (edge 0) or end (edge 1)."""
    last = bisect_right(written, place, key=itemgetter(0)) - 1
    if last < 0:
        return place
    (start, end), span = written[last], spans[last]
    if place >= end:
        return span.end + place - end
    return span.end if edge and place > start else span.start


def _without(text: str, spans: Sequence[Span]) -> str:
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
    return " ".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def found(recognisers: Iterable[Recogniser], text: str) -> list[Span]:
    """Return what recognisers find in a text; each is asked once."""
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


# What is written in the place of personal data: a placeholder, a made-up value, or a tag of the same length.

Mode = Literal["placeholder", "pseudonym", "tag"]

_NUMBER = re.compile(r"[+\d\s()./·-]+[xX]?", re.ASCII)
_SEPARATORS = re.compile(r"[\s()./·-]+")
_COUNTRY = re.compile(r"^(?:\+86|0086)")
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕"
_STEMS = "甲乙丙丁戊己庚辛壬癸"


def writer(mode: Mode, language: str, key: bytes) -> Writer:
    """Return what writes in that mode; pseudonyms are drawn by `key`, kinds without any get placeholders."""
    if mode == "tag":
        return lambda kind, value: tag(kind, language, len(value))
    return partial(_pseudonym, language, key) if mode == "pseudonym" else last_resort(language)


def last_resort(language: str) -> Writer:
    """Return what writes placeholders."""
    return lambda kind, _value: placeholder(kind, language)


def link(key: bytes, kind: str, value: str) -> str:
    """Return 16 hexadecimal digits that are equal for equal values, however written; without the key they say nothing.

    HMAC-SHA-256, cut to 64 bits.
    """
    return _draw(key, kind, value)[:16]


def _pseudonym(language: str, key: bytes, kind: str, value: str) -> str:
    make = PSEUDONYMS.get(kind)
    return placeholder(kind, language) if make is None else make(int(_draw(key, kind, value), 16))


def _draw(key: bytes, kind: str, value: str) -> str:
    same = narrow(value).casefold()
    if _NUMBER.fullmatch(same):
        same = _COUNTRY.sub("", _SEPARATORS.sub("", same))
    return hmac.new(key, f"{kind}\0{same}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _phone(number: int) -> str:
    return f"12{number % 10**9:09d}"


def _email(number: int) -> str:
    return f"user{number % 10**9:09d}@mail.invalid"


def _id_card(number: int) -> str:
    year, number = 1950 + number % 60, number // 60
    month, number = 1 + number % 12, number // 12
    return f"000000{year}{month:02d}{1 + number % 28:02d}{number // 28 % 10**4:04d}"


def _plate(number: int) -> str:
    letter = "ABCDEFGH"[number // 31 % 8]
    return f"{_PROVINCES[number % 31]}{letter}I{number // 248 % 10**4:04d}"


def _name(number: int) -> str:
    surname, number = _SURNAMES[number % len(_SURNAMES)], number // len(_SURNAMES)
    return f"{surname}某{_STEMS[number % 10]}"


PSEUDONYMS: dict[str, Callable[[int], str]] = {
    "phone": _phone,
    "email": _email,
    "id_card": _id_card,
    "plate": _plate,
    "name": _name,
}
"""Kind -> what makes a value that nobody has, and that no recogniser takes for one: numbers from 12 on are no mobile's
(recommendation of the numbering plan of China), `.invalid` is reserved (RFC 2606), no region is called 000000, plates
have no letter I, and 某 says that a name is none. Other kinds have no such range and get placeholders."""
