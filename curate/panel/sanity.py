"""Sanity checks of a panel's ratings: signs that judges do not distinguish relevant documents from others.

Each check returns a sentence per sign in a table of ratings. A sign is not conclusive; control pairs are.
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
"""Minimum ratings of a check."""
MOST_RELEVANT = 0.95
"""A judge with a larger share of relevant grades is named, for most pairs of a pool are not relevant."""
MOST_CONTESTED = 0.5
FEWEST_QUERIES = 0.1
"""Share of the queries with a positive below which a run is of little use."""
QUERIES = 40
"""Minimum queries of the first look, if `PAIRS` allows: 0 positives in 35 queries bound the share below a tenth."""
PAIRS = 25
"""Maximum pairs of the first look, as a multiple of the minimum."""


class Sanity(Section):
    """Settings of the first look: the number of ratings to check before paying for the rest."""

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

    `pairs` has a query_id per row. Queries are added until there are `least` pairs and `QUERIES` queries, or `PAIRS`
    times `least` pairs. Empty if fewer than `least` pairs would remain, for which a first look does not pay.
    """
    sizes = dict(pairs.group_by("query_id").len().iter_rows())
    chosen: list[str] = []
    size = 0
    for query_id in shuffled(sorted(sizes), seed, "sanity"):
        if size >= least and (len(chosen) >= QUERIES or size >= PAIRS * least):
            break
        chosen.append(query_id)
        size += sizes[query_id]
    is_useful = least > 0 and len(pairs) - size >= least
    return pairs.filter(pl.col("query_id").is_in(chosen)) if is_useful else pairs.clear()


def judges(ratings: pl.DataFrame, scale: Scale, least: int = LEAST) -> list[str]:
    """Return a sentence per judge that finds nearly all pairs relevant, among those with `least` ratings or more."""
    relevant = pl.col("grade").is_in(list(scale.relevant))
    counts = ratings.drop_nulls("grade").group_by("judge").agg(pl.len(), relevant.sum().alias("relevant")).sort("judge")
    high = " or ".join(scale.positives)
    return [
        f"{judge} gives {high} to {hits:,} of {rated:,} pairs: it may not judge at all"
        for judge, rated, hits in counts.iter_rows()
        if rated >= least and hits > MOST_RELEVANT * rated
    ]


def uniform(ratings: pl.DataFrame, scale: Scale, most: float = MOST_RELEVANT, least: int = LEAST) -> list[str]:
    """Return a sentence per judge that gives a single relevant grade to more than the share `most` of its pairs.

    A single grade below the threshold is no such sign, since most pairs of a deep pool are not relevant. Judges with
    fewer than `least` ratings are left out.
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

    Both compare binary grades, over the pairs that all judges graded; no sentence if these are fewer than `least`.
    """
    graded = voting.votes(ratings, names, scale).drop_nulls(list(names))
    if len(names) < 2 or len(graded) < least:
        return []
    sides = voting.sides(voting.coded(graded, names, scale), scale)
    contested = int((sides.min(axis=1) != sides.max(axis=1)).sum())
    kappa = agreement.measure(sides, 2).fleiss
    sentences = []
    if contested > MOST_CONTESTED * len(graded):
        sentences.append(f"the judges are on both sides of the cut in {contested:,} of {len(graded):,} pairs")
    if kappa is not None and kappa < 0:
        sentences.append(f"the judges agree less than chance would have them: Fleiss' kappa {kappa:.3f} on the cut")
    return sentences


def survivors(kept: int, judged: int) -> str:
    """Return a sentence if fewer than a tenth of the queries have a positive; empty otherwise."""
    too_few = judged > 0 and kept < FEWEST_QUERIES * judged
    return f"only {kept:,} of {judged:,} queries have a positive" if too_few else ""


def surely_few(kept: int, judged: int) -> str:
    """Return the sentence of `survivors` for a sample, if the upper Wilson bound of its share is below a tenth."""
    bound = wilson(kept, judged)
    return survivors(kept, judged) if bound and bound.high < FEWEST_QUERIES else ""


def undiscerning(controls: pl.DataFrame) -> str:
    """Return the grade that all control pairs share, positives and negatives alike; empty if grades differ.

    `controls` has kind (positive or a kind of negative) and grade, None where a judge gave none. Also empty if no
    positive or no negative has a grade.
    """
    graded = controls.drop_nulls("grade")
    both = graded.select((pl.col("kind") == "positive").unique()).height == 2
    return str(graded["grade"][0]) if both and graded["grade"].n_unique() == 1 else ""
