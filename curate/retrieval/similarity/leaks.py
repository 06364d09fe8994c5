"""Leakage between a training and a test split: similar queries, and positives shared by similar queries.

Splits share a corpus: training may use the documents of the test split, but not its queries. So a document that is
positive in both splits is only a leak if the two queries are similar, too.
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
"""Numbers of training and test texts compared at a time, in a matrix of at most BLOCK x CHUNK x 4 bytes."""
QUERY_RUN, DOCUMENT_RUN = 2, 4
"""Lengths of n-grams in characters; shorter ones occur in every long text and make the comparison slow."""


def form(text: str) -> str:
    """Return the letters and digits of a text, in one width and case, to compare texts by n-grams."""
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
    """A training or test split: queries, the documents that are their positives, and these pairs (query_id, doc_id)."""

    queries: SplitTexts
    documents: SplitTexts
    pairs: pl.DataFrame


@dataclass(frozen=True)
class Rule:
    """Thresholds from which two texts are near-duplicates: of similarity by an encoder, or of common n-grams.

    `queries` and `documents` are similarities, specific to the encoder. `overlap` is the minimum Jaccard index of the
    character n-grams of two texts (see `form`): 2-grams for queries, 4-grams for documents. It is needed since an
    encoder alone misses edits of short texts.
    """

    queries: float
    documents: float
    overlap: float
    related: float
    """Similarity above which queries of the two splits must not share a positive."""


def find(train: LeakSplit, test: LeakSplit, rule: Rule) -> pl.DataFrame:
    """Return the `leaks` table of a training split against a test split, sorted by query and document.

    A row of kind `query` is a training query that is a near-duplicate of a test query, with the most similar one. A row
    of kind `document` is a pair of another training query, whose document is a near-duplicate of a positive of a test
    query, with the most similar such query; it is a leak (`removed`) if the similarity of the two queries is above
    `related`. An overlap below the rule's is null.
    """
    query_leaks = (
        alike(train.queries, test.queries, rule.queries, rule.overlap, QUERY_RUN)
        .sort("similarity", "overlap", "right", descending=[True, True, False], nulls_last=True)
        .unique("left", keep="first", maintain_order=True)
        .select("similarity", "overlap", query_id="left", test_query_id="right")
        .with_columns(kind=pl.lit("query"), removed=pl.lit(value=True))
    )
    leaks = pl.concat([query_leaks, _documents(train, test, query_leaks, rule)], how="diagonal_relaxed")
    return leaks.select(*TABLES["leaks"]).cast(dict(TABLES["leaks"])).sort("query_id", "doc_id")  # type: ignore[arg-type]


def _documents(train: LeakSplit, test: LeakSplit, query_leaks: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Return the rows of kind `document`, without pairs of training queries that are leaks themselves."""
    train_pairs = train.pairs.select("query_id", "doc_id").join(query_leaks, on="query_id", how="anti")
    test_pairs = test.pairs.select(test_query_id="query_id", test_doc_id="doc_id")
    alike_documents = alike(train.documents, test.documents, rule.documents, rule.overlap, DOCUMENT_RUN).select(
        doc_id="left", test_doc_id="right", doc_similarity="similarity", doc_overlap="overlap"
    )
    pairs = train_pairs.join(alike_documents, on="doc_id").join(test_pairs, on="test_doc_id")
    train_rows, test_rows = (
        _row_numbers(train.queries, pairs["query_id"]),
        _row_numbers(test.queries, pairs["test_query_id"]),
    )
    similarity = np.round(pair_products(train.queries.vectors, train_rows, test.queries.vectors, test_rows), DIGITS)
    order = ["similarity", "doc_similarity"]
    return (
        pairs.with_columns(similarity=pl.Series(similarity, dtype=pl.Float64))
        .sort(*order, "test_query_id", "test_doc_id", descending=[True, True, False, False])
        .unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        .with_columns(kind=pl.lit("document"), removed=pl.col("similarity") > round(rule.related, DIGITS))
    )


def alike(left: SplitTexts, right: SplitTexts, t: float, overlap: float, run: int) -> pl.DataFrame:
    """Return all pairs of near-duplicates: left, right (ids), similarity, and overlap, null if below the threshold.

    The similarity is above `t`, or the overlap of n-grams of `run` characters is at least `overlap`. A float32 product
    selects candidates; the float64 product of the stored vectors, rounded to 5 digits, decides.
    """
    by_vector = pl.DataFrame(_above(left.vectors, right.vectors, t), {"l": pl.Int64, "r": pl.Int64})
    by_signs = pl.DataFrame(
        overlapping(left.forms, right.forms, overlap, run), {"l": pl.Int64, "r": pl.Int64, "overlap": pl.Float64}
    )
    pairs = by_vector.join(by_signs, on=["l", "r"], how="full", coalesce=True).sort("l", "r")
    similarity = pair_products(left.vectors, pairs["l"].to_numpy(), right.vectors, pairs["r"].to_numpy())
    return pairs.select(
        left=pl.Series(left.ids, dtype=pl.String).gather(pairs["l"]),
        right=pl.Series(right.ids, dtype=pl.String).gather(pairs["r"]),
        similarity=pl.Series(np.round(similarity, DIGITS), dtype=pl.Float64),
        overlap="overlap",
    )


def overlapping(left: Sequence[str], right: Sequence[str], least: float, run: int) -> tuple[Rows, Rows, Scores]:
    """Return rows, columns and Jaccard index of all pairs whose n-grams of `run` characters overlap by `least` or more.

    Only the n-grams of `right` are kept in memory.
    """
    numbers: dict[str, int] = {}
    right_ngrams, right_sizes = _ngrams(right, run, numbers, learn=True)
    transposed = right_ngrams.T.tocsr()
    blocks: list[tuple[Rows, Rows, Scores]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for start in range(0, len(left), BLOCK):
        left_ngrams, left_sizes = _ngrams(left[start : start + BLOCK], run, numbers, learn=False)
        common = (left_ngrams @ transposed).tocoo()
        share = np.round(common.data / (left_sizes[common.row] + right_sizes[common.col] - common.data), DIGITS)
        enough = share >= round(least, DIGITS)
        blocks.append((common.row[enough].astype(np.int64) + start, common.col[enough].astype(np.int64), share[enough]))
    rows, columns, shares = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return rows, columns, shares


def _ngrams(forms: Sequence[str], run: int, numbers: dict[str, int], *, learn: bool) -> tuple["csr_matrix", Rows]:
    """Return a sparse 0/1 matrix, texts x n-grams, and the number of distinct n-grams of each text.

    `numbers` is n-gram -> column. With `learn`, new n-grams are added to it; without, they are left out.
    """
    from scipy.sparse import csr_matrix

    ends, columns, sizes = [0], [], np.empty(len(forms), np.int64)
    for row, text in enumerate(forms):
        ngrams = {text[start : start + run] for start in range(max(1, len(text) - run + 1))}
        if learn:
            for ngram in sorted(ngrams):
                numbers.setdefault(ngram, len(numbers))
        columns += sorted(numbers[ngram] for ngram in ngrams if ngram in numbers)
        ends.append(len(columns))
        sizes[row] = len(ngrams)
    return csr_matrix((np.ones(len(columns), np.int32), columns, ends), (len(forms), len(numbers))), sizes


def _above(left: Vectors, right: Vectors, t: float) -> tuple[Rows, Rows]:
    """Return the rows of all pairs whose rounded similarity is above t."""
    if not len(left) or not len(right):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if left.shape[1] != right.shape[1]:
        raise DataError(f"vectors of one split have {left.shape[1]} dimensions, of the other {right.shape[1]}")
    longest = [float(lengths(vectors, name).max()) for vectors, name in ((left, "training"), (right, "test"))]
    # every pair that the float64 product, rounded, may put above t
    lowest = round(t, DIGITS) + HALF - single(left.shape[1], *longest)
    blocks: list[tuple[Rows, Rows]] = []
    for start in range(0, len(left), BLOCK):
        for first in range(0, len(right), CHUNK):
            rows, columns = np.nonzero(left[start : start + BLOCK] @ right[first : first + CHUNK].T > lowest)
            rows, columns = rows + start, columns + first
            above = np.round(pair_products(left, rows, right, columns), DIGITS) > round(t, DIGITS)
            blocks.append((rows[above], columns[above]))
    left_rows, right_rows = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return left_rows, right_rows


def _row_numbers(texts: SplitTexts, ids: pl.Series) -> Rows:
    """Return the row of each id in `texts`; DataError if one is missing."""
    rows = pl.DataFrame({"id": list(texts.ids)}, {"id": pl.String}).with_row_index("at")
    positions = ids.to_frame("id").join(rows, on="id", how="left", maintain_order="left")["at"]
    if positions.null_count():
        raise DataError(
            f"{positions.null_count():,} pairs of a split name queries that are not in it; write the set again"
        )
    return positions.cast(pl.Int64).to_numpy()
