"""Estimates for a panel from a reviewed sample: shares, recall and kappa of the whole pool, with intervals.

The answer that counts for a row is the adjudicated one, else that of the person whose row it is, else that of another
who read it. Planted controls tell how far a person can be trusted, and are in no other figure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import cast

from curate.core.config import Json
from curate.core.records import CUT, GRADES, VERDICTS
from curate.panel import sampling_design
from curate.panel.sampling_design import DECIDED
from curate.review.answers import ADJUDICATED
from curate.review.desk import Desk
from curate.stats import agreement, bootstrap, sample_estimates
from curate.stats.agreement import Scheme
from curate.stats.sample_estimates import Estimate, StratumCounts
from curate.stats.tally import tally

_PLACE: Mapping[str, int] = {grade: place for place, grade in enumerate(GRADES)}


@dataclass(frozen=True)
class CheckedRow:
    """A drawn row: what the panel said, and what every person did."""

    row_id: str
    ids: Sequence[str]
    stratum: str
    verdict: str
    votes: Mapping[str, str | None]
    said: Mapping[str, str]
    """Person -> grade."""
    settled: str | None
    """The grade that counts; None if nobody has given one."""

    @property
    def relevant(self) -> bool:
        """Say whether the grade that counts makes the passage relevant."""
        return self.settled in CUT

    @property
    def confirmed(self) -> bool:
        """Say whether people and a panel that decided are on the same side."""
        return self.relevant == (self.verdict == "relevant")


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
        )
        for row, given, settled in desk.answered()
        if row["expected"] is None
    ]


def prove(desk: Desk) -> dict[str, Json]:
    """Return the figures of a sample, as far as it was read; what is not defined is None.

    `agreement`: share of decided pairs on whose side people are. `confirmed`: the same for one verdict. `relevant`:
    share of the pairs of a verdict that decides nothing which people find relevant. `recall`: share of all relevant
    pairs of the pool that the panel found. `plain`: agreement among the read rows, unweighted, without contested ones.
    """
    rows = checked(desk)
    sizes = {stratum.name: stratum.size for stratum in desk.sample.design.strata}
    verdict_of = {row.stratum: row.verdict for row in rows}
    read = [row for row in rows if row.settled]
    decided = [row for row in read if row.verdict in DECIDED]

    def parts(verdicts: Sequence[str], hit: str) -> list[StratumCounts]:
        names = [name for name in sizes if verdict_of.get(name) in verdicts]
        return [part(name, sizes[name], read, hit) for name in names]

    others = [name for name in VERDICTS if name not in DECIDED]
    found, missed = parts(["relevant"], "relevant"), parts([*others, "not relevant"], "relevant")
    agreeing = sum(row.confirmed for row in decided)
    return {
        "sample": desk.sample.design.name,
        "rows": len(rows),
        "read": len(read),
        "pairs": sum(sizes.values()),
        "agreement": shown(sample_estimates.share(parts(DECIDED, "confirmed"))),
        "confirmed": {name: shown(sample_estimates.share(parts([name], "confirmed"))) for name in DECIDED},
        "relevant": {
            name: shown(sample_estimates.share(parts([name], "relevant"))) for name in others if parts([name], "")
        },
        "recall": shown(sample_estimates.recall(found, missed)),
        "plain": shown(sample_estimates.wilson(agreeing, len(decided))),
        "strata": _strata(sizes, verdict_of, read),
        "kappa": _kappas(desk, read, sizes),
        "alpha": _alpha(desk, read),
        "people": _people(desk),
        "adjudicated": sum(ADJUDICATED in row.said for row in rows),
        "disagreements": len(open_rows := disagreements(desk)),
        "disagreements_with_panel": sum(with_panel(row) for row in open_rows),
        "disagreements_between_people": sum(between_people(row) for row in open_rows),
    }


def disagreements(desk: Desk) -> list[CheckedRow]:
    """Return the rows without a final answer in which people differ from the panel or from each other."""
    open_rows = [row for row in checked(desk) if row.settled and ADJUDICATED not in row.said]
    return [row for row in open_rows if with_panel(row) or between_people(row)]


def with_panel(row: CheckedRow) -> bool:
    """Say whether the grade that counts is on the other side than a panel that decided."""
    return row.verdict in DECIDED and not row.confirmed


def between_people(row: CheckedRow) -> bool:
    """Say whether people are on both sides."""
    return len({grade in CUT for grade in row.said.values()}) > 1


def part(name: str, size: int, read: Sequence[CheckedRow], hit: str) -> StratumCounts:
    """Return a stratum as far as it was read; hits are the rows of which the property `hit` is true."""
    mine = [row for row in read if row.stratum == name]
    return StratumCounts(size, len(mine), sum(bool(getattr(row, hit)) for row in mine) if hit else 0)


def _strata(sizes: Mapping[str, int], verdict_of: Mapping[str, str], read: Sequence[CheckedRow]) -> list[Json]:
    """Return a row per stratum: how many pairs, how many read, and the share confirmed (or relevant, if undecided)."""
    hits = {name: "confirmed" if verdict_of.get(name) in DECIDED else "relevant" for name in sizes}
    parts = {name: part(name, sizes[name], read, hit) for name, hit in hits.items()}
    return [
        {
            "stratum": name,
            "size": mine.size,
            "read": mine.answered,
            "measure": hits[name],
            "share": shown(sample_estimates.share([mine])),
        }
        for name, mine in parts.items()
    ]


def _kappas(desk: Desk, read: Sequence[CheckedRow], sizes: Mapping[str, int]) -> dict[str, Json]:
    """Return Cohen's kappa of people with the panel and with every judge in the pool, and of people with each other.

    Those of two people are of the rows which both read, not weighted: small strata seldom hold one of them. Judges come
    in the order in which they agree with people at the cut, the best first.
    """
    decided = [row for row in read if row.verdict in DECIDED]
    panel = [(row.stratum, int(row.verdict != "relevant"), int(not row.relevant)) for row in decided]
    ruled = {name: size for name, size in sizes.items() if name in sampling_design.decided(sizes)}
    judges: dict[str, dict[str, Json]] = {}
    for judge in sorted({name for row in read for name in row.votes}):
        five = [(row.stratum, _place(row.votes.get(judge)), _place(row.settled)) for row in read]
        cut = [(row.stratum, _side(row.votes.get(judge)), _side(row.settled)) for row in read]
        judges[judge] = {
            "grades": _kappa(five, sizes, 5, "quadratic"),
            "cut": _kappa(cut, sizes, 2, "nominal"),
        }
    ranked = dict(sorted(judges.items(), key=lambda each: _value(each[1]["cut"]), reverse=True))
    between: dict[str, Json] = {}
    for one, other in combinations(desk.assessors, 2):
        both = [(row.said[one], row.said[other]) for row in read if one in row.said and other in row.said]
        if both:
            whole = {"all": sum(sizes.values())}
            between[f"{one}, {other}"] = {
                "grades": _kappa([("all", _place(a), _place(b)) for a, b in both], whole, 5, "quadratic"),
                "cut": _kappa([("all", _side(a), _side(b)) for a, b in both], whole, 2, "nominal"),
            }
    return {"panel": _kappa(panel, ruled, 2, "nominal"), "judges": cast("Json", ranked), "people": between}


def _alpha(desk: Desk, read: Sequence[CheckedRow]) -> Json:
    """Return Krippendorff's ordinal alpha of all people's grades, on the rows that two or more read; not weighted.

    Its 95 % interval resamples queries. None where fewer than two people read one row, or all gave one grade.
    """
    twice = [row for row in read if len(row.said.keys() - {ADJUDICATED}) > 1]
    if not twice:
        return None
    ratings = tally([[_place(row.said.get(person)) for person in desk.assessors] for row in twice], len(GRADES))
    queries, measure = [row.ids[0] for row in twice], partial(agreement.alpha, level="ordinal")
    value = agreement.scalar(measure(ratings.sums()))
    if value is None:
        return None
    found = bootstrap.interval(ratings.by_cluster(queries), measure, seed=desk.sample.design.seed)
    low, high = (round(found.low, 4), round(found.high, 4)) if found else (None, None)
    return {"value": round(value, 4), "low": low, "high": high, "answered": len(twice), "queries": len(set(queries))}


def _kappa(rows: Sequence[tuple[str, int, int]], sizes: Mapping[str, int], categories: int, scheme: Scheme) -> Json:
    if not rows:
        return None
    strata, first, second = zip(*rows, strict=True)
    return shown(sample_estimates.kappa(strata, first, second, sizes, categories, scheme=scheme))


def _value(figure: Json) -> float:
    """Return the value of a figure to sort by, less than every kappa for one that is not defined."""
    return cast("Mapping[str, float]", figure)["value"] if figure else -2.0


def _place(grade: str | None) -> int:
    """Return where a grade stands on the scale, from 0; -1 for none, which leaves a row in its stratum."""
    return -1 if grade is None else _PLACE[grade]


def _side(grade: str | None) -> int:
    """Return 0 for a grade that makes a passage relevant, else 1; -1 for none."""
    return -1 if grade is None else int(grade not in CUT)


def _people(desk: Desk) -> dict[str, Json]:
    """Return what each person has read, and the share of planted controls on whose right side they are."""
    planted = {
        row_id: answer for row_id, answer in desk.sample.survey.select("row_id", "expected").iter_rows() if answer
    }
    people: dict[str, Json] = {}
    for person in desk.assessors:
        said = {row_id: kept.answer for row_id, kept in desk.said(person).items() if kept.answer}
        right = [(said[row_id] in CUT) == (planted[row_id] in CUT) for row_id in said if row_id in planted]
        people[person] = {
            "rows": len(desk.rows(person)),
            "read": len(said),
            "controls": shown(sample_estimates.wilson(sum(right), len(right))),
        }
    return people


def shown(figure: Estimate | None) -> dict[str, Json] | None:
    """Return a figure's value, bounds and number of answers for JSON, rounded; None where it is not defined."""
    if figure is None:
        return None
    return {**figure.bounds(4), "answered": figure.answered}


def heading(proof: Mapping[str, Json]) -> Iterator[str]:
    """Yield how far a sample was read, and whose disagreements are open."""
    yield f"{proof['read']:,} of {proof['rows']:,} rows read"
    given = cast("Mapping[str, Mapping[str, int]]", proof["people"])
    people = [person for person, each in given.items() if each["read"]]  # who has read nothing disagrees with nobody
    sides = [f"{proof['disagreements_with_panel']:,} of {' and '.join(people) or 'nobody'} with the panel"]
    if len(people) > 1:
        sides.append(f"{proof['disagreements_between_people']:,} of people with each other")
    yield f"open disagreements: {proof['disagreements']:,} ({', '.join(sides)})"
