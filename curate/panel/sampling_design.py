"""Design and draw of a stratified sample of a pool.

Estimates are of this finite pool. Strata separate pairs by how likely the panel is wrong: by verdict, agreement of the
grades, and position in the pool. The target figure decides the number of pairs per stratum; every drawn pair keeps its
probability.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import numpy as np
import polars as pl

from curate.core.config import Section, check, read_yaml
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.records import VERDICTS, Verdict
from curate.core.sampling import generator
from curate.core.scale import FIVE, Scale
from curate.panel.voting import PAIR
from curate.stats.tally import Floats
from curate.system.resources import data_file

TOP = 50
"""Last position in the pool of the upper of two rank bands."""
LEAST = 5
"""Minimum pairs drawn from every stratum, or all that it has."""
_BAND = re.compile(rf", (?:top {TOP}|deeper)$")
_WORST = "all "
"""Prefix of the worst grade in names of strata."""
DECIDED: tuple[Verdict, ...] = ("relevant", "not relevant")
"""Verdicts that an assessor can confirm."""


class _File(Section):
    disagreement: Mapping[str, float]
    answers: int
    floors: Mapping[str, float]


def strata(verdicts: pl.DataFrame, pool: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every pair of the `verdicts` table, sorted by key; at most a dozen strata.

    The name of a stratum is the verdict, then for relevant pairs `one grade` or `split`, for pairs that are not
    relevant `all WORST` (with the label of the worst grade) or `mixed`, then `top 50` or `deeper` by the position in
    the pool. All incomplete pairs are one stratum, and so are all `not positive` ones. DataError if a pair is not in
    the pool, or for an unknown verdict.
    """
    grades = pl.col("votes").list.eval(pl.element().struct.field("grade"))
    same = grades.list.n_unique() == 1
    relevant, against = (pl.col("verdict") == verdict for verdict in DECIDED)
    pattern = (
        pl.when(relevant & same)
        .then(pl.lit("one grade"))
        .when(relevant)
        .then(pl.lit("split"))
        .when(against & same & (grades.list.first() == scale.labels[-1]))
        .then(pl.lit(f"{_WORST}{scale.labels[-1]}"))
        .when(against)
        .then(pl.lit("mixed"))
    )
    band = pl.when(pl.col("position") <= TOP).then(pl.lit(f"top {TOP}")).otherwise(pl.lit("deeper"))
    ranked = pl.when(relevant | against | (pl.col("verdict") == "contested")).then(band)
    placed = verdicts.join(pool.select(*PAIR, "position"), on=PAIR, how="left", maintain_order="left")
    _refuse(placed, pl.col("position").is_null(), "are not in the pool", "give the pool that was judged")
    _refuse(placed, ~pl.col("verdict").is_in(list(VERDICTS)), "have another verdict", f"use {', '.join(VERDICTS)}")
    name = pl.concat_str("verdict", pattern, ranked, separator=", ", ignore_nulls=True)
    return placed.select(*PAIR, stratum=name).sort(PAIR)


def guesses(names: Iterable[str]) -> dict[str, float]:
    """Return the expected disagreement of every stratum, a share, by sampling_design.yaml; ConfigError for other names.

    A guess for both rank bands is under the name without the band. That for pairs with the worst grade by all judges is
    under `all D`, whatever the scale calls its worst grade.
    """
    expected = _data().disagreement
    shares: dict[str, float] = {}
    for name in names:
        without_band = _BAND.sub("", name)
        verdict, _, pattern = without_band.partition(", ")
        packaged_name = f"{verdict}, {_WORST}{FIVE.labels[-1]}" if pattern.startswith(_WORST) else without_band
        key = next(
            (
                candidate
                for candidate in (name, packaged_name + name[len(without_band) :], packaged_name)
                if candidate in expected
            ),
            None,
        )
        if key is None:
            raise ConfigError(f"survey: found no guess for the stratum {name!r}; {suggestion(without_band, expected)}")
        shares[name] = expected[key]
    return shares


def learned(guess: float, answered: int, disagreeing: int) -> float:
    """Return a guess updated by answers, (x + a g) / (n + a): the guess g weighs as much as a answers."""
    weight = _data().answers
    return (disagreeing + weight * guess) / (answered + weight)


def floors(sizes: Mapping[str, int], size: int, least: int = LEAST) -> dict[str, int]:
    """Return the minimum rows of verdicts, by their shares of a sample of `size` in sampling_design.yaml.

    At most the pairs of the verdict, and what `size` leaves after `least` pairs from every stratum.
    """
    low = {name: min(least, pairs) for name, pairs in sizes.items()}
    spare, rows = min(size, sum(sizes.values())) - sum(low.values()), dict[str, int]()
    for verdict, share in _data().floors.items():
        names = [name for name in sizes if verdict_of(name) == verdict]
        minimum = sum(low[name] for name in names)
        target = min(int(share * size), sum(sizes[name] for name in names))
        rows[verdict] = minimum + max(0, min(target - minimum, spare))
        spare -= rows[verdict] - minimum
    return rows


def counts(frame: pl.DataFrame) -> dict[str, int]:
    """Return the number of pairs of every stratum, sorted by name."""
    return dict(frame.group_by("stratum").len().sort("stratum").iter_rows())


def verdict_of(stratum: str) -> str:
    """Return the verdict of a stratum of `strata`, the first words of its name."""
    return stratum.split(", ", 1)[0]


def decided(names: Iterable[str]) -> list[str]:
    """Return the strata whose verdict an assessor can confirm."""
    return [name for name in names if verdict_of(name) in DECIDED]


def allocate(sizes: Mapping[str, int], guesses: Mapping[str, float], size: int, least: int = LEAST) -> dict[str, int]:
    """Return the number of pairs to draw per stratum for a share of all pairs: Neyman's allocation (1934).

    In proportion to N sqrt(p (1 - p)), N the size and p the guess of a stratum (Cochran 1977, 5.5); see `apportion`.
    ConfigError if a guess is not between 0 and 1.
    """
    return apportion(sizes, {name: pairs * spread(name, guesses) for name, pairs in sizes.items()}, size, least)


def apportion(
    sizes: Mapping[str, int],
    weights: Mapping[str, float],
    size: int,
    least: int = LEAST,
    floors: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the number of pairs to draw per stratum in proportion to weights; min(size, all pairs) together.

    Bounds: at least `least` (or all pairs) and at most the size of a stratum, and at least the floor of a verdict (see
    `floors`); the others share the difference in proportion. Rounding is by the largest remainder, ties by name.
    ConfigError if `size` is too small for the bounds.
    """
    names = sorted(sizes)
    most = np.array([sizes[name] for name in names], dtype=np.float64)
    low = np.minimum(most, least)
    size = min(size, int(most.sum()))
    if size < low.sum() or least < 1:
        raise ConfigError(
            f"survey: found a sample of {size} pairs with at least {least} from each of {len(names)} strata, expected "
            f"at least {int(low.sum())} pairs, and one per stratum; use --size {int(low.sum())}"
        )
    weighed, verdicts = np.array([weights[name] for name in names]), np.array([verdict_of(name) for name in names])
    pending, free, remaining = dict(floors or {}), np.ones(len(names), dtype=bool), size
    drawn = _rounded(weighed, low, most, size)
    # a verdict below its floor gets exactly that; the others are shared out again, which may put another below its own
    while below_floor := [verdict for verdict, floor in pending.items() if drawn[verdicts == verdict].sum() < floor]:
        in_verdict, floor = verdicts == below_floor[0], pending.pop(below_floor[0])
        drawn[in_verdict] = _rounded(weighed[in_verdict], low[in_verdict], most[in_verdict], floor)
        free, remaining = free & ~in_verdict, remaining - floor
        drawn[free] = _rounded(weighed[free], low[free], most[free], remaining)
    return {name: int(count) for name, count in zip(names, drawn, strict=True)}


def smallest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the smallest sample size from `low` that fits, by bisection; `high` if no smaller one does."""
    return low + bisect_left(range(low, high), True, key=fits)


def draw(frame: pl.DataFrame, allocation: Mapping[str, int], seed: int) -> pl.DataFrame:
    """Return a simple random sample without replacement of every stratum, sorted by key, with its `probability`.

    `frame` has query_id, doc_id, stratum, in any order. `probability` is drawn / size of the stratum. ConfigError if
    the allocation lacks a stratum, or exceeds its size.
    """
    rows = frame.sort(PAIR).with_row_index("_row")
    sizes = counts(rows)
    for name in sorted({*sizes, *allocation}):
        if not 0 <= allocation.get(name, -1) <= sizes.get(name, 0):
            raise ConfigError(
                f"survey: found {allocation.get(name, 'no number of')} pairs to draw from the stratum {name!r}, "
                f"expected 0 to {sizes.get(name, 0)}; give an allocation of this pool"
            )
    row_numbers: list[int] = []
    for name, size in sizes.items():
        stratum_rows = rows.filter(pl.col("stratum") == name)["_row"]
        row_numbers.extend(stratum_rows[generator(seed, "survey", name).sample(range(size), allocation[name])])
    chance = pl.col("stratum").replace_strict({name: allocation[name] / size for name, size in sizes.items()})
    return rows[sorted(row_numbers)].drop("_row").with_columns(probability=chance.cast(pl.Float64))


def _rounded(weights: Floats, low: Floats, most: Floats, size: int) -> Floats:
    """Return the shares of `_filled` as whole numbers, rounded by the largest remainder."""
    shares = _filled(weights, low, most, size)
    floored: Floats = np.floor(shares + 1e-9)  # so that 2.9999999999 is 3
    order = [index for index in np.argsort(floored - shares, kind="stable") if floored[index] < most[index]]
    floored[order[: size - int(floored.sum())]] += 1
    return floored


def _filled(weights: Floats, low: Floats, high: Floats, size: int) -> Floats:
    """Return shares in proportion to weights, within bounds, that add up to `size`.

    Shares are min(max(f w, low), high). Their sum is piecewise linear in f, with bends where a share reaches a bound,
    so interpolating between the bends is exact.
    """
    weighted = weights > 0
    bends = np.unique(np.concatenate([[0.0], low[weighted] / weights[weighted], high[weighted] / weights[weighted]]))
    sums = np.clip(bends[:, None] * weights, low, high).sum(axis=1)
    shares: Floats = np.clip(np.interp(size, sums, bends) * weights, low, high)
    return shares


def spread(name: str, guesses: Mapping[str, float]) -> float:
    """Return the standard deviation of a guessed share; ConfigError unless there is a guess between 0 and 1."""
    guess = guesses.get(name)
    if guess is None or not 0 < guess < 1:
        raise ConfigError(
            f"survey: found the guess {guess} for the stratum {name!r}, expected a share above 0 and below 1; give one"
        )
    return math.sqrt(guess * (1 - guess))


def _refuse(placed: pl.DataFrame, wrong: pl.Expr, what: str, remedy: str) -> None:
    """Raise DataError if any pair is wrong, with the number of such pairs and the first."""
    refused = placed.filter(wrong).sort(PAIR)
    if len(refused):
        first = " ".join(refused.select(PAIR).row(0))
        raise DataError(f"verdicts: found {len(refused)} pairs that {what}, the first is {first!r}; {remedy}")


@cache
def _data() -> _File:
    path = data_file("panel/sampling_design.yaml")
    return check(_File, read_yaml(path), str(path))
