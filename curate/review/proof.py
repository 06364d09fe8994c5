"""Errors of a panel over the whole pool, estimated from a reviewed sample: shares, recall and kappa with intervals.

The final answer of a row is the adjudicated one, else that of its first reader, else that of another reader. Planted
controls only measure the reliability of each person. Figures that need a relevance threshold are None on a scale
without one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from curate.core.figures import Record, figure
from curate.core.records import VERDICTS
from curate.core.scale import Scale
from curate.panel.sampling_design import DECIDED, verdict_of
from curate.review import agreement
from curate.review.agreement import (
    CheckedRow,
    SampleAlpha,
    SampleEstimate,
    SampleKappas,
    WorstBounds,
    checked,
    filled,
    many_open,
    rounded_estimate,
    stratum_counts,
    worst_bounds,
)
from curate.review.desk import ADJUDICATED, Desk
from curate.stats import sample_estimates
from curate.stats.sample_estimates import Estimate, StratumCounts


class SampleStratum(Record, schema_name="stratum"):
    """Rows of one stratum."""

    stratum: str = figure("name of the stratum")
    size: int = figure("its pairs")
    read: int = figure("rows that were read")
    measure: str = figure("confirmed, or relevant where the panel did not decide")
    share: SampleEstimate | None = figure("share of its pairs that are confirmed or relevant, by `measure`")


class SampleScale(Record, schema_name="scale"):
    """Scale of the grades."""

    order: str = figure("nominal, ordinal or interval")
    labels: tuple[str, ...] = figure("grades, best first")
    gains: tuple[float, ...] = figure("gains of the grades", default=())
    relevant_from: str | None = figure("lowest relevant grade", default=None)
    none: str | None = figure("answer of a nominal scale for no label", optional=True, default=None)
    several: str | None = figure("separator of several labels of a nominal scale", optional=True, default=None)

    def left_out(self) -> set[str]:
        """Return the figures of the other kind of scale: a nominal one has no gains."""
        return super().left_out() | ({"gains", "relevant_from"} if self.order == "nominal" else set())


class SampleReader(Record, schema_name="person"):
    """One person's part."""

    rows: int = figure("rows to read")
    read: int = figure("rows that were read")
    controls: SampleEstimate | None = figure("share of control rows answered as expected")


class WorstCase(Record, schema_name="worst_case"):
    """Bounds of the figures, whatever the answers to the open rows will be."""

    agreement: WorstBounds | None = figure("share of the decided pairs that assessors confirm")
    confirmed: Mapping[str, WorstBounds | None] = figure("verdict of the panel -> share that assessors confirm")
    relevant: Mapping[str, WorstBounds | None] = figure("verdict without a decision -> share that is relevant")
    recall: WorstBounds | None = figure("share of all relevant pairs of the pool with the verdict relevant")


class SampleProof(Record, schema_name="report"):
    """What a sample that people read says of the labels, as far as it was read."""

    sample: str = figure("name of the sample")
    rows: int = figure("rows that were drawn")
    read: int = figure("rows that were read")
    twice: int = figure("rows that two assessors read")
    pairs: int = figure("judged pairs that the sample was drawn from")
    agreement: SampleEstimate | None = figure("share of the decided pairs that assessors confirm")
    confirmed: Mapping[str, SampleEstimate | None] = figure("verdict of the panel -> share that assessors confirm")
    relevant: Mapping[str, SampleEstimate | None] = figure(
        "verdict without a decision -> share that assessors find relevant"
    )
    recall: SampleEstimate | None = figure("share of all relevant pairs of the pool with the verdict relevant")
    negative_recall: SampleEstimate | None = figure(
        "share of all pairs that are not relevant with the verdict not relevant"
    )
    held: SampleEstimate | None = figure("share of all relevant pairs with the verdict contested")
    plain: SampleEstimate | None = figure("unweighted share of the read rows that agree with the panel")
    strata: tuple[SampleStratum, ...] = figure("a row per stratum")
    scale: SampleScale = figure("scale of the grades")
    kappa: SampleKappas = figure("Cohen's kappas of assessors with panel, judges and each other")
    alpha: SampleAlpha | None = figure("Krippendorff's alpha of assessors who read the same rows")
    people: Mapping[str, SampleReader] = figure("assessor -> rows to read and read")
    adjudicated: int = figure("rows with a final answer")
    disagreements: int = figure("rows without a final answer whose answers differ from the panel or from each other")
    disagreements_with_panel: int = figure("rows of `disagreements` with an answer that differs from the panel")
    disagreements_between_people: int = figure("rows of `disagreements` with answers that differ from each other")
    published: Mapping[str, Any] | None = figure(
        "the same estimates for the published labels; null if these are the panel's", default=None
    )
    advice: str | None = figure("what to do with the labels, in a sentence", optional=True, default=None)
    worst_case: WorstCase | None = figure(
        "bounds for any answers to the open rows, if more than 5 % of the rows are open", optional=True, default=None
    )


def prove(review: Desk) -> SampleProof:
    """Return the figures of a sample over the rows read so far; undefined ones are None.

    `negative_recall` and `held` are None if no stratum has that verdict. `published` is left to `published.prove`.
    """
    rows, scale = checked(review), review.sample.scale
    sizes = {stratum.name: stratum.size for stratum in review.sample.design.strata}
    read = [row for row in rows if row.settled]
    decided = [row for row in read if row.verdict in DECIDED]
    agreeing = sum(bool(row.confirmed) for row in decided)
    return SampleProof(
        sample=review.sample.design.name,
        rows=len(rows),
        read=len(read),
        twice=sum(row.read_twice for row in rows),
        pairs=sum(sizes.values()),
        **_shares(read, sizes, scale),
        plain=rounded_estimate(sample_estimates.wilson(agreeing, len(decided))) if scale.relevant else None,
        strata=tuple(_strata(sizes, read, scale)),
        scale=SampleScale.from_json(scale.to_json()),
        kappa=agreement.with_people(review, read, sizes),
        alpha=agreement.alpha(review, read),
        people=people(review),
        adjudicated=sum(ADJUDICATED in row.said for row in rows),
        disagreements=len(open_rows := disagreements(review)),
        disagreements_with_panel=sum(with_panel(row) for row in open_rows),
        disagreements_between_people=sum(between_people(row) for row in open_rows),
        worst_case=_worst_case(rows, sizes, scale) if read and many_open(rows) else None,
    )


def _shares(read: Sequence[CheckedRow], sizes: Mapping[str, int], scale: Scale) -> dict[str, Any]:
    """Return the fields of `SampleProof` that are shares of the pool; they are None without a relevance threshold."""

    def parts(verdicts: Sequence[str], hit: str) -> list[StratumCounts]:
        names = [name for name in sizes if verdict_of(name) in verdicts]
        return [stratum_counts(name, sizes[name], read, hit) for name in names]

    def defined(estimate: Estimate | None) -> SampleEstimate | None:
        return rounded_estimate(estimate) if scale.relevant else None

    others = [name for name in VERDICTS if name not in DECIDED]
    detected, missed = parts(["relevant"], "relevant"), parts([*others, "not relevant"], "relevant")
    return {
        "agreement": defined(sample_estimates.share(parts(DECIDED, "confirmed"))),
        "confirmed": {name: defined(sample_estimates.share(parts([name], "confirmed"))) for name in DECIDED},
        "relevant": {
            name: defined(sample_estimates.share(parts([name], "relevant"))) for name in others if parts([name], "")
        },
        "recall": defined(sample_estimates.recall(detected, missed)),
        "negative_recall": defined(_among(parts, "not relevant", "irrelevant")),
        "held": defined(_among(parts, "contested", "relevant")),
    }


def _worst_case(rows: Sequence[CheckedRow], sizes: Mapping[str, int], scale: Scale) -> WorstCase:
    """Return the bounds if people agree with the panel on all open rows, and if they contradict it on all of them.

    Every figure rises or falls with each answer, so these two cases are its extremes.
    """
    agreeing_shares, opposing_shares = (
        _shares(filled(rows, [(row.verdict == "relevant") == agree for row in rows]), sizes, scale)
        for agree in (True, False)
    )
    return WorstCase(
        agreement=worst_bounds(agreeing_shares["agreement"], opposing_shares["agreement"]),
        recall=worst_bounds(agreeing_shares["recall"], opposing_shares["recall"]),
        **{
            name: {
                verdict: worst_bounds(estimate, opposing_shares[name][verdict])
                for verdict, estimate in agreeing_shares[name].items()
            }
            for name in ("confirmed", "relevant")
        },
    )


def _among(counts_of: Callable[[Sequence[str], str], list[StratumCounts]], verdict: str, hit: str) -> Estimate | None:
    """Return the share of all pairs with the property `hit` that have this verdict; None without strata of it."""
    own_counts = counts_of([verdict], hit)
    return (
        sample_estimates.recall(own_counts, counts_of([name for name in VERDICTS if name != verdict], hit))
        if own_counts
        else None
    )


def disagreements(review: Desk) -> list[CheckedRow]:
    """Return the rows to adjudicate: assessors differ from the panel or from each other, and nobody has ruled yet."""
    open_rows = [row for row in checked(review) if row.settled and ADJUDICATED not in row.said]
    return [row for row in open_rows if with_panel(row) or between_people(row)]


def with_panel(row: CheckedRow) -> bool:
    """Return whether the final grade contradicts the panel's decision, or the published label."""
    return row.confirmed is False and (row.of_items or row.verdict in DECIDED)


def between_people(row: CheckedRow) -> bool:
    """Return whether assessors differ on relevance, or on the grade if the scale has no relevance threshold."""
    return not row.scale.agree(row.said.values())


def _strata(sizes: Mapping[str, int], read: Sequence[CheckedRow], scale: Scale) -> Iterator[SampleStratum]:
    for name, size in sizes.items():
        hit = "confirmed" if verdict_of(name) in DECIDED else "relevant"
        counts = stratum_counts(name, size, read, hit)
        share = rounded_estimate(sample_estimates.share([counts])) if scale.relevant else None
        yield SampleStratum(name, counts.size, counts.answered, hit, share)


def people(review: Desk) -> dict[str, SampleReader]:
    """Return person -> rows, rows read, and the share of planted controls answered as expected.

    With a relevance threshold, an answer on the same side of it as the expected one is right.
    """
    planted = {
        row_id: answer for row_id, answer in review.sample.survey.select("row_id", "expected").iter_rows() if answer
    }
    figures: dict[str, SampleReader] = {}
    relevant = review.sample.scale.relevant

    def side(grade: str) -> str | bool:
        return grade in relevant if relevant else grade

    for person in review.assessors:
        grades = {row_id: stored.answer for row_id, stored in review.said(person).items() if stored.answer}
        right = [side(grades[row_id]) == side(planted[row_id]) for row_id in grades if row_id in planted]
        controls = rounded_estimate(sample_estimates.wilson(sum(right), len(right)))
        figures[person] = SampleReader(len(review.rows(person)), len(grades), controls)
    return figures
