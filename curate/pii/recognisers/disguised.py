"""Disguised personal data: numbers broken by a line end, base64, HTML entities, `[at]` and `[dot]`."""

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.recognisers.contexts import personal
from curate.pii.recognisers.numbers import (
    bank_card,
    email,
    landline,
    mobile,
    overseas,
    qq,
    resident_id,
    wechat,
    western,
)
from curate.pii.rewritten import Recognisers, found, rewrite
from curate.pii.rules import rules
from curate.pii.spans import apart
from curate.pii.words import either, raw, words

_CUT = r"[ \t]*(?:\r\n|\r|\n)[ \t]*(?:(?:>|&gt;)[ \t]*){0,5}"
"""A line end, with quotation marks (>) at the start of the next line."""
_JOINT = re.compile(rf"(?<=[0-9)-]){_CUT}(?=[-(]?[0-9])")
_WIDE_JOINT = (
    r"[0-9０-９)）\u2010-\u2015\u2212－-][\s\u3000]*?[\r\n](?:[\s\u3000>＞]|&gt;)*"
    r"[-－(（\u2010-\u2015\u2212]?[0-9０-９]"
)
_NUMBERS: Recognisers = (mobile, landline, western, overseas)
_ENDS = re.compile(r"\r\n|\r|\n")
_PHONE, _LINK = map(rules("contacts").source, ("phone", "link"))
_ANNOUNCED = re.compile(rf"{_PHONE}[^0-9]{{0,6}}\Z", re.IGNORECASE)
_GROUPS = re.compile(
    rf"{_PHONE}{_LINK}(?P<value>1[3-9][0-9]{{1,2}}-{_CUT}[0-9]{{3,4}}-{_CUT}[0-9]{{3,5}})(?![0-9-])", re.IGNORECASE
)
"""A number of any length in three groups with hyphens at the line ends, after a word for telephone."""
_CODE = re.compile(rf"(?:\+ ?|00)\(?86\)?-?{_CUT}\Z")
_LINE_BEGINS, _LINE_ENDS = re.compile(r"(?:\A|[\r\n])[ \t>]*\Z"), re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_MOST = 2
"""Maximum number of line ends in one number; a table column has more."""


@trigger(_WIDE_JOINT, needs=THREE_DIGITS)
def broken(text: str) -> list[Span]:
    """Return telephone numbers broken by a line end, with or without a hyphen or space next to it.

    Digits that fill their lines count as a table, not as a number, unless a word for telephone precedes them; digits on
    more than three lines always do. A number that is complete in its line does not continue in the next.
    """
    narrowed = narrow(text)
    complete = apart(span for recogniser in _NUMBERS for span in recogniser(narrowed))
    return apart(
        span
        for span in _joined(narrowed)
        if not _overlaps(narrowed, span, complete)
        and len(_ENDS.findall(narrowed, span.start, span.end)) <= _MOST
        and not _fills_lines(narrowed, span)
    )


def _joined(text: str) -> Iterator[Span]:
    """Yield the numbers found after joining lines, with no separator or with a hyphen between the digits."""
    for join in (lambda _: "", lambda _: "-"):
        yield from found(rewrite(text, _JOINT, join), _NUMBERS, "broken")
    for match in _GROUPS.finditer(text):
        if personal(text, *match.span("value")):
            yield Span(*match.span("value"), "phone", "broken")


def _overlaps(text: str, span: Span, others: list[Span]) -> bool:
    """Return whether a number overlaps a complete one, except for one after a country code on its own line."""
    index = bisect_right(others, span.end - 1, key=lambda candidate: candidate.start) - 1
    if index < 0 or others[index].end <= span.start:
        return False
    return others[index].end != span.end or not _CODE.fullmatch(text, span.start, others[index].start)


def _fills_lines(text: str, span: Span) -> bool:
    """Return whether a number's lines contain nothing else and no word for telephone precedes it."""
    front, back = text[max(0, span.start - 20) : span.start], text[span.end : span.end + 20]
    return (
        _LINE_BEGINS.search(front) is not None and _LINE_ENDS.match(back) is not None and not _ANNOUNCED.search(front)
    )


# E-mail addresses and telephone numbers written in base64 (RFC 4648): MTM4..., am9obi5z....

_GROUP = "[I-Za-f][C-HS-Xi-ny-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
"""Base64 of three printable ASCII characters, also in its form for URLs."""
_LAST = "(?:[I-Za-f][A-Za-z0-9](?:==)?(?![A-Za-z0-9+/=])|[I-Za-f][A-Za-z0-9]{2}=?(?![A-Za-z0-9+/=]))?"
_ENCODED = re.compile(rf"(?<![A-Za-z0-9+/])(?:{_GROUP}){{3,200}}{_LAST}(?![A-Za-z0-9+/=])")
_INSIDE = (email, mobile, landline, western)


@trigger(f"(?:{_GROUP}){{3}}", needs=TWO_SIGNS)
def encoded(text: str) -> list[Span]:
    """Return base64 strings that encode, or contain, an e-mail address or telephone number."""
    decoded = ((match.span(), _decoded(match[0])) for match in _ENCODED.finditer(text))
    inside = (
        (extent, next((spans[0].kind for recogniser in _INSIDE if (spans := recogniser(plain))), ""))
        for extent, plain in decoded
    )
    return apart(Span(*extent, kind, "encoded") for extent, kind in inside if kind)


def _decoded(code: str) -> str:
    """Return the text decoded from base64; empty if it is not printable ASCII."""
    bare = code.rstrip("=")
    try:
        plain = base64.urlsafe_b64decode(bare.replace("+", "-").replace("/", "_") + "=" * (-len(bare) % 4)).decode(
            "ascii"
        )
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if plain.isprintable() else ""


# Numbers and e-mail addresses behind HTML entities or brackets: &#49;&#51;&#56;.., 139&nbsp;.., name [at] web.de.

_UNSEEN = "shy|zwnj|zwj|ZeroWidthSpace|NoBreak|lrm|rlm"
_BLANKS = "nbsp|hairsp|numsp|puncsp|emsp13|emsp14|MediumSpace|ThinSpace"
_NAMED = f"{_UNSEEN}|{_BLANKS}|ensp|emsp|thinsp|hyphen|ndash|minus|period|dot|commat|lpar|rpar|plus|lowbar"
_DECIMAL, _HEXADECIMAL = "#0{0,4}[0-9]{2,5}", "#[xX]0{0,4}[0-9A-Fa-f]{2,4}"
_ENTITY = re.compile(f"&(?:amp;){{0,3}}(?:{_DECIMAL}(?![0-9]);?|{_HEXADECIMAL}(?![0-9A-Fa-f]);?|(?:{_NAMED});)")
"""HTML entity, also with a repeatedly escaped `&`; browsers accept a numeric one without semicolon."""
_PROVIDERS = either(words("contacts")["providers"])
_AT = rf"[ \t]?(?:\[ ?at ?\]|\( ?at ?\)|\{{ ?at ?\}}|< ?at ?>|\[@\]|\(@\)|_at_(?={_PROVIDERS}\.))[ \t]?"
_POINT = r"[ \t]?(?:\[ ?dot ?\]|\( ?dot ?\)|\{ ?dot ?\}|< ?dot ?>|\[\.\]|\(\.\))[ \t]?"
_HOST = r"[A-Za-z0-9-]{1,63}"
_ADDRESS = re.compile(
    rf"(?<=[A-Za-z0-9_+-])(?:{_AT}(?={_HOST}(?:(?:{_POINT}|\.){_HOST}){{1,6}}(?![A-Za-z]))|{_POINT}(?={_HOST}))",
    re.IGNORECASE,
)
_SPACES = str.maketrans(
    {"\u2002": " ", "\u2003": " ", "\u2009": " ", "\u2010": "-"}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
)
"""Translation of spaces and hyphens to ASCII; zero-width characters are removed."""
_IN_ENTITIES: Recognisers = (mobile, landline, western, overseas, email, resident_id, bank_card, qq, wechat)


@trigger(f"&(?:amp;)*(?:{_DECIMAL}|{_HEXADECIMAL}|(?:{_NAMED});)")
@trigger(rf"[\[({{<（［｛＜]\s?(?:{raw(['at'])}|[@＠])\s?[\])}}>）］｝＞]|_(?:at|AT|At)_", needs=TWO_SIGNS)
def disguised(text: str) -> list[Span]:
    """Return telephone, identity, card and account numbers and e-mail addresses with HTML entities or `[at]` in them.

    Offsets are those of the original text; entities are included completely.
    """
    plain = rewrite(text, _ENTITY, lambda match: html.unescape(match[0].replace("amp;", "")).translate(_SPACES))
    spelt = rewrite(narrow(text), _ADDRESS, lambda match: "@" if re.search("at|@", match[0], re.IGNORECASE) else ".")
    spans = [*found(plain, _IN_ENTITIES, "disguised"), *found(spelt, (email,), "disguised")]
    return apart(span for span in spans if not _sentence(text, span))


def _sentence(text: str, span: Span) -> bool:
    """Return whether an apparent address with spaces is two sentences, as in: seen [at] home.Then he fell."""
    address = text[span.start : span.end]
    return span.kind == "email" and " " in address and re.search(r"\.[A-Z][a-z]*\Z", address) is not None
