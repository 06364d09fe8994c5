"""Design and draw of a stratified sample of a pool.

The target is this finite pool. Strata say where the panel may be wrong: verdict, how the grades agree, and how deep a
pair lies. A sample is as large in each as the figures need that it is drawn for, and every pair drawn keeps its
probability.
"""

import math
import re
from collections.abc import Iterable, Mapping
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
"""Positions of the pool that make the upper of the two rank bands."""
LEAST = 5
"""Pairs drawn from every stratum, or all that it has."""
_BAND = re.compile(rf", (?:top {TOP}|deeper)$")
_WORST = "all "
"""Stands before the worst grade in the name of a stratum."""
DECIDED: tuple[Verdict, ...] = ("relevant", "not relevant")
"""Verdicts with which an assessor can agree."""


class _File(Section):
    disagreement: Mapping[str, float]
    answers: int
    floors: Mapping[str, float]


def strata(verdicts: pl.DataFrame, pool: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every pair of the `verdicts` table, sorted by key; a dozen strata at most.

    The name of a stratum is the verdict, then for relevant pairs `one grade` or `split`, for pairs that are not
    relevant `all WORST` (by the label of the worst grade) or `mixed`, then `top 50` or `deeper` by the position in the
    pool. Incomplete pairs are one stratum, and `not positive` ones too. DataError if a pair is not in the pool, or its
    verdict is none that we know.
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
    """Return the anticipated share of disagreement of every stratum, from survey.yaml; ConfigError for another name.

    The guess for both rank bands stands under the name without the band, where the bands have none of their own. That
    for pairs which all judges gave the worst grade is named by D, whatever the scale calls it.
    """
    known = _data().disagreement
    found: dict[str, float] = {}
    for name in names:
        whole = _BAND.sub("", name)
        verdict, _, pattern = whole.partition(", ")
        same = f"{verdict}, {_WORST}{FIVE.labels[-1]}" if pattern.startswith(_WORST) else whole
        key = next((each for each in (name, same + name[len(whole) :], same) if each in known), None)
        if key is None:
            raise ConfigError(f"survey: found no guess for the stratum {name!r}; {suggestion(whole, known)}")
        found[name] = known[key]
    return found


def learned(guess: float, answered: int, disagreeing: int) -> float:
    """Return a guess after so many answers: (x + a g) / (n + a), where the guess g weighs as much as a answers."""
    weight = _data().answers
    return (disagreeing + weight * guess) / (answered + weight)


def floors(sizes: Mapping[str, int], size: int, least: int = LEAST) -> dict[str, int]:
    """Return the least rows of the verdicts that survey.yaml names, as their shares of a sample of `size` say.

    Never more than the verdict has, nor than is left beside `least` pairs from every stratum.
    """
    low = {name: min(least, pairs) for name, pairs in sizes.items()}
    left, found = min(size, sum(sizes.values())) - sum(low.values()), dict[str, int]()
    for verdict, part in _data().floors.items():
        own = [name for name in sizes if verdict_of(name) == verdict]
        given = sum(low[name] for name in own)
        wanted = min(int(part * size), sum(sizes[name] for name in own))
        found[verdict] = given + max(0, min(wanted - given, left))
        left -= found[verdict] - given
    return found


def counts(frame: pl.DataFrame) -> dict[str, int]:
    """Return the number of pairs of every stratum, sorted by name."""
    return dict(frame.group_by("stratum").len().sort("stratum").iter_rows())


def verdict_of(stratum: str) -> str:
    """Return the verdict of a stratum of `strata`, the first words of its name."""
    return stratum.split(", ", 1)[0]


def decided(names: Iterable[str]) -> list[str]:
    """Return the strata whose verdict an assessor can agree with."""
    return [name for name in names if verdict_of(name) in DECIDED]


def allocate(sizes: Mapping[str, int], guesses: Mapping[str, float], size: int, least: int = LEAST) -> dict[str, int]:
    """Return how many pairs to draw from every stratum for the share of all pairs: Neyman's allocation (1934).

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
    """Return how many pairs to draw from every stratum in proportion to weights, min(size, all pairs) together.

    But never under `least` (or all pairs) and never over a stratum's size, and of a verdict never fewer than its floor
    (see `floors`); what a bound takes or gives is shared by the others in the same proportion. Whole numbers go by the
    largest remainder, and if those are equal by name. ConfigError if `size` is too small for that.
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
    short, free, left = dict(floors or {}), np.ones(len(names), dtype=bool), size
    drawn = _whole(weighed, low, most, size)
    while under := [each for each, floor in short.items() if drawn[verdicts == each].sum() < floor]:
        own, floor = verdicts == under[0], short.pop(under[0])
        drawn[own] = _whole(weighed[own], low[own], most[own], floor)
        free, left = free & ~own, left - floor
        drawn[free] = _whole(weighed[free], low[free], most[free], left)
    return {name: int(count) for name, count in zip(names, drawn, strict=True)}


def draw(frame: pl.DataFrame, allocation: Mapping[str, int], seed: int) -> pl.DataFrame:
    """Return a simple random sample without replacement of every stratum, sorted by key, with its `probability`.

    `frame` has query_id, doc_id, stratum; the order of its rows changes nothing. `probability` is drawn / size of the
    stratum. ConfigError if the allocation lacks a stratum, or asks one for more pairs than it has.
    """
    rows = frame.sort(PAIR).with_row_index("_row")
    sizes = counts(rows)
    for name in sorted({*sizes, *allocation}):
        if not 0 <= allocation.get(name, -1) <= sizes.get(name, 0):
            raise ConfigError(
                f"survey: found {allocation.get(name, 'no number of')} pairs to draw from the stratum {name!r}, "
                f"expected 0 to {sizes.get(name, 0)}; give an allocation of this pool"
            )
    places: list[int] = []
    for name, size in sizes.items():
        own = rows.filter(pl.col("stratum") == name)["_row"]
        places.extend(own[generator(seed, "survey", name).sample(range(size), allocation[name])])
    chance = pl.col("stratum").replace_strict({name: allocation[name] / size for name, size in sizes.items()})
    return rows[sorted(places)].drop("_row").with_columns(probability=chance.cast(pl.Float64))


def _whole(weights: Floats, low: Floats, most: Floats, size: int) -> Floats:
    """Return `_filled` in whole numbers, by the largest remainder."""
    shares = _filled(weights, low, most, size)
    whole: Floats = np.floor(shares + 1e-9)
    order = [place for place in np.argsort(whole - shares, kind="stable") if whole[place] < most[place]]
    whole[order[: size - int(whole.sum())]] += 1
    return whole


def _filled(weights: Floats, low: Floats, high: Floats, size: int) -> Floats:
    """Return shares in proportion to weights, held between two bounds, that add up to `size`.

    Shares are min(max(f w, low), high). Their sum is piecewise linear in f and bends where a share meets a bound, so
    interpolating between the bends is exact.
    """
    some = weights > 0
    bends = np.unique(np.concatenate([[0.0], low[some] / weights[some], high[some] / weights[some]]))
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
    """Raise DataError if pairs are wrong, with their number and the first of them."""
    found = placed.filter(wrong).sort(PAIR)
    if len(found):
        first = " ".join(found.select(PAIR).row(0))
        raise DataError(f"verdicts: found {len(found)} pairs that {what}, the first is {first!r}; {remedy}")


@cache
def _data() -> _File:
    path = data_file("panel/sampling_design.yaml")
    return check(_File, read_yaml(path), str(path))
