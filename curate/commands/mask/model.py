"""Find personal data in a text with a language model: windows, prompt, and strict checks of the passages it quotes.

A reply is one JSON object, `{"spans": [{"text": ..., "kind": ...}]}`. Every quotation must occur in the text verbatim.
Offsets are never asked for, because models count unreliably.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from curate.core.config import Json, canonical, check, digest
from curate.core.languages import in_language
from curate.core.messages import Reply, Request
from curate.core.records import Span
from curate.core.scale import plain
from curate.llm import parse
from curate.llm.prompts import PromptTemplate, block, fence, json_object
from curate.pii.masking import kinds
from curate.pii.residual import is_measure

LAYOUT = 1
"""Version of markers, windows and reply parsing; part of the prompt digest, so a new one repeats all calls."""
NAME = "model"
"""Name of this recogniser in spans."""
ANSWER_TOKENS = 1500
WINDOW = 1000
"""Maximum code points of a window: with prompt and answer it fits in 4,096 tokens."""
OVERLAP = 100
"""Minimum code points that adjacent windows share: every permitted quotation is complete in one of them."""
LONGEST: Mapping[str, int] = {"address": 100, "url": 100, "email": 100, "hospital": 60, "school": 60}
"""Kind -> maximum code points of a quotation; other kinds `_LONGEST`."""
_LONGEST = 40
_FEWEST_DIGITS = 4
"""Minimum digits of a quotation that is only a number: shorter ones occur in many texts and identify nobody."""
_SENTENCE_END = re.compile(r"[。！？!?；;…\n]")
_YEAR = re.compile(r"(?:1[89]|20)\d\d年?")
_EDGES = " \t\r\n\u3000，。、；：,;:"
_UNASKED = ("bank_account", "number")
"""Kinds left out of the prompt."""

Status = Literal["read", "refused", "unparsed", "excessive", "failed"]
STATUSES: tuple[Status, ...] = ("read", "refused", "unparsed", "excessive", "failed")
"""`excessive`: a reply that would mask so much of a text that all of it is rejected."""


class MaskingPrompt(PromptTemplate):
    """Prompt for the masking model."""

    subject = "kinds"
    texts = frozenset({"text"})

    def meanings(self) -> Mapping[str, str]:
        """Return kind -> its name in the language of the prompt."""
        return {kind: in_language(words, self.language) for kind, words in _prompted_kinds().items()}

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent except the texts, and of the windowing settings."""
        return digest([LAYOUT, WINDOW, OVERLAP, ANSWER_TOKENS, self.prefix, self.user.strip()])


@dataclass(frozen=True)
class Spotted:
    """Parsed reply: spans in the window, and reason -> number of rejected quotations."""

    status: Status
    spans: tuple[Span, ...] = ()
    rejected: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> str:
        """Return the result as JSON with offsets and counts only, without any text."""
        extents = [[span.start, span.end, span.kind] for span in self.spans]
        return canonical({"status": self.status, "spans": extents, "rejected": self.rejected})

    @classmethod
    def restored(cls, kept: str) -> "Spotted":
        """Return the result that `kept` encodes."""
        fields = json.loads(kept)
        spans = tuple(Span(start, end, kind, NAME) for start, end, kind in fields["spans"])
        return cls(fields["status"], spans, fields["rejected"])


def prompt(data: Mapping[str, Json], where: str) -> MaskingPrompt:
    """Return the prompt in a parsed YAML mapping; ConfigError names `where`, the key, and what to do."""
    return check(MaskingPrompt, data, where)


def windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, window) over a text, cut at sentence ends where possible; none for a blank text."""
    if not any(map(str.isalnum, text)):
        return
    start = 0
    while len(text) - start > WINDOW:
        end = _sentence(text, start + WINDOW // 2, start + WINDOW)
        yield start, text[start:end]
        start = _sentence(text, end - 3 * OVERLAP, end - OVERLAP)
    yield start, text[start:]


def _sentence(text: str, low: int, high: int) -> int:
    """Return the end of the last sentence between two offsets; `high` if none ends there."""
    return max((match.end() for match in _SENTENCE_END.finditer(text, low, high)), default=high)


def build(asked: MaskingPrompt, window: str, thinking_tokens: int = 0) -> Request:
    """Return the request about a window; it is private, so provider errors must not quote it."""
    turns = asked.turns({"text": block("text", fence([window]), window)})
    return Request(turns, ANSWER_TOKENS + thinking_tokens, schema(), private=True)


def schema() -> dict[str, Json]:
    """Return the JSON schema of a reply: a list of quotations, each with a known kind."""
    span = json_object({"text": {"type": "string"}, "kind": {"type": "string", "enum": list(_prompted_kinds())}})
    return json_object({"spans": {"type": "array", "items": span}})


def read(reply: Reply, window: str) -> Spotted:
    """Parse a reply into spans: every occurrence of every plausible quotation in the window.

    There are no spans if the answer is refused, truncated or malformed, or would mask most of the window.
    """
    if reply.finish == "refusal":
        return Spotted("refused")
    members = parse.items(reply.text or "")
    listed = members[0][1] if members is not None and [key for key, _ in members] == ["spans"] else None
    if reply.finish == "length" or type(listed) is not list:
        return Spotted("unparsed")
    kinds_by_extent, rejected = dict[tuple[int, int], str](), Counter[str]()
    for quote, kind in dict.fromkeys(map(_quotation, listed)):
        reason = _implausible(quote, kind)
        spots, why = ([], reason) if reason else _occurrences(quote, window)
        if not spots:
            rejected[why] += 1
        for spot in spots:
            kinds_by_extent.setdefault(spot, kind)
    spans = tuple(Span(*extent, kind, NAME) for extent, kind in sorted(kinds_by_extent.items()))
    status: Status = "excessive" if _excessive(spans, len(window)) else "read"
    return Spotted(status, spans if status == "read" else (), dict(rejected))


def _quotation(entry: object) -> tuple[str, str]:
    """Return text and kind of a list entry; both empty if it is in another form."""
    # `parse.items` gives objects as lists of pairs, which no JSON array is.
    record = dict(entry) if isinstance(entry, list) and all(isinstance(pair, tuple) for pair in entry) else {}
    quote, kind = record.get("text"), record.get("kind")
    if not isinstance(quote, str) or not isinstance(kind, str):
        return "", ""
    return quote.strip(_EDGES), _known_kinds().get(plain(kind), kind or "?")


@cache
def _prompted_kinds() -> dict[str, Mapping[str, str]]:
    """Return kind -> names, for the kinds that the prompt asks about; adding one changes every prompt's digest."""
    return {kind: words for kind, words in kinds().items() if kind not in _UNASKED}


@cache
def _known_kinds() -> dict[str, str]:
    """Return name -> kind, for the kinds' own names and those in placeholders."""
    return {plain(word): kind for kind, words in kinds().items() for word in (kind, *words.values())}


def _implausible(quote: str, kind: str) -> str:
    """Return why a quotation cannot be personal data in any context; empty if it may be."""
    if not kind:
        return "in another form"
    if kind not in _prompted_kinds():
        return "of an unknown kind"
    letters, digits = sum(map(str.isalpha, quote)), sum(map(str.isdecimal, quote))
    if len(quote) < 2 or letters + digits == 0 or (not letters and digits < _FEWEST_DIGITS):
        return "too short"
    if len(quote) > LONGEST.get(kind, _LONGEST):
        return "too long"
    return "a measure or a year" if is_measure(quote) or _YEAR.fullmatch(quote) else ""


def _occurrences(quote: str, window: str) -> tuple[list[tuple[int, int]], str]:
    """Return (start, end) of all occurrences of a quotation as a whole word, and if there are none, the reason."""
    extents = [match.span() for match in re.finditer(_whole_word(quote), window)]
    if not extents:
        return [], "in a longer word" if quote in window else "not in the text"
    spots = [(start, end) for start, end in extents if not is_measure(quote, window[end : end + OVERLAP])]
    return spots, "a measure or a year"


def _whole_word(quote: str) -> str:
    first, last = (_word_class(character) for character in (quote[0], quote[-1]))
    return (rf"(?<!{first})" if first else "") + re.escape(quote) + (rf"(?!{last})" if last else "")


def _word_class(character: str) -> str:
    """Return the character class that would extend a word at this character; empty if none would."""
    if character.isdecimal():
        return r"\d"
    return "[A-Za-z]" if character.isascii() and character.isalpha() else ""


def _excessive(spans: Sequence[Span], length: int) -> bool:
    """Return whether spans cover over half of a text and over 40 code points, or over four fifths and over 20."""
    covered = len({position for span in spans for position in range(span.start, span.end)})
    return covered > 20 and covered > length * (0.5 if covered > 40 else 0.8)
