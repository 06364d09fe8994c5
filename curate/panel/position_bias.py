"""Position bias of a judge: whether its grades depend on where a passage stands in the prompt.

Grades count as steps above the worst: of the five grades S 4, A 3, B 2, C 1, D 0. Passages stand in a random order,
so within a query the place says nothing of the grade unless the judge lets it: no call is needed to see that. Asking
the same pairs again, in reversed order or alone, shows it pair by pair.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from curate.core.scale import Scale
from curate.stats.ratios import Ratio, mean, numbered, ratio
from curate.stats.tally import Floats, Ints

STEPS = 0.1
"""Steps between the first and the last place that matter, if the whole interval is beyond them."""
SHARE = 0.05
"""Share of the variance within queries, explained by the place, that matters."""
ALPHA = 0.01
FLIPS = 0.1
"""Share of pairs on another side of the cut that matters."""


@dataclass(frozen=True)
class Slots:
    """What the place in the prompt tells of a grade, from ratings as they are; None where it is not defined."""

    pairs: int
    places: int
    """Places that occur."""
    slope: Ratio | None
    """Steps that one place further down adds."""
    cut_slope: Ratio | None
    """What it adds to the share of relevant passages."""
    share: float | None
    """Share of the variance within queries that the place explains, less what chance gives; at most 1."""
    p: float | None
    """Probability of as large a share by chance, from an F test."""
    biased: bool | None
    """None where there was nothing to measure."""


@dataclass(frozen=True)
class Changes:
    """What became of pairs that were rated again."""

    pairs: int
    lost: int
    """Pairs that have a grade on one side only."""
    cut_flips: Ratio | None
    """Share of pairs that changed the side of the cut."""
    grade_flips: Ratio | None
    shift: Ratio | None
    """Mean of the steps that the second rating gives more than the first."""
    cut_shift: Ratio | None
    """The same of the share of relevant pairs."""
    slope: Ratio | None
    """Steps that a pair gains a place that it moves down: sum of dy dx over sum of dx^2."""


def slots(ratings: pl.DataFrame, seed: int, scale: Scale) -> Slots:
    """Return what the place tells in rows of query_id, grade and slot (from 0 or 1); rows without one are left out.

    All is compared within a query: slope = sum of (x - mean x)(y - mean y) over sum of (x - mean x)^2.
    """
    rated = ratings.drop_nulls(["grade", "slot"])
    queries, place = numbered(rated["query_id"]), rated["slot"].to_numpy().astype(np.float64)
    steps, sides = steps_of(rated["grade"], scale), sides_of(rated["grade"], scale)
    row = queries - 1
    x, y, z = (_centred(each, row) for each in (place, steps, sides))
    slope, cut_slope = ratio(x * y, x * x, queries, seed), ratio(x * z, x * x, queries, seed)
    share, p = explained(rated, scale)
    places = len(np.unique(place))
    return Slots(len(rated), places, slope, cut_slope, share, p, _either(_leans(slope, places), depends(share, p)))


def explained(ratings: pl.DataFrame, scale: Scale) -> tuple[float | None, float | None]:
    """Return `Slots.share` and `Slots.p` of rows of query_id, grade and slot; rows without one are left out."""
    rated = ratings.drop_nulls(["grade", "slot"])
    queries = numbered(rated["query_id"])
    centred = _centred(steps_of(rated["grade"], scale), queries - 1)
    places = np.unique(rated["slot"].to_numpy(), return_inverse=True)[1]
    return _explained(centred, places, int(queries.max(initial=0)))


def depends(share: float | None, p: float | None) -> bool | None:
    """Say whether the place explains so much of the grades that it matters; None where nothing was measured."""
    return None if p is None or share is None else p < ALPHA and share >= SHARE


def changes(before: pl.DataFrame, after: pl.DataFrame, seed: int, scale: Scale) -> Changes:
    """Return what changed between two ratings of the same pairs; rows of query_id, doc_id, grade, slot.

    Pairs that only one of the tables names are left out.
    """
    both = before.join(after, on=["query_id", "doc_id"], suffix="_after", maintain_order="left")
    rated = both.drop_nulls(["grade", "grade_after"])
    one, two = (steps_of(rated[name], scale) for name in ("grade", "grade_after"))
    side, other = (sides_of(rated[name], scale) for name in ("grade", "grade_after"))
    queries, moved = numbered(rated["query_id"]), _moved(rated)
    lost = both.filter(pl.col("grade").is_null() != pl.col("grade_after").is_null())
    return Changes(
        pairs=len(rated),
        lost=len(lost),
        cut_flips=mean(side != other, queries, seed),
        grade_flips=mean(one != two, queries, seed),
        shift=mean(two - one, queries, seed),
        cut_shift=mean(other - side, queries, seed),
        slope=ratio(moved * (two - one), moved * moved, queries, seed),
    )


def turned(found: Changes, noise: Changes | None, places: int) -> bool | None:
    """Say whether a reversed order changes too much: more flips than mere repetition, or grades that follow the place.

    `noise` is what asking the same prompts again changed; without it no flip is put down to chance. None where there
    was nothing to measure.
    """
    usual = noise.cut_flips.high if noise and noise.cut_flips else None
    least = found.cut_flips.low if found.cut_flips else None
    flips = None if least is None else least > max(FLIPS, usual or 0.0)
    return _either(flips, _leans(found.slope, places))


def steps(scale: Scale) -> dict[str, int]:
    """Return each label's steps above the worst: S 4 to D 0."""
    return {label: place for place, label in enumerate(reversed(scale.labels))}


def steps_of(grades: pl.Series, scale: Scale) -> Floats:
    """Return grades as steps above the worst."""
    return grades.replace_strict(steps(scale), return_dtype=pl.Float64).to_numpy()


def sides_of(grades: pl.Series, scale: Scale) -> Floats:
    """Return 1 for a relevant grade, 0 for another."""
    return grades.is_in(list(scale.relevant)).cast(pl.Float64).to_numpy()


def _leans(slope: Ratio | None, places: int) -> bool | None:
    """Say whether grades surely rise or fall by more than `STEPS` from the first place to the last; None if unknown."""
    return None if slope is None or slope.low is None or places < 2 else slope.beyond(STEPS / (places - 1))


def _either(one: bool | None, other: bool | None) -> bool | None:
    """Say whether one of two findings is so; None if neither was measured."""
    return None if one is None and other is None else bool(one or other)


def _moved(rated: pl.DataFrame) -> Floats:
    """Return how many places each pair moved down; 0 where a place is not known, so that it counts for no slope."""
    return (rated["slot_after"] - rated["slot"]).cast(pl.Float64).fill_null(0.0).to_numpy()


def _centred(values: Floats, row: Ints) -> Floats:
    """Return values less the mean of their cluster."""
    return values - _means(values, row)[row] if len(values) else values


def _means(values: Floats, row: Ints) -> Floats:
    return np.bincount(row, weights=values) / np.bincount(row)


def _explained(y: Floats, place: Ints, queries: int) -> tuple[float | None, float | None]:
    """Return the share of the variance of centred values that lies between places, adjusted for chance, and its p.

    Adjusted is 1 - (within / its degrees of freedom) / (all / its degrees); Kelley's epsilon squared (1935).
    """
    places = int(place.max(initial=-1)) + 1
    whole = float((y**2).sum())
    free = len(y) - queries - (places - 1)
    if places < 2 or free < 1 or not whole:
        return None, None
    between = min(float((np.bincount(place) * _means(y, place) ** 2).sum()), whole)
    left = (whole - between) / free
    share = 1 - left / (whole / (len(y) - queries))
    if not left:
        return share, 0.0
    from scipy.stats import f

    return share, float(f.sf(between / (places - 1) / left, places - 1, free))
