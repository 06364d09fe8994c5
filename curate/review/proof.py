"""Errors of a panel over the whole pool, estimated from a reviewed sample: shares, recall and kappa with intervals.

The final answer of a row is the adjudicated one, else that of its first reader, else that of another reader. Planted
controls only measure the reliability of each person. Figures that need a relevance threshold are None on a scale
without one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from curate.core.config import Json
from curate.core.records import VERDICTS
from curate.panel.sampling_design import DECIDED
from curate.review import agreement
from curate.review.agreement import CheckedRow, checked, part, shown
from curate.review.desk import ADJUDICATED, Desk
from curate.stats import sample_estimates
from curate.stats.sample_estimates import Estimate, StratumCounts


def prove(review: Desk) -> dict[str, Json]:
    """Return the figures of a sample over the rows read so far; undefined ones are None.

    `agreement`: share of decided pairs that assessors confirm. `confirmed`: the same per verdict. `relevant`: per
    undecided verdict, the share of its pairs that assessors call relevant. `recall`: share of all relevant pairs of the
    pool with the verdict `relevant`. `negative_recall`: the same for pairs that are not relevant. `held`: share of all
    relevant pairs that are contested. The last two are None if no stratum has that verdict. `plain`: unweighted
    agreement on the read rows with a decided verdict. `twice`: number of rows that two assessors read.
    """
    rows, scale = checked(review), review.sample.scale
    sizes = {stratum.name: stratum.size for stratum in review.sample.design.strata}
    verdict_of = {row.stratum: row.verdict for row in rows}
    read = [row for row in rows if row.settled]
    decided = [row for row in read if row.verdict in DECIDED]

    def parts(verdicts: Sequence[str], hit: str) -> list[StratumCounts]:
        names = [name for name in sizes if verdict_of.get(name) in verdicts]
        return [part(name, sizes[name], read, hit) for name in names]

    def figure(estimate: Estimate | None) -> Json:
        return shown(estimate) if scale.relevant else None

    others = [name for name in VERDICTS if name not in DECIDED]
    detected, missed = parts(["relevant"], "relevant"), parts([*others, "not relevant"], "relevant")
    agreeing = sum(bool(row.confirmed) for row in decided)
    return {
        "sample": review.sample.design.name,
        "rows": len(rows),
        "read": len(read),
        "twice": sum(row.read_twice for row in rows),
        "pairs": sum(sizes.values()),
        "agreement": figure(sample_estimates.share(parts(DECIDED, "confirmed"))),
        "confirmed": {name: figure(sample_estimates.share(parts([name], "confirmed"))) for name in DECIDED},
        "relevant": {
            name: figure(sample_estimates.share(parts([name], "relevant"))) for name in others if parts([name], "")
        },
        "recall": figure(sample_estimates.recall(detected, missed)),
        "negative_recall": figure(_among(parts, "not relevant", "irrelevant")),
        "held": figure(_among(parts, "contested", "relevant")),
        "plain": figure(sample_estimates.wilson(agreeing, len(decided))),
        "strata": [row | {"share": figure(share)} for row, share in _strata(sizes, verdict_of, read)],
        "scale": scale.to_json(),
        "kappa": agreement.with_people(review, read, sizes),
        "alpha": agreement.alpha(review, read),
        "people": people(review),
        "adjudicated": sum(ADJUDICATED in row.said for row in rows),
        "disagreements": len(open_rows := disagreements(review)),
        "disagreements_with_panel": sum(with_panel(row) for row in open_rows),
        "disagreements_between_people": sum(between_people(row) for row in open_rows),
    }


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
    sides = {grade in row.scale.relevant if row.scale.relevant else grade for grade in row.said.values()}
    return len(sides) > 1


def _strata(
    sizes: Mapping[str, int], verdict_of: Mapping[str, str], read: Sequence[CheckedRow]
) -> Iterator[tuple[dict[str, Json], Estimate | None]]:
    """Yield each stratum's size and number of read rows, and its confirmed (if undecided: relevant) share."""
    for name, size in sizes.items():
        hit = "confirmed" if verdict_of.get(name) in DECIDED else "relevant"
        counts = part(name, size, read, hit)
        row: dict[str, Json] = {"stratum": name, "size": counts.size, "read": counts.answered, "measure": hit}
        yield row, sample_estimates.share([counts])


def people(review: Desk) -> dict[str, Json]:
    """Return person -> rows, rows read, and the share of planted controls answered as expected.

    With a relevance threshold, an answer on the same side of it as the expected one is right.
    """
    planted = {
        row_id: answer for row_id, answer in review.sample.survey.select("row_id", "expected").iter_rows() if answer
    }
    figures: dict[str, Json] = {}
    relevant = review.sample.scale.relevant

    def side(grade: str) -> str | bool:
        return grade in relevant if relevant else grade

    for person in review.assessors:
        grades = {row_id: stored.answer for row_id, stored in review.said(person).items() if stored.answer}
        right = [side(grades[row_id]) == side(planted[row_id]) for row_id in grades if row_id in planted]
        figures[person] = {
            "rows": len(review.rows(person)),
            "read": len(grades),
            "controls": shown(sample_estimates.wilson(sum(right), len(right))),
        }
    return figures


def heading(proof: Mapping[str, Json]) -> Iterator[str]:
    """Yield printed lines on a sample's progress and on disagreements that are not adjudicated."""
    yield f"{proof['read']:,} of {proof['rows']:,} rows read"
    figures_of = cast("Mapping[str, Mapping[str, int]]", proof["people"])
    people = [
        person for person, figures in figures_of.items() if figures["read"]
    ]  # without those who have read nothing
    sides = [f"{proof['disagreements_with_panel']:,} of {' and '.join(people) or 'nobody'} with the panel"]
    if len(people) > 1:
        sides.append(f"{proof['disagreements_between_people']:,} of people with each other")
    yield f"open disagreements: {proof['disagreements']:,} ({', '.join(sides)})"
