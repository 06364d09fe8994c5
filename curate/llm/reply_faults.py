"""Faults of replies without a result, with remedies, for the message about a judge that is stopped.

Classified by the reply alone, since the setting that caused it is unknown.
"""

import re
from typing import NamedTuple
from unicodedata import normalize

from curate.core.messages import Reply, Request
from curate.llm.parse import answer

LONGEST = 120
"""Maximum characters of a reply that are shown."""
LOOKED_AT = 2_000
"""Maximum characters of a reply that are searched for an excerpt."""
RUN = 8
"""Bytes of letters and digits in a row that are hidden if the prompt contains them: 8 letters, 3 of Chinese."""
FLOOD = 100
"""Minimum characters of a reply that counts as a flood of white space."""


class ReplyFault(NamedTuple):
    """A kind of reply without a result."""

    said: str
    """The kind as a noun phrase."""
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
    """Return the fault of a reply without a result; `form` is that of `rating.form` if it is a judge's."""
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
    """Return the beginning of a reply without repetitions of the prompt; empty for a private request."""
    if request.private:
        return ""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), (reply.text or "").strip()[:LOOKED_AT])
    prompt_letters = b"".join(letters for turn in request.messages for _, letters in _letters(turn.content))
    indexed_bytes = [(index, byte) for index, letters in _letters(text) for byte in letters]
    reply_letters = bytes(byte for _, byte in indexed_bytes)
    hidden = {
        index
        for start in range(len(reply_letters) - RUN + 1)
        if reply_letters[start : start + RUN] in prompt_letters
        for index, _ in indexed_bytes[start : start + RUN]
    }
    visible = "".join("\0" if index in hidden else letter for index, letter in enumerate(text))
    return " ".join(re.sub(r"\0(?:[\W_]*\0)?", "…", visible).split())[:LONGEST]


def _letters(text: str) -> list[tuple[int, bytes]]:
    """Return index and normalised bytes (NFKC, casefold) of every letter and digit."""
    return [
        (index, normalize("NFKC", character).casefold().encode())
        for index, character in enumerate(text)
        if character.isalnum()
    ]
