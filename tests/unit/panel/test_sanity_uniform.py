"""A judge that gives nearly all pairs one relevant grade cannot tell negatives."""

import polars as pl

from curate.core.scale import FIVE
from curate.panel import sanity


def rated(grade: str, others: int) -> pl.DataFrame:
    return pl.DataFrame({"judge": ["j"] * 300, "grade": [grade] * (300 - others) + ["B"] * others})


def test_one_relevant_grade_for_nearly_all_pairs() -> None:
    best, worst = FIVE.labels[0], FIVE.labels[-1]
    assert sanity.uniform(rated(best, 10), FIVE) == [f"j gives {best} to 290 of 300 pairs"]
    assert sanity.uniform(rated(best, 20), FIVE) == []
    assert sanity.uniform(rated(worst, 0), FIVE) == [], "most pairs of a deep pool are not relevant"
    assert sanity.uniform(rated(best, 0).head(50), FIVE) == []
