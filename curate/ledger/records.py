"""Rows of the ledger as records."""

from dataclasses import dataclass
from typing import Literal

from curate.core.records import Status

Kept = Literal["judges", "rubrics", "calls", "passages", "ratings"]
"""The append-only tables."""


LOST = "lost"
"""Form of a sent call with unknown outcome; stored as an error."""


@dataclass(frozen=True, slots=True)
class Rating:
    """Rating of one (query, passage) by one judge; a grade only if the status is `rated`."""

    query_digest: str
    passage_digest: str
    judge_digest: str
    rubric_digest: str
    replicate: int
    grade: str | None
    status: Status
    slot: int
    """Position of the passage in its prompt, from 0."""
    batch_size: int
    """Passages in that prompt."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a model and its reply. Tokens and cost are None where the vendor reported none."""

    purpose: str
    run: str
    """Id of the run that the call was made for."""
    judge_digest: str
    request_digest: str
    model: str
    """Model id as the reply named it; empty where it named none."""
    finish: str
    """How the reply ended; `error` where there was none after the last try, or to a try whose form is `lost`."""
    raw: str
    """The raw reply, or only offsets where the purpose is `mask`; for an error a JSON object with `error`, the reason,
    and `too_long`; where the form is `lost` also `said`, the beginning of what came instead of a reply."""
    latency_s: float
    """Seconds from the first try to the reply, pauses between tries included."""
    created: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    """Cost; where the form is `lost`, its upper bound."""
    foreign_labels: int = 0
    """Labels in the reply that are not in the prompt."""
    repeated_labels: int = 0
    rubric_digest: str = ""
    replicate: int = 0
    query_digest: str = ""
    form: str = ""
    """In which form a judge's reply came: whole, partial, or why it gave nothing (`judging.form`)."""
    slots: str = "[]"
    """Digests of the passages in the order of the prompt, as a JSON list: with `raw` they give the ratings again."""
    currency: str | None = None
    """Currency of the cost; None where that is unknown, and in calls of version 0.1."""
    estimated_tokens: int | None = None
    """Of the prompt, by `llm.cost.estimate`; None in calls of before 0.3, and in a batch that another process sent."""


@dataclass(frozen=True, slots=True)
class PassageRow:
    """Properties of a passage, recorded before it is shown to a judge."""

    passage_digest: str
    tokens: int
    """Tokens of the text as shown."""
    cut: bool
    """Whether that is less than the whole text."""
    whole_tokens: int
    flags: tuple[str, ...] = ()
    """Flags of possible prompt injection."""
