"""The schemas of the tables of kinds of benchmark that stages of their own make: a further kind adds its own."""

from collections.abc import Mapping

import polars as pl

Columns = dict[str, pl.DataType | type[pl.DataType]]
"""Column -> type, in the order of the columns."""

_TEXT = pl.String
_ANSWERS = pl.List(pl.Struct({"judge": pl.String, "answer": pl.String}))

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
