"""Plan of a sample: the figures to estimate, the half widths of their intervals, and the allocation to strata."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from curate.core.errors import ConfigError, suggestion
from curate.core.figures import Record, figure
from curate.panel import sampling_design
from curate.review.agreement import checked
from curate.review.audit_correction import AuditWidths
from curate.review.desk import Desk
from curate.stats.sample_estimates import LEVEL, Estimate, StratumCounts, recall, share
from curate.view.words import strings

TARGETS: Mapping[str, Sequence[str]] = {
    "both": ("precision", "recall"),
    "precision": ("precision",),
    "recall": ("recall",),
    "agreement": ("agreement",),
}
"""Name of `--target` -> figures that the sample is drawn for."""
ACCEPT = "accept"
"""The `--target` of a sample that proves a threshold on the sum of grades; it has its own design."""
FIGURES = {
    "precision": "precision of the positives",
    "recall": "recall of relevant pairs in the pool",
    "agreement": "agreement with the panel, of all decided pairs",
}

SCORES = {"level": "precision at 10 of a model", "difference": "difference of two models in it"}
"""Name of a figure in `--margin`, for a sample for models' scores -> its description."""


def wanted(target: str | None, margins: Sequence[str]) -> dict[str, float | None]:
    """Return figure -> margin (half width, None if not given) of `--target` and `--margin`.

    A margin without a name applies to the agreement or, with a target, to every figure of the target. ConfigError if
    target and margins conflict.
    """
    if target is not None and target not in TARGETS:
        raise ConfigError(f"--target: found {target!r}; {suggestion(target, [*TARGETS, ACCEPT])}")
    if not margins:
        return dict.fromkeys(TARGETS[target or "both"])
    margin_of: dict[str, float | None] = {}
    for text in margins:
        name, equals, number = text.rpartition("=")
        for measure in [name.strip()] if equals else TARGETS[target or "agreement"]:
            if measure not in FIGURES or measure in margin_of:
                what = "a second margin of" if measure in margin_of else "a margin of"
                raise ConfigError(f"--margin: found {what} {measure!r}; {suggestion(measure, FIGURES)}, each once")
            margin_of[measure] = _margin(text, number)
    if target is not None and set(margin_of) != set(TARGETS[target]):
        raise ConfigError(
            f"--target {target}: found margins of {', '.join(margin_of)}, expected those of "
            f"{', '.join(TARGETS[target])}; leave out --target, for margins name their figures"
        )
    return margin_of


def of_scores(margins: Sequence[str]) -> dict[str, float]:
    """Return figure of `SCORES` -> half width, from `--margin` values `level=0.1`, `difference=0.1`, or `0.1` (level).

    ConfigError for another figure or a repeated one.
    """
    margin_of: dict[str, float] = {}
    for text in margins:
        name, equals, number = text.rpartition("=")
        figure = name.strip() if equals else "level"
        if figure not in SCORES or figure in margin_of:
            raise ConfigError(
                f"--margin: found {text!r} with --for-scores, expected a half width of {' or '.join(SCORES)}, each "
                "once; give 0.1, or difference=0.1"
            )
        margin_of[figure] = _margin(text, number)
    return margin_of


def _margin(text: str, number: str) -> float:
    try:
        margin = float(number)
    except ValueError:
        margin = math.nan
    if not 0 < margin < 1:
        raise ConfigError(
            f"--margin: found {text!r}, expected a half width between 0 and 1; give 0.01, or precision=0.02"
        )
    return margin


def purpose(aims: Mapping[str, float | None]) -> str:
    """Return the purpose of a sample in words, with the requested margins."""
    phrases = (f"{FIGURES[name]}{f' (half width {margin} at most)' if margin else ''}" for name, margin in aims.items())
    return "; ".join(phrases)


# Plan a sample for the figures that it is to prove: how it goes over the strata, how large it must be, what it gives.

_ROUNDS = 20
"""Number of reweighting rounds for several figures; further rounds narrow the widest interval by less than 0.1 %."""
_SPARE = 1e-24
"""Weight of the variance of a total over all pairs, added so that rows that no figure needs are allocated, too."""


class Planned(Record, schema_name="stratum"):
    """One stratum of a plan."""

    stratum: str = figure("name of the stratum")
    size: int = figure("pairs of the stratum")
    drawn: int = figure("pairs that are drawn")
    probability: float | None = figure("sampling probability of a pair; null for an empty stratum")
    guess: float = figure("anticipated share of disagreement")  # if the panel is undecided, of relevant pairs
    answers: int = figure("earlier answers on which the guess is based", default=0)


class SamplePlan(Record, schema_name="design"):
    """A design with the half widths of the intervals to expect if the guesses are right."""

    strata: tuple[Planned, ...] = figure("a row per stratum")
    level: float = figure("confidence level of the intervals")
    aims: Mapping[str, float | None] = figure("figure that the sample is drawn for -> margin that was asked for")
    figures: Mapping[str, float | None] = figure("figure -> half width of its interval")
    verdicts: Mapping[str, float | None] = figure("verdict, or score of models -> half width of its interval")
    notes: Sequence[str] = figure("how many answers are enough, of a sample for scores or of an audit", default=())
    audit: AuditWidths | None = figure(
        "half widths of the counts that a sample of an audit corrects", optional=True, default=None
    )

    def rows(self) -> list[Mapping[str, object]]:
        """Return one table row per stratum: stratum, size, drawn, probability, guess, answers."""
        return [entry.to_json() for entry in self.strata]

    def widths(self) -> list[dict[str, object]]:
        """Return table rows of the anticipated half widths, first of the aims; for an audit those of its counts."""
        if self.audit is not None:
            titles: Mapping[str, str] = strings("en", "audit")["corrected"]
            return [{"figure": title, "half width": getattr(self.audit, name)} for name, title in titles.items()]
        order = [*self.aims, *(name for name in self.figures if name not in self.aims)]
        width_of = {**{FIGURES[name]: self.figures[name] for name in order}, **self.verdicts}
        return [{"share of": name, "half width": width} for name, width in width_of.items()]


def guesses(sizes: Iterable[str], desks: Sequence[Desk]) -> dict[str, tuple[float, int]]:
    """Return stratum -> (guess, answers used): the guess of sampling_design.yaml, updated by earlier samples.

    `sizes` are the names of strata, `desks` the earlier samples.
    """
    answered, disagreeing = Counter[str](), Counter[str]()
    for row in (row for review in desks for row in checked(review) if row.settled):
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
    """Return the half width of the interval of `figure`, one of `FIGURES`, if the guesses are right.

    None if the figure covers no pair, or if nothing is drawn from a stratum that has pairs.
    """
    positive = _positive(sizes)
    if figure == "recall":
        missed = [name for name in sizes if name not in positive]
        counts = [_stratum_counts(name, sizes, drawn, 1 - guesses[name]) for name in positive]
        return _half(recall(counts, [_stratum_counts(name, sizes, drawn, guesses[name]) for name in missed], level))
    names = positive if figure == "precision" else sampling_design.decided(sizes)
    return _half(share([_stratum_counts(name, sizes, drawn, guesses[name]) for name in names], level))


def allocate(
    sizes: Mapping[str, int],
    guesses: Mapping[str, float],
    size: int,
    aims: Mapping[str, float | None],
    level: float = LEVEL,
    least: int = sampling_design.LEAST,
) -> dict[str, int]:
    """Return stratum -> number of pairs to draw, such that the largest ratio of half width to margin is smallest.

    Without margins all half widths count equally. Every stratum gets at least `least` pairs, and every verdict its
    minimum (`sampling_design.floors`). A stratum on which no figure depends gets more only if the others are drawn
    completely.
    """
    floors = sampling_design.floors(sizes, size, least)
    spreads = {name: pairs * sampling_design.spread(name, guesses) for name, pairs in sizes.items()}
    slopes = {figure: _slopes(figure, sizes, guesses) for figure in aims}
    terms = {  # variance of a figure contributed by one drawn row, divided by the squared margin
        figure: {name: (spreads[name] * slopes[figure][name] / (margin or 1.0)) ** 2 for name in sizes}
        for figure, margin in aims.items()
    }
    spare = {name: _SPARE * spread**2 for name, spread in spreads.items()}
    force = dict.fromkeys(aims, 1.0)
    best, lowest = dict[str, int](), math.inf
    for _ in range(_ROUNDS if len(aims) > 1 else 1):
        pull = {name: spare[name] + sum(force[figure] * term[name] for figure, term in terms.items()) for name in sizes}
        shares = {name: math.sqrt(weight) for name, weight in pull.items()}
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
    """Return the smallest sample size whose allocation meets every margin if the guesses are right.

    Found by bisection between the smallest sample that `allocate` accepts and the complete pool, where every width is
    0. ConfigError if a figure covers no pair.
    """
    for measure in margins:
        about = sampling_design.decided(sizes) if measure == "agreement" else _positive(sizes)
        if not sum(sizes[name] for name in about):
            raise ConfigError(
                f"--margin {measure}={margins[measure]}: found no pair that counts for the {FIGURES[measure]}; "
                "give --size"
            )

    def fits(size: int) -> bool:
        drawn = allocate(sizes, guesses, size, margins, level, least)
        widths = {measure: half_width(measure, sizes, guesses, drawn, level) for measure in margins}
        return all(width is not None and width <= margins[measure] for measure, width in widths.items())

    return sampling_design.smallest(sum(min(least, size) for size in sizes.values()), sum(sizes.values()), fits)


def anticipated(
    sizes: Mapping[str, int],
    guesses: Mapping[str, tuple[float, int]],
    drawn: Mapping[str, int],
    aims: Mapping[str, float | None],
    level: float = LEVEL,
) -> SamplePlan:
    """Return the plan of an allocation, with the half widths to expect if the guesses are right."""
    shares = {name: guess for name, (guess, _) in guesses.items()}
    planned = (
        Planned(name, size, drawn[name], drawn[name] / size if size else None, *guesses[name])
        for name, size in sorted(sizes.items())
    )
    others = sorted({sampling_design.verdict_of(name) for name in sizes} - {"relevant"})
    strata_of = {verdict: [name for name in sizes if sampling_design.verdict_of(name) == verdict] for verdict in others}
    return SamplePlan(
        strata=tuple(planned),
        level=level,
        aims=aims,
        figures={figure: half_width(figure, sizes, shares, drawn, level) for figure in FIGURES},
        verdicts={
            verdict: _half(share([_stratum_counts(name, sizes, drawn, shares[name]) for name in names], level))
            for verdict, names in strata_of.items()
        },
    )


def _positive(names: Iterable[str]) -> list[str]:
    return [name for name in names if sampling_design.verdict_of(name) == "relevant"]


def _stratum_counts(name: str, sizes: Mapping[str, int], drawn: Mapping[str, float], rate: float) -> StratumCounts:
    return StratumCounts(sizes[name], int(drawn[name]), drawn[name] * rate)


def _half(figure: Estimate | None) -> float | None:
    return None if figure is None else (figure.high - figure.low) / 2


def _slopes(figure: str, sizes: Mapping[str, int], guesses: Mapping[str, float]) -> dict[str, float]:
    """Return stratum -> absolute change of a figure if one more of its pairs is relevant (or confirmed)."""
    positive = _positive(sizes)
    if figure != "recall":
        about = positive if figure == "precision" else sampling_design.decided(sizes)
        pairs = sum(sizes[name] for name in about)
        return {name: 1 / pairs if name in about and pairs else 0.0 for name in sizes}
    relevant = {name: size * (1 - guesses[name] if name in positive else guesses[name]) for name, size in sizes.items()}
    total = sum(relevant.values()) or 1.0
    recall_value = sum(relevant[name] for name in positive) / total
    return {name: (1 - recall_value if name in positive else recall_value) / total for name in sizes}
