"""Relevant documents by depth of the pool, and queries whose pool ended too early."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curate.panel.voting import PAIR
from curate.stats.bootstrap import Figure
from curate.stats.ratios import rate

EDGES = (10, 20, 50, 100, 200, 500, 1000)
"""Last positions of the bins; a deeper pool has bins of a thousand."""
LAST = 5
"""Saturation is measured on the last fifth of a pool."""


@dataclass(frozen=True)
class Band:
    """The pairs at the positions `low` to `high`, both included."""

    low: int
    high: int
    queries: int
    """Queries whose pool reaches `low`."""
    pairs: int
    relevant: int
    rate: Figure
    """Relevant pairs, as a share of the pairs."""
    cumulated: int
    """Relevant pairs from the first position to `high`."""
    a_query: float
    """The same for one query of the pool, on average."""


@dataclass(frozen=True)
class Late:
    """A query whose pool still yields relevant documents in its last fifth."""

    query_id: str
    pool: int
    """Documents in the pool."""
    relevant: int
    late: int
    """Relevant documents in the last fifth."""


def marked(pool: pl.DataFrame, qrels: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, position, `relevant` (0 or 1) and `size` (of the query's pool) of every pair of a pool."""
    flags = pool.select(*PAIR, "position").join(qrels.select(*PAIR, relevant=pl.lit(1)), on=PAIR, how="left")
    return flags.select("query_id", "position", pl.col("relevant").fill_null(0), size=pl.len().over("query_id"))


def bands(pairs: pl.DataFrame, seed: int) -> list[Band]:
    """Return the bins between `EDGES`, from the pairs of `marked`; intervals resample queries."""
    deepest = int(pairs["position"].to_numpy().max(initial=0))
    queries = pairs["query_id"].n_unique()
    table: list[Band] = []
    for low, high in _edges(deepest):
        rows = pairs.filter(pl.col("position").is_between(low, high))
        counted = rows.group_by("query_id").agg(pl.len(), pl.col("relevant").sum()).sort("query_id")
        sums = counted.select("relevant", "len").to_numpy().astype(np.float64)
        relevant = int(rows["relevant"].sum())
        cumulated = relevant + (table[-1].cumulated if table else 0)
        table.append(
            Band(
                low, high, len(counted), len(rows), relevant, rate(sums, seed), cumulated, round(cumulated / queries, 4)
            )
        )
    return table


def curve(pairs: pl.DataFrame) -> list[int]:
    """Return the cumulative number of relevant pairs at positions 1 to n, for every n to the deepest position."""
    deepest = int(pairs["position"].to_numpy().max(initial=0))
    positions = pairs.filter(pl.col("relevant") == 1)["position"].to_numpy()
    total: list[int] = np.cumsum(np.bincount(positions, minlength=deepest + 1))[1:].tolist()
    return total


def unsaturated(pairs: pl.DataFrame) -> list[Late]:
    """Return the queries with a relevant document in the last fifth of their pool, most of them first.

    The last fifth of n documents are the last n // 5, so a pool under five has none.
    """
    last = pl.col("position") > pl.col("size") - pl.col("size") // LAST
    counted = (
        pairs.group_by("query_id")
        .agg(pl.col("size").first(), pl.col("relevant").sum(), late=(pl.col("relevant") * last).sum())
        .filter(pl.col("late") > 0)
        .sort(["late", "query_id"], descending=[True, False])
    )
    return [Late(*row) for row in counted.select("query_id", "size", "relevant", "late").iter_rows()]


def _edges(deepest: int) -> list[tuple[int, int]]:
    ends: Sequence[int] = [*EDGES, *range(2 * EDGES[-1], deepest + EDGES[-1], EDGES[-1])]
    starts = [1, *(end + 1 for end in ends)]
    return [(low, min(high, deepest)) for low, high in zip(starts, ends, strict=False) if low <= deepest]
