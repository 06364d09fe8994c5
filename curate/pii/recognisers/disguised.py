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
from curate.pii.rules import rules
from curate.pii.spans import Recognisers, apart, found, rewrite

_RULES = rules("contacts")
_PATTERN = _RULES.pattern
_NUMBERS: Recognisers = (mobile, landline, western, overseas)
_MOST = 2
"""Maximum number of line ends in one number; a table column has more."""


@trigger(_RULES.source("raw_line_joint"), needs=THREE_DIGITS)
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
        and len(_PATTERN("line_end").findall(narrowed, span.start, span.end)) <= _MOST
        and not _fills_lines(narrowed, span)
    )


def _joined(text: str) -> Iterator[Span]:
    """Yield the numbers found after joining lines, with no separator or with a hyphen between the digits."""
    for join in (lambda _: "", lambda _: "-"):
        yield from found(rewrite(text, _PATTERN("line_joint"), join), _NUMBERS, "broken")
    for match in _PATTERN("hyphened").finditer(text):
        if personal(text, *match.span("value")):
            yield Span(*match.span("value"), "phone", "broken")


def _overlaps(text: str, span: Span, others: list[Span]) -> bool:
    """Return whether a number overlaps a complete one, except for one after a country code on its own line."""
    index = bisect_right(others, span.end - 1, key=lambda candidate: candidate.start) - 1
    if index < 0 or others[index].end <= span.start:
        return False
    return others[index].end != span.end or not _PATTERN("country_on_a_line").fullmatch(
        text, span.start, others[index].start
    )


def _fills_lines(text: str, span: Span) -> bool:
    """Return whether a number's lines contain nothing else and no word for telephone precedes it."""
    front, back = text[max(0, span.start - 20) : span.start], text[span.end : span.end + 20]
    return (
        _PATTERN("line_before").search(front) is not None
        and _PATTERN("line_behind").match(back) is not None
        and not _PATTERN("announced").search(front)
    )


# E-mail addresses and telephone numbers written in base64 (RFC 4648): MTM4..., am9obi5z....

_INSIDE = (email, mobile, landline, western)


@trigger(f"(?:{_RULES.source('base64_group')}){{3}}", needs=TWO_SIGNS)
def encoded(text: str) -> list[Span]:
    """Return base64 strings that encode, or contain, an e-mail address or telephone number."""
    decoded = ((match.span(), _decoded(match[0])) for match in _PATTERN("base64").finditer(text))
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

_SPACES = str.maketrans(
    {"\u2002": " ", "\u2003": " ", "\u2009": " ", "\u2010": "-"}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
)
"""Translation of spaces and hyphens to ASCII; zero-width characters are removed."""
_IN_ENTITIES: Recognisers = (mobile, landline, western, overseas, email, resident_id, bank_card, qq, wechat)


@trigger(_RULES.source("raw_entity"))
@trigger(_RULES.source("raw_spelt_at"), needs=TWO_SIGNS)
def disguised(text: str) -> list[Span]:
    """Return telephone, identity, card and account numbers and e-mail addresses with HTML entities or `[at]` in them.

    Offsets are those of the original text; entities are included completely.
    """
    plain = rewrite(
        text, _PATTERN("entity"), lambda match: html.unescape(match[0].replace("amp;", "")).translate(_SPACES)
    )
    spelt = rewrite(
        narrow(text), _PATTERN("spelt_sign"), lambda match: "@" if re.search("at|@", match[0], re.IGNORECASE) else "."
    )
    spans = [*found(plain, _IN_ENTITIES, "disguised"), *found(spelt, (email,), "disguised")]
    return apart(span for span in spans if not _sentence(text, span))


def _sentence(text: str, span: Span) -> bool:
    """Return whether an apparent address with spaces is two sentences, as in: seen [at] home.Then he fell."""
    address = text[span.start : span.end]
    return span.kind == "email" and " " in address and re.search(r"\.[A-Z][a-z]*\Z", address) is not None
