"""Shared vocabulary: grades, verdicts, the records that stages exchange, and the schemas of all tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

Columns = dict[str, pl.DataType | type[pl.DataType]]
"""Column -> type, in the order of the columns."""

_TEXT = pl.String
_ANSWERS = pl.List(pl.Struct({"judge": pl.String, "answer": pl.String}))

FILTERED = "diversify"
"""Stage that filters near-duplicates; all later stages read its queries, corpus and labels."""
KIND_TABLES: Mapping[str, Columns] = {
    "pairs": {
        "pair_id": _TEXT,
        "query_id": _TEXT,
        "sentence1": _TEXT,
        "sentence2": _TEXT,
        "label": pl.Int32,
        "kind": _TEXT,
        "split": _TEXT,
        "term": _TEXT,
        "synonym": _TEXT,
    },
    "sentences": {
        "query_id": _TEXT,
        "kind": _TEXT,
        "text": _TEXT,
        "term": _TEXT,
        "synonym": _TEXT,
        "way": _TEXT,
        "attempt": pl.Int32,
        "outcome": _TEXT,
        "answers": _ANSWERS,
    },
    "paraphrases": {
        "pair_id": _TEXT,
        "query_id": _TEXT,
        "sentence1": _TEXT,
        "sentence2": _TEXT,
        "label": pl.Int32,
        "kind": _TEXT,
        "retriever": _TEXT,
        "rank": pl.Int32,
        "overlap": pl.Float64,
        "split": _TEXT,
        "group": _TEXT,
        "verdict": _TEXT,
        "votes": _ANSWERS,
    },
    "synthetic": {
        "query_id": _TEXT,
        "text": _TEXT,
        "source": _TEXT,
        "doc_id": _TEXT,
        "asked_length": pl.Int32,
        "copied": pl.Float64,
        "attempt": pl.Int32,
        "outcome": _TEXT,
        "answers": _ANSWERS,
    },
    "originals": {
        "query_id": _TEXT,
        "text": _TEXT,
        "pair_id": _TEXT,
        "paraphrase": _TEXT,
        "verdict": _TEXT,
        "votes": _ANSWERS,
    },
    "gradients": {
        "item_id": _TEXT,
        "kind": _TEXT,
        "variant": _TEXT,
        "level": pl.Float64,
        "source": _TEXT,
        "destination": _TEXT,
        "query_id": _TEXT,
        "source_id": _TEXT,
        "alternate_id": _TEXT,
        "pair_id": _TEXT,
        "verdict": _TEXT,
        "votes": _ANSWERS,
    },
    "edited": {
        "item_id": _TEXT,
        "query_id": _TEXT,
        "variant": _TEXT,
        "source": _TEXT,
        "text": _TEXT,
        "verdict": _TEXT,
        "votes": _ANSWERS,
    },
    "classified": {
        "item_id": _TEXT,
        "side": _TEXT,
        "text": _TEXT,
        "label": _TEXT,
        "label_id": pl.Int32,
        "split": _TEXT,
        "group": _TEXT,
        "verdict": _TEXT,
        "votes": pl.List(pl.Struct({"judge": pl.String, "answer": pl.String})),
    },
}


# The vocabulary: grades, verdicts, the small records that stages pass on, and the schema of every table.

FIELDS = {"queries": ("text",), "corpus": ("title", "text")}

VERSION = 1
"""Version of the table schemas; a stage's output of another version is recomputed."""

Status = Literal["rated", "refused", "unparsed", "failed"]
STATUSES: tuple[Status, ...] = ("rated", "refused", "unparsed", "failed")
STOPPED = "stopped"
"""Status in a run's ratings of a judge that a cascade did not ask; never stored in a ledger."""
Verdict = Literal["relevant", "not relevant", "contested", "incomplete", "not positive"]
VERDICTS: tuple[Verdict, ...] = ("relevant", "not relevant", "contested", "incomplete", "not positive")
"""`not positive`: one judge of a cascade said not relevant, so the others were not asked."""
Role = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class Query:
    """A search query."""

    query_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the corpus; prompts call it a passage."""

    doc_id: str
    title: str
    text: str

    def shown(self) -> str:
        """Return the text that judges and encoders read: title, then body."""
        return shown(self.title, self.text)


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a retriever's ranking: rank from 1, and the retriever's score."""

    doc_id: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One judge's result for one passage; ValueError if a `rated` one has no grade or another one has a grade."""

    grade: str | None
    """A label of the judge's scale; None unless the status is `rated`."""
    status: Status = "rated"

    def __post_init__(self) -> None:
        if (self.status == "rated") != bool(self.grade) or self.status not in STATUSES:
            raise ValueError(f"found the grade {self.grade!r} with the status {self.status!r}; a grade means rated")


@dataclass(frozen=True, slots=True)
class Span:
    """A passage of personal data of type `kind` in a text, found by `recogniser`; offsets in code points."""

    start: int
    end: int
    kind: str
    recogniser: str


def shown(title: str, text: str) -> str:
    """Return title and body as one text; a title with which the body begins is not repeated."""
    return text if not title or text.startswith(title) else f"{title}\n{text}"


AUDITED = (
    "labels",
    "original",
    "judged_positive",
    "confirmed",
    "false_positives",
    "contested",
    "incomplete",
    "false_negatives",
    "duplicates",
    "same_question",
    "undecided",
    "unretrieved",
)
"""Counts of an audit per query, in the order of display."""


_HITS = pl.List(pl.Struct({"retriever": pl.String, "rank": pl.Int32, "score": pl.Float64}))
_VOTES = pl.List(pl.Struct({"judge": pl.String, "grade": pl.String}))
_TEXTS = pl.List(pl.String)
_VERDICTS: Columns = {"query_id": _TEXT, "doc_id": _TEXT, "verdict": _TEXT, "votes": _VOTES, "policy": _TEXT}

TABLES: Mapping[str, Columns] = {
    "queries": {"query_id": _TEXT, "text": _TEXT, "source": _TEXT},
    "sources": {"query_id": _TEXT, "source": _TEXT},
    "corpus": {"doc_id": _TEXT, "title": _TEXT, "text": _TEXT, "source": _TEXT},
    "passages": {"doc_id": _TEXT, "parent_id": _TEXT, "start": pl.Int64, "end": pl.Int64},
    "qrels": {"query_id": _TEXT, "doc_id": _TEXT, "score": pl.Int32},
    "aliases": {"table": _TEXT, "old_id": _TEXT, "kept_id": _TEXT},
    "classes": {"table": _TEXT, "id": _TEXT, "class": pl.Int64},
    "labels": {"item_id": _TEXT, "side": _TEXT, "label": _TEXT, "origin": _TEXT, "group": _TEXT},
    "altered": {"table": _TEXT, "id": _TEXT, "lost": pl.Float64, "equal_to": _TEXT},
    "dropped": {
        "table": _TEXT,
        "id": _TEXT,
        "stage": _TEXT,
        "reason": _TEXT,
        "nearest_id": _TEXT,
        "similarity": pl.Float64,
    },
    "spans": {
        "table": _TEXT,
        "id": _TEXT,
        "field": _TEXT,
        "start": pl.Int32,
        "end": pl.Int32,
        "kind": _TEXT,
        "recogniser": _TEXT,
        "link": _TEXT,
    },
    "residual": {
        "table": _TEXT,
        "id": _TEXT,
        "field": _TEXT,
        "start": pl.Int32,
        "end": pl.Int32,
        "reason": _TEXT,
        "raw_start": pl.Int32,
        "raw_end": pl.Int32,
        "link": _TEXT,
    },
    "found": {"kind": _TEXT, "id": _TEXT, "field": _TEXT, "found": _TEXT, "published": pl.Boolean},
    "rankings": {"query_id": _TEXT, "retriever": _TEXT, "doc_id": _TEXT, "rank": pl.Int32, "score": pl.Float64},
    "pool": {"query_id": _TEXT, "doc_id": _TEXT, "position": pl.Int32, "hits": _HITS},
    "ratings": {
        "query_id": _TEXT,
        "doc_id": _TEXT,
        "judge": _TEXT,
        "grade": _TEXT,
        "status": _TEXT,
        "replicate": pl.Int32,
        "slot": pl.Int32,
        "batch_size": pl.Int32,
    },
    "samples": {"query_id": _TEXT, "doc_id": _TEXT},
    "tops": {"task": _TEXT, "query_id": _TEXT, "model": _TEXT, "rank": pl.Int32, "doc_id": _TEXT},
    "frame": {"query_id": _TEXT, "doc_id": _TEXT, "stratum": _TEXT},
    "survey": {
        "row_id": _TEXT,
        "ids": _TEXTS,
        "texts": _TEXTS,
        "stratum": _TEXT,
        "probability": pl.Float64,
        "assessors": _TEXTS,
        "expected": _TEXT,
        "verdict": _TEXT,
        "votes": _VOTES,
    },
    "reviews": {
        "query_id": _TEXT,
        "doc_id": _TEXT,
        "assessor": _TEXT,
        "grade": _TEXT,
        "note": _TEXT,
        "sampled_weight": pl.Float64,
    },
    "overrides": {
        "query_id": _TEXT,
        "doc_id": _TEXT,
        "panel": _TEXT,
        "verdict": _TEXT,
        "grades": _TEXTS,
        "assessors": _TEXTS,
    },
    "compared": {
        "query_id": _TEXT,
        "doc_id": _TEXT,
        "legacy": pl.Boolean,
        "verdict": _TEXT,
        "kind": _TEXT,
        "same_as": _TEXT,
        "votes": _VOTES,
    },
    "audited": {"query_id": _TEXT, **dict.fromkeys(AUDITED, pl.Int32)},
    "leaks": {
        "query_id": _TEXT,
        "doc_id": _TEXT,
        "test_query_id": _TEXT,
        "test_doc_id": _TEXT,
        "kind": _TEXT,
        "similarity": pl.Float64,
        "overlap": pl.Float64,
        "doc_similarity": pl.Float64,
        "doc_overlap": pl.Float64,
        "removed": pl.Boolean,
    },
    "patch": {
        "sign": _TEXT,
        "query_id": _TEXT,
        "doc_id": _TEXT,
        "reason": _TEXT,
        "grades": _TEXT,
        "same_as": _TEXT,
        "calls": _TEXT,
    },
    **KIND_TABLES,
    "verdicts": _VERDICTS,
    "contested": _VERDICTS,
    "incomplete": _VERDICTS,
}
"""Columns of every table. Queries, corpus and classes keep the order of the source; the others are sorted by key.

`classes` records which texts were equal before masking, by consecutive numbers: unlike a digest, these do not allow
anyone to guess a text.
"""
