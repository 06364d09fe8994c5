"""Indicators of query difficulty: share of query tokens in positives, best BM25 rank of a positive, query length."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curate.core.figures import Figure
from curate.stats.bootstrap import averages

RANKS = (1, 10, 100)
"""Last rank of each band; deeper ranks form one more band, and queries without a rank another."""
NAMES = ("1", "2-10", "11-100", "below 100", "not found")
"""Names of all bands, easiest first."""


@dataclass(frozen=True)
class Measured:
    """Difficulty indicators of one query."""

    query_id: str
    length: int
    """Length in code points."""
    tokens: int
    """Number of distinct tokens."""
    positives: int
    overlap: float | None
    """Largest share of the query's tokens in one positive, 0 to 1; None if the query has no token."""
    overlap_mean: float | None
    """Mean over the positives of the share of the query's tokens in each."""
    rank: int | None
    """Best BM25 rank of a positive; None if none is within the search depth."""


@dataclass(frozen=True)
class QueryGroup:
    """Mean indicators over a group of queries."""

    name: str
    queries: int
    share: float
    """Share of all measured queries, 0 to 1."""
    overlap: Figure
    overlap_mean: Figure
    length: Figure
    """Mean length in code points; the intervals of all three means resample queries."""
    median_rank: float | None
    """Median of the best BM25 ranks, with missing ranks last; None if the median is missing."""
    found: int
    """Number of queries with a BM25 rank."""


def overlap(query: frozenset[str], passage: frozenset[str]) -> float | None:
    """Return the share of a query's tokens that occur in a passage, 0 to 1; None for a query without tokens."""
    return len(query & passage) / len(query) if query else None


def measure(
    query_id: str, text: str, tokens: frozenset[str], passages: Sequence[frozenset[str]], rank: int | None
) -> Measured:
    """Return the indicators of a query; `passages` are the token sets of its positives, at least one."""
    shares = [share for passage in passages if (share := overlap(tokens, passage)) is not None]
    return Measured(
        query_id,
        len(text),
        len(tokens),
        len(passages),
        max(shares, default=None),
        sum(shares) / len(shares) if shares else None,
        rank,
    )


def best_ranks(rankings: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, int]:
    """Return query -> best rank of its positives in `rankings` of one retriever.

    Queries without such a rank are omitted.
    """
    hits = rankings.join(qrels, on=["query_id", "doc_id"], how="semi")
    return dict(hits.group_by("query_id").agg(pl.col("rank").min()).iter_rows())


def by_rank(queries: Sequence[Measured], seed: int) -> list[QueryGroup]:
    """Return one group per band of the best BM25 rank; empty bands are omitted."""
    return grouped(queries, bands(queries), NAMES, seed)


def bands(queries: Sequence[Measured]) -> dict[str, str]:
    """Return query -> name of the band of its best BM25 rank."""
    return {query.query_id: NAMES[_band(query.rank)] for query in queries}


def grouped(
    queries: Sequence[Measured], group_of: Mapping[str, str], names: Sequence[str], seed: int
) -> list[QueryGroup]:
    """Return the groups in the order of `names`, without empty ones; `group_of` maps query to group name."""
    members = {name: [query for query in queries if group_of.get(query.query_id) == name] for name in names}
    total = sum(map(len, members.values()))
    return [group(name, group_queries, total, seed) for name, group_queries in members.items() if group_queries]


def group(name: str, queries: Sequence[Measured], total: int, seed: int) -> QueryGroup:
    """Return the means over some queries, with intervals; `total` is the number of all measured queries."""
    columns = ([getattr(query, field) for query in queries] for field in ("overlap", "overlap_mean", "length"))
    closest, mean_overlap, length = (
        averages([np.array([number for number in column if number is not None], dtype=np.float64)], seed)[0]
        for column in columns
    )
    ranks = [math.inf if query.rank is None else query.rank for query in queries]
    median = float(np.median(ranks))
    return QueryGroup(
        name,
        len(queries),
        round(len(queries) / total, 4),
        closest,
        mean_overlap,
        length,
        None if math.isinf(median) else median,
        sum(query.rank is not None for query in queries),
    )


def _band(rank: int | None) -> int:
    if rank is None:
        return len(RANKS) + 1
    return next((band for band, end in enumerate(RANKS) if rank <= end), len(RANKS))
