"""Records of the ledger, and their conversion to rows and data frames."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import polars as pl

from curate.core.records import Status

Kept = Literal["judges", "rubrics", "calls", "passages", "records", "ratings"]
"""Names of the append-only tables."""
LOST = "lost"
"""Form of a call that was sent and whose outcome is unknown; it is stored as an error."""


@dataclass(frozen=True, slots=True)
class Rating:
    """Rating of one (query, passage) pair by one judge; it has a grade only if the status is `rated`."""

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
    """Number of passages in that prompt."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a model and its reply; tokens and cost are None if the provider did not report them."""

    purpose: str
    run: str
    """Id of the run for which the call was made."""
    judge_digest: str
    request_digest: str
    model: str
    """Model id as named in the reply; empty if the reply named none."""
    finish: str
    """End of the reply; `error` if no attempt got a reply, or for a single attempt whose form is `lost`."""
    raw: str
    """The raw reply; if the purpose is `mask`, only offsets.

    For an error a JSON object with `error`, the reason, and `too_long`; if the form is `lost`, also with `said`, the
    beginning of what was received instead of a reply.
    """
    latency_s: float
    """Seconds from the first attempt to the reply, including pauses between attempts."""
    created: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    """Cost; if the form is `lost`, the upper bound."""
    foreign_labels: int = 0
    """Number of labels in the reply that are not in the prompt."""
    repeated_labels: int = 0
    rubric_digest: str = ""
    replicate: int = 0
    query_digest: str = ""
    form: str = ""
    """Form of a judge's reply: whole, partial, or why it contained no rating (see `curate.ask.rating.form`)."""
    slots: str = "[]"
    """Passage digests in the order of the prompt, as a JSON list; with `raw` they reproduce the ratings."""
    currency: str | None = None
    """Currency of the cost; None if unknown, and in calls of version 0.1."""
    estimated_tokens: int | None = None
    """Tokens of the prompt as estimated by `curate.llm.cost.estimate`.

    None in calls from before version 0.3, and in a batch submitted by another process.
    """


@dataclass(frozen=True, slots=True)
class PassageRow:
    """Properties of a passage, stored before a judge reads it."""

    passage_digest: str
    tokens: int
    """Number of tokens of the text as shown to the judge."""
    cut: bool
    """Whether the shown text is shorter than the whole text."""
    whole_tokens: int
    flags: tuple[str, ...] = ()
    """Flags of possible prompt injection."""


Row = tuple[Any, ...]
Rows = tuple[Sequence[Row], Sequence[Row]]
"""Rows of the table `calls`, and rows of the table `ratings`."""
_RAW, _MODEL = (1 + [field.name for field in fields(Call)].index(name) for name in ("raw", "model"))


def standing(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one rating per pair: the first graded one, else the last; in no order.

    Only possible duplicates are sorted, which saves memory.
    """
    query, passage = pl.col("query_digest"), pl.col("passage_digest")
    several = rows.select(query.hash(seed=1) ^ passage.hash(seed=2)).to_series().is_duplicated()
    doubtful = rows.filter(several)
    rated = doubtful.filter(pl.col("status") == "rated").sort("rating_id")
    others = doubtful.filter(pl.col("status") != "rated").sort("rating_id", descending=True)
    settled = pl.concat([rated, others]).unique([query, passage], keep="first", maintain_order=True)
    return rows.filter(~several).vstack(settled) if len(doubtful) else rows


def storable(call: Row) -> Row:
    """Return a row of `calls` in which characters of the reply that a database cannot store are escaped as in JSON."""
    row = list(call)
    for index in (_RAW, _MODEL):
        row[index] = row[index].replace("\0", "\\u0000").encode(errors="backslashreplace").decode()
    return tuple(row)
