"""Messages between a caller and a language model: request, reply, usage, state of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from curate.core.config import Json, digest, text_digest


@dataclass(frozen=True)
class Message:
    """One turn of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Request:
    """A prompt for a model."""

    messages: tuple[Message, ...]
    max_tokens: int
    """Upper bound of the answer, in tokens."""
    schema: Mapping[str, Json] | None = None
    """JSON schema of the reply, where the provider can enforce one."""
    private: bool = False
    """Whether errors must not repeat a vendor's message, which may quote a name or a number of the text."""

    @cached_property
    def digest(self) -> str:
        """Return the key of the request in the ledger, of prompt, token limit and schema."""
        turns = [[turn.role, text_digest(turn.content)] for turn in self.messages]
        return digest([turns, self.max_tokens, self.schema])


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; `cached` and `written` are parts of the prompt that are billed at other prices."""

    prompt: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Reply:
    """One call's answer, normalised between vendors."""

    text: str | None
    finish: Literal["stop", "length", "refusal", "other"]
    model: str
    """Model id as the vendor returned it."""
    usage: Usage | None
    """None where a compatible server sends none: then the cost is unknown, not 0."""
    thoughts: bool = False
    """Whether it came with reasoning, which is no answer."""
    raw: str = field(repr=False, default="")


@dataclass(frozen=True)
class BatchState:
    """State of a vendor's batch."""

    ended: bool
    word: str
    """The vendor's name of the state."""
    done: int | None = None
    """Completed items; None if the vendor does not tell."""
    seconds: float | None = None
    """From submission to end, by the vendor's clock."""
    fault: str = ""
    """The vendor's codes of why the whole batch was refused; empty if it was accepted."""
    said: str = ""
    """The vendor's message, which may quote a request."""
