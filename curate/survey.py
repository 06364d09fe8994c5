"""Design a sample survey of a pool and draw it: strata, how many pairs of each, which ones, and what that will show.

The target is this finite pool. Strata say where the panel may be wrong: verdict, how the grades agree, and how deep a
pair lies. A sample is as large in each as Neyman (1934) has it, and every pair drawn keeps its probability.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import polars as pl

from curate.config import Section, check, read_yaml
from curate.errors import ConfigError, DataError, suggestion
from curate.estimates import LEVEL, Part, share
from curate.records import VERDICTS, Verdict
from curate.resources import data_file
from curate.sampling import generator
from curate.tally import Floats
from curate.voting import PAIR

TOP = 50
"""Positions of the pool that make the upper of the two rank bands."""
LEAST = 5
"""Pairs drawn from every stratum, or all that it has."""
DECIDED: tuple[Verdict, ...] = ("relevant", "not relevant")
"""Verdicts with which an assessor can agree."""


class _File(Section):
    disagreement: Mapping[str, float]


@dataclass(frozen=True)
class Planned:
    """One stratum of a plan."""

    stratum: str
    size: int
    drawn: int
    probability: float | None
    """Chance of a pair to be drawn, drawn / size; None for a stratum without pairs."""
    guess: float
    """Anticipated share of disagreement; of relevant pairs, where the panel did not decide."""


@dataclass(frozen=True)
class Plan:
    """A design and the half widths of the intervals that it will give if the guesses are right."""

    strata: tuple[Planned, ...]
    level: float
    agreement: float | None
    """Half width for the agreement over all decided pairs; None if there are none."""
    verdicts: Mapping[str, float | None]
    """Half width for every verdict: of its confirmed share, or of its relevant share where it decides nothing."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row a stratum for people: stratum, size, drawn, probability, guess."""
        return [asdict(each) for each in self.strata]

    def widths(self) -> list[dict[str, object]]:
        """Return the anticipated half widths for people: of the agreement, and of every verdict."""
        shares = {"agreement with the panel, of all decided pairs": self.agreement, **self.verdicts}
        return [{"share of": name, "half width": width} for name, width in shares.items()]


def strata(verdicts: pl.DataFrame, pool: pl.DataFrame) -> pl.DataFrame:
    """Return query_id, doc_id and stratum of every pair of the `verdicts` table, sorted by key; a dozen strata at most.

    The name of a stratum is the verdict, then for relevant pairs `one grade` or `split` (S and A), for others that are
    not relevant `all D` or `mixed`, then `top 50` or `deeper` by the position in the pool. Incomplete pairs are one
    stratum, and `not positive` ones too. DataError if a pair is not in the pool, or its verdict is none that we know.
    """
    grades = pl.col("votes").list.eval(pl.element().struct.field("grade"))
    same = grades.list.n_unique() == 1
    relevant, against = (pl.col("verdict") == verdict for verdict in DECIDED)
    pattern = (
        pl.when(relevant & same)
        .then(pl.lit("one grade"))
        .when(relevant)
        .then(pl.lit("split"))
        .when(against & same & (grades.list.first() == "D"))
        .then(pl.lit("all D"))
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
    """Return the anticipated share of disagreement of every stratum, from survey.yaml; ConfigError for another name."""
    known = _shares()
    found: dict[str, float] = {}
    for name in names:
        key = name.removesuffix(", deeper").removesuffix(f", top {TOP}")
        if key not in known:
            raise ConfigError(f"survey: found no guess for the stratum {name!r}; {suggestion(key, known)}")
        found[name] = known[key]
    return found


def counts(frame: pl.DataFrame) -> dict[str, int]:
    """Return the number of pairs of every stratum, sorted by name."""
    return dict(frame.group_by("stratum").len().sort("stratum").iter_rows())


def decided(names: Iterable[str]) -> list[str]:
    """Return the strata whose verdict an assessor can agree with."""
    return [name for name in names if name.split(", ", 1)[0] in DECIDED]


def allocate(sizes: Mapping[str, int], guesses: Mapping[str, float], size: int, least: int = LEAST) -> dict[str, int]:
    """Return how many pairs to draw from every stratum, min(size, all pairs) together.

    Neyman's allocation (1934; Cochran 1977, 5.5): in proportion to N sqrt(p (1 - p)), N the size and p the guess of a
    stratum, but never under `least` (or all pairs) and never over N; what a bound takes or gives is shared by the
    others in the same proportion. Whole numbers go by the largest remainder, and if those are equal by name.
    ConfigError if `size` is too small for that, or a guess is not between 0 and 1.
    """
    names = sorted(sizes)
    most = np.array([sizes[name] for name in names], dtype=np.float64)
    low = np.minimum(most, least)
    size = min(size, int(most.sum()))
    if size < low.sum() or least < 1:
        raise ConfigError(
            f"survey: found a sample of {size} pairs with at least {least} from each of {len(names)} strata, expected "
            f"at least {int(low.sum())} pairs, and one a stratum; use --size {int(low.sum())}"
        )
    shares = _filled(most * np.array([_spread(name, guesses) for name in names]), low, most, size)
    whole = np.floor(shares + 1e-9)
    order = [place for place in np.argsort(whole - shares, kind="stable") if whole[place] < most[place]]
    whole[order[: size - int(whole.sum())]] += 1
    return {name: int(count) for name, count in zip(names, whole, strict=True)}


def half_width(
    sizes: Mapping[str, int], guesses: Mapping[str, float], drawn: Mapping[str, int], level: float = LEVEL
) -> float | None:
    """Return half the width of the interval for the share of these strata if the guesses are right.

    None if there is no pair, or nothing is drawn from a stratum that has some.
    """
    parts = [Part(size, drawn[name], drawn[name] * guesses[name]) for name, size in sizes.items()]
    found = share(parts, level)
    return None if found is None else (found.high - found.low) / 2


def needed(
    sizes: Mapping[str, int],
    guesses: Mapping[str, float],
    margin: float,
    level: float = LEVEL,
    *,
    of: Iterable[str] | None = None,
    least: int = LEAST,
) -> int:
    """Return the smallest sample that, allocated, gives a half width of at most `margin` if the guesses are right.

    The margin is for the share of the strata `of`, all by default; the sample is allocated to all of them either way.
    Found by bisection, from the least sample that `allocate` accepts to the whole pool, where the width is 0.
    ConfigError if the margin is not between 0 and 1, or there is no pair to measure.
    """
    about = {name: sizes[name] for name in (sizes if of is None else of)}
    if not 0 < margin < 1 or not sum(about.values()):
        raise ConfigError(
            f"--margin: found {margin} for {sum(about.values())} pairs, expected a half width between 0 and 1 and a "
            "pair to measure; use 0.01, or give --size"
        )
    low, high = sum(min(least, size) for size in sizes.values()), sum(sizes.values())
    while low < high:
        middle = (low + high) // 2
        width = half_width(about, guesses, allocate(sizes, guesses, middle, least), level)
        low, high = (low, middle) if width is not None and width <= margin else (middle + 1, high)
    return low


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


def anticipated(
    sizes: Mapping[str, int], guesses: Mapping[str, float], drawn: Mapping[str, int], level: float = LEVEL
) -> Plan:
    """Return what a design will show if the guesses are right; verdicts are the first words of the strata's names."""
    planned = (Planned(n, sizes[n], drawn[n], drawn[n] / sizes[n] if sizes[n] else None, guesses[n]) for n in sizes)
    by_verdict: dict[str, dict[str, int]] = {}
    for name, size in sizes.items():
        by_verdict.setdefault(name.split(", ", 1)[0], {})[name] = size
    return Plan(
        strata=tuple(sorted(planned, key=lambda each: each.stratum)),
        level=level,
        agreement=half_width({name: sizes[name] for name in decided(sizes)}, guesses, drawn, level),
        verdicts={verdict: half_width(own, guesses, drawn, level) for verdict, own in sorted(by_verdict.items())},
    )


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


def _spread(name: str, guesses: Mapping[str, float]) -> float:
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
def _shares() -> Mapping[str, float]:
    path = data_file("survey.yaml")
    return check(_File, read_yaml(path), str(path)).disagreement
