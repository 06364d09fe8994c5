"""Messages to and from a language model: request, reply, token usage, state of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from curate.core.config import Json, digest, text_digest
from curate.core.figures import Record, figure


@dataclass(frozen=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Request:
    """A prompt for a model."""

    messages: tuple[Message, ...]
    max_tokens: int
    """Maximum length of the reply, in tokens."""
    schema: Mapping[str, Json] | None = None
    """JSON schema of the reply, for providers that can enforce one; None without one."""
    private: bool = False
    """Whether errors must omit the provider's message, which may quote personal data of the text."""

    @cached_property
    def digest(self) -> str:
        """Return the key of the request in the ledger: a digest of prompt, token limit and schema."""
        turns = [[turn.role, text_digest(turn.content)] for turn in self.messages]
        return digest([turns, self.max_tokens, self.schema])


class Usage(Record):
    """Token counts of one call; `cached` and `written` are parts of `prompt` that are billed at other prices."""

    prompt: int = figure("tokens of the prompt", default=0)
    cached: int = figure("prompt tokens read from a cache", default=0)
    written: int = figure("prompt tokens written into a cache", default=0)
    output: int = figure("tokens of the answer", default=0)
    reasoning: int = figure("output tokens of reasoning", default=0)


@dataclass(frozen=True)
class Reply:
    """Reply to one request, normalised across providers."""

    text: str | None
    finish: Literal["stop", "length", "refusal", "other"]
    model: str
    """Model id as the provider returned it."""
    usage: Usage | None
    """Token usage; None if a compatible server sends none: the cost is then unknown, not 0."""
    thoughts: bool = False
    """Whether the reply included reasoning, which is not part of the answer."""
    raw: str = field(repr=False, default="")


@dataclass(frozen=True)
class BatchState:
    """State of a provider's batch."""

    ended: bool
    word: str
    """The provider's name of the state."""
    done: int | None = None
    """Number of completed items; None if the provider does not report it."""
    seconds: float | None = None
    """Seconds from submission to end, by the provider's clock; None if unknown."""
    fault: str = ""
    """The provider's error codes if it rejected the whole batch; empty otherwise."""
    said: str = ""
    """The provider's message, which may quote a request."""
