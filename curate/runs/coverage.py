"""Leave-one-retriever-out: what only it found, and what the benchmark would be without it.

The relevant documents that one retriever alone found leave the qrels; nothing that was not judged is added. Every
system's nDCG@10 and the order of the systems are then compared on the queries that keep a relevant document
(Zobel, SIGIR 1998: how far the results of a system depend on its having been pooled).
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
"""Stands for a retriever where a pair is in the pool as a known positive, and no retriever brought it."""


def ranked(pool: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of a pool that a retriever brought, of which depth and saturation speak."""
    return pool.filter(pl.col("hits").list.len() > 0)


@dataclass(frozen=True)
class Change:
    """A system's mean nDCG@10 with all labels, and without those that one retriever alone gave."""

    system: str
    ndcg: Figure
    without: Figure
    change: Figure
    """`without` minus `ndcg`."""


@dataclass(frozen=True)
class LeftOut:
    """What a benchmark would be without one retriever."""

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
    """Kendall's tau-b of the systems' order with and without."""
    changes: tuple[Change, ...]


def depths(rankings: pl.DataFrame, pool: pl.DataFrame) -> pl.DataFrame:
    """Return query_id and the depth to which its pool holds the ranking of every retriever whole, 0 if to none.

    In an `equal-depth` pool this is the depth to which the retrievers were pooled.
    """
    outside = rankings.join(pool, on=PAIR, how="anti").group_by("query_id").agg(first=pl.col("rank").min())
    deepest = rankings.group_by("query_id").agg(deepest=pl.col("rank").max())
    both = deepest.join(outside, on="query_id", how="left").sort("query_id")
    return both.select("query_id", depth=pl.coalesce(pl.col("first") - 1, "deepest").cast(pl.Int64))


def founders(pool: pl.DataFrame, qrels: pl.DataFrame, depth: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id, position and `by` of every relevant pair of the pool, sorted by pair.

    `by` are the retrievers that found the document to the query's `depth`; none, where fusion filled up the pool. A
    pair without hits is there as a known positive, by `LEGACY`.
    """
    relevant = pool.join(qrels, on=PAIR, how="semi").join(depth, on="query_id", how="left")
    flat = relevant.select(*PAIR, "hits", "depth").explode("hits", empty_as_null=False).unnest("hits")
    by = flat.filter(pl.col("rank") <= pl.col("depth")).group_by(PAIR).agg(by=pl.col("retriever").sort())
    found = relevant.join(by, on=PAIR, how="left").sort(PAIR)
    others = pl.when(pl.col("hits").list.len() == 0).then(pl.lit([LEGACY])).otherwise(pl.lit([], pl.List(pl.String)))
    return found.select(*PAIR, "position", by=pl.col("by").fill_null(others))


def caught(found: pl.DataFrame, retrievers: Sequence[str]) -> np.ndarray:
    """Return who found what, from `founders`: relevant pairs x retrievers."""
    return found.select(pl.col("by").list.contains(name).alias(name) for name in retrievers).to_numpy().astype(np.bool_)


def labels(qrels: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Return query -> its relevant documents."""
    parts = qrels.sort(PAIR).group_by("query_id", maintain_order=True)
    return {str(key[0]): frozenset(part["doc_id"]) for key, part in parts}


def lists(rankings: pl.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return system -> query -> documents, best first, from a table `rankings`; systems by name."""
    found: dict[str, dict[str, list[str]]] = {name: {} for name in rankings["retriever"].unique().sort()}
    ordered = rankings.sort("retriever", "query_id", "rank").group_by("retriever", "query_id", maintain_order=True)
    for system, query, documents in ordered.agg("doc_id").iter_rows():
        found[system][query] = documents
    return found


def leave_out(systems: Rankings, relevant: Relevant, found: pl.DataFrame, retriever: str, seed: int) -> LeftOut:
    """Return what the benchmark would be without a retriever; `found` are the pairs of `founders`."""
    mine = found.filter(pl.col("by").list.contains(retriever))
    alone = mine.filter(pl.col("by").list.len() == 1)
    gone = labels(alone)
    rest = {query: documents - gone.get(query, frozenset()) for query, documents in relevant.items()}
    left = {query: documents for query, documents in rest.items() if documents}
    names = list(systems)
    before, after = scores(systems, relevant, left), scores(systems, left, left)
    figures = compared(before, after, seed)
    count = len(names)
    return LeftOut(
        retriever=retriever,
        found=len(mine),
        alone=len(alone),
        share=_share(gone, relevant, seed),
        lost=len(relevant) - len(left),
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
    """Return every system's mean before, after, and their difference, and tau-b of the two orders at the end.

    Scores have the shape (queries, systems), the same queries on both sides; intervals resample queries.
    """
    count = before.shape[1]
    sums = np.column_stack([np.ones(len(before)), before, after])

    def figures(each: Floats) -> Floats:
        means = divided(each[..., 1:], each[..., :1])
        old, new = means[..., :count], means[..., count:]
        return np.concatenate([old, new, new - old, kendall(old, new)[..., None]], axis=-1)

    return measured(sums, figures, seed)


def _share(gone: Relevant, relevant: Relevant, seed: int) -> Figure:
    counts = [[len(gone.get(query, ())), len(documents)] for query, documents in sorted(relevant.items())]
    return rate(np.array(counts, dtype=np.float64).reshape(len(counts), 2), seed)
