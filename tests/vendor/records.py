"""What passes through the vendor: a call as it arrived, and the answer that is about to be sent."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Script = Callable[[str, str], str]
BLOCK = re.compile(r"<(\w+) (\w+)>\n(.*?)\n</\1 \2>", re.DOTALL)
CODE = re.compile(r"^CODE (\w+)$", re.MULTILINE)
Sent = Literal["whole", "truncated", "half", "head", "nothing"]


@dataclass(frozen=True)
class Answer:
    """What the vendor is about to say, before it is worded in the protocol of the caller."""

    text: str | None
    finish: str = "stop"
    """stop, length, refusal or filter."""
    model: str = ""
    usage: Mapping[str, int] | None = None
    """Keys prompt, cached, written, output, reasoning; prompt includes cached and written."""
    reasoning: str | None = None
    status: int = 200
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the first byte."""
    dribble: float = 0.0
    """Seconds from the first byte of the body to the last one."""
    sent: Sent = "whole"
    """How much is sent: all, a whole body whose JSON stops in the middle, or so much before the connection ends."""
    page: str | None = None
    """Sent as it is, instead of the protocol's JSON."""

    @property
    def paid(self) -> bool:
        """Say whether it is an answer in the vendor's form that reaches the caller whole."""
        return self.status == 200 and self.sent == "whole" and self.page is None


Fault = Callable[[Answer], Answer]


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    api: str
    """openai or anthropic."""
    model: str
    query: str
    passages: Mapping[str, str]
    """Label -> text, in the order of the prompt."""
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """Names in lower case."""

    @property
    def pairs(self) -> list[tuple[str, str, str]]:
        """Return (model, query, passage) of every passage."""
        return [(self.model, self.query, passage) for passage in self.passages.values()]

    @property
    def codes(self) -> list[str]:
        """Return the codes that a canary prompt asks back."""
        return CODE.findall(str(self.body["messages"][-1]["content"]))

    @property
    def prompt_tokens(self) -> int:
        """Return the vendor's count of the prompt."""
        texts = [turn["content"] for turn in self.body["messages"]]
        system = self.body.get("system", "")
        texts += [system] if isinstance(system, str) else [block["text"] for block in system]
        return sum(map(tokens, texts))


def call(api: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Call:
    """Return a request with the texts that stand between the markers of its prompt."""
    user = next(turn["content"] for turn in body["messages"] if turn["role"] == "user")
    texts = {label: text for label, _code, text in BLOCK.findall(user)}
    query = texts.pop("query", "")
    return Call(api, body["model"], query, texts, body, headers)


def tokens(text: str) -> int:
    """Return the vendor's own count: a token a wide character, or four of the others."""
    narrow = len(text.encode("ascii", "ignore"))
    return math.ceil(len(text) - narrow + narrow / 4)
