"""Sanity of a panel's ratings: signs that judges do not tell relevant documents from others.

Pure: the figures of a table of ratings, and a sentence per sign. They are signs and prove nothing: controls do.
"""

from collections.abc import Sequence

import polars as pl
from pydantic import Field

from curate.core.config import Section
from curate.core.sampling import shuffled
from curate.core.scale import Scale
from curate.panel import voting
from curate.stats import agreement
from curate.stats.sample_estimates import wilson

LEAST = 200
"""Ratings below which nothing is said."""
MOST_RELEVANT = 0.95
"""Share of a judge's ratings at or above the cut from which on it is named: pools are mostly not relevant."""
MOST_CONTESTED = 0.5
FEWEST_QUERIES = 0.1
"""Share of the queries with a positive below which a run is worth little."""
QUERIES = 40
"""Queries of the first look, if its pairs allow: 0 positives in 35 of them bound the share below a tenth."""
PAIRS = 25
"""Pairs of the first look, at most, as a multiple of the least."""


class Sanity(Section):
    """How much every judge rates before the ratings are looked at, and what follows."""

    ratings: int = Field(
        default=LEAST,
        ge=0,
        description="pairs that are judged and looked at before the rest is paid for; 0 for no look",
    )
    missing: float = Field(
        default=0.2,
        ge=0,
        le=1,
        exclude_if=lambda _: True,  # it says how a command ends, and changes no table
        description="share of a judge's pairs without a grade above which the command ends with exit code 3",
    )
    stop: bool = Field(
        default=False, description="stop if fewer than a tenth of the queries would have a positive, or only say so"
    )


def first(pairs: pl.DataFrame, least: int, seed: int) -> pl.DataFrame:
    """Return the pairs of the first look: all pairs of queries drawn by seed.

    `pairs` has a query_id per row. Queries are added until there are `least` pairs and QUERIES queries, or PAIRS times
    as many pairs. Empty if fewer than `least` pairs would be left: then the end is near enough.
    """
    sizes = dict(pairs.group_by("query_id").len().iter_rows())
    chosen: list[str] = []
    size = 0
    for query_id in shuffled(sorted(sizes), seed, "sanity"):
        if size >= least and (len(chosen) >= QUERIES or size >= PAIRS * least):
            break
        chosen.append(query_id)
        size += sizes[query_id]
    worth = least > 0 and len(pairs) - size >= least
    return pairs.filter(pl.col("query_id").is_in(chosen)) if worth else pairs.clear()


def judges(ratings: pl.DataFrame, scale: Scale, least: int = LEAST) -> list[str]:
    """Return a sentence per judge that finds nearly everything relevant, of those with `least` ratings or more."""
    relevant = pl.col("grade").is_in(list(scale.relevant))
    counts = ratings.drop_nulls("grade").group_by("judge").agg(pl.len(), relevant.sum().alias("relevant")).sort("judge")
    high = " or ".join(scale.positives)
    return [
        f"{judge} gives {high} to {hits:,} of {rated:,} pairs: it may not judge at all"
        for judge, rated, hits in counts.iter_rows()
        if rated >= least and hits > MOST_RELEVANT * rated
    ]


def uniform(ratings: pl.DataFrame, scale: Scale, most: float = MOST_RELEVANT, least: int = LEAST) -> list[str]:
    """Return a sentence per judge that gives one grade at or above the cut to more than the share `most` of its pairs.

    One grade below the cut says nothing: of a deep pool most pairs are not relevant. Judges with fewer than `least`
    ratings are left out.
    """
    counts = ratings.drop_nulls("grade").group_by("judge", "grade").len()
    counts = counts.with_columns(rated=pl.col("len").sum().over("judge")).sort("judge", "grade")
    return [
        f"{judge} gives {grade} to {hits:,} of {rated:,} pairs"
        for judge, grade, hits, rated in counts.iter_rows()
        if grade in scale.relevant and rated >= least and hits > most * rated
    ]


def panel(ratings: pl.DataFrame, names: Sequence[str], scale: Scale, least: int = LEAST) -> list[str]:
    """Return a sentence for a panel that mostly disagrees, and for one that agrees less than chance would.

    Both are figures of the cut, of the pairs that the whole panel graded; nothing with fewer than `least` of these.
    """
    graded = voting.votes(ratings, names, scale).drop_nulls(list(names))
    if len(names) < 2 or len(graded) < least:
        return []
    sides = voting.sides(voting.coded(graded, names, scale), scale)
    contested = int((sides.min(axis=1) != sides.max(axis=1)).sum())
    kappa = agreement.measure(sides, 2).fleiss
    found = []
    if contested > MOST_CONTESTED * len(graded):
        found.append(f"the judges are on both sides of the cut in {contested:,} of {len(graded):,} pairs")
    if kappa is not None and kappa < 0:
        found.append(f"the judges agree less than chance would have them: Fleiss' kappa {kappa:.3f} on the cut")
    return found


def survivors(kept: int, judged: int) -> str:
    """Return a sentence if fewer than a tenth of the queries have a positive; empty otherwise."""
    few = judged > 0 and kept < FEWEST_QUERIES * judged
    return f"only {kept:,} of {judged:,} queries have a positive" if few else ""


def surely_few(kept: int, judged: int) -> str:
    """Return the sentence of `survivors` for a sample, if the upper Wilson bound of its share is below a tenth."""
    bound = wilson(kept, judged)
    return survivors(kept, judged) if bound and bound.high < FEWEST_QUERIES else ""


def undiscerning(controls: pl.DataFrame) -> str:
    """Return the grade that all controls got, planted positives and negatives alike; empty if there are two.

    `controls` has kind (positive or a kind of negative) and grade, None where a judge gave none.
    """
    given = controls.drop_nulls("grade")
    both = given.select((pl.col("kind") == "positive").unique()).height == 2
    return str(given["grade"][0]) if both and given["grade"].n_unique() == 1 else ""
