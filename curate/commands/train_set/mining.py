"""Hard-negative mining figures: the best grade per pair, and how wrong ungraded negatives would be."""

import polars as pl

from curate.core.config import Json
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.stats import ratios

BAND = 10
"""Positions of the pool per reported share of relevant candidates."""


def mined(verdicts: pl.DataFrame, pool: pl.DataFrame, labels: pl.DataFrame, seed: int) -> list[dict[str, Json]]:
    """Return how many negatives mined without a judge would be wrong, by ten positions of the pool, then in all.

    Mined are the judged candidates of a query that the source does not label as its positives. The share of them that
    the judge found relevant has a 95 % interval that resamples queries; None without a pair.
    """
    known = verdicts.filter(pl.col("verdict").is_in(["relevant", "not relevant"]))
    pairs = known.join(labels, on=PAIR, how="anti").join(pool.select(*PAIR, "position"), on=PAIR)
    pairs = pairs.with_columns(band=(pl.col("position") - 1) // BAND).sort("band", "query_id", "doc_id")
    bands = [
        {"positions": f"{part['band'][0] * BAND + 1}-{part['band'][0] * BAND + BAND}", **_turned(part, seed)}
        for part in pairs.partition_by("band", maintain_order=True)
    ]
    return [*bands, {"positions": "all", **_turned(pairs, seed)}]


def _turned(pairs: pl.DataFrame, seed: int) -> dict[str, Json]:
    relevant = pairs["verdict"] == "relevant"
    found = ratios.mean(relevant.to_numpy(), ratios.numbered(pairs["query_id"]), seed)
    bounds = (found.value, found.low, found.high) if found else (None, None, None)
    rounded = (None if each is None else round(each, 5) for each in bounds)
    return {
        "pairs": len(pairs),
        "relevant": int(relevant.sum()),
        **dict(zip(("share", "low", "high"), rounded, strict=True)),
    }


def best(scale: Scale) -> pl.Expr:
    """Return the place of a pair's best grade on the scale, 0 for the best there is; null without a grade."""
    places = {label: place for place, label in enumerate(scale.labels)}
    graded = pl.element().struct.field("grade").replace_strict(places, default=None, return_dtype=pl.Int64)
    return pl.col("votes").list.eval(graded).list.min()


def by_grade(chosen: pl.DataFrame, verdicts: pl.DataFrame, scale: Scale) -> dict[str, int]:
    """Return how many negatives have each best grade, those that occur."""
    negatives = verdicts.join(chosen.filter(pl.col("score") == 0), on=PAIR, how="semi")
    counted = negatives.select(best=best(scale))["best"].value_counts().sort("best")
    return {scale.labels[at]: count for at, count in counted.iter_rows()}
