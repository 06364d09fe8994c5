"""Precision and kappa of the published labels of a task type's items, estimated from a sample read by assessors.

A label is right if it equals the final answer: the adjudicated one, else that of the row's first reader. Shares are
weighted by stratum to all published items.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from curate.core.config import Json
from curate.core.figures import Record, figure
from curate.review import agreement
from curate.review.agreement import (
    CheckedRow,
    PairKappas,
    SampleAlpha,
    SampleEstimate,
    WorstBounds,
    checked,
    many_open,
    rounded_estimate,
    stratum_counts,
    worst_bounds,
)
from curate.review.desk import ADJUDICATED, Desk
from curate.review.items import PRECISION, item_desks, state
from curate.review.proof import SampleReader, between_people, disagreements, people, with_panel
from curate.review.showing import row as shown_row
from curate.stats import sample_estimates
from curate.tables.kinds.benchmark_kind import BenchmarkKind, ReviewItems
from curate.view.run_figures import between


class ItemStratum(Record):
    """Items of one stratum."""

    stratum: str = figure("name of the stratum")
    size: int = figure("its items")
    read: int = figure("items that were read")
    share: SampleEstimate | None = figure("share of its labels that assessors confirm")


class ItemKappas(Record):
    """Kappas of people with the published labels, and with each other."""

    published: SampleEstimate | None = figure("kappa of assessors and published labels")
    people: Mapping[str, PairKappas] = figure("two assessors -> their kappas")


class ItemProof(Record, schema_name="of_items"):
    """What a sample of items that people read says of their published labels."""

    sample: str = figure("name of the sample")
    of: str = figure("task type of the benchmark")
    rows: int = figure("rows that were drawn")
    read: int = figure("rows that were read")
    twice: int = figure("rows that two assessors read")
    items: int = figure("published items that the sample was drawn from")
    outdated: bool = figure("whether the published items changed since they were read; then no figure is given")
    precision: SampleEstimate | None = figure("share of published labels that assessors confirm")
    strata: tuple[ItemStratum, ...] = figure("a row per stratum")
    kappa: ItemKappas = figure("Cohen's kappas of assessors with labels and with each other")
    alpha: SampleAlpha | None = figure("Krippendorff's alpha of assessors who read the same rows")
    people: Mapping[str, SampleReader] = figure("assessor -> rows read")
    adjudicated: int = figure("rows with a final answer")
    disagreements: int = figure("rows without a final answer whose answers differ from the label or from each other")
    disagreements_with_labels: int = figure("rows of `disagreements` with an answer that differs from the label")
    disagreements_between_people: int = figure("rows of `disagreements` with answers that differ from each other")
    advice: str | None = figure("what to do with the labels, in a sentence", optional=True, default=None)
    worst_case: WorstBounds | None = figure(
        "bounds of the precision for any answers to the open rows, if more than 5 % of the rows are open",
        optional=True,
        default=None,
    )


def of_kind(run: Path, kind: BenchmarkKind, items: ReviewItems) -> list[ItemProof]:
    """Return the figures of every sample of a task type's items that has answers, as `prove` does, sorted by name."""
    return [proof for review in item_desks(run, kind.table) if (proof := prove(review, items)).read]


def prove(review: Desk, items: ReviewItems) -> ItemProof:
    """Return the figures of a sample over the rows read so far; undefined ones are None."""
    rows = checked(review)
    sizes = {stratum.name: stratum.size for stratum in review.sample.design.strata}
    outdated = state(items) != review.sample.design.facts["items"]
    read = [row for row in rows if row.settled]
    used = [] if outdated else read
    counts_of = {name: stratum_counts(name, size, used, "confirmed") for name, size in sizes.items()}
    strata = tuple(
        ItemStratum(name, counts.size, counts.answered, rounded_estimate(sample_estimates.share([counts])))
        for name, counts in counts_of.items()
    )
    open_rows = disagreements(review)
    worst_case = worst_bounds(*_extremes(rows, sizes)) if used and many_open(rows) else None
    return ItemProof(
        sample=review.sample.design.name,
        of=str(review.sample.design.facts["of"]),
        rows=len(rows),
        read=len(read),
        twice=sum(row.read_twice for row in rows),
        items=sum(sizes.values()),
        outdated=outdated,
        precision=rounded_estimate(sample_estimates.share(list(counts_of.values()))),
        strata=strata,
        kappa=ItemKappas(
            agreement.of_grades([(row.stratum, row.verdict, row.settled) for row in used], sizes, review.sample.scale),
            agreement.between(review, used, sum(sizes.values())),
        ),
        alpha=agreement.alpha(review, used),
        people=people(review),
        adjudicated=sum(ADJUDICATED in row.said for row in rows),
        disagreements=len(open_rows),
        disagreements_with_labels=sum(with_panel(row) for row in open_rows),
        disagreements_between_people=sum(between_people(row) for row in open_rows),
        worst_case=worst_case,
    )


def _extremes(rows: Sequence[CheckedRow], sizes: Mapping[str, int]) -> Iterator[SampleEstimate | None]:
    """Yield the precision if people confirm the labels of all open rows, and if they confirm none of these."""
    for confirmed in (True, False):
        answers = [row if row.settled else replace(row, settled=row.verdict if confirmed else "") for row in rows]
        counts = [stratum_counts(name, size, answers, "confirmed") for name, size in sizes.items()]
        yield rounded_estimate(sample_estimates.share(counts))


def lines(proof: ItemProof) -> Iterator[dict[str, Json]]:
    """Yield the figures as table rows: figure (its name), value, low, high, answered."""
    rows: list[tuple[str, Record | None]] = [(PRECISION, proof.precision)]
    if proof.worst_case:
        rows.append(("  for any answers to the open rows", proof.worst_case))
    rows += [(f"  {stratum.stratum}", stratum.share) for stratum in proof.strata if len(proof.strata) > 1]
    rows.append(("kappa of published labels and people", proof.kappa.published))
    rows += [(f"kappa of {who}", kappas.grades) for who, kappas in proof.kappa.people.items()]
    if proof.kappa.people:
        rows.append(("alpha of all people", proof.alpha))
    for what, estimate in rows:
        yield shown_row(what, estimate)


def on_card(proofs: Sequence[ItemProof]) -> list[Json]:
    """Return one row per figure for the dataset card of a task type; assessors are not named."""
    rows: list[Json] = []
    for proof in proofs:
        sample = f"sample {proof.sample}"
        if proof.outdated:
            rows.append({"": f"{sample}: other items are published than those that people read", "figure": None})
            continue
        rows.append({"": f"{sample}: items read, of {proof.items:,}", "figure": proof.read})
        rows.append({"": f"{sample}: {PRECISION}", "figure": between(proof.precision)})
        rows += [{"": f"{sample}: {stratum.stratum}", "figure": between(stratum.share)} for stratum in proof.strata]
        rows.append({"": f"{sample}: kappa of labels and people", "figure": between(proof.kappa.published)})
        rows += [
            {
                "": f"{sample}: kappa of two people, {kappas.grades.answered:,} items",
                "figure": between(kappas.grades),
            }
            for kappas in proof.kappa.people.values()
            if kappas.grades
        ]
    return rows
