"""Checks of rankings against a pool: leave-one-retriever-out, saturation by depth, and coverage of external systems.

Leave-one-out tests how much a system's results depend on being pooled (Zobel, SIGIR 1998): the relevant documents that
only one retriever found are removed from the qrels, and no unjudged document is added. Every system's nDCG@10 and the
system ranking before and after are compared on the queries that retain a relevant document.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from curate.ask.build import kit
from curate.core.errors import UserError
from curate.core.figures import Figure, Record, figure
from curate.core.records import TABLES, Query
from curate.panel.voting import PAIR
from curate.pipeline.facts import known_ids, pooled
from curate.pipeline.stage import Context
from curate.retrieval.id_mapping import ranked
from curate.retrieval.ranking import ndcg
from curate.retrieval.retrievers import runfile
from curate.stats.bootstrap import averages, divided, measured
from curate.stats.rank_correlation import kendall
from curate.stats.ratios import rate
from curate.stats.tally import Floats

Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""System -> query -> documents, best first."""
Relevant = Mapping[str, frozenset[str]]
"""Query -> its relevant documents; queries without one are left out."""


LEGACY = "legacy"
"""Name used instead of a retriever for known positives of the pool that no retriever returned."""


def ranked_hits(pool: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of a pool that some retriever returned, without known positives that were added."""
    return pool.filter(pl.col("hits").list.len() > 0)


class Change(Record):
    """A system's mean nDCG@10 with all labels, and without the relevant documents of one retriever alone."""

    system: str = figure("name of the system")
    ndcg: Figure = figure("mean nDCG@10 with all labels")
    without: Figure = figure("mean nDCG@10 without the relevant documents that this retriever alone found")
    change: Figure = figure("`without` minus `ndcg`")


class LeftOut(Record):
    """Comparison of the benchmark with and without the relevant documents that only one retriever found."""

    retriever: str = figure("name of the retriever")
    found: int = figure("relevant documents that it ranks within the depth")
    alone: int = figure("relevant pairs that no other retriever found")
    share: Figure = figure("share of all relevant pairs that no other retriever found")
    lost: int = figure("queries that lose their last relevant document")
    tau: Figure = figure("Kendall's tau-b of the orders of the systems with and without these documents")
    changes: tuple[Change, ...] = figure("a row per system")


def depths(rankings: pl.DataFrame, pool: pl.DataFrame) -> pl.DataFrame:
    """Return query_id and `depth`: the rank down to which the pool contains the rankings of all retrievers.

    0 if it lacks a first document. In an `equal-depth` pool this is the depth to which the retrievers were pooled.
    """
    outside = rankings.join(pool, on=PAIR, how="anti").group_by("query_id").agg(first=pl.col("rank").min())
    deepest = rankings.group_by("query_id").agg(deepest=pl.col("rank").max())
    both = deepest.join(outside, on="query_id", how="left").sort("query_id")
    return both.select("query_id", depth=pl.coalesce(pl.col("first") - 1, "deepest").cast(pl.Int64))


def founders(pool: pl.DataFrame, qrels: pl.DataFrame, depth: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id, position and `by` of every relevant pair of the pool, sorted by pair.

    `by` lists the retrievers that rank the document within the query's `depth` (see `depths`). It is empty for a
    document deeper in all rankings, and [`LEGACY`] for a known positive without hits.
    """
    relevant = pool.join(qrels, on=PAIR, how="semi").join(depth, on="query_id", how="left")
    flat = relevant.select(*PAIR, "hits", "depth").explode("hits", empty_as_null=False).unnest("hits")
    by = flat.filter(pl.col("rank") <= pl.col("depth")).group_by(PAIR).agg(by=pl.col("retriever").sort())
    positives = relevant.join(by, on=PAIR, how="left").sort(PAIR)
    others = pl.when(pl.col("hits").list.len() == 0).then(pl.lit([LEGACY])).otherwise(pl.lit([], pl.List(pl.String)))
    return positives.select(*PAIR, "position", by=pl.col("by").fill_null(others))


def caught(positives: pl.DataFrame, retrievers: Sequence[str]) -> np.ndarray:
    """Return which retriever found which relevant pair, from the table of `founders`: bool, pairs x retrievers."""
    return (
        positives.select(pl.col("by").list.contains(name).alias(name) for name in retrievers)
        .to_numpy()
        .astype(np.bool_)
    )


def labels(qrels: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Return query -> its relevant documents, for the queries of `qrels`, sorted by query."""
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
    """Return the effect of removing the relevant documents that only `retriever` found.

    `positives` is the table of `founders`. nDCG is compared on the queries that retain a relevant document.
    """
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
    """Return nDCG@10 by the labels `relevant`, shape (queries, systems); 0 if a system has no ranking of a query.

    Rows are the keys of `queries`, sorted; columns are in the order of `systems`.
    """
    return np.array(
        [[ndcg(ranked.get(query, []), relevant[query]) for ranked in systems.values()] for query in sorted(queries)]
    ).reshape(len(queries), len(systems))


def compared(before: Floats, after: Floats, seed: int) -> list[Figure]:
    """Return the systems' mean scores before, those after, their differences, and tau-b of the two system rankings.

    `before` and `after` have the shape (queries, systems), with the same queries. For n systems the list has 3 n + 1
    figures. Intervals resample queries.
    """
    count = before.shape[1]
    sums = np.column_stack([np.ones(len(before)), before, after])

    def figures(sums: Floats) -> Floats:
        means = divided(sums[..., 1:], sums[..., :1])
        old, new = means[..., :count], means[..., count:]
        return np.concatenate([old, new, new - old, kendall(old, new)[..., None]], axis=-1)

    return measured(sums, figures, seed)


# Relevant documents by depth of the pool, and queries whose pool ended too early.

EDGES = (10, 20, 50, 100, 200, 500, 1000)
"""Last positions of the bins of pool positions; beyond the last one, bins have a width of 1,000."""
LAST = 5
"""Saturation of a pool is measured on its last 1 / LAST documents, a fifth."""


class Band(Record):
    """Bin of the pairs at the pool positions `low` to `high`, both included."""

    low: int = figure("first position")
    high: int = figure("last position")
    queries: int = figure("queries whose pool reaches `low`")
    pairs: int = figure("pairs at these positions")
    relevant: int = figure("relevant ones of these pairs")
    rate: Figure = figure("share of these pairs that are relevant")
    cumulated: int = figure("relevant pairs from the first position to `high`")
    a_query: float = figure("`cumulated` per query of the pool", digits=2)


class Late(Record, schema_name="unsaturated"):
    """A query whose pool still yields relevant documents in its last fifth."""

    query_id: str = figure("id of the query")
    pool: int = figure("documents in its pool")
    relevant: int = figure("relevant ones of them")
    late: int = figure("relevant documents in the last fifth")


def marked(pool: pl.DataFrame, qrels: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, position, `relevant` (0 or 1) and `size` (of the query's pool) of every pair of a pool."""
    flags = pool.select(*PAIR, "position").join(qrels.select(*PAIR, relevant=pl.lit(1)), on=PAIR, how="left")
    return flags.select("query_id", "position", pl.col("relevant").fill_null(0), size=pl.len().over("query_id"))


def bands(pairs: pl.DataFrame, seed: int) -> list[Band]:
    """Return the bins of pool positions that have pairs, from the table of `marked`; intervals resample queries."""
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
    """Return the cumulative number of relevant pairs at positions 1 to n, for n from 1 to the deepest position."""
    deepest = int(pairs["position"].to_numpy().max(initial=0))
    positions = pairs.filter(pl.col("relevant") == 1)["position"].to_numpy()
    total: list[int] = np.cumsum(np.bincount(positions, minlength=deepest + 1))[1:].tolist()
    return total


def unsaturated(pairs: pl.DataFrame) -> list[Late]:
    """Return the queries with relevant documents in the last fifth of their pool, those with most of them first.

    The last fifth of n documents are the last n // 5: none in a pool of fewer than five.
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


# Unjudged documents in a ranking: Judged@k, and nDCG@10 with and without them.

DEPTHS = (10, 100)
DEEPEST = 1000
"""Number of documents read per ranking: the first ten judged ones may be far down."""
DECIDED = frozenset({"relevant", "not relevant", "not positive"})
"""Verdicts by which a document is a positive or not; contested and incomplete leave that open."""


class Depth(Record, schema_name="coverage"):
    """Coverage of a system's first `k` documents by verdicts; counts are summed over the queries that it ranks."""

    k: int = figure("documents read per ranking")
    documents: int = figure("documents in these places, over all queries")
    judged: Figure = figure("Judged@k: share of a query's first k documents that have a verdict, mean over queries")
    holes: int = figure("unjudged documents, without any verdict")
    doubtful: int = figure("documents that are contested or incomplete")


class Covered(Record, schema_name="system"):
    """Coverage of one system's rankings by the run's verdicts."""

    system: str = figure("name of the system")
    queries: int = figure("queries with a relevant document, on which nDCG is measured")
    absent: int = figure("queries without an answer")  # their nDCG is 0
    stock: Figure = figure("nDCG@10, unjudged documents as not relevant")  # contested and incomplete too, as in mteb
    condensed: Figure = figure("nDCG@10 without unjudged documents")  # nor contested and incomplete: Sakai, SIGIR 2007
    depths: tuple[Depth, ...] = figure("coverage of its first documents, by depth")
    pooled: bool = figure("whether it is one of the pool's retrievers", default=False)


def covered(
    system: str,
    lists: Mapping[str, Sequence[str]],
    verdicts: Mapping[tuple[str, str], str],
    relevant: Relevant,
    seed: int,
) -> Covered:
    """Return the coverage of a system's rankings (`lists`: query -> documents, best first) by verdicts, with nDCG@10.

    `verdicts` is (query, document) -> verdict, `relevant` query -> relevant documents.
    """
    queries = sorted(relevant)
    full_lists = [lists.get(query, ()) for query in queries]
    condensed_lists = [
        [doc for doc in ranked if verdicts.get((query, doc)) in DECIDED]
        for query, ranked in zip(queries, full_lists, strict=True)
    ]
    stock, condensed = averages(
        [
            np.array([ndcg(ranked, relevant[query]) for query, ranked in zip(queries, rankings, strict=True)])
            for rankings in (full_lists, condensed_lists)
        ],
        seed,
    )
    return Covered(
        system=system,
        queries=len(queries),
        absent=sum(not ranked for ranked in full_lists),
        stock=stock,
        condensed=condensed,
        depths=tuple(_depth(k, lists, verdicts, seed) for k in DEPTHS),
    )


def _depth(k: int, lists: Mapping[str, Sequence[str]], verdicts: Mapping[tuple[str, str], str], seed: int) -> Depth:
    verdict_lists = [
        [verdicts.get((query, doc)) for doc in ranked[:k]] for query, ranked in sorted(lists.items()) if ranked
    ]
    shares = np.array([1 - listed.count(None) / len(listed) for listed in verdict_lists])
    words = [word for listed in verdict_lists for word in listed]
    return Depth(
        k=k,
        documents=len(words),
        judged=averages([shares], seed)[0],
        holes=words.count(None),
        doubtful=sum(word is not None and word not in DECIDED for word in words),
    )


# Rankings of external systems: TREC run files, and predictions of mteb.


def system_name(path: Path) -> str:
    """Return the name of a run file as a system: `file STEM`."""
    return f"file {path.stem}"


def rankings(
    context: Context, files: Sequence[Path], subset: str | None = None, split: str | None = None
) -> pl.DataFrame:
    """Return the rankings of run files (TREC, or predictions of mteb) as the table `rankings`, with surviving ids.

    Systems are named by `system_name`. `subset` and `split` select in a file of mteb. UserError if a file is missing or
    two files have the same stem.
    """
    tables = [pl.DataFrame(schema=TABLES["rankings"])]
    names = [path.stem for path in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"--run-file: found several files named {', '.join(twice)}; rename them, for names are shown")
    if absent := [str(path) for path in files if not path.exists()]:
        raise UserError(
            f"--run-file: {', '.join(absent)}: no such file; give a TREC run, or <task>_predictions.json of mteb"
        )
    if files:
        corpus = context.corpus
        ids = known_ids(context, corpus)
        queries = [Query(*row) for row in pooled(context).select("query_id", "text").iter_rows()]
        for path in files:
            system = runfile.RunFile(
                system_name(path), runfile.Config(path=path, subset=subset, split=split), kit(context)
            )
            tables += ranked(system, corpus, queries, DEEPEST, ids, context.progress)
    return pl.concat(tables)
