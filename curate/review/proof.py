"""Estimates for a panel from a reviewed sample: shares, recall and kappa of the whole pool, with intervals.

The answer that counts for a row is the adjudicated one, else that of the person whose row it is, else that of another
who read it. Planted controls tell how far a person can be trusted, and are in no other figure. What needs a cut to
relevant is None on a scale without one.
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


def prove(desk: Desk) -> dict[str, Json]:
    """Return the figures of a sample, as far as it was read; what is not defined is None.

    `agreement`: share of decided pairs on whose side people are. `confirmed`: the same for one verdict. `relevant`:
    share of the pairs of a verdict that decides nothing which people find relevant. `recall`: share of all relevant
    pairs of the pool that the panel found, `negative_recall` the same of those that are not relevant, `held` the share
    of all relevant pairs that is contested; the last two are None where there is no such verdict. `plain`: agreement
    among the read rows, unweighted, without contested ones.
    """
    rows, scale = checked(desk), desk.sample.scale
    sizes = {stratum.name: stratum.size for stratum in desk.sample.design.strata}
    verdict_of = {row.stratum: row.verdict for row in rows}
    read = [row for row in rows if row.settled]
    decided = [row for row in read if row.verdict in DECIDED]

    def parts(verdicts: Sequence[str], hit: str) -> list[StratumCounts]:
        names = [name for name in sizes if verdict_of.get(name) in verdicts]
        return [part(name, sizes[name], read, hit) for name in names]

    def figure(estimate: Estimate | None) -> Json:
        return shown(estimate) if scale.relevant else None

    others = [name for name in VERDICTS if name not in DECIDED]
    found, missed = parts(["relevant"], "relevant"), parts([*others, "not relevant"], "relevant")
    agreeing = sum(bool(row.confirmed) for row in decided)
    return {
        "sample": desk.sample.design.name,
        "rows": len(rows),
        "read": len(read),
        "pairs": sum(sizes.values()),
        "agreement": figure(sample_estimates.share(parts(DECIDED, "confirmed"))),
        "confirmed": {name: figure(sample_estimates.share(parts([name], "confirmed"))) for name in DECIDED},
        "relevant": {
            name: figure(sample_estimates.share(parts([name], "relevant"))) for name in others if parts([name], "")
        },
        "recall": figure(sample_estimates.recall(found, missed)),
        "negative_recall": figure(_among(parts, "not relevant", "irrelevant")),
        "held": figure(_among(parts, "contested", "relevant")),
        "plain": figure(sample_estimates.wilson(agreeing, len(decided))),
        "strata": [each | {"share": figure(share)} for each, share in _strata(sizes, verdict_of, read)],
        "scale": scale.to_json(),
        "kappa": agreement.with_people(desk, read, sizes),
        "alpha": agreement.alpha(desk, read),
        "people": people(desk),
        "adjudicated": sum(ADJUDICATED in row.said for row in rows),
        "disagreements": len(open_rows := disagreements(desk)),
        "disagreements_with_panel": sum(with_panel(row) for row in open_rows),
        "disagreements_between_people": sum(between_people(row) for row in open_rows),
    }


def _among(parts: Callable[[Sequence[str], str], list[StratumCounts]], verdict: str, hit: str) -> Estimate | None:
    """Return the share of all hits that lies in the strata of a verdict; None without such strata."""
    mine = parts([verdict], hit)
    return sample_estimates.recall(mine, parts([name for name in VERDICTS if name != verdict], hit)) if mine else None


def disagreements(desk: Desk) -> list[CheckedRow]:
    """Return the rows without a final answer in which people differ from the panel or from each other."""
    open_rows = [row for row in checked(desk) if row.settled and ADJUDICATED not in row.said]
    return [row for row in open_rows if with_panel(row) or between_people(row)]


def with_panel(row: CheckedRow) -> bool:
    """Say whether the grade that counts is on the other side than a panel that decided, or than a published label."""
    return row.confirmed is False and (row.of_items or row.verdict in DECIDED)


def between_people(row: CheckedRow) -> bool:
    """Say whether people are on both sides of the cut, or gave different grades where there is none."""
    sides = {grade in row.scale.relevant if row.scale.relevant else grade for grade in row.said.values()}
    return len(sides) > 1


def _strata(
    sizes: Mapping[str, int], verdict_of: Mapping[str, str], read: Sequence[CheckedRow]
) -> Iterator[tuple[dict[str, Json], Estimate | None]]:
    """Yield of every stratum how many pairs, how many read, and the share confirmed (or relevant, if undecided)."""
    for name, size in sizes.items():
        hit = "confirmed" if verdict_of.get(name) in DECIDED else "relevant"
        mine = part(name, size, read, hit)
        row: dict[str, Json] = {"stratum": name, "size": mine.size, "read": mine.answered, "measure": hit}
        yield row, sample_estimates.share([mine])


def people(desk: Desk) -> dict[str, Json]:
    """Return what each person has read, and the share of planted controls on whose right side they are."""
    planted = {
        row_id: answer for row_id, answer in desk.sample.survey.select("row_id", "expected").iter_rows() if answer
    }
    found: dict[str, Json] = {}
    relevant = desk.sample.scale.relevant

    def side(grade: str) -> str | bool:
        return grade in relevant if relevant else grade

    for person in desk.assessors:
        said = {row_id: kept.answer for row_id, kept in desk.said(person).items() if kept.answer}
        right = [side(said[row_id]) == side(planted[row_id]) for row_id in said if row_id in planted]
        found[person] = {
            "rows": len(desk.rows(person)),
            "read": len(said),
            "controls": shown(sample_estimates.wilson(sum(right), len(right))),
        }
    return found


def heading(proof: Mapping[str, Json]) -> Iterator[str]:
    """Yield how far a sample was read, and whose disagreements are open."""
    yield f"{proof['read']:,} of {proof['rows']:,} rows read"
    given = cast("Mapping[str, Mapping[str, int]]", proof["people"])
    people = [person for person, each in given.items() if each["read"]]  # who has read nothing disagrees with nobody
    sides = [f"{proof['disagreements_with_panel']:,} of {' and '.join(people) or 'nobody'} with the panel"]
    if len(people) > 1:
        sides.append(f"{proof['disagreements_between_people']:,} of people with each other")
    yield f"open disagreements: {proof['disagreements']:,} ({', '.join(sides)})"
