"""Consensus policies compared on the same ratings: how right each is, and what unanimity removes."""

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
"""Last positions of the rank bands of a pool; what lies deeper is one more."""
TRUTH = {**dict.fromkeys(PAIR, pl.String), "relevant": pl.Boolean, "weight": pl.Float64}
"""Columns of what people found of some pairs; weight is how many pairs of the pool one stands for."""
Decided = Mapping[str, pl.DataFrame]
"""Policy, or another source of labels -> its `verdicts` table."""


def decide(
    ratings: pl.DataFrame, panel: Sequence[str], scale: Scale, declared: Policy | ConsensusRule = "unanimous"
) -> dict[str, pl.DataFrame]:
    """Return the `verdicts` table of every policy, and of a declared rule; without those that want a larger panel."""
    fit: list[Policy | ConsensusRule] = [each for each in voting.POLICIES if len(panel) >= voting.FITTED.get(each, 1)]
    every = [*fit, declared] if isinstance(declared, ConsensusRule) else fit
    return {voting.name_of(policy): voting.decide(ratings, panel, policy, scale) for policy in every}


@dataclass(frozen=True)
class _Counts:
    """Sums per query; shape (..., fields)."""

    table: Floats

    def __len__(self) -> int:
        return len(self.table)

    def weighted(self, weights: Floats) -> Self:
        return type(self)(np.asarray(np.tensordot(weights, self.table, axes=1)))

    def ratio(self, top: int, bottom: int) -> Floats:
        """Return one sum over another; NaN where the divisor is 0."""
        above, below = self.table[..., top], self.table[..., bottom]
        share: Floats = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below != 0))
        return share


RATIOS = {"positives_per_query": (0, 1), "precision": (2, 3), "recall": (2, 4)}


def compare(
    decided: Decided, queries: Sequence[str], seed: int, truth: pl.DataFrame | None = None
) -> list[dict[str, Json]]:
    """Return a row per policy: pairs kept, pairs by verdict, positives per query, and precision and recall by `truth`.

    `queries` are all that were asked: one without a positive counts as 0. `truth` holds query_id, doc_id, relevant and
    weight (how many pairs one stands for) of the pairs that people graded; precision is over the positives among them,
    recall over the relevant ones among them that were judged. `intervals` holds [low, high] of the last three: 95 %,
    from 1,000 samples of the queries. None where nothing is there to divide by.
    """
    return [_row(policy, table, queries, seed, truth) for policy, table in decided.items()]


def _row(
    policy: str, verdicts: pl.DataFrame, queries: Sequence[str], seed: int, truth: pl.DataFrame | None
) -> dict[str, Json]:
    counts: dict[str, Json] = {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}
    sums = _sums(verdicts, queries, truth)
    whole = sums.weighted(np.ones(len(queries)))
    ratios = {name: partial(_Counts.ratio, top=top, bottom=bottom) for name, (top, bottom) in RATIOS.items()}
    drawn = bootstrap.intervals(sums, ratios, seed=seed)
    shown = RATIOS if truth is not None else {"positives_per_query": RATIOS["positives_per_query"]}
    return {
        "policy": policy,
        "pairs": len(verdicts),
        "kept": int(verdicts["verdict"].is_in(["relevant", "not relevant"]).sum()),
        **counts,
        "queries_with_a_positive": int((sums.table[:, 0] > 0).sum()),
        **{name: _six(scalar(whole.ratio(*at))) for name, at in shown.items()},
        "intervals": {
            name: [round(each.low, 6), round(each.high, 6)] if (each := drawn[name]) else None for name in shown
        },
    }


def _sums(verdicts: pl.DataFrame, queries: Sequence[str], truth: pl.DataFrame | None) -> _Counts:
    """Return for each query: positives, one, and the weights of true, of checked positives, and of relevant pairs."""
    known = pl.DataFrame(schema=TRUTH) if truth is None else truth
    yes = (pl.col("verdict") == "relevant").cast(pl.Float64)
    good, weight = pl.col("relevant").cast(pl.Float64), pl.col("weight")
    fields = [yes, yes * good * weight, yes * weight, good * weight]
    found = (
        verdicts.select(*PAIR, "verdict")
        .join(known.select(*PAIR, "relevant", "weight"), on=PAIR, how="left")
        .group_by("query_id")
        .agg(field.sum().alias(str(place)) for place, field in enumerate(fields))
    )
    asked = pl.DataFrame({"query_id": pl.Series(queries, dtype=pl.String)})
    table = asked.join(found, on="query_id", how="left", maintain_order="left").drop("query_id").fill_null(0.0)
    return _Counts(np.insert(table.to_numpy(), 1, 1.0, axis=1))


def removed(decided: Decided, pool: pl.DataFrame, texts: Mapping[str, str], scale: Scale) -> list[dict[str, Json]]:
    """Return what unanimity removes, a row per group: by grades of a pair, length of the query, retriever, rank band.

    Of the group's pairs, `contested` are those that unanimity leaves out, `lost` those among them that a majority finds
    relevant; `share` is contested / pairs, `lost_share` is lost / the majority's positives. `texts` are the queries by
    id; their lengths are cut in three equal parts. A pair counts for every retriever that found it.
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
    thirds = sorted({ordered[len(ordered) * part // 3 - 1] for part in (1, 2)} - {ordered[-1]}) if ordered[2:] else []
    length = _bands(pl.col("query_id").replace_strict(lengths, return_dtype=pl.Int64), thirds)
    by_retriever = pl.col("hits").list.eval(pl.element().struct.field("retriever"))
    return [
        *_grouped("grades", rows.filter("contested"), _pattern(scale)),
        *_grouped("length of the query", rows, length),
        *_grouped("retriever", rows.with_columns(by=by_retriever).explode("by"), pl.col("by")),
        *_grouped("position in the pool", rows, _bands(pl.col("position"), BANDS)),
    ]


def _pattern(scale: Scale) -> pl.Expr:
    """Return the grades of a pair as one text, best first, `-` for none."""
    order = [*scale.labels, "-"]
    places = pl.element().struct.field("grade").fill_null("-").replace_strict(order, list(range(len(order)))).sort()
    named = places.replace_strict(list(range(len(order))), order)
    return pl.col("votes").list.eval(named).list.join(" ")


def _bands(numbers: pl.Expr, edges: Sequence[int]) -> pl.Expr:
    """Return the band of whole numbers in words, each up to one of the edges, in the order of the bands."""
    inner = [f"{low + 1} to {high}" if low + 1 < high else str(high) for low, high in pairwise(edges)]
    names = [f"up to {edges[0]}", *inner, f"over {edges[-1]}"] if edges else ["all"]
    place = pl.when(numbers.is_not_null()).then(sum(((numbers > edge).cast(pl.Int64) for edge in edges), pl.lit(0)))
    return place.replace_strict(list(range(len(names))), names, return_dtype=pl.Enum(names))


def _grouped(by: str, rows: pl.DataFrame, group: pl.Expr) -> list[dict[str, Json]]:
    sums = [pl.col(name).sum() for name in ("contested", "positive", "lost")]
    found = rows.with_columns(group=group).drop_nulls("group").group_by("group").agg(pl.len().alias("pairs"), *sums)
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
        for row in found.sort("group").iter_rows(named=True)
    ]


def _six(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)
