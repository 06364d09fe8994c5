"""Gains of the panel's median grades, for exports whose labels are binary."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from curate.core.scale import FIVE, Scale
from curate.panel.voting import PAIR
from curate.tables.exporters.labels import Gain, gains


def scale_of(said: Mapping[str, Any], grades: pl.DataFrame) -> Scale | None:
    """Return the scale of the votes: what the README says, else the five grades if all votes are among them.

    None for another scale, one without gains, votes that nobody gave, and a cascade, whose votes are not all there.
    """
    scale = Scale.from_json(said["scale"]) if "scale" in said else FIVE
    given = grades.select(pl.col("votes").list.explode().struct.field("grade"))["grade"].drop_nulls().unique()
    known = not given.is_empty() and set(given) <= set(scale.labels)
    return scale if known and scale.gains and "not positive" not in set(grades["verdict"]) else None


def median_gains(
    grades: pl.DataFrame, labels: Mapping[str, Mapping[str, float]], scale: Scale
) -> dict[str, dict[str, float]]:
    """Return query -> document -> gain of the raw lower median of the votes, gains below the cut kept.

    A published label decides on which side of the cut its pair lies, so that where people settled a pair, or a rule
    other than the median did, the gain is the nearest one on that side.
    """
    cut = scale.gain(scale.relevant_from)
    below = max((gain for gain in scale.gains if gain < cut), default=0)
    found = {query: {doc: float(cut) for doc, gain in docs.items() if gain > 0} for query, docs in labels.items()}
    named = grades.select("verdict", "votes", query_id="query-id", doc_id="corpus-id")
    rows = gains(named, scale, Gain()).join(named, on=PAIR, maintain_order="left")
    for query, doc, gain, verdict in rows.select(*PAIR, "score", "verdict").iter_rows():
        held = {"relevant": max(gain, cut), "not relevant": min(gain, below)}.get(verdict, gain)
        found.setdefault(query, {})[doc] = float(held)
    return found
