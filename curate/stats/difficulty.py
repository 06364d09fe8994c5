"""Indicators of query difficulty: share of query tokens in positives, best BM25 rank of a positive, query length."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from curate.core.figures import Figure, Record, figure
from curate.stats.bootstrap import averages

RANKS = (1, 10, 100)
"""Last rank of each band; deeper ranks form one more band, and queries without a rank another."""
NAMES = ("1", "2-10", "11-100", "below 100", "not found")
"""Names of all bands, easiest first."""


class Measured(Record, schema_name="query"):
    """Difficulty indicators of one query."""

    query_id: str = figure("id of the query")
    length: int = figure("number of characters")
    tokens: int = figure("number of distinct words")
    positives: int = figure("its positives")
    overlap: float | None = figure("largest share of its words in one positive; null for a query without words")
    overlap_mean: float | None = figure("mean of this share over its positives")
    rank: int | None = figure("rank of the best positive")


class QueryGroup(Record, schema_name="group"):
    """Mean indicators over a group of queries; intervals resample queries."""

    name: str = figure("band of ranks, or label")
    queries: int = figure("queries of the group")
    share: float = figure("share of all measured queries", digits=0, percent=True)
    overlap: Figure = figure("mean share of the query's words in its closest positive")
    overlap_mean: Figure = figure("mean share of the query's words in all its positives")
    length: Figure = figure("mean number of characters", digits=1)
    median_rank: float | None = figure(
        "median rank of the best positive; null if most queries have none in the ranking"
    )
    found: int = figure("queries with a positive in the ranking")


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
