"""Masking of texts: kinds of personal data, placeholders, pseudonyms, and the masker."""

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
from curate.pii.medicine import spared
from curate.pii.patterns import narrow, script
from curate.system.resources import data_file

FILLER = "＊"
"""Character that extends a placeholder to the length of the replaced text."""
GONE = "■"
"""Character that replaces each character of a text too short for its placeholder; no recogniser matches it."""


@cache
def kinds() -> Mapping[str, Mapping[str, str]]:
    """Return kind of personal data -> language -> word in its placeholder."""
    words_of = parse_yaml(data_file("pii/kinds.yaml").read_text(encoding="utf-8"))
    assert isinstance(words_of, dict)
    return words_of


def placeholder(kind: str, language: str) -> str:
    """Return the placeholder of a kind, such as `[电话]`; a user-defined kind is its own word."""
    words = kinds().get(kind)
    return f"[{kind if words is None else words['zh' if language.startswith('zh') else 'en']}]"


def tag(kind: str, language: str, length: int) -> str:
    """Return a placeholder of exactly `length` characters, such as `[电话＊＊＊＊＊]`; only `■` if it does not fit."""
    complete = placeholder(kind, language)
    return GONE * length if length < len(complete) else f"{complete[:-1]}{FILLER * (length - len(complete))}]"


def placeholders(custom: Iterable[str] = ()) -> re.Pattern[str]:
    """Return the pattern of all placeholders of any length and language, including those of user-defined kinds."""
    words = {word for kind in kinds().values() for word in kind.values()} | set(custom)
    listed = "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))
    return re.compile(rf"\[(?:{listed}){FILLER}*\]|{GONE}+")


# Mask a text: what recognisers find gives way to something else, until they find nothing more.

Writer = Callable[[str, str], str]
"""Function from (kind, original) to the replacement."""
Interval = tuple[int, int]


@dataclass(frozen=True)
class Masked:
    """A masked text, and the masked spans of the original (raw) text, in order and without overlap."""

    text: str
    spans: tuple[Span, ...] = ()
    written: tuple[Interval, ...] = field(default=(), compare=False)
    """Start and end of each span's replacement in the masked text."""

    def raw(self, start: int, end: int) -> Interval:
        """Return an interval of the masked text in offsets of the raw text.

        A partly covered replacement is included completely.
        """
        return _raw(start, end, self.spans, self.written)

    def restored(self, raw: str, recogniser: str) -> str:
        """Return the masked text with the spans of one recogniser as in the raw text."""
        pieces, copied = [], 0
        for span, (start, end) in zip(self.spans, self.written, strict=True):
            if span.recogniser == recogniser:
                pieces += [self.text[copied:start], raw[span.start : span.end]]
                copied = end
        return "".join([*pieces, self.text[copied:]])


Work = Generator[str, Sequence[Span], Masked]


@dataclass(frozen=True)
class Masker:
    """Recognisers, and the functions that write replacements.

    Masking is idempotent: the recognisers run on the masked text again until they find nothing. For example, the second
    address in `a@b.com010@c.com` is found only after the first one is masked.
    """

    recognisers: Sequence[Recogniser]
    write: Writer
    placeholder: Writer
    """Fallback writer, used if recognisers find the output of `write`.

    An invented number may look real in its context.
    """
    untouched: re.Pattern[str]
    """Pattern of placeholders; no span may overlap them."""
    by_script: Mapping[str | None, tuple[Writer, Writer]] = field(default_factory=dict)
    """Script of the unmasked part of a text -> writers used instead of `write` and `placeholder`."""

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
        """Mask a text as a coroutine: yield each text to scan, receive its spans, finally return the masked text."""
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
    """A span of the raw text and its replacement; the replacement is empty until it is written."""

    span: Span
    written: str = ""
    final: bool = False
    """Whether recognisers ignore the replacement from now on."""


def _piece(raw: str, group: Sequence[_Piece], write: Writer, placeholder: Writer) -> _Piece:
    if len(group) == 1 and group[0].written:
        return group[0]
    span = _joined([piece.span for piece in group])
    original = raw[span.start : span.end]
    fallback = placeholder(span.kind, original)
    written = fallback if any(piece.written for piece in group) else write(span.kind, original)
    return _Piece(span, written, final=written == fallback)


class _Draft:
    """A raw text with replaced pieces, and the offsets of the replacements."""

    def __init__(self, raw: str, pieces: Sequence[_Piece], untouched: re.Pattern[str]) -> None:
        self.pieces = pieces
        self.spans = tuple(piece.span for piece in pieces)
        self.written: list[Interval] = []
        texts, copied, length = [], 0, 0
        for piece in pieces:
            texts += [raw[copied : piece.span.start], piece.written]
            start = length + piece.span.start - copied
            length = start + len(piece.written)
            self.written.append((start, length))
            copied = piece.span.end
        self.text = "".join([*texts, raw[copied:]])
        final = [extent for extent, piece in zip(self.written, pieces, strict=True) if piece.final]
        self._closed = sorted({*final, *(match.span() for match in untouched.finditer(self.text))})

    def raw(self, spans: Iterable[Span]) -> list[Span]:
        """Return spans of the draft in offsets of the raw text, without placeholders and final replacements."""
        return [
            Span(*_raw(start, end, self.spans, self.written), span.kind, span.recogniser)
            for span in spans
            for start, end in _outside((span.start, span.end), self._closed)
        ]


def _raw(start: int, end: int, spans: Sequence[Span], written: Sequence[Interval]) -> Interval:
    """Return an interval of a text with replacements in offsets of the raw text."""
    return _raw_offset(start, 0, spans, written), _raw_offset(end, 1, spans, written)


def _raw_offset(position: int, edge: int, spans: Sequence[Span], written: Sequence[Interval]) -> int:
    """Return an offset in the raw text; inside a replacement, the start (edge 0) or end (edge 1) of its span."""
    last = bisect_right(written, position, key=itemgetter(0)) - 1
    if last < 0:
        return position
    (start, end), span = written[last], spans[last]
    if position >= end:
        return span.end + position - end
    return span.end if edge and position > start else span.start


def _without(text: str, spans: Sequence[Span]) -> str:
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
    return " ".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def found(recognisers: Iterable[Recogniser], text: str) -> list[Span]:
    """Return the spans that recognisers find in a text, without medicine; each recogniser is called once."""
    return list(spared((span for recogniser in recognisers for span in recogniser(text)), text))


def resolve(spans: Iterable[Span]) -> list[Span]:
    """Return spans with overlapping ones merged; each merged span covers everything found.

    Its kind and recogniser are those of the longest span; on ties of the first, then of the alphabetically first
    recogniser.
    """
    return [_joined([piece.span for piece in group]) for group in _groups(map(_Piece, spans))]


def _groups(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Yield groups of overlapping pieces; adjacent pieces are separate groups, and empty ones are omitted."""
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
    """Yield the parts of a span outside the closed intervals."""
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
    """Return the writer of a mode; pseudonyms depend on `key`, and kinds without pseudonyms get placeholders."""
    if mode == "tag":
        return lambda kind, original: tag(kind, language, len(original))
    return partial(_pseudonym, language, key) if mode == "pseudonym" else last_resort(language)


def last_resort(language: str) -> Writer:
    """Return the writer of placeholders."""
    return lambda kind, _value: placeholder(kind, language)


def link(key: bytes, kind: str, original: str) -> str:
    """Return 16 hexadecimal digits, equal for equal values in any notation, which reveal nothing without the key.

    The digits are an HMAC-SHA-256 truncated to 64 bits.
    """
    return _draw(key, kind, original)[:16]


def _pseudonym(language: str, key: bytes, kind: str, original: str) -> str:
    make = PSEUDONYMS.get(kind)
    return placeholder(kind, language) if make is None else make(int(_draw(key, kind, original), 16))


def _draw(key: bytes, kind: str, original: str) -> str:
    normalised = narrow(original).casefold()
    if _NUMBER.fullmatch(normalised):
        normalised = _COUNTRY.sub("", _SEPARATORS.sub("", normalised))
    return hmac.new(key, f"{kind}\0{normalised}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _id_card(number: int) -> str:
    year, number = 1950 + number % 60, number // 60
    month, number = 1 + number % 12, number // 12
    return f"000000{year}{month:02d}{1 + number % 28:02d}{number // 28 % 10**4:04d}"


PSEUDONYMS: dict[str, Callable[[int], str]] = {
    "phone": lambda number: f"12{number % 10**9:09d}",
    "email": lambda number: f"user{number % 10**9:09d}@mail.invalid",
    "id_card": _id_card,
    "plate": lambda number: f"{_PROVINCES[number % 31]}{'ABCDEFGH'[number // 31 % 8]}I{number // 248 % 10**4:04d}",
    "name": lambda number: f"{_SURNAMES[number % len(_SURNAMES)]}某{_STEMS[number // len(_SURNAMES) % 10]}",
}
"""Kind -> function from a number to a fictitious value that no recogniser matches.

No mobile number starts with 12 (numbering plan of China), `.invalid` is a reserved domain (RFC 2606), region 000000
does not exist, plates do not contain the letter I, and 某 marks an anonymous name. Other kinds have no such range and
get placeholders.
"""
