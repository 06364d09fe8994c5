"""Leave-one-retriever-out: unique contributions of a retriever, and the benchmark without them.

Relevant documents found by one retriever only are removed from the qrels; no unjudged document is added. Every system's
nDCG@10 and the system ranking are then compared on the queries that keep a relevant document (Zobel, SIGIR 1998: how
far the results of a system depend on its having been pooled).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curate.panel.voting import PAIR
from curate.retrieval.ranking import ndcg
from curate.stats.bootstrap import Figure, divided, measured
from curate.stats.rank_correlation import kendall
from curate.stats.ratios import rate
from curate.stats.tally import Floats

Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""System -> query -> documents, best first."""
Relevant = Mapping[str, frozenset[str]]
"""Query -> its relevant documents; queries without one are left out."""


LEGACY = "legacy"
"""Name in place of a retriever for a known positive of the pool that no retriever returned."""


def ranked(pool: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of a pool that a retriever returned; only these have a depth."""
    return pool.filter(pl.col("hits").list.len() > 0)


@dataclass(frozen=True)
class Change:
    """A system's mean nDCG@10 with all labels, and without those that one retriever alone contributed."""

    system: str
    ndcg: Figure
    without: Figure
    change: Figure
    """`without` minus `ndcg`."""


@dataclass(frozen=True)
class LeftOut:
    """The benchmark without one retriever's unique contributions."""

    retriever: str
    found: int
    """Relevant documents that it found to the depth of the pool."""
    alone: int
    """Those that no other retriever found to that depth."""
    share: Figure
    """`alone`, as a share of all relevant documents."""
    lost: int
    """Queries that would have no relevant document."""
    tau: Figure
    """Kendall's tau-b of the system rankings with and without."""
    changes: tuple[Change, ...]


def depths(rankings: pl.DataFrame, pool: pl.DataFrame) -> pl.DataFrame:
    """Return query_id and the depth to which its pool contains every retriever's ranking, 0 for none.

    In an `equal-depth` pool this is the depth to which the retrievers were pooled.
    """
    outside = rankings.join(pool, on=PAIR, how="anti").group_by("query_id").agg(first=pl.col("rank").min())
    deepest = rankings.group_by("query_id").agg(deepest=pl.col("rank").max())
    both = deepest.join(outside, on="query_id", how="left").sort("query_id")
    return both.select("query_id", depth=pl.coalesce(pl.col("first") - 1, "deepest").cast(pl.Int64))


def founders(pool: pl.DataFrame, qrels: pl.DataFrame, depth: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id, position and `by` of every relevant pair of the pool, sorted by pair.

    `by` are the retrievers that rank the document within the query's `depth`; empty where fusion filled up the pool. A
    pair without hits is a known positive, by `LEGACY`.
    """
    relevant = pool.join(qrels, on=PAIR, how="semi").join(depth, on="query_id", how="left")
    flat = relevant.select(*PAIR, "hits", "depth").explode("hits", empty_as_null=False).unnest("hits")
    by = flat.filter(pl.col("rank") <= pl.col("depth")).group_by(PAIR).agg(by=pl.col("retriever").sort())
    positives = relevant.join(by, on=PAIR, how="left").sort(PAIR)
    others = pl.when(pl.col("hits").list.len() == 0).then(pl.lit([LEGACY])).otherwise(pl.lit([], pl.List(pl.String)))
    return positives.select(*PAIR, "position", by=pl.col("by").fill_null(others))


def caught(positives: pl.DataFrame, retrievers: Sequence[str]) -> np.ndarray:
    """Return the incidence matrix of `founders`: relevant pairs x retrievers, bool."""
    return (
        positives.select(pl.col("by").list.contains(name).alias(name) for name in retrievers)
        .to_numpy()
        .astype(np.bool_)
    )


def labels(qrels: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Return query -> its relevant documents."""
    groups = qrels.sort(PAIR).group_by("query_id", maintain_order=True)
    return {str(key[0]): frozenset(rows["doc_id"]) for key, rows in groups}


def lists(rankings: pl.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return system -> query -> documents, best first, from a table `rankings`; systems by name."""
    by_system: dict[str, dict[str, list[str]]] = {name: {} for name in rankings["retriever"].unique().sort()}
    ordered = rankings.sort("retriever", "query_id", "rank").group_by("retriever", "query_id", maintain_order=True)
    for system, query, documents in ordered.agg("doc_id").iter_rows():
        by_system[system][query] = documents
    return by_system


def leave_out(systems: Rankings, relevant: Relevant, positives: pl.DataFrame, retriever: str, seed: int) -> LeftOut:
    """Return the benchmark without a retriever; `positives` is the table of `founders`."""
    positives_of_retriever = positives.filter(pl.col("by").list.contains(retriever))
    alone = positives_of_retriever.filter(pl.col("by").list.len() == 1)
    gone = labels(alone)
    remaining = {query: documents - gone.get(query, frozenset()) for query, documents in relevant.items()}
    remaining_relevant = {query: documents for query, documents in remaining.items() if documents}
    names = list(systems)
    ndcg_with, ndcg_without = (
        scores(systems, relevant, remaining_relevant),
        scores(systems, remaining_relevant, remaining_relevant),
    )
    figures = compared(ndcg_with, ndcg_without, seed)
    count = len(names)
    removed = [[len(gone.get(query, ())), len(documents)] for query, documents in sorted(relevant.items())]
    return LeftOut(
        retriever=retriever,
        found=len(positives_of_retriever),
        alone=len(alone),
        share=rate(np.array(removed, dtype=np.float64).reshape(len(removed), 2), seed),
        lost=len(relevant) - len(remaining_relevant),
        tau=figures[-1],
        changes=tuple(
            Change(name, figures[n], figures[count + n], figures[2 * count + n]) for n, name in enumerate(names)
        ),
    )


def scores(systems: Rankings, relevant: Relevant, queries: Relevant) -> Floats:
    """Return nDCG@10 of every system for these queries (sorted), shape (queries, systems); 0 for no documents."""
    return np.array(
        [[ndcg(ranked.get(query, []), relevant[query]) for ranked in systems.values()] for query in sorted(queries)]
    ).reshape(len(queries), len(systems))


def compared(before: Floats, after: Floats, seed: int) -> list[Figure]:
    """Return the means of all systems before, after, their differences, and last tau-b of the two system rankings.

    Scores have the shape (queries, systems), the same queries on both sides; intervals resample queries.
    """
    count = before.shape[1]
    sums = np.column_stack([np.ones(len(before)), before, after])

    def figures(sums: Floats) -> Floats:
        means = divided(sums[..., 1:], sums[..., :1])
        old, new = means[..., :count], means[..., count:]
        return np.concatenate([old, new, new - old, kendall(old, new)[..., None]], axis=-1)

    return measured(sums, figures, seed)
