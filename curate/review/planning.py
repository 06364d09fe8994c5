"""What a sample is drawn for: the figures that it is to prove, and how narrow their intervals are to be."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from curate.core.errors import ConfigError, suggestion
from curate.panel import sampling_design
from curate.review.agreement import checked
from curate.review.desk import Desk
from curate.stats.sample_estimates import LEVEL, Estimate, StratumCounts, recall, share

TARGETS: Mapping[str, Sequence[str]] = {
    "both": ("precision", "recall"),
    "precision": ("precision",),
    "recall": ("recall",),
    "agreement": ("agreement",),
}
"""What a sample can be drawn for, by the name of `--target` -> its figures."""
ACCEPT = "accept"
"""The `--target` of a sample by which a threshold on the sum of grades is proved; it has a design of its own."""
FIGURES = {
    "precision": "precision of the positives",
    "recall": "recall of relevant pairs in the pool",
    "agreement": "agreement with the panel, of all decided pairs",
}

SCORES = {"level": "precision at 10 of a model", "difference": "difference of two models in it"}
"""What a margin of a sample for models' scores can be of -> its name in a plan."""


def wanted(target: str | None, margins: Sequence[str]) -> dict[str, float | None]:
    """Return figure -> margin (None without one) of `--target` and `--margin`; ConfigError unless they go together.

    A margin without a name is that of the agreement, or of every figure of the target where one is named.
    """
    if target is not None and target not in TARGETS:
        raise ConfigError(f"--target: found {target!r}; {suggestion(target, [*TARGETS, ACCEPT])}")
    if not margins:
        return dict.fromkeys(TARGETS[target or "both"])
    found: dict[str, float | None] = {}
    for text in margins:
        name, equals, number = text.rpartition("=")
        for figure in [name.strip()] if equals else TARGETS[target or "agreement"]:
            if figure not in FIGURES or figure in found:
                what = "a second margin of" if figure in found else "a margin of"
                raise ConfigError(f"--margin: found {what} {figure!r}; {suggestion(figure, FIGURES)}, each once")
            found[figure] = _margin(text, number)
    if target is not None and set(found) != set(TARGETS[target]):
        raise ConfigError(
            f"--target {target}: found margins of {', '.join(found)}, expected those of {', '.join(TARGETS[target])}; "
            "leave out --target, for margins name their figures"
        )
    return found


def of_scores(margins: Sequence[str]) -> dict[str, float]:
    """Return figure of `SCORES` -> half width of `--margin 0.1` (of a level), `level=0.1` and `difference=0.1`."""
    found: dict[str, float] = {}
    for text in margins:
        name, equals, number = text.rpartition("=")
        figure = name.strip() if equals else "level"
        if figure not in SCORES or figure in found:
            raise ConfigError(
                f"--margin: found {text!r} with --for-scores, expected a half width of {' or '.join(SCORES)}, each "
                "once; give 0.1, or difference=0.1"
            )
        found[figure] = _margin(text, number)
    return found


def _margin(text: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise ConfigError(
            f"--margin: found {text!r}, expected a half width between 0 and 1; give 0.01, or precision=0.02"
        )
    return value


def purpose(aims: Mapping[str, float | None]) -> str:
    """Return what a sample is drawn for in words, with the margins that were asked for."""
    asked = (f"{FIGURES[name]}{f' (half width {margin} at most)' if margin else ''}" for name, margin in aims.items())
    return "; ".join(asked)


# Plan a sample for the figures that it is to prove: how it goes over the strata, how large it must be, what it gives.

_ROUNDS = 20
"""Times that the weights of several figures are set anew; more make the widest interval no narrower by a thousandth."""
_SPARE = 1e-24
"""What the variance of any total counts, so that rows which no figure needs go where they tell most of all pairs."""


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
    answers: int = 0
    """Answers of earlier samples of the run that the guess rests on, beside survey.yaml."""


@dataclass(frozen=True)
class SamplePlan:
    """A design and the half widths of the intervals that it will give if the guesses are right."""

    strata: tuple[Planned, ...]
    level: float
    aims: Mapping[str, float | None]
    """Figure that the sample is drawn for -> margin that was asked for; None with a size."""
    figures: Mapping[str, float | None]
    """Half width of every one of `FIGURES`; None where there is nothing to measure."""
    verdicts: Mapping[str, float | None]
    """Half width for the other verdicts: of the confirmed share, or of the relevant one where nothing was decided."""
    notes: Sequence[str] = ()
    """What more a user should know of the design."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row per stratum for people: stratum, size, drawn, probability, guess, answers."""
        return [asdict(each) for each in self.strata]

    def widths(self) -> list[dict[str, object]]:
        """Return the anticipated half widths for people, first those that the sample is drawn for."""
        order = [*self.aims, *(name for name in self.figures if name not in self.aims)]
        shown = {**{FIGURES[name]: self.figures[name] for name in order}, **self.verdicts}
        return [{"share of": name, "half width": width} for name, width in shown.items()]


def guesses(sizes: Iterable[str], desks: Sequence[Desk]) -> dict[str, tuple[float, int]]:
    """Return the guess of every stratum and how many answers it rests on: survey.yaml, learned from earlier samples."""
    answered, disagreeing = Counter[str](), Counter[str]()
    for row in (row for desk in desks for row in checked(desk) if row.settled):
        answered[row.stratum] += 1
        disagreeing[row.stratum] += row.relevant != (row.verdict == "relevant")
    first = sampling_design.guesses(sizes)
    return {
        name: (sampling_design.learned(guess, answered[name], disagreeing[name]), answered[name])
        for name, guess in first.items()
    }


def half_width(
    figure: str,
    sizes: Mapping[str, int],
    guesses: Mapping[str, float],
    drawn: Mapping[str, float],
    level: float = LEVEL,
) -> float | None:
    """Return half the width of the interval of one of `FIGURES` if the guesses are right.

    None if there is no pair, or nothing is drawn from a stratum that has some.
    """
    positive = _positive(sizes)
    if figure == "recall":
        missed = [name for name in sizes if name not in positive]
        found = [_part(name, sizes, drawn, 1 - guesses[name]) for name in positive]
        return _half(recall(found, [_part(name, sizes, drawn, guesses[name]) for name in missed], level))
    names = positive if figure == "precision" else sampling_design.decided(sizes)
    return _half(share([_part(name, sizes, drawn, guesses[name]) for name in names], level))


def allocate(
    sizes: Mapping[str, int],
    guesses: Mapping[str, float],
    size: int,
    aims: Mapping[str, float | None],
    level: float = LEVEL,
    least: int = sampling_design.LEAST,
) -> dict[str, int]:
    """Return how many pairs to draw from every stratum: the largest half width, each over its margin, is smallest.

    Without margins all half widths count alike. At least `least` pairs per stratum, and no verdict under its floor
    (`survey.floors`). A stratum on which no figure depends gets more only if the others are drawn whole.
    """
    floors = sampling_design.floors(sizes, size, least)
    terms = {figure: _terms(figure, sizes, guesses, margin or 1.0) for figure, margin in aims.items()}
    spare = {name: _SPARE * (pairs * sampling_design.spread(name, guesses)) ** 2 for name, pairs in sizes.items()}
    force = dict.fromkeys(aims, 1.0)
    best, lowest = dict[str, int](), math.inf
    for _ in range(_ROUNDS if len(aims) > 1 else 1):
        pull = {name: spare[name] + sum(force[each] * term[name] for each, term in terms.items()) for name in sizes}
        shares = {name: math.sqrt(each) for name, each in pull.items()}
        drawn = sampling_design.apportion(sizes, shares, size, least, floors)
        over = {aim: (half_width(aim, sizes, guesses, drawn, level) or 0.0) / (aims[aim] or 1.0) for aim in aims}
        widest = max(over.values())
        if widest < lowest:
            best, lowest = drawn, widest
        if not widest:
            break
        force = {aim: force[aim] * (over[aim] / widest) ** 2 for aim in aims}
    return best


def needed(
    sizes: Mapping[str, int],
    guesses: Mapping[str, float],
    margins: Mapping[str, float],
    level: float = LEVEL,
    least: int = sampling_design.LEAST,
) -> int:
    """Return the smallest sample that, allocated, gives every figure its margin at most if the guesses are right.

    Found by bisection, from the least sample that `allocate` accepts to the whole pool, where every width is 0.
    ConfigError if there is no pair to measure a figure with.
    """
    for figure in margins:
        about = sampling_design.decided(sizes) if figure == "agreement" else _positive(sizes)
        if not sum(sizes[name] for name in about):
            raise ConfigError(
                f"--margin {figure}={margins[figure]}: found no pair that counts for the {FIGURES[figure]}; give --size"
            )
    low, high = sum(min(least, size) for size in sizes.values()), sum(sizes.values())
    while low < high:
        middle = (low + high) // 2
        drawn = allocate(sizes, guesses, middle, margins, level, least)
        widths = {figure: half_width(figure, sizes, guesses, drawn, level) for figure in margins}
        kept = all(width is not None and width <= margins[figure] for figure, width in widths.items())
        low, high = (low, middle) if kept else (middle + 1, high)
    return low


def anticipated(
    sizes: Mapping[str, int],
    guesses: Mapping[str, tuple[float, int]],
    drawn: Mapping[str, int],
    aims: Mapping[str, float | None],
    level: float = LEVEL,
) -> SamplePlan:
    """Return what a design will show if the guesses are right."""
    shares = {name: guess for name, (guess, _) in guesses.items()}
    planned = (
        Planned(name, size, drawn[name], drawn[name] / size if size else None, *guesses[name])
        for name, size in sorted(sizes.items())
    )
    others = sorted({sampling_design.verdict_of(name) for name in sizes} - {"relevant"})
    own = {verdict: [name for name in sizes if sampling_design.verdict_of(name) == verdict] for verdict in others}
    return SamplePlan(
        strata=tuple(planned),
        level=level,
        aims=aims,
        figures={figure: half_width(figure, sizes, shares, drawn, level) for figure in FIGURES},
        verdicts={
            verdict: _half(share([_part(name, sizes, drawn, shares[name]) for name in names], level))
            for verdict, names in own.items()
        },
    )


def _positive(names: Iterable[str]) -> list[str]:
    return [name for name in names if sampling_design.verdict_of(name) == "relevant"]


def _part(name: str, sizes: Mapping[str, int], drawn: Mapping[str, float], rate: float) -> StratumCounts:
    return StratumCounts(sizes[name], int(drawn[name]), drawn[name] * rate)


def _half(figure: Estimate | None) -> float | None:
    return None if figure is None else (figure.high - figure.low) / 2


def _terms(figure: str, sizes: Mapping[str, int], guesses: Mapping[str, float], margin: float) -> dict[str, float]:
    """Return what a stratum adds to the variance of a figure with one row, over the square of its margin."""
    slopes = _slopes(figure, sizes, guesses)
    return {name: (sizes[name] * sampling_design.spread(name, guesses) * slopes[name] / margin) ** 2 for name in sizes}


def _slopes(figure: str, sizes: Mapping[str, int], guesses: Mapping[str, float]) -> dict[str, float]:
    """Return by how much a figure changes with one relevant (or confirmed) pair more in a stratum, without its sign."""
    positive = _positive(sizes)
    if figure != "recall":
        about = positive if figure == "precision" else sampling_design.decided(sizes)
        pairs = sum(sizes[name] for name in about)
        return {name: 1 / pairs if name in about and pairs else 0.0 for name in sizes}
    relevant = {name: size * (1 - guesses[name] if name in positive else guesses[name]) for name, size in sizes.items()}
    total = sum(relevant.values()) or 1.0
    value = sum(relevant[name] for name in positive) / total
    return {name: (1 - value if name in positive else value) / total for name in sizes}
