"""Position bias of a judge: dependence of its grades on the position of a passage in the prompt.

Grades count as steps above the worst: of the five grades S 4, A 3, B 2, C 1, D 0. Passages are in random order, so
within a query positions and grades of an unbiased judge are independent: existing ratings show a bias. Asking the same
pairs again, in reversed order or alone, shows it pair by pair.
"""

import numpy as np
import polars as pl

from curate.core.figures import ABSENT, Record, figure
from curate.core.scale import Scale
from curate.stats.ratios import Ratio, mean, numbered, ratio
from curate.stats.tally import Floats, Ints

STEPS = 0.1
"""Steps between first and last position that count as bias, if the whole interval exceeds them."""
SHARE = 0.05
"""Share of the variance within queries explained by the position that counts as bias."""
ALPHA = 0.01
FLIPS = 0.1
"""Share of pairs that change between relevant and not that counts as bias."""


class Slots(Record, schema_name="position"):
    """Dependence of grades on the position in the prompt, from existing ratings; None where not defined."""

    pairs: int = figure("graded pairs with a position")
    places: int = figure("distinct positions")
    slope: Ratio | None = figure("change of the grade in steps per position")
    cut_slope: Ratio | None = figure("change of the share of relevant passages per position")
    share: float | None = figure(
        "share of the variance within queries that the position explains, adjusted for chance; at most 1"
    )
    p: float | None = figure("p-value of the share, from an F test")
    biased: bool | None = figure("whether the grades depend on the position; null if nothing could be measured")


class Changes(Record):
    """Changes of pairs that were rated twice."""

    pairs: int = figure("pairs with both grades")
    lost: int = figure("pairs with only one of the two grades")
    cut_flips: Ratio | None = figure("share of pairs that changed between relevant and not")
    grade_flips: Ratio | None = figure("share of pairs whose grade changed")
    shift: Ratio | None = figure("mean difference in steps, second minus first rating")
    cut_shift: Ratio | None = figure("mean difference of binary relevance, second minus first rating")
    slope: Ratio | None = figure("change in steps per position moved down: sum of dy dx over sum of dx^2")
    biased: bool | None = figure("whether reversing the passages changes grades", optional=True, default=ABSENT)


def slots(ratings: pl.DataFrame, seed: int, scale: Scale) -> Slots:
    """Return the dependence in rows of query_id, grade and slot (from 0 or 1); rows without one are left out.

    Comparisons are within a query: slope = sum of (x - mean x)(y - mean y) over sum of (x - mean x)^2.
    """
    rated = ratings.drop_nulls(["grade", "slot"])
    queries, slot_of_row = numbered(rated["query_id"]), rated["slot"].to_numpy().astype(np.float64)
    steps, sides = steps_of(rated["grade"], scale), sides_of(rated["grade"], scale)
    row = queries - 1
    x, y, z = (_centred(column, row) for column in (slot_of_row, steps, sides))
    slope, cut_slope = ratio(x * y, x * x, queries, seed), ratio(x * z, x * x, queries, seed)
    share, p = explained(rated, scale)
    positions = len(np.unique(slot_of_row))
    return Slots(
        len(rated), positions, slope, cut_slope, share, p, _either(_leans(slope, positions), depends(share, p))
    )


def explained(ratings: pl.DataFrame, scale: Scale) -> tuple[float | None, float | None]:
    """Return `Slots.share` and `Slots.p` of rows of query_id, grade and slot; rows without one are left out."""
    rated = ratings.drop_nulls(["grade", "slot"])
    queries = numbered(rated["query_id"])
    centred = _centred(steps_of(rated["grade"], scale), queries - 1)
    positions = np.unique(rated["slot"].to_numpy(), return_inverse=True)[1]
    return _explained(centred, positions, int(queries.max(initial=0)))


def depends(share: float | None, p: float | None) -> bool | None:
    """Return whether the position explains enough of the grades to count as bias; None if not measured."""
    return None if p is None or share is None else p < ALPHA and share >= SHARE


def changes(before: pl.DataFrame, after: pl.DataFrame, seed: int, scale: Scale) -> Changes:
    """Return the changes between two ratings of the same pairs; rows of query_id, doc_id, grade, slot.

    Pairs that are in one table only are left out.
    """
    both = before.join(after, on=["query_id", "doc_id"], suffix="_after", maintain_order="left")
    rated = both.drop_nulls(["grade", "grade_after"])
    steps_before, steps_after = (steps_of(rated[name], scale) for name in ("grade", "grade_after"))
    side_before, side_after = (sides_of(rated[name], scale) for name in ("grade", "grade_after"))
    queries = numbered(rated["query_id"])
    # positions moved down; 0 where one is unknown, so that the pair does not count for the slope
    moved = (rated["slot_after"] - rated["slot"]).cast(pl.Float64).fill_null(0.0).to_numpy()
    lost = both.filter(pl.col("grade").is_null() != pl.col("grade_after").is_null())
    return Changes(
        pairs=len(rated),
        lost=len(lost),
        cut_flips=mean(side_before != side_after, queries, seed),
        grade_flips=mean(steps_before != steps_after, queries, seed),
        shift=mean(steps_after - steps_before, queries, seed),
        cut_shift=mean(side_after - side_before, queries, seed),
        slope=ratio(moved * (steps_after - steps_before), moved * moved, queries, seed),
    )


def turned(reversed_order: Changes, noise: Changes | None, positions: int) -> bool | None:
    """Return whether reversing the order biases grades: more flips than on repetition, or a slope over positions.

    `noise` has the changes when the same prompts are repeated; without it, no flip is attributed to chance. None if
    nothing could be measured.
    """
    usual = noise.cut_flips.high if noise and noise.cut_flips else None
    least = reversed_order.cut_flips.low if reversed_order.cut_flips else None
    flips = None if least is None else least > max(FLIPS, usual or 0.0)
    return _either(flips, _leans(reversed_order.slope, positions))


def steps(scale: Scale) -> dict[str, int]:
    """Return label -> steps above the worst: S 4 to D 0."""
    return {label: index for index, label in enumerate(reversed(scale.labels))}


def steps_of(grades: pl.Series, scale: Scale) -> Floats:
    """Return grades as steps above the worst."""
    return grades.replace_strict(steps(scale), return_dtype=pl.Float64).to_numpy()


def sides_of(grades: pl.Series, scale: Scale) -> Floats:
    """Return 1 for a relevant grade, 0 for another."""
    return grades.is_in(list(scale.relevant)).cast(pl.Float64).to_numpy()


def _leans(slope: Ratio | None, positions: int) -> bool | None:
    """Return whether grades significantly change by over `STEPS` from first to last position; None if unknown."""
    return None if slope is None or slope.low is None or positions < 2 else slope.beyond(STEPS / (positions - 1))


def _either(one: bool | None, two: bool | None) -> bool | None:
    """Return whether one of two findings is true; None if neither was measured."""
    return None if one is None and two is None else bool(one or two)


def _centred(values: Floats, row: Ints) -> Floats:
    return values - _means(values, row)[row] if len(values) else values


def _means(values: Floats, row: Ints) -> Floats:
    return np.bincount(row, weights=values) / np.bincount(row)


def _explained(y: Floats, position: Ints, queries: int) -> tuple[float | None, float | None]:
    """Return the share of the variance of centred values between positions, adjusted for chance, and its p.

    The adjusted share is 1 - (within variance / its degrees of freedom) / (total variance / its degrees of freedom):
    Kelley's epsilon squared (1935).
    """
    positions = int(position.max(initial=-1)) + 1
    total = float((y**2).sum())
    free = len(y) - queries - (positions - 1)
    if positions < 2 or free < 1 or not total:
        return None, None
    between = min(float((np.bincount(position) * _means(y, position) ** 2).sum()), total)
    within = (total - between) / free
    share = 1 - within / (total / (len(y) - queries))
    if not within:
        return share, 0.0
    from scipy.stats import f

    return share, float(f.sf(between / (positions - 1) / within, positions - 1, free))
