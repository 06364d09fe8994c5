"""Consensus rules compared on the same ratings: precision and recall, and the pairs that unanimity removes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel import voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import PAIR, Policy
from curate.stats import bootstrap
from curate.stats.agreement import scalar
from curate.stats.tally import Floats

BANDS = (10, 20, 50, 100)
"""Last positions of the rank bands of a pool; deeper pairs are one more band."""
TRUTH = {**dict.fromkeys(PAIR, pl.String), "relevant": pl.Boolean, "weight": pl.Float64}
"""Columns of people's labels; weight is the number of pairs in the pool that a row represents."""
Decided = Mapping[str, pl.DataFrame]
"""Policy, or another source of labels -> its `verdicts` table."""


def decide(
    ratings: pl.DataFrame, panel: Sequence[str], scale: Scale, declared: Policy | ConsensusRule = "unanimous"
) -> dict[str, pl.DataFrame]:
    """Return the `verdicts` table of every policy, and of a declared rule, without those that need a larger panel."""
    fitting: list[Policy | ConsensusRule] = [
        policy for policy in voting.POLICIES if len(panel) >= voting.FITTED.get(policy, 1)
    ]
    rules = [*fitting, declared] if isinstance(declared, ConsensusRule) else fitting
    return {voting.name_of(rule): voting.decide(ratings, panel, rule, scale) for rule in rules}


@dataclass(frozen=True)
class _Counts:
    """Sums per query; shape (..., fields)."""

    table: Floats

    def __len__(self) -> int:
        return len(self.table)

    def weighted(self, weights: Floats) -> Self:
        return type(self)(np.asarray(np.tensordot(weights, self.table, axes=1)))

    def ratio(self, top: int, bottom: int) -> Floats:
        """Return the ratio of two sums; NaN if the divisor is 0."""
        above, below = self.table[..., top], self.table[..., bottom]
        share: Floats = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below != 0))
        return share


RATIOS = {"positives_per_query": (0, 1), "precision": (2, 3), "recall": (2, 4)}


def compare(
    decided: Decided, queries: Sequence[str], seed: int, truth: pl.DataFrame | None = None
) -> list[dict[str, Json]]:
    """Return a row per policy: pairs kept, pairs by verdict, positives per query, and precision and recall by `truth`.

    `queries` are all judged queries; one without a positive counts as 0. `truth` has query_id, doc_id, relevant and
    weight (the number of pairs that a row represents) of the pairs that people graded; precision is over the positives
    among them, recall over the relevant and judged ones. `intervals` has [low, high] of the last three: 95 %, from
    1,000 bootstrap samples of queries. A ratio with divisor 0 is None.
    """
    return [_row(policy, table, queries, seed, truth) for policy, table in decided.items()]


def _row(
    policy: str, verdicts: pl.DataFrame, queries: Sequence[str], seed: int, truth: pl.DataFrame | None
) -> dict[str, Json]:
    counts: dict[str, Json] = {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}
    sums = _sums(verdicts, queries, truth)
    totals = sums.weighted(np.ones(len(queries)))
    ratios = {name: partial(_Counts.ratio, top=top, bottom=bottom) for name, (top, bottom) in RATIOS.items()}
    intervals = bootstrap.intervals(sums, ratios, seed=seed)
    ratio_terms = RATIOS if truth is not None else {"positives_per_query": RATIOS["positives_per_query"]}
    return {
        "policy": policy,
        "pairs": len(verdicts),
        "kept": int(verdicts["verdict"].is_in(["relevant", "not relevant"]).sum()),
        **counts,
        "queries_with_a_positive": int((sums.table[:, 0] > 0).sum()),
        **{name: _six(scalar(totals.ratio(*terms))) for name, terms in ratio_terms.items()},
        "intervals": {
            name: [round(interval.low, 6), round(interval.high, 6)] if (interval := intervals[name]) else None
            for name in ratio_terms
        },
    }


def _sums(verdicts: pl.DataFrame, queries: Sequence[str], truth: pl.DataFrame | None) -> _Counts:
    """Return per query: positives, 1, and the weights of true positives, of graded positives, and of relevant pairs."""
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


def removed(decided: Decided, pool: pl.DataFrame, texts: Mapping[str, str], scale: Scale) -> list[dict[str, Json]]:
    """Return the pairs that unanimity removes, a row per group: by grades, query length, retriever, rank band.

    Of the group's pairs, `contested` are those without unanimity, `lost` those among them that a majority finds
    relevant; `share` is contested / pairs, `lost_share` is lost / the majority's positives. `texts` are the queries by
    id, grouped into terciles of length. A pair counts for every retriever that found it.
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
        *_grouped("grades", rows.filter("contested"), _pattern(scale)),
        *_grouped("length of the query", rows, length),
        *_grouped("retriever", rows.with_columns(by=by_retriever).explode("by"), pl.col("by")),
        *_grouped("position in the pool", rows, _bands(pl.col("position"), BANDS)),
    ]


def _pattern(scale: Scale) -> pl.Expr:
    """Return the sorted grades of a pair as text, best first, `-` for a missing grade."""
    order = [*scale.labels, "-"]
    grade_indices = (
        pl.element().struct.field("grade").fill_null("-").replace_strict(order, list(range(len(order)))).sort()
    )
    sorted_grades = grade_indices.replace_strict(list(range(len(order))), order)
    return pl.col("votes").list.eval(sorted_grades).list.join(" ")


def _bands(numbers: pl.Expr, edges: Sequence[int]) -> pl.Expr:
    """Return the band of whole numbers as an enum, such as `11 to 20`; `edges` are the last numbers of the bands."""
    inner = [f"{low + 1} to {high}" if low + 1 < high else str(high) for low, high in pairwise(edges)]
    names = [f"up to {edges[0]}", *inner, f"over {edges[-1]}"] if edges else ["all"]
    band = pl.when(numbers.is_not_null()).then(sum(((numbers > edge).cast(pl.Int64) for edge in edges), pl.lit(0)))
    return band.replace_strict(list(range(len(names))), names, return_dtype=pl.Enum(names))


def _grouped(by: str, rows: pl.DataFrame, group: pl.Expr) -> list[dict[str, Json]]:
    sums = [pl.col(name).sum() for name in ("contested", "positive", "lost")]
    groups = rows.with_columns(group=group).drop_nulls("group").group_by("group").agg(pl.len().alias("pairs"), *sums)
    return [
        {
            "by": by,
            "group": row["group"],
            "pairs": row["pairs"],
            "contested": row["contested"],
            "share": _six(row["contested"] / row["pairs"]),
            "lost": row["lost"],
            "lost_share": _six(row["lost"] / row["positive"]) if row["positive"] else None,
        }
        for row in groups.sort("group").iter_rows(named=True)
    ]


def _six(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)
