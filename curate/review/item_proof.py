"""Estimates for the published labels of a kind's items from a sample that people read: precision and kappa.

An item's label is right where the answer that counts is the same: the adjudicated one, else that of the person whose
row it is. Shares are weighted by stratum to all items that are published.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curate.core.config import Json
from curate.review import agreement
from curate.review.agreement import CheckedRow, checked, part, shown
from curate.review.desk import ADJUDICATED, Desk
from curate.review.items import PRECISION, item_desks, state
from curate.review.proof import between_people, disagreements, people, with_panel
from curate.review.showing import row as shown_row
from curate.stats import sample_estimates
from curate.tables.kinds.benchmark_kind import BenchmarkKind, ReviewItems
from curate.view.run_figures import between

Proof = Mapping[str, Any]


def of_kind(run: Path, kind: BenchmarkKind, items: ReviewItems) -> list[dict[str, Json]]:
    """Return the figures of every sample of the items in a kind's table of which something was read, by name."""
    return [proof for desk in item_desks(run, kind.table) if (proof := prove(desk, items))["read"]]


def prove(desk: Desk, items: ReviewItems) -> dict[str, Json]:
    """Return the figures of a sample as far as it was read; what is not defined is None.

    `outdated` says that other items or labels than those that people read are published now: then there are none.
    """
    rows = checked(desk)
    sizes = {stratum.name: stratum.size for stratum in desk.sample.design.strata}
    outdated = state(items) != desk.sample.design.facts["items"]
    read = [row for row in rows if row.settled]
    used = [] if outdated else read
    parts = {name: part(name, size, used, "confirmed") for name, size in sizes.items()}
    strata: list[Json] = [
        {"stratum": name, "size": each.size, "read": each.answered, "share": shown(sample_estimates.share([each]))}
        for name, each in parts.items()
    ]
    open_rows = disagreements(desk)
    return {
        "sample": desk.sample.design.name,
        "of": desk.sample.design.facts["of"],
        "rows": len(rows),
        "read": len(read),
        "items": sum(sizes.values()),
        "outdated": outdated,
        "precision": shown(sample_estimates.share(list(parts.values()))),
        "strata": strata,
        "kappa": {"published": _kappa(used, sizes, desk), "people": agreement.between(desk, used, sum(sizes.values()))},
        "alpha": agreement.alpha(desk, used),
        "people": people(desk),
        "adjudicated": sum(ADJUDICATED in row.said for row in rows),
        "disagreements": len(open_rows),
        "disagreements_with_labels": sum(with_panel(row) for row in open_rows),
        "disagreements_between_people": sum(between_people(row) for row in open_rows),
    }


def _kappa(read: Sequence[CheckedRow], sizes: Mapping[str, int], desk: Desk) -> Json:
    """Return Cohen's kappa of published labels and people; None while a stratum was not read."""
    pairs = [(row.stratum, row.verdict, row.settled) for row in read]
    return agreement.of_grades(pairs, sizes, desk.sample.scale)


def heading(proof: Proof) -> Iterator[str]:
    """Yield how far a sample was read, and whose disagreements are open."""
    yield f"{proof['read']:,} of {proof['rows']:,} rows read, of {proof['items']:,} items of the kind {proof['of']}"
    sides = [f"{proof['disagreements_with_labels']:,} with the published labels"]
    if sum(bool(each["read"]) for each in proof["people"].values()) > 1:
        sides.append(f"{proof['disagreements_between_people']:,} of people with each other")
    yield f"open disagreements: {proof['disagreements']:,} ({', '.join(sides)})"
    if proof["outdated"]:
        yield "the items that are published are others than those that people read, so there are no figures of them"


def lines(proof: Proof) -> Iterator[dict[str, Json]]:
    """Yield the figures as rows for people: what, value, low, high, answers."""
    named: list[tuple[str, Json]] = [(PRECISION, proof["precision"])]
    named += [(f"  {each['stratum']}", each["share"]) for each in proof["strata"] if len(proof["strata"]) > 1]
    named.append(("kappa of published labels and people", proof["kappa"]["published"]))
    named += [(f"kappa of {who}", each["grades"]) for who, each in proof["kappa"]["people"].items()]
    if proof["kappa"]["people"]:
        named.append(("alpha of all people", proof["alpha"]))
    for what, figure in named:
        yield shown_row(what, figure)


def on_card(proofs: Sequence[Proof]) -> list[Json]:
    """Return a row per figure for the card of a kind; people are not named."""
    rows: list[Json] = []
    for proof in proofs:
        sample = f"sample {proof['sample']}"
        if proof["outdated"]:
            rows.append({"": f"{sample}: other items are published than those that people read", "figure": None})
            continue
        rows.append({"": f"{sample}: items read, of {proof['items']:,}", "figure": proof["read"]})
        rows.append({"": f"{sample}: {PRECISION}", "figure": between(proof["precision"])})
        rows += [{"": f"{sample}: {each['stratum']}", "figure": between(each["share"])} for each in proof["strata"]]
        rows.append({"": f"{sample}: kappa of labels and people", "figure": between(proof["kappa"]["published"])})
        rows += [
            {
                "": f"{sample}: kappa of two people, {each['grades']['answered']:,} items",
                "figure": between(each["grades"]),
            }
            for each in proof["kappa"]["people"].values()
            if each["grades"]
        ]
    return rows
