"""Precision and kappa of the published labels of a task type's items, estimated from a sample read by assessors.

A label is right if it equals the final answer: the adjudicated one, else that of the row's first reader. Shares are
weighted by stratum to all published items.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curate.core.config import Json
from curate.review import agreement
from curate.review.agreement import checked, part, shown
from curate.review.desk import ADJUDICATED, Desk
from curate.review.items import PRECISION, item_desks, state
from curate.review.proof import between_people, disagreements, people, with_panel
from curate.review.showing import row as shown_row
from curate.stats import sample_estimates
from curate.tables.kinds.benchmark_kind import BenchmarkKind, ReviewItems
from curate.view.run_figures import between

Proof = Mapping[str, Any]


def of_kind(run: Path, kind: BenchmarkKind, items: ReviewItems) -> list[dict[str, Json]]:
    """Return the figures of every sample of a task type's items that has answers, as `prove` does, sorted by name."""
    return [proof for review in item_desks(run, kind.table) if (proof := prove(review, items))["read"]]


def prove(review: Desk, items: ReviewItems) -> dict[str, Json]:
    """Return the figures of a sample over the rows read so far; undefined ones are None.

    `outdated` is whether the published items or labels changed since the sample was drawn; then no figure is defined.
    """
    rows = checked(review)
    sizes = {stratum.name: stratum.size for stratum in review.sample.design.strata}
    outdated = state(items) != review.sample.design.facts["items"]
    read = [row for row in rows if row.settled]
    used = [] if outdated else read
    counts_of = {name: part(name, size, used, "confirmed") for name, size in sizes.items()}
    strata: list[Json] = [
        {
            "stratum": name,
            "size": counts.size,
            "read": counts.answered,
            "share": shown(sample_estimates.share([counts])),
        }
        for name, counts in counts_of.items()
    ]
    open_rows = disagreements(review)
    return {
        "sample": review.sample.design.name,
        "of": review.sample.design.facts["of"],
        "rows": len(rows),
        "read": len(read),
        "twice": sum(row.read_twice for row in rows),
        "items": sum(sizes.values()),
        "outdated": outdated,
        "precision": shown(sample_estimates.share(list(counts_of.values()))),
        "strata": strata,
        "kappa": {
            "published": agreement.of_grades(
                [(row.stratum, row.verdict, row.settled) for row in used], sizes, review.sample.scale
            ),
            "people": agreement.between(review, used, sum(sizes.values())),
        },
        "alpha": agreement.alpha(review, used),
        "people": people(review),
        "adjudicated": sum(ADJUDICATED in row.said for row in rows),
        "disagreements": len(open_rows),
        "disagreements_with_labels": sum(with_panel(row) for row in open_rows),
        "disagreements_between_people": sum(between_people(row) for row in open_rows),
    }


def heading(proof: Proof) -> Iterator[str]:
    """Yield printed lines on a sample's progress and on disagreements that are not adjudicated."""
    yield f"{proof['read']:,} of {proof['rows']:,} rows read, of {proof['items']:,} items of the kind {proof['of']}"
    sides = [f"{proof['disagreements_with_labels']:,} with the published labels"]
    if sum(bool(person["read"]) for person in proof["people"].values()) > 1:
        sides.append(f"{proof['disagreements_between_people']:,} of people with each other")
    yield f"open disagreements: {proof['disagreements']:,} ({', '.join(sides)})"
    if proof["outdated"]:
        yield "the items that are published are others than those that people read, so there are no figures of them"


def lines(proof: Proof) -> Iterator[dict[str, Json]]:
    """Yield the figures as table rows: figure (its name), value, low, high, answered."""
    rows: list[tuple[str, Json]] = [(PRECISION, proof["precision"])]
    rows += [(f"  {stratum['stratum']}", stratum["share"]) for stratum in proof["strata"] if len(proof["strata"]) > 1]
    rows.append(("kappa of published labels and people", proof["kappa"]["published"]))
    rows += [(f"kappa of {who}", kappas["grades"]) for who, kappas in proof["kappa"]["people"].items()]
    if proof["kappa"]["people"]:
        rows.append(("alpha of all people", proof["alpha"]))
    for what, figure in rows:
        yield shown_row(what, figure)


def on_card(proofs: Sequence[Proof]) -> list[Json]:
    """Return one row per figure for the dataset card of a task type; assessors are not named."""
    rows: list[Json] = []
    for proof in proofs:
        sample = f"sample {proof['sample']}"
        if proof["outdated"]:
            rows.append({"": f"{sample}: other items are published than those that people read", "figure": None})
            continue
        rows.append({"": f"{sample}: items read, of {proof['items']:,}", "figure": proof["read"]})
        rows.append({"": f"{sample}: {PRECISION}", "figure": between(proof["precision"])})
        rows += [
            {"": f"{sample}: {stratum['stratum']}", "figure": between(stratum["share"])} for stratum in proof["strata"]
        ]
        rows.append({"": f"{sample}: kappa of labels and people", "figure": between(proof["kappa"]["published"])})
        rows += [
            {
                "": f"{sample}: kappa of two people, {kappas['grades']['answered']:,} items",
                "figure": between(kappas["grades"]),
            }
            for kappas in proof["kappa"]["people"].values()
            if kappas["grades"]
        ]
    return rows
