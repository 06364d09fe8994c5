"""Ask a language model where personal data stands in a text: windows, prompt, and strict reading of its quotations.

A reply is one JSON object, `{"spans": [{"text": ..., "kind": ...}]}`, and can do nothing but point: what it quotes must
stand in the text, letter by letter. Offsets are never asked for, because models cannot count.
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
"""Raised when markers, windows or how a reply is read change; part of a prompt's digest, so texts are asked again."""
NAME = "model"
"""The recogniser's name in spans."""
ANSWER_TOKENS = 1500
WINDOW = 1000
"""Code points of a text that are shown at once, at most: with prompt and answer they fit 4,096 tokens."""
OVERLAP = 100
"""Code points that neighbouring windows share, at least: all that may be quoted stands whole in one of them."""
LONGEST: Mapping[str, int] = {"address": 100, "url": 100, "email": 100, "hospital": 60, "school": 60}
"""Code points of a quotation, at most; of other kinds `_LONGEST`."""
_LONGEST = 40
_FEWEST_DIGITS = 4
"""Digits of a quotation that is a number alone, at least: fewer stand in many texts and name nobody."""
_SENTENCE_END = re.compile(r"[。！？!?；;…\n]")
_YEAR = re.compile(r"(?:1[89]|20)\d\d年?")
_EDGES = " \t\r\n\u3000，。、；：,;:"
_UNASKED = ("bank_account", "number")
"""Kinds that models are not told of."""

Status = Literal["read", "refused", "unparsed", "excessive", "failed"]
STATUSES: tuple[Status, ...] = ("read", "refused", "unparsed", "excessive", "failed")
"""`excessive`: a reply that would mask so much of a text that nothing is believed of it."""


class MaskingPrompt(PromptTemplate):
    """What the model is asked."""

    subject = "kinds"
    texts = frozenset({"text"})

    def meanings(self) -> Mapping[str, str]:
        """Return kind -> its words in the language of the prompt."""
        return {kind: in_language(words, self.language) for kind, words in _asked().items()}

    @property
    def digest(self) -> str:
        """Return the SHA-256 of everything that is sent beside the texts, and of how texts are cut."""
        return digest([LAYOUT, WINDOW, OVERLAP, ANSWER_TOKENS, self.prefix, self.user.strip()])


@dataclass(frozen=True)
class Spotted:
    """What a reply came to: spans of the window that was shown, and how many quotations were rejected, by reason."""

    status: Status
    spans: tuple[Span, ...] = ()
    rejected: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> str:
        """Return all of it as JSON that holds offsets and counts, and not a word of the text."""
        places = [[span.start, span.end, span.kind] for span in self.spans]
        return canonical({"status": self.status, "spans": places, "rejected": self.rejected})

    @classmethod
    def restored(cls, kept: str) -> "Spotted":
        """Return what `kept` was written of."""
        data = json.loads(kept)
        spans = tuple(Span(start, end, kind, NAME) for start, end, kind in data["spans"])
        return cls(data["status"], spans, data["rejected"])


def prompt(data: Mapping[str, Json], where: str) -> MaskingPrompt:
    """Return the prompt in a parsed YAML mapping; ConfigError names `where`, the key, and what to do."""
    return check(MaskingPrompt, data, where)


def windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts of a text with their offsets, cut at ends of sentences if there are any; none if nothing is said."""
    if not any(map(str.isalnum, text)):
        return
    start = 0
    while len(text) - start > WINDOW:
        end = _sentence(text, start + WINDOW // 2, start + WINDOW)
        yield start, text[start:end]
        start = _sentence(text, end - 3 * OVERLAP, end - OVERLAP)
    yield start, text[start:]


def _sentence(text: str, low: int, high: int) -> int:
    """Return where the last sentence between two places ends; the higher place if none does."""
    return max((match.end() for match in _SENTENCE_END.finditer(text, low, high)), default=high)


def build(asked: MaskingPrompt, window: str, thinking_tokens: int = 0) -> Request:
    """Return the request about a window of a text; errors of the provider may not repeat it."""
    turns = asked.turns({"text": block("text", fence([window]), window)})
    return Request(turns, ANSWER_TOKENS + thinking_tokens, schema(), private=True)


def schema() -> dict[str, Json]:
    """Return the JSON schema of a reply: a list of quotations, each with a known kind."""
    span = json_object({"text": {"type": "string"}, "kind": {"type": "string", "enum": list(_asked())}})
    return json_object({"spans": {"type": "array", "items": span}})


def read(reply: Reply, window: str) -> Spotted:
    """Return what a reply says of the window that was shown: every place of every quotation that can be believed.

    A refusal, an answer that was cut and one in another form say nothing, and so does one that would mask most of it.
    """
    if reply.finish == "refusal":
        return Spotted("refused")
    found = parse.items(reply.text or "")
    listed = found[0][1] if found is not None and [key for key, _ in found] == ["spans"] else None
    if reply.finish == "length" or type(listed) is not list:
        return Spotted("unparsed")
    places, rejected = dict[tuple[int, int], str](), Counter[str]()
    for quote, kind in dict.fromkeys(map(_quotation, listed)):
        reason = _implausible(quote, kind)
        spots, why = ([], reason) if reason else _occurrences(quote, window)
        if not spots:
            rejected[why] += 1
        for spot in spots:
            places.setdefault(spot, kind)
    spans = tuple(Span(*place, kind, NAME) for place, kind in sorted(places.items()))
    status: Status = "excessive" if _excessive(spans, len(window)) else "read"
    return Spotted(status, spans if status == "read" else (), dict(rejected))


def _quotation(item: object) -> tuple[str, str]:
    """Return text and kind of an item; both empty if it is in another form."""
    # `parse.items` gives objects as lists of pairs, which no JSON array is.
    said = dict(item) if isinstance(item, list) and all(isinstance(pair, tuple) for pair in item) else {}
    quote, kind = said.get("text"), said.get("kind")
    if not isinstance(quote, str) or not isinstance(kind, str):
        return "", ""
    return quote.strip(_EDGES), _known_kinds().get(plain(kind), kind or "?")


@cache
def _asked() -> dict[str, Mapping[str, str]]:
    """Return the kinds that a model may name, with their words; a new one changes every prompt's digest."""
    return {kind: words for kind, words in kinds().items() if kind not in _UNASKED}


@cache
def _known_kinds() -> dict[str, str]:
    """Return every word for a kind -> the kind: its own name, and those that stand in placeholders."""
    return {plain(word): kind for kind, words in kinds().items() for word in (kind, *words.values())}


def _implausible(quote: str, kind: str) -> str:
    """Return why a quotation is no personal data wherever it stands; empty if it may be."""
    if not kind:
        return "in another form"
    if kind not in _asked():
        return "of an unknown kind"
    letters, digits = sum(map(str.isalpha, quote)), sum(map(str.isdecimal, quote))
    if len(quote) < 2 or letters + digits == 0 or (not letters and digits < _FEWEST_DIGITS):
        return "too short"
    if len(quote) > LONGEST.get(kind, _LONGEST):
        return "too long"
    return "a measure or a year" if is_measure(quote) or _YEAR.fullmatch(quote) else ""


def _occurrences(quote: str, window: str) -> tuple[list[tuple[int, int]], str]:
    """Return all places of a quotation, and if there are none, why: in a longer number 12 is not 12."""
    places = [match.span() for match in re.finditer(_alone(quote), window)]
    if not places:
        return [], "in a longer word" if quote in window else "not in the text"
    spots = [(start, end) for start, end in places if not is_measure(quote, window[end : end + OVERLAP])]
    return spots, "a measure or a year"


def _alone(quote: str) -> str:
    first, last = (_touching(character) for character in (quote[0], quote[-1]))
    return (rf"(?<!{first})" if first else "") + re.escape(quote) + (rf"(?!{last})" if last else "")


def _touching(character: str) -> str:
    """Return the characters that would make a longer word of a word that begins or ends with this one."""
    if character.isdecimal():
        return r"\d"
    return "[A-Za-z]" if character.isascii() and character.isalpha() else ""


def _excessive(spans: Sequence[Span], length: int) -> bool:
    """Say whether spans cover over half of a text and over 40 code points, or over four fifths and over 20."""
    covered = len({place for span in spans for place in range(span.start, span.end)})
    return covered > 20 and covered > length * (0.5 if covered > 40 else 0.8)
