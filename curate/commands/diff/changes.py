"""Tables of kinds whose labels are no verdicts on documents (sts, classification, ...), compared row by row."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.commands.diff.versions import LabelVersion
from curate.core.config import Json
from curate.panel.voting import ACCEPTED, EXPERTS, PAIR, SETTLED
from curate.pipeline.foreign_files import is_run
from curate.runs import coverage
from curate.runs.coverage import Rankings, Relevant
from curate.stats.bootstrap import DIGITS, Figure
from curate.stats.rank_correlation import tau_ap
from curate.tables.exporters.reading import own_kinds

Rows = Mapping[tuple[str, str], Counter[str]]
"""Kind and table -> its rows as text, each with how often it stands there."""


def compared(before: Path, after: Path) -> list[dict[str, Json]]:
    """Return a row per table that differs: rows on both sides, and those of each alone; as both were last exported.

    Empty unless both have an export in mteb's format, for only that one holds such tables.
    """
    one, other = _rows(before), _rows(after)
    if one is None or other is None:
        return []
    none: Counter[str] = Counter()
    found = {key: (one.get(key, none), other.get(key, none)) for key in sorted({*one, *other})}
    return [
        {
            "kind": kind,
            "table": table,
            "both": (left & right).total(),
            "before_only": (left - right).total(),
            "after_only": (right - left).total(),
        }
        for (kind, table), (left, right) in found.items()
        if left != right
    ]


def _rows(place: Path) -> Rows | None:
    folders = (place / "export" / "mteb",) if is_run(place) else (place, place / "mteb")
    folder = next((folder for folder in folders if (folder / "tasks.py").is_file()), None)
    if folder is None:
        return None
    return {
        (kind, name): Counter(map(str, table.iter_rows()))
        for kind, tables in own_kinds(folder).items()
        for name, table in tables.items()
    }


# What changed labels do to systems: nDCG@10, ranks and holes under two versions' labels, and tau-b of the orders.

DEPTH = 10
TIE = 9
"""Digits by which means must differ for two systems to have different ranks."""


def effects(before: LabelVersion, after: LabelVersion, files: pl.DataFrame, seed: int) -> dict[str, Json] | None:
    """Return the systems' scores under both versions' labels; None if no ranking is at hand.

    Systems are the retrievers of both pools and those of run files (`files`, a table `rankings`). `ndcg_before`,
    `ndcg_after` and `change` are over the queries that have a relevant document in both; `own_before` and `own_after`
    over all that have one in the version itself. A system that one version alone ranked has that ranking under both.
    """
    sides = [_lists(each.rankings, files) for each in (before, after)]
    names = sorted(sides[0].keys() | sides[1].keys())
    if not names:
        return None
    one, other = ({name: side.get(name, rest.get(name, {})) for name in names} for side, rest in (sides, sides[::-1]))
    labels = [coverage.labels(each.verdicts.filter(pl.col("verdict") == "relevant")) for each in (before, after)]
    both = {query: labels[0][query] for query in sorted(labels[0].keys() & labels[1].keys())}
    scores = coverage.scores(one, labels[0], both), coverage.scores(other, labels[1], both)
    figures = coverage.compared(*scores, seed) if both else [Figure(None)] * (3 * len(names) + 1)
    count = len(names)
    ranks = [_ranks([each.value for each in part]) for part in (figures[:count], figures[count : 2 * count])]
    judged = [_pairs(each) for each in (before, after)]
    rows: list[Json] = [
        {
            "system": name,
            "ranking": _whose(name, sides),
            "ndcg_before": figures[at].shown(),
            "ndcg_after": figures[count + at].shown(),
            "change": figures[2 * count + at].shown(),
            "rank_before": ranks[0][at],
            "rank_after": ranks[1][at],
            "own_before": _mean(one[name], labels[0]),
            "own_after": _mean(other[name], labels[1]),
            "holes_before": _holes(one[name], before.queries, judged[0]),
            "holes_after": _holes(other[name], after.queries, judged[1]),
        }
        for at, name in enumerate(names)
    ]
    rows.sort(key=lambda row: (row["rank_after"] is None, row["rank_after"], row["system"]))  # type: ignore[index, call-overload]
    counted = {"both": len(both), "before": len(labels[0]), "after": len(labels[1])}
    means = [
        {name: each.value for name, each in zip(names, part, strict=True) if each.value is not None}
        for part in (figures[:count], figures[count : 2 * count])
    ]
    above = None if figures[-1].value is None else tau_ap(*means)
    return {
        "queries": {**counted},
        "systems": rows,
        "tau": figures[-1].shown(),
        "tau_ap": None if above is None else round(above, DIGITS),
    }


def _lists(rankings: pl.DataFrame | None, files: pl.DataFrame) -> dict[str, dict[str, list[str]]]:
    return coverage.lists(files if rankings is None else pl.concat([rankings, files]))


def _whose(name: str, sides: Sequence[Mapping[str, object]]) -> str:
    """Return in which version a system's ranking stands, and whether it is the same in both."""
    if name not in sides[0]:
        return "after only"
    if name not in sides[1]:
        return "before only"
    return "same" if sides[0][name] == sides[1][name] else "differs"


def _ranks(means: Sequence[float | None]) -> list[int | None]:
    """Return the rank of every mean, 1 for the best; equal ones share the better rank, None for an undefined one."""
    known = [round(mean, TIE) for mean in means if mean is not None]
    return [None if mean is None else 1 + sum(other > round(mean, TIE) for other in known) for mean in means]


def _mean(ranked: Mapping[str, Sequence[str]], relevant: Relevant) -> float | None:
    if not relevant:
        return None
    system: Rankings = {"": ranked}
    return round(float(np.mean(coverage.scores(system, relevant, relevant))), 6)


def _pairs(version: LabelVersion) -> set[Any]:
    return set(version.verdicts.select(PAIR).iter_rows())


def _holes(ranked: Mapping[str, Sequence[str]], queries: Collection[str], judged: set[Any]) -> int:
    """Return how many documents of a system's top tens, of these queries, were never judged."""
    return sum((query, doc) not in judged for query in queries for doc in ranked.get(query, ())[:DEPTH])


# Changed labels of two versions, each with the reason that the folders hold.

COLUMNS = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "before": pl.String,
    "after": pl.String,
    "gain_before": pl.Int32,
    "gain_after": pl.Int32,
    "reason": pl.String,
    "detail": pl.String,
}
"""Columns of the table of changed labels: verdicts and gains, null for a pair that was not judged."""
UNEXPLAINED = "not explained by what the folders hold"
PEOPLE = "people's answers"
BEYOND = {"accept": "threshold on the sum of grades", "settle": "judge that settles contested pairs"}
"""What decides besides the policy, as `LabelVersion.beyond` names it -> the reason."""
Pair = tuple[str, str]
FoundBy = Mapping[Pair, list[str]]
"""Pair -> the retrievers that found it."""


@dataclass(frozen=True)
class Judged:
    """What one version says of a pair: its verdict, its gain, the judges' grades, and who decided."""

    verdict: str
    gain: int | None
    """None where the version has no graded labels."""
    votes: Mapping[str, str | None]
    policy: str


def changes(before: LabelVersion, after: LabelVersion) -> pl.DataFrame:
    """Return a row per pair whose label differs, or that one version alone judged, sorted by pair.

    Labels are verdicts, and gains where both versions have graded labels.
    """
    sides = _judged(before), _judged(after)
    graded = before.graded is not None and after.graded is not None
    found_by = _found_by(after), _found_by(before)
    rows = []
    for pair in sorted(sides[0].keys() | sides[1].keys()):
        old, new = sides[0].get(pair), sides[1].get(pair)
        if old and new and old.verdict == new.verdict and not (graded and old.gain != new.gain):
            continue
        reason, detail = (
            _texts(pair, before, after)
            or _pooled(pair, old, new, found_by)
            or (_decided(old, new, before, after) if old and new else None)
            or (UNEXPLAINED, "")
        )
        gains = (old and old.gain, new and new.gain) if graded else (None, None)
        rows.append((*pair, old and old.verdict, new and new.verdict, *gains, reason, detail))
    return pl.DataFrame(rows, COLUMNS, orient="row")


def other_votes(before: LabelVersion, after: LabelVersion) -> int:
    """Return the number of pairs with one verdict whose judges' grades differ, which graded labels alone may show."""
    old, new = _judged(before), _judged(after)
    both = ((each, new[pair]) for pair, each in old.items() if pair in new)
    return sum(one.verdict == other.verdict and one.votes != other.votes for one, other in both)


def altered(before: LabelVersion, after: LabelVersion) -> dict[str, dict[str, list[str]]]:
    """Return of queries and documents the ids of one version alone, and those whose texts differ."""
    return {
        what: {
            "before_only": sorted(one.keys() - other.keys()),
            "after_only": sorted(other.keys() - one.keys()),
            "text_differs": sorted(name for name in one.keys() & other.keys() if one[name] != other[name]),
        }
        for what, one, other in (
            ("queries", before.queries, after.queries),
            ("documents", before.documents, after.documents),
        )
    }


def _judged(version: LabelVersion) -> dict[Pair, Judged]:
    gains: dict[Pair, int] = {}
    if version.graded is not None:
        gains = {(query, doc): score for query, doc, score in version.graded.select(*PAIR, "score").iter_rows()}
    none = None if version.graded is None else 0
    return {
        (query, doc): Judged(
            verdict, gains.get((query, doc), none), {vote["judge"]: vote["grade"] for vote in votes}, policy
        )
        for query, doc, verdict, votes, policy in version.verdicts.select(
            *PAIR, "verdict", "votes", "policy"
        ).iter_rows()
    }


def _found_by(version: LabelVersion) -> FoundBy | None:
    """Return pair -> the retrievers that found it; None for an export, which does not tell."""
    if version.pool is None:
        return None
    return {
        (query, doc): sorted(hit["retriever"] for hit in hits)
        for query, doc, hits in version.pool.select(*PAIR, "hits").iter_rows()
    }


def _texts(pair: Pair, before: LabelVersion, after: LabelVersion) -> tuple[str, str] | None:
    """Return what happened to the query or the document of a pair; None if both versions have both alike."""
    sides: tuple[tuple[str, str, str, Callable[[LabelVersion], Mapping[str, str]]], ...] = (
        ("query", "queries", pair[0], lambda each: each.queries),
        ("document", "documents", pair[1], lambda each: each.documents),
    )
    for what, table, name, texts in sides:
        one, other = texts(before).get(name), texts(after).get(name)
        if one is not None and other is None:
            return f"{what} left", after.gone.get((table, name), "")
        if one is None and other is not None:
            return f"{what} joined", before.gone.get((table, name), "")
        if one != other:
            return f"text of the {what} differs", ""
    return None


def _pooled(
    pair: Pair,
    old: Judged | None,
    new: Judged | None,
    found_by: tuple[FoundBy | None, FoundBy | None],
) -> tuple[str, str] | None:
    """Return that a pair joined or left the pool, with the retrievers that found it; None for a pair of both."""
    if old and new:
        return None
    where = found_by[0] if new else found_by[1]
    detail = "" if where is None else ", ".join(where.get(pair, []))
    return ("joined the pool" if new else "left the pool"), detail


def _decided(old: Judged, new: Judged, before: LabelVersion, after: LabelVersion) -> tuple[str, str] | None:
    """Return why a pair that both versions judged has another label; None if unknown.

    In this order: people; another threshold or settling judge; judges; whether either decided at all; rule; scale.
    """
    policies = f"{old.policy} -> {new.policy}"
    if EXPERTS in (old.policy, new.policy):
        return PEOPLE, policies
    beyond = [name for name in (_beyond(new), _beyond(old)) if name]
    for name in beyond:
        if before.beyond.get(name) != after.beyond.get(name):
            return BEYOND[name], f"{before.beyond.get(name, 'none')} -> {after.beyond.get(name, 'none')}"
    if moved := sorted(name for name in old.votes.keys() | new.votes.keys() if _said(old, name) != _said(new, name)):
        grades = ", ".join(f"{name} {_said(old, name)} -> {_said(new, name)}" for name in moved)
        return _judges(moved, old, new, before, after), grades
    if old.policy != new.policy:
        return BEYOND[beyond[0]] if beyond else "another rule", policies
    return _scaled(old, new, before, after) or ((BEYOND["settle"], policies) if "settle" in beyond else None)


def _scaled(old: Judged, new: Judged, before: LabelVersion, after: LabelVersion) -> tuple[str, str] | None:
    """Return whether the scale, its cut, or the choice of a pair's gain is another one; None if none is."""
    if before.cut != after.cut:
        return "another scale or cut", f"{before.cut} -> {after.cut}"
    if old.verdict == new.verdict and before.gain != after.gain:
        return "another choice of the gain", f"{before.gain} -> {after.gain}"
    return None


def _beyond(judged: Judged) -> str:
    """Return what decided besides the policy; empty for the policy."""
    if judged.policy.startswith(SETTLED):
        return "settle"
    return "accept" if judged.policy == ACCEPTED else ""


def _said(judged: Judged, judge: str) -> str:
    return "not asked" if judge not in judged.votes else judged.votes[judge] or "no grade"


def _judges(moved: list[str], old: Judged, new: Judged, before: LabelVersion, after: LabelVersion) -> str:
    """Return whether judges joined or left, are other models or prompts, or gave other grades."""
    if old.votes.keys() != new.votes.keys():
        return "another panel"
    known: Any = next((name for name in ("run", "manifest") if name in before.panels and name in after.panels), None)
    if known is None:
        return "other grades of the same judges, of whose models and prompts the folders say nothing alike"
    one, other = before.panels[known], after.panels[known]
    if any(one.get(name) != other.get(name) for name in moved):
        return "another model, prompt or rubric of a judge"
    return "other grades by the same judges and prompts"
