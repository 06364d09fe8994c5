"""What is wrong with a reply that gives nothing, in words, and what helps: said of a judge that is given up, and tried.

The rule looks at the reply alone, not at the setting that brought it about, which nobody knows.
"""

import re
from typing import NamedTuple
from unicodedata import normalize

from curate.core.messages import Reply, Request
from curate.llm.parse import answer

LONGEST = 120
"""Characters of a reply that are shown, at most."""
LOOKED_AT = 2_000
"""Characters of a reply of which some are shown."""
RUN = 8
"""Bytes of letters and digits in a row that are hidden where the prompt has them, too: 8 letters, 3 of Chinese."""
FLOOD = 100
"""Characters of a reply, most of them white space, from which it is a flood of it."""


class ReplyFault(NamedTuple):
    """A form of replies that give nothing."""

    said: str
    """What came, as a noun phrase."""
    remedy: str


REFUSED = ReplyFault("refusals", "choose another model, or leave out what it refuses")
_FLOOD = ReplyFault(
    "white space up to the bound of the answer", "set another json_mode: none leaves the form to the prompt"
)
_CUT = ReplyFault("answers that stop at their bound before anything can be read", "raise thinking_tokens")
_CUT_THOUGHTS = ReplyFault("thoughts up to the bound of the answer", "raise thinking_tokens, or turn thinking off")
_THOUGHTS = ReplyFault("thoughts and no answer", "turn thinking off by extra_body, or raise thinking_tokens")
_EMPTY = ReplyFault("empty answers", "try another json_mode, or another model")
_FOREIGN = ReplyFault("JSON without a grade of what was asked for", "try another json_mode, rubric or model")
_UNREADABLE = ReplyFault("answers that are not in the agreed form", "try another json_mode, rubric or model")


def fault(reply: Reply, form: str = "") -> ReplyFault:
    """Return what is wrong with a reply that gives nothing; `form` is that of `rating.form` if it is a judge's."""
    text = reply.text or ""
    thoughts = not answer(text) and (reply.thoughts or bool(text.strip()))
    if reply.finish == "refusal":
        return REFUSED
    if len(text) > FLOOD and 2 * len("".join(text.split())) < len(text):
        return _FLOOD
    if reply.finish == "length":
        return _CUT_THOUGHTS if thoughts else _CUT
    if thoughts:
        return _THOUGHTS
    return _EMPTY if not text.strip() else _FOREIGN if form == "foreign" else _UNREADABLE


def sample(reply: Reply, request: Request) -> str:
    """Return the beginning of a reply without what it repeats of the prompt; empty where nothing may be shown."""
    if request.private:
        return ""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), (reply.text or "").strip()[:LOOKED_AT])
    shown = b"".join(letters for turn in request.messages for _, letters in _letters(turn.content))
    spelt = [(place, byte) for place, letters in _letters(text) for byte in letters]
    said = bytes(byte for _, byte in spelt)
    hidden = {
        place
        for start in range(len(said) - RUN + 1)
        if said[start : start + RUN] in shown
        for place, _ in spelt[start : start + RUN]
    }
    left = "".join("\0" if place in hidden else letter for place, letter in enumerate(text))
    return " ".join(re.sub(r"\0(?:[\W_]*\0)?", "…", left).split())[:LONGEST]


def _letters(text: str) -> list[tuple[int, bytes]]:
    """Return the place of every letter and digit, and it as it is compared: in any case and width the same."""
    return [(place, normalize("NFKC", each).casefold().encode()) for place, each in enumerate(text) if each.isalnum()]
