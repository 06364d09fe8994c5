"""Leakage between a training and a test split: similar queries, and positives of such queries.

Splits share a corpus (METHOD: so that training sees what a system is asked in, never what it is asked), so a document
of both is no leak by itself. It is one if the queries it answers are near to one another too.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.core.records import TABLES
from curate.retrieval.similarity.exact_search import lengths, pair_products
from curate.retrieval.similarity.near_duplicates import DIGITS, HALF
from curate.retrieval.similarity.screening import Rows, Scores, single

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK, CHUNK = 1024, 8192
"""Texts compared at once: a matrix of similarities has at most BLOCK x CHUNK x 4 bytes."""
QUERY_RUN, DOCUMENT_RUN = 2, 4
"""Signs in a run: of long texts shorter runs are in all of them, and make the comparison slow."""


def form(text: str) -> str:
    """Return a text's letters and digits alone, in one width and one case: what two copies of a text have in common."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in plain if sign.isalnum()) or plain.strip()


@dataclass(frozen=True)
class SplitTexts:
    """Queries or documents of a split; `vectors` has one L2-normalised row per text."""

    ids: Sequence[str]
    forms: Sequence[str]
    vectors: Vectors

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.forms) == len(self.vectors):
            raise DataError(f"found {len(self.ids)} ids, {len(self.forms)} forms and {len(self.vectors)} vectors")


@dataclass(frozen=True)
class LeakSplit:
    """One split: its queries, the documents that are positives of them, and these pairs (query_id, doc_id)."""

    queries: SplitTexts
    documents: SplitTexts
    pairs: pl.DataFrame


@dataclass(frozen=True)
class Rule:
    """When texts are alike: similarity above a threshold, which belongs to an encoder, or so many signs in common.

    `overlap` is the Jaccard index of the runs of 2 signs of two queries' forms, and of 4 signs of two documents'. An
    encoder alone misses edits of short texts.
    """

    queries: float
    documents: float
    overlap: float
    related: float
    """Two queries whose similarity is above it may share no positive."""


def find(train: LeakSplit, test: LeakSplit, rule: Rule) -> pl.DataFrame:
    """Return the `leaks` table: what of a training split is known from a test split, sorted.

    A row of kind `query` names the most similar test query of a training query that has one alike. A row of kind
    `document` is a further training pair whose document is alike to a positive of a test query, the nearest such query
    being named; it is a leak (`removed`) if the similarity of the two queries is above `related`. An overlap is null
    where it is below the rule's.
    """
    asked = (
        alike(train.queries, test.queries, rule.queries, rule.overlap, QUERY_RUN)
        .sort("similarity", "overlap", "right", descending=[True, True, False], nulls_last=True)
        .unique("left", keep="first", maintain_order=True)
        .select("similarity", "overlap", query_id="left", test_query_id="right")
        .with_columns(kind=pl.lit("query"), removed=pl.lit(value=True))
    )
    found = pl.concat([asked, _documents(train, test, asked, rule)], how="diagonal_relaxed")
    return found.select(*TABLES["leaks"]).cast(dict(TABLES["leaks"])).sort("query_id", "doc_id")  # type: ignore[arg-type]


def _documents(train: LeakSplit, test: LeakSplit, asked: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Return the rows of kind `document`."""
    left = train.pairs.select("query_id", "doc_id").join(asked, on="query_id", how="anti")
    right = test.pairs.select(test_query_id="query_id", test_doc_id="doc_id")
    same = alike(train.documents, test.documents, rule.documents, rule.overlap, DOCUMENT_RUN).select(
        doc_id="left", test_doc_id="right", doc_similarity="similarity", doc_overlap="overlap"
    )
    both = left.join(same, on="doc_id").join(right, on="test_doc_id")
    rows, others = _places(train.queries, both["query_id"]), _places(test.queries, both["test_query_id"])
    near = np.round(pair_products(train.queries.vectors, rows, test.queries.vectors, others), DIGITS)
    order = ["similarity", "doc_similarity"]
    return (
        both.with_columns(similarity=pl.Series(near, dtype=pl.Float64))
        .sort(*order, "test_query_id", "test_doc_id", descending=[True, True, False, False])
        .unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        .with_columns(kind=pl.lit("document"), removed=pl.col("similarity") > round(rule.related, DIGITS))
    )


def alike(left: SplitTexts, right: SplitTexts, t: float, overlap: float, run: int) -> pl.DataFrame:
    """Return all pairs of texts that are alike: left, right (ids), similarity, and overlap, null where it is lower.

    The similarity is above t, or the overlap of runs of so many signs not below `overlap`. A float32 product screens;
    what it finds is decided by the float64 product of the stored vectors, rounded to 5 digits.
    """
    by_vector = pl.DataFrame(_above(left.vectors, right.vectors, t), {"l": pl.Int64, "r": pl.Int64})
    by_signs = pl.DataFrame(
        overlapping(left.forms, right.forms, overlap, run), {"l": pl.Int64, "r": pl.Int64, "overlap": pl.Float64}
    )
    found = by_vector.join(by_signs, on=["l", "r"], how="full", coalesce=True).sort("l", "r")
    near = pair_products(left.vectors, found["l"].to_numpy(), right.vectors, found["r"].to_numpy())
    return found.select(
        left=pl.Series(left.ids, dtype=pl.String).gather(found["l"]),
        right=pl.Series(right.ids, dtype=pl.String).gather(found["r"]),
        similarity=pl.Series(np.round(near, DIGITS), dtype=pl.Float64),
        overlap="overlap",
    )


def overlapping(left: Sequence[str], right: Sequence[str], least: float, run: int) -> tuple[Rows, Rows, Scores]:
    """Return the rows of all pairs whose runs of signs overlap by `least` or more, and by how much.

    Only the runs of `right` are kept in memory.
    """
    known: dict[str, int] = {}
    other, others = _runs(right, run, known, learn=True)
    turned = other.T.tocsr()
    found: list[tuple[Rows, Rows, Scores]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for start in range(0, len(left), BLOCK):
        one, sizes = _runs(left[start : start + BLOCK], run, known, learn=False)
        common = (one @ turned).tocoo()
        share = np.round(common.data / (sizes[common.row] + others[common.col] - common.data), DIGITS)
        enough = share >= round(least, DIGITS)
        found.append((common.row[enough].astype(np.int64) + start, common.col[enough].astype(np.int64), share[enough]))
    rows, columns, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return rows, columns, shares


def _runs(forms: Sequence[str], run: int, known: dict[str, int], *, learn: bool) -> tuple["csr_matrix", Rows]:
    """Return which known runs of signs each form has, a row per form, and how many runs it has, known or not."""
    from scipy.sparse import csr_matrix

    ends, columns, sizes = [0], [], np.empty(len(forms), np.int64)
    for place, text in enumerate(forms):
        runs = {text[at : at + run] for at in range(max(1, len(text) - run + 1))}
        if learn:
            for each in sorted(runs):
                known.setdefault(each, len(known))
        columns += sorted(known[each] for each in runs if each in known)
        ends.append(len(columns))
        sizes[place] = len(runs)
    return csr_matrix((np.ones(len(columns), np.int32), columns, ends), (len(forms), len(known))), sizes


def _above(left: Vectors, right: Vectors, t: float) -> tuple[Rows, Rows]:
    """Return the rows of all pairs whose rounded similarity is above t."""
    if not len(left) or not len(right):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if left.shape[1] != right.shape[1]:
        raise DataError(f"vectors of one split have {left.shape[1]} dimensions, of the other {right.shape[1]}")
    longest = [float(lengths(vectors, name).max()) for vectors, name in ((left, "training"), (right, "test"))]
    least = round(t, DIGITS) + HALF - single(left.shape[1], *longest)
    found: list[tuple[Rows, Rows]] = []
    for start in range(0, len(left), BLOCK):
        for first in range(0, len(right), CHUNK):
            rows, columns = np.nonzero(left[start : start + BLOCK] @ right[first : first + CHUNK].T > least)
            rows, columns = rows + start, columns + first
            above = np.round(pair_products(left, rows, right, columns), DIGITS) > round(t, DIGITS)
            found.append((rows[above], columns[above]))
    one, other = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return one, other


def _places(texts: SplitTexts, ids: pl.Series) -> Rows:
    """Return the rows of ids, each of which is one of the texts'."""
    known = pl.DataFrame({"id": list(texts.ids)}, {"id": pl.String}).with_row_index("at")
    found = ids.to_frame("id").join(known, on="id", how="left", maintain_order="left")["at"]
    if found.null_count():
        raise DataError(f"{found.null_count():,} pairs of a split name queries that are not in it; write the set again")
    return found.cast(pl.Int64).to_numpy()
