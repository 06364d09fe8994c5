"""Query difficulty without labels of it: words shared with the positives, their BM25 rank, length."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curate.stats.bootstrap import Figure, averages

RANKS = (1, 10, 100)
"""Last ranks of the bands; what is deeper, or was not found, has bands of its own."""
NAMES = ("1", "2-10", "11-100", "below 100", "not found")
"""Names of all bands, the easiest first."""


@dataclass(frozen=True)
class Measured:
    """One query and what can be counted of it."""

    query_id: str
    length: int
    """Code points."""
    tokens: int
    """Different tokens."""
    positives: int
    overlap: float | None
    """Share of the query's tokens that its closest positive holds, 0 to 1; None if the query has no token."""
    overlap_mean: float | None
    """The same, on average over its positives."""
    rank: int | None
    """Best BM25 rank of a positive; None if none was found to the depth that was searched."""


@dataclass(frozen=True)
class QueryGroup:
    """Some queries together."""

    name: str
    queries: int
    share: float
    """Of all queries that were measured."""
    overlap: Figure
    overlap_mean: Figure
    length: Figure
    """Means over the queries; intervals resample them."""
    median_rank: float | None
    """Of the best BM25 rank, those not found counted last; None if the middle is among them."""
    found: int
    """Queries with a positive that BM25 found."""


def overlap(query: frozenset[str], passage: frozenset[str]) -> float | None:
    """Return the share of a query's tokens that a passage holds; None for a query without tokens."""
    return len(query & passage) / len(query) if query else None


def measure(
    query_id: str, text: str, tokens: frozenset[str], passages: Sequence[frozenset[str]], rank: int | None
) -> Measured:
    """Return what can be counted of a query; `passages` are the tokens of its positives, at least one."""
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
    """Return query -> the best rank of one of its positives in one retriever's rows of `rankings`."""
    found = rankings.join(qrels, on=["query_id", "doc_id"], how="semi")
    return dict(found.group_by("query_id").agg(pl.col("rank").min()).iter_rows())


def by_rank(queries: Sequence[Measured], seed: int) -> list[QueryGroup]:
    """Return the queries by the band of their best BM25 rank, bands without a query left out."""
    return grouped(queries, bands(queries), NAMES, seed)


def bands(queries: Sequence[Measured]) -> dict[str, str]:
    """Return query -> the name of the band of its best BM25 rank."""
    return {each.query_id: NAMES[_band(each.rank)] for each in queries}


def grouped(
    queries: Sequence[Measured], group_of: Mapping[str, str], names: Sequence[str], seed: int
) -> list[QueryGroup]:
    """Return the named groups of queries, in that order, groups without a query left out."""
    parts = {name: [each for each in queries if group_of.get(each.query_id) == name] for name in names}
    total = sum(map(len, parts.values()))
    return [group(name, part, total, seed) for name, part in parts.items() if part]


def group(name: str, queries: Sequence[Measured], total: int, seed: int) -> QueryGroup:
    """Return some queries together, of `total` in all."""
    columns = ([getattr(each, field) for each in queries] for field in ("overlap", "overlap_mean", "length"))
    near, mean, length = (
        averages([np.array([value for value in column if value is not None], dtype=np.float64)], seed)[0]
        for column in columns
    )
    ranks = [math.inf if each.rank is None else each.rank for each in queries]
    middle = float(np.median(ranks))
    return QueryGroup(
        name,
        len(queries),
        round(len(queries) / total, 4),
        near,
        mean,
        length,
        None if math.isinf(middle) else middle,
        sum(each.rank is not None for each in queries),
    )


def _band(rank: int | None) -> int:
    if rank is None:
        return len(RANKS) + 1
    return next((place for place, end in enumerate(RANKS) if rank <= end), len(RANKS))
