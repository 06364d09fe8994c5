"""Diagnostics of judges from existing ratings of a panel: strictness, accuracy, shared errors; nothing is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from curate.commands.check import leniency
from curate.commands.check.leniency import Leniency
from curate.core.config import Json
from curate.core.scale import Scale
from curate.panel import position_bias, voting
from curate.panel.controls import PAIR
from curate.review.agreement import in_common
from curate.stats import agreement
from curate.stats.ratios import mean, numbered
from curate.stats.sample_estimates import Estimate, wilson
from curate.stats.tally import Floats, tally

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def judge(
    base: pl.DataFrame,
    others: Sequence[pl.DataFrame],
    people: pl.DataFrame,
    positives: pl.DataFrame,
    seed: int,
    scale: Scale,
) -> dict[str, Json]:
    """Return the figures of one judge compared with the other judges, with assessors, and with original positives.

    `base` are the judge's ratings, `others` those of each other judge: query_id, doc_id, grade (and slot). `people` has
    query_id, doc_id, grade, weight.
    """
    rated = base.drop_nulls("grade")
    relevant = int(rated["grade"].is_in(list(scale.relevant)).sum())
    joined = rest(base, others, scale)
    return {
        "rated": len(rated),
        "relevant": _plain(wilson(relevant, len(rated))),
        "position": asdict(position_bias.slots(base, seed, scale)),
        "strictness": strictness(joined, seed, scale),
        "against_panel": asdict(leniency.against(joined, seed, scale)),
        "against_people": _plain(against_people(base, people, seed, scale)),
        "legacy": legacy(base, positives, scale),
    }


def against_people(base: pl.DataFrame, people: pl.DataFrame, seed: int, scale: Scale) -> Leniency | None:
    """Return the comparison of a judge's grades with assessors'; None if they have no graded pair in common."""
    pairs = base.select(*PAIR, "grade").join(people.rename({"grade": "reference"}), on=PAIR)
    return leniency.against(pairs, seed, scale) if len(pairs.drop_nulls("grade")) else None


def rest(base: pl.DataFrame, others: Sequence[pl.DataFrame], scale: Scale) -> pl.DataFrame:
    """Return a judge's grades with a summary of the other judges': query_id, grade, reference, others.

    `reference` is the unanimous grade of the others, null if they differ or one is missing. `others` is their mean
    grade in steps of the scale, null if none has a grade.
    """
    table = base.select(*PAIR, "grade")
    names = [f"other {number}" for number in range(len(others))]
    for name, ratings in zip(names, others, strict=True):
        table = table.join(
            ratings.select(*PAIR, pl.col("grade").alias(name)), on=PAIR, how="left", maintain_order="left"
        )
    if not names:
        return table.select("query_id", "grade", reference=pl.lit(None, pl.String), others=pl.lit(None, pl.Float64))
    step_by_grade = position_bias.steps(scale)
    steps = [pl.col(name).replace_strict(step_by_grade, return_dtype=pl.Float64) for name in names]
    agreed = pl.all_horizontal(pl.col(name) == pl.col(names[0]) for name in names)
    reference = pl.when(agreed).then(names[0])
    return table.select("query_id", "grade", reference=reference, others=pl.mean_horizontal(steps))


def strictness(rows: pl.DataFrame, seed: int, scale: Scale) -> Json:
    """Return the mean difference of a judge's grade and the mean of the others, in steps; positive means lenient.

    `rows` are those of `rest`. The result has a 95 % interval.
    """
    both = rows.drop_nulls(["grade", "others"])
    above = position_bias.steps_of(both["grade"], scale) - both["others"].to_numpy()
    return _plain(mean(above, numbered(both["query_id"]), seed))


def legacy(base: pl.DataFrame, positives: pl.DataFrame, scale: Scale) -> Json:
    """Return the share of original positives that a judge finds relevant; they are noisy, so no judge fails by it."""
    graded = base.join(positives.select(PAIR), on=PAIR, how="semi").drop_nulls("grade")["grade"]
    return _plain(wilson(int(graded.is_in(list(scale.relevant)).sum()), len(graded)))


def prevalence(base: pl.DataFrame, sensitivity: Estimate | None, specificity: Estimate | None, scale: Scale) -> Json:
    """Return the share of the judge's pairs that are relevant, corrected for its sensitivity and specificity."""
    grades = base.drop_nulls("grade")["grade"]
    return _plain(
        leniency.prevalence(int(grades.is_in(list(scale.relevant)).sum()), len(grades), sensitivity, specificity)
    )


def panel(
    ratings: pl.DataFrame,
    names: Sequence[str],
    people: pl.DataFrame,
    families: Mapping[str, str | None],
    seed: int,
    scale: Scale,
) -> dict[str, Json]:
    """Return the share of unanimous grades that assessors confirm, and the figures of `in_common` on shared errors."""
    votes = voting.votes(ratings, names, scale)
    codes = voting.coded(votes, names, scale)
    human_grades = votes.select(PAIR).join(people, on=PAIR, how="left", maintain_order="left")
    human_labels = people.select(*PAIR, "weight", relevant=pl.col("grade").is_in(list(scale.relevant)))
    return {
        "unanimous_as_people": _plain(
            unanimous(codes, human_grades["grade"], human_grades["weight"].to_numpy(), scale)
        ),
        **in_common(ratings, names, human_labels, families, seed, scale).to_json(),
    }


def kappas(ratings: pl.DataFrame, names: Sequence[str], scale: Scale) -> dict[str, Json]:
    """Return Fleiss' kappa of a panel, on grades (`kappa`) and on binary labels (`kappa_cut`).

    `kappa_cut` is None on a scale without a relevance threshold.
    """
    codes = voting.codes(ratings, names, scale)
    return {
        "kappa": agreement.summary(tally(codes, len(scale.labels))).fleiss,
        "kappa_cut": agreement.summary(tally(voting.sides(codes, scale), 2)).fleiss if scale.relevant else None,
    }


def unanimous(codes: voting.Codes, people: pl.Series, weight: Floats, scale: Scale) -> Estimate | None:
    """Return the share of unanimously graded pairs to which assessors gave the same grade; None without any.

    `weight` is one over the probability with which a pair was sampled for review.
    """
    agreed = (codes[:, :1] == codes).all(axis=1) & (codes[:, 0] >= 0) & people.is_not_null().to_numpy()
    first = np.array(scale.labels)[codes[:, 0]]
    return leniency.share(weight, first == people.to_numpy(), agreed)


def _plain(figure: "DataclassInstance | None") -> Json:
    """Return a figure as a mapping, None if undefined."""
    return None if figure is None else asdict(figure)
