"""Comparison of consensus rules on the same ratings: precision, recall, system rankings, and what unanimity removes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
import polars as pl

from curate.core.figures import Figure, Record, figure
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import PAIR, Policy
from curate.stats import bootstrap, rank_correlation
from curate.stats.agreement import scalar
from curate.stats.bootstrap import divided, measured
from curate.stats.tally import Floats

BANDS = (10, 20, 50, 100)
"""Last positions of the bands of pool positions; deeper pairs are one more band."""
TRUTH = {**dict.fromkeys(PAIR, pl.String), "relevant": pl.Boolean, "weight": pl.Float64}
"""Columns of assessors' labels; `weight` is the number of pairs of the pool that a row represents."""
Decided = Mapping[str, pl.DataFrame]
"""Consensus rule, or another source of labels -> its `verdicts` table."""


def decide(
    ratings: pl.DataFrame, panel: Sequence[str], scale: Scale, declared: Policy | ConsensusRule = "unanimous"
) -> dict[str, pl.DataFrame]:
    """Return name -> `verdicts` table, for every named consensus rule that fits the panel's size.

    Last is `declared`, if it is a rule given by thresholds.
    """
    fitting: list[Policy | ConsensusRule] = [
        policy for policy in voting.POLICIES if len(panel) >= voting.FITTED.get(policy, 1)
    ]
    rules = [*fitting, declared] if isinstance(declared, ConsensusRule) else fitting
    return {voting.name_of(rule): voting.decide(ratings, panel, rule, scale) for rule in rules}


class PolicyLabels(Record, schema_name="policy"):
    """Labels of one consensus rule: pairs by verdict, positives, precision and recall."""

    policy: str = figure("name of the rule, or of another source of labels")
    pairs: int = figure("judged pairs")
    kept: int = figure("pairs whose verdict is relevant or not relevant")
    relevant: int = figure("pairs with the verdict relevant")
    not_relevant: int = figure("pairs with the verdict not relevant", key="not relevant")
    contested: int = figure("pairs with the verdict contested")
    incomplete: int = figure("pairs with the verdict incomplete")
    not_positive: int = figure("pairs that a cascade stopped because they cannot become relevant", key="not positive")
    queries_with_a_positive: int = figure("queries with a relevant document")
    positives_per_query: float | None = figure("mean number of relevant documents, over all judged queries")
    precision: float | None = figure(
        "share of the positives with an assessor's grade that assessors find relevant", optional=True, nullable=True
    )
    recall: float | None = figure(
        "share of the judged pairs that assessors find relevant which are positives", optional=True, nullable=True
    )
    intervals: Mapping[str, tuple[float, ...] | None] = figure(
        "95 % intervals of positives_per_query, precision and recall; queries resampled"
    )

    def left_out(self) -> set[str]:
        """Return precision and recall without people's grades."""
        return {"precision", "recall"} - self.intervals.keys()


class RemovedPairs(Record, schema_name="removed"):
    """Pairs of one group that unanimity removes."""

    by: str = figure("property that groups the pairs")
    group: str = figure("name of the group")
    pairs: int = figure("pairs of the group")
    contested: int = figure("contested pairs of the group")
    share: float | None = figure("share of the group that is contested")
    lost: int = figure("contested pairs that a majority finds relevant")
    lost_share: float | None = figure("share of the pairs that a majority finds relevant which is lost")


class OrderCorrelation(Record, schema_name="order"):
    """Correlation of a ranking of systems with that by unanimous labels."""

    tau_b: Figure = figure("Kendall's tau-b; queries resampled")
    tau_ap: float | None = figure("tau_AP, which gives upper ranks more weight")
    rank_biased_overlap: float | None = figure("rank-biased overlap")


class SystemOrders(Record, schema_name="systems"):
    """Scores of the systems by source of labels, and correlations of their rankings."""

    ndcg_at_10: Mapping[str, Mapping[str, float | None]] = figure("policy -> system -> nDCG@10")
    against_unanimous: Mapping[str, OrderCorrelation] = figure(
        "policy -> correlation of its ranking of the systems with that by unanimous labels"
    )


@dataclass(frozen=True)
class _Counts:
    """Sums of several quantities, such as weights of true positives, in the last axis; shape (..., quantities)."""

    table: Floats

    def __len__(self) -> int:
        return len(self.table)

    def weighted(self, weights: Floats) -> Self:
        return type(self)(np.asarray(np.tensordot(weights, self.table, axes=1)))

    def ratio(self, top: int, bottom: int) -> Floats:
        """Return the ratio of the sums with index `top` and `bottom`; NaN if the divisor is 0."""
        above, below = self.table[..., top], self.table[..., bottom]
        share: Floats = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below != 0))
        return share


RATIOS = {"positives_per_query": (0, 1), "precision": (2, 3), "recall": (2, 4)}


def compare(
    decided: Decided, queries: Sequence[str], seed: int, truth: pl.DataFrame | None = None
) -> list[PolicyLabels]:
    """Return one row per consensus rule.

    `queries` are all judged queries; one without a positive counts as 0. `truth` has the assessors' labels, columns
    `TRUTH`: precision is over the positives among these pairs, recall over the relevant and judged ones. A ratio with
    divisor 0 is None.
    """
    return [_row(policy, table, queries, seed, truth) for policy, table in decided.items()]


def _row(
    policy: str, verdicts: pl.DataFrame, queries: Sequence[str], seed: int, truth: pl.DataFrame | None
) -> PolicyLabels:
    counts = {name.replace(" ", "_"): int((verdicts["verdict"] == name).sum()) for name in VERDICTS}
    sums = _sums(verdicts, queries, truth)
    totals = sums.weighted(np.ones(len(queries)))
    ratios = {name: partial(_Counts.ratio, top=top, bottom=bottom) for name, (top, bottom) in RATIOS.items()}
    intervals = bootstrap.intervals(sums, ratios, seed=seed)
    ratio_terms = RATIOS if truth is not None else {"positives_per_query": RATIOS["positives_per_query"]}
    shares: dict[str, Any] = dict.fromkeys(RATIOS)
    shares |= {name: scalar(totals.ratio(*terms)) for name, terms in ratio_terms.items()}
    return PolicyLabels(
        policy=policy,
        pairs=len(verdicts),
        kept=int(verdicts["verdict"].is_in(["relevant", "not relevant"]).sum()),
        **counts,
        queries_with_a_positive=int((sums.table[:, 0] > 0).sum()),
        **shares,
        intervals={
            name: (interval.low, interval.high) if (interval := intervals[name]) else None for name in ratio_terms
        },
    ).rounded()


def _sums(verdicts: pl.DataFrame, queries: Sequence[str], truth: pl.DataFrame | None) -> _Counts:
    """Return five sums per query: positives, 1, and the weights of true positives, graded positives, relevant pairs."""
    people_labels = pl.DataFrame(schema=TRUTH) if truth is None else truth
    is_positive = (pl.col("verdict") == "relevant").cast(pl.Float64)
    is_relevant, weight = pl.col("relevant").cast(pl.Float64), pl.col("weight")
    fields = [is_positive, is_positive * is_relevant * weight, is_positive * weight, is_relevant * weight]
    sums = (
        verdicts.select(*PAIR, "verdict")
        .join(people_labels.select(*PAIR, "relevant", "weight"), on=PAIR, how="left")
        .group_by("query_id")
        .agg(field.sum().alias(str(index)) for index, field in enumerate(fields))
    )
    all_queries = pl.DataFrame({"query_id": pl.Series(queries, dtype=pl.String)})
    table = all_queries.join(sums, on="query_id", how="left", maintain_order="left").drop("query_id").fill_null(0.0)
    return _Counts(np.insert(table.to_numpy(), 1, 1.0, axis=1))


def removed(decided: Decided, pool: pl.DataFrame, texts: Mapping[str, str], scale: Scale) -> list[RemovedPairs]:
    """Return counts of the pairs that unanimity removes, by grades, length of the query, retriever, pool position.

    One row per group. `texts` is query -> text, grouped into terciles of length. A pair counts for every retriever that
    found it.
    """
    rows = (
        decided["unanimous"]
        .select(*PAIR, "votes", contested=pl.col("verdict") == "contested")
        .join(decided["majority"].select(*PAIR, positive=pl.col("verdict") == "relevant"), on=PAIR)
        .join(pool.select(*PAIR, "position", "hits"), on=PAIR, how="left")
        .with_columns(lost=pl.col("contested") & pl.col("positive"))
    )
    lengths = {name: len(texts[name]) for name in rows["query_id"].unique()}
    ordered = sorted(lengths.values())
    thirds = sorted({ordered[len(ordered) * third // 3 - 1] for third in (1, 2)} - {ordered[-1]}) if ordered[2:] else []
    length = _bands(pl.col("query_id").replace_strict(lengths, return_dtype=pl.Int64), thirds)
    by_retriever = pl.col("hits").list.eval(pl.element().struct.field("retriever"))
    return [
        *_group_rows("grades", rows.filter("contested"), _pattern(scale)),
        *_group_rows("length of the query", rows, length),
        *_group_rows("retriever", rows.with_columns(by=by_retriever).explode("by"), pl.col("by")),
        *_group_rows("position in the pool", rows, _bands(pl.col("position"), BANDS)),
    ]


def _pattern(scale: Scale) -> pl.Expr:
    """Return an expression for the sorted grades of a pair as text, best first, `-` for a missing grade."""
    order = [*scale.labels, "-"]
    grade_indices = (
        pl.element().struct.field("grade").fill_null("-").replace_strict(order, list(range(len(order)))).sort()
    )
    sorted_grades = grade_indices.replace_strict(list(range(len(order))), order)
    return pl.col("votes").list.eval(sorted_grades).list.join(" ")


def _bands(numbers: pl.Expr, edges: Sequence[int]) -> pl.Expr:
    """Return an expression for the band of an integer, such as `11 to 20`; `edges` are the last numbers of bands."""
    inner = [f"{low + 1} to {high}" if low + 1 < high else str(high) for low, high in pairwise(edges)]
    names = [f"up to {edges[0]}", *inner, f"over {edges[-1]}"] if edges else ["all"]
    band = pl.when(numbers.is_not_null()).then(sum(((numbers > edge).cast(pl.Int64) for edge in edges), pl.lit(0)))
    return band.replace_strict(list(range(len(names))), names, return_dtype=pl.Enum(names))


def _group_rows(by: str, rows: pl.DataFrame, group: pl.Expr) -> list[RemovedPairs]:
    sums = [pl.col(name).sum() for name in ("contested", "positive", "lost")]
    groups = rows.with_columns(group=group).drop_nulls("group").group_by("group").agg(pl.len().alias("pairs"), *sums)
    return [
        RemovedPairs(
            by=by,
            group=row["group"],
            pairs=row["pairs"],
            contested=row["contested"],
            share=row["contested"] / row["pairs"],
            lost=row["lost"],
            lost_share=row["lost"] / row["positive"] if row["positive"] else None,
        ).rounded()
        for row in groups.sort("group").iter_rows(named=True)
    ]


# Rankings of systems by nDCG@10 under the labels of each consensus rule and graded labels, and their correlation.

DEPTH = 10
BASE = "unanimous"
"""Consensus rule whose system ranking is the reference."""
Labels = Mapping[str, pl.DataFrame]
"""Consensus rule, or another source of labels -> query_id, doc_id and score (gain); a pair without a row has gain 0."""


def relevant_pairs(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the labels of a `verdicts` table: query_id, doc_id and score 1 of relevant pairs."""
    return verdicts.filter(pl.col("verdict") == "relevant").select("query_id", "doc_id", score=pl.lit(1, pl.Int32))


def compare_orders(labels: Labels, rankings: pl.DataFrame, seed: int) -> SystemOrders:
    """Return scores and rank correlations of the systems in a table `rankings`, by source of labels.

    nDCG@10 has linear gain, and is the mean over the queries that have a gain above 0 under these labels; None without
    such a query. `tau_b` is None for fewer than two queries or where undefined, `tau_ap` and `rank_biased_overlap` for
    fewer than two systems.
    """
    systems = rankings["retriever"].unique().sort().to_list()
    queries = sorted({query for table in labels.values() for query in table["query_id"]})
    sums = {name: _ranking_sums(table, rankings, queries, systems) for name, table in labels.items()}
    means = {
        name: divided(table_sums[:, :-1].sum(axis=0), table_sums[:, -1:].sum(axis=0))
        for name, table_sums in sums.items()
    }
    scores: dict[str, dict[str, float | None]] = {
        name: {system: None if np.isnan(mean) else float(mean) for system, mean in zip(systems, row, strict=True)}
        for name, row in means.items()
    }
    others = [name for name in labels if name != BASE]
    taus = _taus([sums[BASE], *(sums[name] for name in others)], seed) if BASE in sums and queries else []
    against = {}
    for name, tau in zip(others, taus, strict=False):
        base_scores, other_scores = (
            {system: mean for system, mean in scores[source].items() if mean is not None} for source in (BASE, name)
        )
        against[name] = OrderCorrelation(
            tau,
            rank_correlation.tau_ap(base_scores, other_scores),
            rank_correlation.rank_biased_overlap(base_scores, other_scores),
        )
    return SystemOrders(scores, against).rounded()


def _ranking_sums(
    labels: pl.DataFrame, rankings: pl.DataFrame, queries: Sequence[str], systems: Sequence[str]
) -> Floats:
    """Return nDCG@10, shape (queries, systems + 1); the last column is 1 if it is defined for the query, else 0."""
    gaining = labels.filter(pl.col("score") > 0)
    order = pl.col("score").rank("ordinal", descending=True).over("query_id")
    best = _dcg(gaining.with_columns(rank=order), "query_id").rename({"dcg": "best"})
    first = rankings.filter(pl.col("rank") <= DEPTH).select("query_id", "retriever", "doc_id", "rank")
    scored = _dcg(first.join(gaining, on=["query_id", "doc_id"]), "query_id", "retriever").join(best, on="query_id")
    table = np.zeros((len(queries), len(systems) + 1))
    row, column = ({name: index for index, name in enumerate(names)} for names in (queries, systems))
    table[[row[query] for query in best["query_id"]], -1] = 1.0
    for query, system, dcg, ideal in scored.select("query_id", "retriever", "dcg", "best").iter_rows():
        table[row[query], column[system]] = dcg / ideal
    return table


def _dcg(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return `dcg` per group of `by`: the sum of score / log2(rank + 1) over ranks up to `DEPTH`."""
    gain = pl.col("score") / (pl.col("rank") + 1).log(2)
    return rows.filter(pl.col("rank") <= DEPTH).group_by(by).agg(dcg=gain.sum())


def _taus(sums: Sequence[Floats], seed: int) -> list[Figure]:
    """Return Kendall's tau-b of the first system ranking with every other one, with intervals over queries.

    `sums` are tables of `_ranking_sums`.
    """
    width, stacked = sums[0].shape[1], np.concatenate(sums, axis=1)

    def statistic(totals: Floats) -> Floats:
        sums_by_source = [totals[..., start : start + width] for start in range(0, totals.shape[-1], width)]
        means = [divided(source_sums[..., :-1], source_sums[..., -1:]) for source_sums in sums_by_source]
        return np.stack([rank_correlation.kendall(means[0], mean) for mean in means[1:]], axis=-1)

    if width < 3:  # fewer than two systems have no order
        return [Figure(None)] * (len(sums) - 1)
    return measured(stacked, statistic, seed) if len(sums) > 1 else []
