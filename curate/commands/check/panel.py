"""Diagnostics of judges from existing ratings of a panel: strictness, accuracy, shared errors; nothing is sent."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from curate.commands.check import leniency
from curate.commands.check.leniency import Leniency, Prevalence
from curate.core.figures import Record, figure
from curate.core.scale import Scale
from curate.panel import position_bias, voting
from curate.panel.controls import PAIR, Accuracy
from curate.panel.judge_dependence import Dependence
from curate.panel.position_bias import Slots
from curate.review.agreement import in_common
from curate.stats import agreement
from curate.stats.ratios import Ratio, mean, numbered
from curate.stats.sample_estimates import Estimate, wilson
from curate.stats.tally import Floats, tally


class JudgeFigures(Record, schema_name="judge"):
    """Figures of one judge, compared with the other judges, with people, and with the given qrels."""

    rated: int = figure("pairs with a grade")
    relevant: Estimate | None = figure("share of the graded pairs that it finds relevant")
    position: Slots = figure("dependence of its grades on the position in the prompt")
    strictness: Ratio | None = figure(
        "mean difference to the other judges' grades, in steps of the scale; positive means lenient"
    )
    against_panel: Leniency | None = figure("comparison with the unanimous grades of the other judges")
    against_people: Leniency | None = figure("comparison with assessors' grades; null without a common pair")
    legacy: Estimate | None = figure("share of the original positives that it finds relevant")
    heuristic: bool = figure("whether the judge is a heuristic", default=False)
    controls: Accuracy | None = figure("accuracy on control pairs; null if not measured", default=None)
    prevalence: Prevalence | None = figure(
        "share of relevant pairs, corrected for the judge's errors; null if these are unknown", default=None
    )
    again: Any = figure("repeated prompts by form -> changes of the grades", default=None)


class PanelFigures(Dependence, schema_name="dependence"):
    """What the judges of a panel have in common, and how far their unanimous grades are those of people."""

    def left_out(self) -> set[str]:
        """Return the warnings, which are those of the answer."""
        return {"warnings"}


class GateFigures(Record, schema_name="gate"):
    """Which judges passed their controls."""

    floor: float = figure("lower bound that the accuracy on controls must reach")
    least: int = figure("controls of each kind that are needed at least")
    failed: tuple[str, ...] | None = figure("judges that did not pass; null if nothing was measured")
    allow_weak_judges: bool = figure("whether the pipeline continues with judges that did not pass")
    untested: tuple[str, ...] = figure("families of adversarial controls that could not be made, a sentence each")


class JudgesFigures(Record, schema_name="figures"):
    """Figures of the judges of a run, or the plan (--plan); an error if judges did not pass the gate."""

    judges: Mapping[str, JudgeFigures] = figure("judge -> its figures")
    panel: PanelFigures = figure("dependence of the judges")
    gate: GateFigures = figure("result of the qualification test")
    people: int = figure("pairs with assessors' grades")
    queries: int = figure("queries with a pool")
    made_from: str | None = figure(
        "identifies the tables that it saw, so that the figures are not shown as those of others"
    )
    warnings: tuple[str, ...] = figure("warnings on judges and panel", default=())


def judge(
    base: pl.DataFrame,
    others: Sequence[pl.DataFrame],
    people: pl.DataFrame,
    positives: pl.DataFrame,
    seed: int,
    scale: Scale,
) -> JudgeFigures:
    """Return the figures of one judge that need nothing but ratings.

    `base` are the judge's ratings, `others` those of each other judge: query_id, doc_id, grade (and slot). `people` has
    query_id, doc_id, grade, weight.
    """
    rated = base.drop_nulls("grade")
    relevant = int(rated["grade"].is_in(list(scale.relevant)).sum())
    joined = with_other_judges(base, others, scale)
    return JudgeFigures(
        rated=len(rated),
        relevant=wilson(relevant, len(rated)),
        position=position_bias.slots(base, seed, scale),
        strictness=strictness(joined, seed, scale),
        against_panel=leniency.against(joined, seed, scale),
        against_people=against_people(base, people, seed, scale),
        legacy=legacy(base, positives, scale),
    )


def against_people(base: pl.DataFrame, people: pl.DataFrame, seed: int, scale: Scale) -> Leniency | None:
    """Return the comparison of a judge's grades with assessors'; None if they have no graded pair in common."""
    pairs = base.select(*PAIR, "grade").join(people.rename({"grade": "reference"}), on=PAIR)
    return leniency.against(pairs, seed, scale) if len(pairs.drop_nulls("grade")) else None


def with_other_judges(base: pl.DataFrame, others: Sequence[pl.DataFrame], scale: Scale) -> pl.DataFrame:
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


def strictness(rows: pl.DataFrame, seed: int, scale: Scale) -> Ratio | None:
    """Return the mean difference of a judge's grade and the mean of the others, in steps; positive means lenient.

    `rows` are those of `with_other_judges`. The result has a 95 % interval.
    """
    both = rows.drop_nulls(["grade", "others"])
    above = position_bias.steps_of(both["grade"], scale) - both["others"].to_numpy()
    return mean(above, numbered(both["query_id"]), seed)


def legacy(base: pl.DataFrame, positives: pl.DataFrame, scale: Scale) -> Estimate | None:
    """Return the share of original positives that a judge finds relevant; they are noisy, so no judge fails by it."""
    graded = base.join(positives.select(PAIR), on=PAIR, how="semi").drop_nulls("grade")["grade"]
    return wilson(int(graded.is_in(list(scale.relevant)).sum()), len(graded))


def prevalence(
    base: pl.DataFrame, sensitivity: Estimate | None, specificity: Estimate | None, scale: Scale
) -> Prevalence | None:
    """Return the share of the judge's pairs that are relevant, corrected for its sensitivity and specificity."""
    grades = base.drop_nulls("grade")["grade"]
    return leniency.prevalence(int(grades.is_in(list(scale.relevant)).sum()), len(grades), sensitivity, specificity)


def panel(
    ratings: pl.DataFrame,
    names: Sequence[str],
    people: pl.DataFrame,
    families: Mapping[str, str | None],
    seed: int,
    scale: Scale,
) -> PanelFigures:
    """Return the share of unanimous grades that assessors confirm, and the figures of `in_common` on shared errors.

    `kappa` and `kappa_cut` are None: see `kappas`.
    """
    votes = voting.votes(ratings, names, scale)
    codes = voting.coded(votes, names, scale)
    human_grades = votes.select(PAIR).join(people, on=PAIR, how="left", maintain_order="left")
    human_labels = people.select(*PAIR, "weight", relevant=pl.col("grade").is_in(list(scale.relevant)))
    common = vars(in_common(ratings, names, human_labels, families, seed, scale))
    agreed = unanimous(codes, human_grades["grade"], human_grades["weight"].to_numpy(), scale)
    return PanelFigures(**common | {"unanimous_as_people": agreed})


def kappas(ratings: pl.DataFrame, names: Sequence[str], scale: Scale) -> tuple[float | None, float | None]:
    """Return Fleiss' kappa of a panel, on grades and on binary labels.

    The second is None on a scale without a relevance threshold.
    """
    codes = voting.codes(ratings, names, scale)
    return (
        agreement.summary(tally(codes, len(scale.labels))).fleiss,
        agreement.summary(tally(voting.sides(codes, scale), 2)).fleiss if scale.relevant else None,
    )


def unanimous(codes: voting.Codes, people: pl.Series, weight: Floats, scale: Scale) -> Estimate | None:
    """Return the share of unanimously graded pairs to which assessors gave the same grade; None without any.

    `weight` is one over the probability with which a pair was sampled for review.
    """
    agreed = (codes[:, :1] == codes).all(axis=1) & (codes[:, 0] >= 0) & people.is_not_null().to_numpy()
    first = np.array(scale.labels)[codes[:, 0]]
    return leniency.share(weight, first == people.to_numpy(), agreed)
