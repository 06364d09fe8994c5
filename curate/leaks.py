"""Leaks between a training and a test split: queries that resemble one another, and positives of such queries.

Splits share a corpus (METHOD: so that training sees what a system is asked in, never what it is asked), so a document
of both is no leak by itself. It is one if the queries it answers are near to one another too.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curate.diversity import DIGITS, HALF
from curate.errors import DataError
from curate.protocols import Vectors
from curate.records import TABLES
from curate.search import Rows, Scores, error_bound, lengths

BLOCK, CHUNK = 1024, 8192
"""Texts compared at once: a matrix of similarities has at most BLOCK x CHUNK x 4 bytes."""


def form(text: str) -> str:
    """Return a text's letters and digits alone, in one width and one case: what two copies of a text have in common."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in plain if sign.isalnum()) or plain.strip()


@dataclass(frozen=True)
class Texts:
    """Queries or documents of a split; `vectors` has one L2-normalised row a text."""

    ids: Sequence[str]
    forms: Sequence[str]
    vectors: Vectors

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.forms) == len(self.vectors):
            raise DataError(f"found {len(self.ids)} ids, {len(self.forms)} forms and {len(self.vectors)} vectors")


@dataclass(frozen=True)
class Side:
    """One split: its queries, the documents that are positives of them, and these pairs (query_id, doc_id)."""

    queries: Texts
    documents: Texts
    pairs: pl.DataFrame


def find(train: Side, test: Side, queries: float, documents: float, related: float) -> pl.DataFrame:
    """Return the `leaks` table: what of a training split is known from a test split, sorted.

    Two queries are alike if their similarity is above `queries`, two documents above `documents`, or if their `form`
    is the same; similarities and thresholds have 5 digits. A row of kind `query` names the most similar test query of
    a training query that has one alike. A row of kind `document` is a further training pair whose document is alike to
    a positive of a test query, the nearest such query being named; it is a leak (`removed`) if the similarity of the
    two queries is above `related`.
    """
    same = alike(train.queries, test.queries, queries)
    order = ["same_text", "similarity"]
    asked = (
        same.sort(*order, "right", descending=[True, True, False])
        .unique("left", keep="first", maintain_order=True)
        .select(
            query_id="left", test_query_id="right", kind=pl.lit("query"), same_text="same_text",
            similarity="similarity", removed=pl.lit(value=True),
        )
    )  # fmt: skip
    rows = [asked, _documents(train, test, asked, documents, related)]
    schema = pl.Schema(TABLES["leaks"])
    found = pl.concat(rows, how="diagonal_relaxed").with_columns(
        pl.lit(None, kind).alias(name) for name, kind in schema.items() if not any(name in each for each in rows)
    )
    return found.select(schema.names()).cast(schema).sort("query_id", "doc_id", nulls_last=False)


def _documents(train: Side, test: Side, asked: pl.DataFrame, documents: float, related: float) -> pl.DataFrame:
    """Return the rows of kind `document`."""
    left = train.pairs.select("query_id", "doc_id").join(asked, on="query_id", how="anti")
    right = test.pairs.select(test_query_id="query_id", test_doc_id="doc_id")
    both = (
        left.join(alike(train.documents, test.documents, documents), left_on="doc_id", right_on="left")
        .rename({"right": "test_doc_id", "similarity": "doc_similarity"})
        .join(right, on="test_doc_id")
    )
    places = [_places(side.queries, both[name]) for side, name in ((train, "query_id"), (test, "test_query_id"))]
    near = pl.Series("similarity", _products(train.queries.vectors, test.queries.vectors, *places), pl.Float64)
    order = ["similarity", "doc_similarity"]
    return (
        both.with_columns(near)
        .sort(*order, "test_query_id", "test_doc_id", descending=[True, True, False, False])
        .unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        .with_columns(kind=pl.lit("document"), removed=pl.col("similarity") > round(related, DIGITS))
    )


def alike(left: Texts, right: Texts, t: float) -> pl.DataFrame:
    """Return all pairs of texts that are alike: left, right (ids), similarity, and whether their form is the same.

    A float32 product screens; whatever it finds is decided by the float64 product of the stored vectors.
    """
    one, other = _above(left.vectors, right.vectors, t)
    near = pl.DataFrame({"left_at": one, "right_at": other}, schema={"left_at": pl.Int64, "right_at": pl.Int64})
    forms = [
        pl.DataFrame({"form": list(side.forms)}, {"form": pl.String}).with_row_index(name).cast({name: pl.Int64})
        for side, name in ((left, "left_at"), (right, "right_at"))
    ]
    copies = forms[0].join(forms[1], on="form").select("left_at", "right_at", same_text=pl.lit(value=True))
    found = near.join(copies, on=["left_at", "right_at"], how="full", coalesce=True).sort("left_at", "right_at")
    rows = found["left_at"].to_numpy(), found["right_at"].to_numpy()
    return found.select(
        left=pl.Series(left.ids, dtype=pl.String).gather(found["left_at"]),
        right=pl.Series(right.ids, dtype=pl.String).gather(found["right_at"]),
        similarity=pl.Series(_products(left.vectors, right.vectors, *rows), dtype=pl.Float64),
        same_text=pl.col("same_text").fill_null(value=False),
    )


def _above(left: Vectors, right: Vectors, t: float) -> tuple[Rows, Rows]:
    """Return the rows of all pairs whose rounded similarity is above t."""
    if not len(left) or not len(right):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if left.shape[1] != right.shape[1]:
        raise DataError(f"vectors of one split have {left.shape[1]} dimensions, of the other {right.shape[1]}")
    longest = [float(lengths(vectors, name).max()) for vectors, name in ((left, "training"), (right, "test"))]
    least = round(t, DIGITS) + HALF - error_bound(left.shape[1], *longest)
    found: list[tuple[Rows, Rows]] = []
    for start in range(0, len(left), BLOCK):
        for first in range(0, len(right), CHUNK):
            rows, columns = np.nonzero(left[start : start + BLOCK] @ right[first : first + CHUNK].T > least)
            rows, columns = rows + start, columns + first
            above = _products(left, right, rows, columns) > round(t, DIGITS)
            found.append((rows[above], columns[above]))
    one, other = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return one, other


def _products(left: Vectors, right: Vectors, rows: Rows, columns: Rows) -> Scores:
    """Return the rounded float64 similarities of pairs of rows."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        wide = (left[rows[part]].astype(np.float64), right[columns[part]].astype(np.float64))
        found[part] = np.einsum("ij,ij->i", *wide)
    return np.round(found, DIGITS)


def _places(texts: Texts, ids: pl.Series) -> Rows:
    """Return the rows of ids, each of which is one of the texts'."""
    known = pl.DataFrame({"id": list(texts.ids)}, {"id": pl.String}).with_row_index("at")
    found = ids.to_frame("id").join(known, on="id", how="left", maintain_order="left")["at"]
    if found.null_count():
        raise DataError(f"{found.null_count():,} pairs of a split name queries that are not in it; write the set again")
    return found.cast(pl.Int64).to_numpy()
