"""The drawn rows of a sample beside what people and panel said of them; planted controls are none of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.scale import Scale
from curate.llm.providers.presets import families
from curate.panel import judge_dependence, sampling_design, voting
from curate.panel.agreement_figures import kind_of
from curate.panel.sampling_design import DECIDED
from curate.panel.voting import PAIR
from curate.review.desk import ADJUDICATED, Desk, settled
from curate.stats import agreement, bootstrap, sample_estimates
from curate.stats.agreement import Scheme
from curate.stats.ratios import numbered
from curate.stats.sample_estimates import Estimate, StratumCounts
from curate.stats.tally import tally
from curate.system.files import read_json, read_scale, read_table
from curate.view.words import strings


@dataclass(frozen=True)
class CheckedRow:
    """A drawn row: what the panel said (of an item, what is published), and what every person did."""

    row_id: str
    ids: Sequence[str]
    stratum: str
    verdict: str
    votes: Mapping[str, str | None]
    said: Mapping[str, str]
    """Person -> grade."""
    settled: str | None
    """The grade that counts; None if nobody has given one."""
    scale: Scale
    of_items: bool = False
    """Whether it is an item of a kind: its `verdict` is the published label."""

    @property
    def relevant(self) -> bool | None:
        """Say whether the grade that counts makes the passage relevant; None on a scale without a cut."""
        return self.settled in self.scale.relevant if self.scale.relevant else None

    @property
    def irrelevant(self) -> bool | None:
        """Say whether the grade that counts makes the passage not relevant; None on a scale without a cut."""
        return None if self.relevant is None else not self.relevant

    @property
    def confirmed(self) -> bool | None:
        """Say whether people and a panel that decided are on the same side; None on a scale without a cut.

        Of an item: whether people give it the published label.
        """
        if self.of_items:
            return self.settled == self.verdict
        return None if self.relevant is None else self.relevant == (self.verdict == "relevant")


def checked(desk: Desk) -> list[CheckedRow]:
    """Return every drawn row of a sample, in the order of the sample."""
    return [
        CheckedRow(
            row["row_id"],
            row["ids"],
            row["stratum"],
            row["verdict"],
            {vote["judge"]: vote["grade"] for vote in row["votes"] or ()},
            given,
            settled,
            desk.sample.scale,
            desk.sample.of_items,
        )
        for row, given, settled in desk.answered()
        if row["expected"] is None
    ]


def part(name: str, size: int, read: Sequence[CheckedRow], hit: str) -> StratumCounts:
    """Return a stratum as far as it was read; hits are the rows of which the property `hit` is true."""
    mine = [row for row in read if row.stratum == name]
    return StratumCounts(size, len(mine), sum(bool(getattr(row, hit)) for row in mine) if hit else 0)


def shown(figure: Estimate | None) -> dict[str, Json] | None:
    """Return a figure's value, bounds and number of answers for JSON, rounded; None where it is not defined."""
    if figure is None:
        return None
    return {**figure.bounds(4), "answered": figure.answered}


# Errors of a run's judges against people's answers on samples of its pairs, and their correlation.


def dependence(
    run: Path,
    seed: int,
    definitions: Mapping[str, Mapping[str, Any]],
    people: pl.DataFrame | None = None,
    judged: Path | None = None,
) -> dict[str, Json]:
    """Return what the judges of a finished `judge` stage have in common, as `in_common` does, and its `warnings`.

    `definitions` are the pipeline's own judges; `people` query_id, doc_id, relevant, weight, by default what all
    samples of the run were answered; `judged` the folder of the stage, if it is not in its place yet.
    """
    judged = judged or run / "judge"
    panel, scale = read_json(judged / "panel.json"), read_scale(judged)
    if people is None:
        people = settled(run).select(*PAIR, "weight", relevant=pl.col("grade").is_in(list(scale.relevant)))
    ratings = read_table(judged, "ratings")
    found = in_common(ratings, sorted(panel), people, families(panel, definitions), seed, scale)
    return {**found, "warnings": [*judge_dependence.warnings(found, strings("en")["dependence"])]}


def in_common(
    ratings: pl.DataFrame,
    panel: Sequence[str],
    people: pl.DataFrame,
    kin: Mapping[str, str | None],
    seed: int,
    scale: Scale,
) -> dict[str, Json]:
    """Return what `judge_dependence.dependence` does, with errors on the cut against people.

    `people` has query_id, doc_id, relevant, weight. After a cascade two judges are compared on what both were asked.
    Without a cut there are no errors.
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
"""Stratum of a row, and the grades that two have given it."""


def with_people(desk: Desk, read: Sequence[CheckedRow], sizes: Mapping[str, int]) -> dict[str, Json]:
    """Return Cohen's kappa of people with the panel and with every judge in the pool, and of people with each other.

    `grades` has quadratic weights by the gains of the scale, none on a nominal one; `cut` is None there, and so is the
    panel's. Those of two people are of the rows which both read, not weighted: small strata seldom hold one of them.
    Judges come in the order in which they agree with people at the cut, the best first.
    """
    scale = desk.sample.scale
    decided = [row for row in read if row.verdict in DECIDED and row.relevant is not None]
    panel = [(row.stratum, int(row.verdict != "relevant"), int(not row.relevant)) for row in decided]
    ruled = {name: size for name, size in sizes.items() if name in sampling_design.decided(sizes)}
    judges: dict[str, dict[str, Json]] = {}
    for judge in sorted({name for row in read for name in row.votes}):
        judges[judge] = _both([(row.stratum, row.votes.get(judge), row.settled) for row in read], sizes, scale)
    ranked = dict(sorted(judges.items(), key=lambda each: _value(each[1]["cut"]), reverse=True))
    said = between(desk, read, sum(sizes.values()))
    return {"panel": _kappa(panel, ruled, 2), "judges": cast("Json", ranked), "people": said}


def between(desk: Desk, read: Sequence[CheckedRow], size: int) -> dict[str, Json]:
    """Return two people -> their Cohen's kappas on the rows that both read, of `size` in all; not weighted."""
    found: dict[str, Json] = {}
    for one, other in combinations(desk.assessors, 2):
        both = [("all", row.said[one], row.said[other]) for row in read if one in row.said and other in row.said]
        if both:
            found[f"{one}, {other}"] = _both(both, {"all": size}, desk.sample.scale)
    return found


def alpha(desk: Desk, read: Sequence[CheckedRow]) -> Json:
    """Return Krippendorff's alpha of all people's grades, on the rows that two or more read; not weighted.

    Ordinal, or nominal on a nominal scale. Its 95 % interval resamples queries. None where fewer than two people read
    one row, or all gave one grade.
    """
    twice = [row for row in read if len(row.said.keys() - {ADJUDICATED}) > 1]
    if not twice:
        return None
    scale = desk.sample.scale
    codes = [[_place(row.said.get(person), scale) for person in desk.assessors] for row in twice]
    ratings = tally(codes, len(scale.labels))
    queries, measure = [row.ids[0] for row in twice], partial(agreement.alpha, level=scale.order)
    value = agreement.scalar(measure(ratings.sums()))
    if value is None:
        return None
    found = bootstrap.interval(ratings.by_cluster(queries), measure, seed=desk.sample.design.seed)
    low, high = (round(found.low, 4), round(found.high, 4)) if found else (None, None)
    return {"value": round(value, 4), "low": low, "high": high, "answered": len(twice), "queries": len(set(queries))}


def _both(pairs: _Pairs, sizes: Mapping[str, int], scale: Scale) -> dict[str, Json]:
    """Return the kappa of two on the grades and, where there is one, at the cut."""
    cut = [(stratum, _side(one, scale), _side(other, scale)) for stratum, one, other in pairs] if scale.relevant else []
    return {"grades": of_grades(pairs, sizes, scale), "cut": _kappa(cut, sizes, 2)}


def of_grades(pairs: _Pairs, sizes: Mapping[str, int], scale: Scale) -> Json:
    """Return Cohen's kappa of two on the labels of a scale, from their grades of rows of a stratum each."""
    grades = [(stratum, _place(one, scale), _place(other, scale)) for stratum, one, other in pairs]
    return _kappa(grades, sizes, len(scale.labels), scale)


def _kappa(
    rows: Sequence[tuple[str, int, int]], sizes: Mapping[str, int], categories: int, scale: Scale | None = None
) -> Json:
    if not rows:
        return None
    strata, first, second = zip(*rows, strict=True)
    steps = kind_of(scale).steps if scale else None
    scheme: Scheme = "quadratic" if steps else "nominal"
    found = sample_estimates.kappa(strata, first, second, sizes, categories, scheme=scheme, steps=steps)
    return shown(found)


def _value(figure: Json) -> float:
    """Return the value of a figure to sort by, less than every kappa for one that is not defined."""
    return cast("Mapping[str, float]", figure)["value"] if figure else -2.0


def _place(grade: str | None, scale: Scale) -> int:
    """Return where a grade stands on the scale, from 0; -1 for none, which leaves a row in its stratum."""
    return -1 if grade is None else scale.place(grade)


def _side(grade: str | None, scale: Scale) -> int:
    """Return 0 for a grade that makes a passage relevant, else 1; -1 for none."""
    return -1 if grade is None else int(grade not in scale.relevant)
