"""Graded relevance labels: one whole number per pair, the gain of the panel's lower median or minimum grade.

Contested pairs are among them: how high judges on both sides of the cut grade is what a graded label tells. Incomplete
pairs, and those that a cascade did without, have none.
"""

from typing import Literal

import polars as pl
from pydantic import Field

from curate.core.config import Section
from curate.core.scale import Scale
from curate.panel.voting import PAIR

Labels = Literal["binary", "graded", "both"]
LABELLED = ("relevant", "not relevant", "contested")
"""Verdicts of pairs that have a graded label."""


class Gain(Section):
    """Which of the panel's grades is a pair's, and what grades below the cut gain."""

    grade: Literal["lower-median", "minimum"] = Field(
        default="lower-median", description="of the judges' grades; of an even number the worse of the middle two"
    )
    gain_below_cut: bool = Field(default=True, description="grades below the cut keep their gain; else they gain 0")


def gains(verdicts: pl.DataFrame, scale: Scale, gain: Gain, settled: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return query_id, doc_id, score (the gain) and contested of every labelled pair of a `verdicts` table, sorted.

    `settled` (query_id, doc_id, grade) are pairs that people decided otherwise than the panel: their grade counts.
    """
    places = {label: place for place, label in enumerate(scale.labels)}
    known = pl.element().struct.field("grade").replace_strict(places, default=None, return_dtype=pl.Int64)
    graded = pl.col("votes").list.eval(known.drop_nulls().sort())  # best first
    at = graded.list.len() // 2 if gain.grade == "lower-median" else graded.list.len() - 1
    worth = {
        place: value if gain.gain_below_cut or place < len(scale.positives) else 0
        for place, value in enumerate(scale.gains)
    }
    place = graded.list.get(at, null_on_oob=True)
    rows = verdicts.filter(pl.col("verdict").is_in(LABELLED)).with_columns(place=place)
    if settled is not None:
        people = settled.select(*PAIR, people=pl.col("grade").replace_strict(places, return_dtype=pl.Int64))
        rows = rows.join(people, on=PAIR, how="left").with_columns(place=pl.coalesce("people", "place"))
    score = pl.col("place").replace_strict(worth, default=None, return_dtype=pl.Int32)
    contested = pl.col("verdict") == "contested"
    return rows.select(*PAIR, score=score, contested=contested).drop_nulls("score").sort(PAIR)
