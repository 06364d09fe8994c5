"""Agreement of assessors, judges and panel on the rows of a sample, and correlated errors of judges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.core.figures import Record, figure
from curate.core.scale import Scale
from curate.llm.providers.presets import families
from curate.panel import judge_dependence, sampling_design, voting
from curate.panel.agreement_figures import kind_of
from curate.panel.judge_dependence import Dependence
from curate.panel.sampling_design import DECIDED
from curate.panel.voting import PAIR
from curate.review.desk import ADJUDICATED, Desk, settled
from curate.stats import agreement, bootstrap, sample_estimates
from curate.stats.agreement import Scheme
from curate.stats.ratios import numbered
from curate.stats.sample_estimates import Estimate, StratumCounts
from curate.stats.tally import tally
from curate.system.files import read_json, read_scale, read_table
from curate.view.state import ReadCounts
from curate.view.words import strings


@dataclass(frozen=True)
class CheckedRow:
    """A drawn row with the panel's verdict (for an item: its published label) and the grade of every person."""

    row_id: str
    ids: Sequence[str]
    stratum: str
    verdict: str
    votes: Mapping[str, str | None]
    said: Mapping[str, str]
    """Person -> grade."""
    settled: str | None
    """Final grade; None if nobody has given one."""
    scale: Scale
    of_items: bool = False
    """Whether the row is an item of a task type; its `verdict` is then its published label."""

    @property
    def relevant(self) -> bool | None:
        """Return whether the final grade makes the passage relevant; None on a scale without a relevance threshold."""
        return self.settled in self.scale.relevant if self.scale.relevant else None

    @property
    def irrelevant(self) -> bool | None:
        """Return whether the final grade makes the passage not relevant; None on a scale without a threshold."""
        return None if self.relevant is None else not self.relevant

    @property
    def read_twice(self) -> bool:
        """Return whether two assessors graded the row; an adjudicated grade does not count."""
        return len(self.said.keys() - {ADJUDICATED}) > 1

    @property
    def confirmed(self) -> bool | None:
        """Return whether the final grade agrees with the panel on relevance; None without a relevance threshold.

        For an item: whether the final answer equals the published label. A verdict other than `relevant`, contested
        too, counts as not relevant, so callers leave undecided rows out.
        """
        if self.of_items:
            return self.settled == self.verdict
        return None if self.relevant is None else self.relevant == (self.verdict == "relevant")


def checked(review: Desk) -> list[CheckedRow]:
    """Return every drawn row of a sample, in its order, without planted controls."""
    return [
        CheckedRow(
            row["row_id"],
            row["ids"],
            row["stratum"],
            row["verdict"],
            {vote["judge"]: vote["grade"] for vote in row["votes"] or ()},
            grades,
            settled,
            review.sample.scale,
            review.sample.of_items,
        )
        for row, grades, settled in review.answered()
        if row["expected"] is None
    ]


def stratum_counts(name: str, size: int, read: Sequence[CheckedRow], hit: str) -> StratumCounts:
    """Return the counts of a stratum of `size` pairs: read rows, and those whose property `hit` is true.

    `hit` names a property of `CheckedRow`; if it is empty, nothing is a hit.
    """
    rows = [row for row in read if row.stratum == name]
    return StratumCounts(size, len(rows), sum(bool(getattr(row, hit)) for row in rows) if hit else 0)


def many_open(rows: Sequence[CheckedRow]) -> bool:
    """Return whether so many rows have no answer that figures need worst-case bounds."""
    return ReadCounts(len(rows), sum(row.settled is not None for row in rows)).many_open


def filled(rows: Sequence[CheckedRow], relevant: Iterable[bool]) -> list[CheckedRow]:
    """Return the rows with an answer to every open one: the best grade of the scale if `relevant`, else the worst."""
    return [
        row if row.settled else replace(row, settled=row.scale.labels[0 if is_relevant else -1])
        for row, is_relevant in zip(rows, relevant, strict=True)
    ]


class SampleEstimate(Record, schema_name="estimate"):
    """A figure of the pool, estimated from a sample that people read."""

    value: float | None = figure("the estimate")
    low: float | None = figure("lower bound of its 95 % interval")
    high: float | None = figure("upper bound")
    answered: int = figure("answered rows on which the estimate is based")


class PairKappas(Record, schema_name="kappa"):
    """Cohen's kappas of two raters."""

    grades: SampleEstimate | None = figure("kappa of the grades")
    cut: SampleEstimate | None = figure("kappa of binary labels; null without a relevance threshold")


class SampleKappas(Record, schema_name="kappas"):
    """Kappas of people with the panel, with each judge, and with each other."""

    panel: SampleEstimate | None = figure("kappa of assessors and panel on decided pairs, binary")
    judges: Mapping[str, PairKappas] = figure("judge -> kappas with assessors, highest first")
    people: Mapping[str, PairKappas] = figure("two assessors -> their kappas")


class SampleAlpha(Record, schema_name="alpha"):
    """Krippendorff's alpha of people who read the same rows."""

    value: float | None = figure("Krippendorff's alpha")
    low: float | None = figure("lower bound of its 95 % interval, a bootstrap over queries")
    high: float | None = figure("upper bound")
    answered: int = figure("rows that at least two assessors read")
    queries: int = figure("queries of these rows")


class WorstBounds(Record, schema_name="worst_bounds"):
    """Bounds of a figure over all answers that the open rows of a sample could get."""

    low: float | None = figure("lower bound of the 95 % interval if every open row counts against the figure")
    high: float | None = figure("upper bound if every open row counts for it")


def worst_bounds(*estimates: SampleEstimate | None) -> WorstBounds | None:
    """Return the lowest and the highest bound of estimates with filled rows; None if one of them is undefined."""
    lows, highs = (
        [bound for one in estimates if one and (bound := getattr(one, side)) is not None] for side in ("low", "high")
    )
    return WorstBounds(min(lows), max(highs)) if len(lows) == len(highs) == len(estimates) else None


def rounded_estimate(estimate: Estimate | None) -> SampleEstimate | None:
    """Return an estimate with 4 decimals; None if undefined."""
    return SampleEstimate(**estimate.bounds(4), answered=estimate.answered) if estimate else None


# Errors of a run's judges against people's answers on samples of its pairs, and their correlation.


def dependence(
    run: Path,
    seed: int,
    definitions: Mapping[str, Mapping[str, Any]],
    people: pl.DataFrame | None = None,
    judged: Path | None = None,
) -> Dependence:
    """Return the dependence of a run's judges as `in_common` does, with warnings in English.

    `definitions` are the judges that the pipeline defines itself. `people` are assessors' answers (query_id, doc_id,
    relevant, weight), by default those to all random samples of the run. `judged` is the folder of the stage `judge`
    if it is not yet `run/judge`.
    """
    judged = judged or run / "judge"
    panel, scale = read_json(judged / "panel.json"), read_scale(judged)
    if people is None:
        people = settled(run).select(*PAIR, "weight", relevant=pl.col("grade").is_in(list(scale.relevant)))
    ratings = read_table(judged, "ratings")
    figures = in_common(ratings, sorted(panel), people, families(panel, definitions), seed, scale)
    return with_warnings(figures)


def with_warnings(figures: Dependence) -> Dependence:
    """Return the dependence of judges with its warnings in English."""
    return replace(figures, warnings=tuple(judge_dependence.warnings(figures, strings("en")["dependence"])))


def in_common(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    people: pl.DataFrame,
    kin: Mapping[str, str | None],
    seed: int,
    scale: Scale,
) -> Dependence:
    """Return the dependence of judges (`judge_dependence.dependence`), with errors measured against assessors.

    An error is a judge's relevance (0 or 1) less the assessors'. `people` has query_id, doc_id, relevant, weight. `kin`
    maps a judge to its model family. After a cascade, two judges are compared on the pairs graded by both. Without a
    relevance threshold there are no errors.
    """
    votes = voting.votes(ratings, panel, scale)
    codes = voting.coded(votes, panel, scale)
    true = votes.select(PAIR).join(people, on=PAIR, how="left", maintain_order="left")
    right = true["relevant"].cast(pl.Float64).to_numpy()[:, None]
    seen = (codes >= 0) & bool(scale.relevant)
    errors = np.where(seen, 1.0 - voting.sides(codes, scale), np.nan) - right
    return judge_dependence.dependence(
        panel,
        codes,
        clusters=numbered(votes["query_id"]),
        seed=seed,
        errors=errors,
        families=kin,
        weights=true["weight"].to_numpy(),
    )


# Kappa and alpha of people, judges and panel on the rows of a sample.

_Pairs = Sequence[tuple[str, str | None, str | None]]
"""Stratum of a row, and the grades of two raters."""


def with_people(review: Desk, read: Sequence[CheckedRow], sizes: Mapping[str, int]) -> SampleKappas:
    """Return Cohen's kappa of assessors with the `panel`, with each of the `judges`, and of two `people` (assessors).

    Estimates are of the whole pool: rows are weighted by stratum. Kappa `grades` has quadratic weights by the gains of
    the scale, none on a nominal scale. Kappa `cut` is binary, at the relevance threshold, like that of the panel; both
    are None without a threshold. Judges are sorted by `cut`, highest first. Two assessors are compared on the rows that
    both read, unweighted, since small strata seldom have such rows.
    """
    scale = review.sample.scale
    decided = [row for row in read if row.verdict in DECIDED and row.relevant is not None]
    panel = [(row.stratum, int(row.verdict != "relevant"), int(not row.relevant)) for row in decided]
    ruled = {name: size for name, size in sizes.items() if name in sampling_design.decided(sizes)}
    judges: dict[str, PairKappas] = {}
    for judge in sorted({name for row in read for name in row.votes}):
        judges[judge] = _kappas([(row.stratum, row.votes.get(judge), row.settled) for row in read], sizes, scale)
    ranked = dict(sorted(judges.items(), key=lambda judge: _value(judge[1].cut), reverse=True))
    return SampleKappas(_kappa(panel, ruled, 2), ranked, between(review, read, sum(sizes.values())))


def between(review: Desk, read: Sequence[CheckedRow], size: int) -> dict[str, PairKappas]:
    """Return "first, second" assessor -> their Cohen's kappas on the rows that both read, not weighted by stratum.

    `size` is the number of pairs that the sample was drawn from.
    """
    kappas: dict[str, PairKappas] = {}
    for first, second in combinations(review.assessors, 2):
        both = [("all", row.said[first], row.said[second]) for row in read if first in row.said and second in row.said]
        if both:
            kappas[f"{first}, {second}"] = _kappas(both, {"all": size}, review.sample.scale)
    return kappas


def alpha(review: Desk, read: Sequence[CheckedRow]) -> SampleAlpha | None:
    """Return Krippendorff's alpha of all assessors on the rows read by two or more, not weighted by stratum.

    Ordinal, or nominal on a nominal scale. Its 95 % interval is a bootstrap over queries. None if no row was read by
    two assessors, or if all grades are equal.
    """
    twice = [row for row in read if len(row.said.keys() - {ADJUDICATED}) > 1]
    if not twice:
        return None
    scale = review.sample.scale
    codes = [[_rank(row.said.get(person), scale) for person in review.assessors] for row in twice]
    ratings = tally(codes, len(scale.labels))
    queries, measure = [row.ids[0] for row in twice], partial(agreement.alpha, level=scale.order)
    point = agreement.scalar(measure(ratings.sums()))
    if point is None:
        return None
    interval = bootstrap.interval(ratings.by_cluster(queries), measure, seed=review.sample.design.seed)
    low, high = (round(interval.low, 4), round(interval.high, 4)) if interval else (None, None)
    return SampleAlpha(round(point, 4), low, high, len(twice), len(set(queries)))


def _kappas(pairs: _Pairs, sizes: Mapping[str, int], scale: Scale) -> PairKappas:
    """Return two raters' kappa on the grades, and `cut` at the relevance threshold; None if the scale has none."""
    cut = (
        [(stratum, _side(first, scale), _side(second, scale)) for stratum, first, second in pairs]
        if scale.relevant
        else []
    )
    return PairKappas(of_grades(pairs, sizes, scale), _kappa(cut, sizes, 2))


def of_grades(pairs: _Pairs, sizes: Mapping[str, int], scale: Scale) -> SampleEstimate | None:
    """Return Cohen's kappa of two raters on the labels of a scale, weighted by stratum."""
    grades = [(stratum, _rank(first, scale), _rank(second, scale)) for stratum, first, second in pairs]
    return _kappa(grades, sizes, len(scale.labels), scale)


def _kappa(
    rows: Sequence[tuple[str, int, int]], sizes: Mapping[str, int], categories: int, scale: Scale | None = None
) -> SampleEstimate | None:
    if not rows:
        return None
    strata, first, second = zip(*rows, strict=True)
    steps = kind_of(scale).steps if scale else None
    scheme: Scheme = "quadratic" if steps else "nominal"
    estimate = sample_estimates.kappa(strata, first, second, sizes, categories, scheme=scheme, steps=steps)
    return rounded_estimate(estimate)


def _value(kappa: SampleEstimate | None) -> float:
    """Return the value of a kappa as a sort key; -2, below every kappa, if it is undefined."""
    return -2.0 if kappa is None or kappa.value is None else kappa.value


def _rank(grade: str | None, scale: Scale) -> int:
    """Return the index of a grade on the scale, from 0; -1 if there is no grade, so that the row is not left out."""
    return -1 if grade is None else scale.place(grade)


def _side(grade: str | None, scale: Scale) -> int:
    """Return 0 for a grade that makes a passage relevant, else 1; -1 for none."""
    return -1 if grade is None else int(grade not in scale.relevant)
