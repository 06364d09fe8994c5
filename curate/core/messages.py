"""What passes between a caller and a language model: request, reply, usage, state of a batch."""

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
    """A prompt for a model: moves text, knows nothing of relevance."""

    messages: tuple[Message, ...]
    max_tokens: int
    """Upper bound of the answer, in tokens."""
    schema: Mapping[str, Json] | None = None
    """JSON schema of the reply, where the provider can enforce one."""
    private: bool = False
    """Whether no error may repeat a vendor's words about it, which may be a name or a number out of it."""

    @cached_property
    def digest(self) -> str:
        """Return what the ledger knows it by: the same prompt, answer's bound and schema have the same one."""
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
    """One call's answer as it came, normalised between vendors."""

    text: str | None
    finish: Literal["stop", "length", "refusal", "other"]
    model: str
    """Model id as the vendor returned it."""
    usage: Usage | None
    """None where a compatible server sends none: then the cost is unknown, not 0."""
    thoughts: bool = False
    """Whether it came with thoughts beside the text: they are no answer."""
    raw: str = field(repr=False, default="")


@dataclass(frozen=True)
class BatchState:
    """How far a vendor is with a batch."""

    ended: bool
    word: str
    """The vendor's own word for it."""
    done: int | None = None
    """Items that are over; None where the vendor does not tell."""
    seconds: float | None = None
    """From submission to end, by the vendor's clock."""
    fault: str = ""
    """The vendor's codes for why nothing of it was tried, empty if something was."""
    said: str = ""
    """Its words for that, which may quote a request."""
