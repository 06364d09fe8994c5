"""Differences between two versions of a benchmark: tables of other task types, system scores, changed labels."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.commands.diff.versions import LabelVersion
from curate.core.figures import Figure, Record, figure
from curate.panel.voting import ACCEPTED, EXPERTS, PAIR, SETTLED
from curate.pipeline.folder import is_run
from curate.runs import rankings as coverage
from curate.runs.rankings import Rankings, Relevant
from curate.stats.bootstrap import DIGITS
from curate.stats.rank_correlation import tau_ap
from curate.tables.exporters.reading import own_kinds

Rows = Mapping[tuple[str, str], Counter[str]]
"""(Task type, table) -> row as text -> number of occurrences."""


class KindTable(Record):
    """An exported table of a task type with labels of its own that differs."""

    kind: str = figure("task type, such as sts or classification")
    table: str = figure("configuration and split")
    both: int = figure("equal rows")
    before_only: int = figure("rows of the first version alone")
    after_only: int = figure("rows of the second version alone")


def compared(before: Path, after: Path) -> list[KindTable]:
    """Return one row per differing table of the two exports: numbers of common rows, and of rows of one version only.

    Tables are those of other task types. Empty unless both versions have an export in mteb's format, the only one with
    such tables.
    """
    old_rows, new_rows = _rows(before), _rows(after)
    if old_rows is None or new_rows is None:
        return []
    none: Counter[str] = Counter()
    rows_by_table = {key: (old_rows.get(key, none), new_rows.get(key, none)) for key in sorted({*old_rows, *new_rows})}
    return [
        KindTable(kind, table, (first & second).total(), (first - second).total(), (second - first).total())
        for (kind, table), (first, second) in rows_by_table.items()
        if first != second
    ]


def _rows(path: Path) -> Rows | None:
    folders = (path / "export" / "mteb",) if is_run(path) else (path, path / "mteb")
    folder = next((folder for folder in folders if (folder / "tasks.py").is_file()), None)
    if folder is None:
        return None
    return {
        (kind, name): Counter(map(str, table.iter_rows()))
        for kind, tables in own_kinds(folder).items()
        for name, table in tables.items()
    }


# Effects on systems: nDCG@10, ranks and holes under both versions' labels, and tau-b of the rankings.

DEPTH = 10
TIE = 9
"""Decimal places to which mean scores are rounded before ranking, so that rounding errors do not break ties."""


class SystemChange(Record, schema_name="system"):
    """Scores and ranks of a system with both versions' labels."""

    system: str = figure("name of the system")
    ranking: str = figure("same, differs, before only or after only")
    ndcg_before: Figure = figure(
        "nDCG@10 with the labels of the first version, over queries with a relevant document in both", digits=4
    )
    ndcg_after: Figure = figure("nDCG@10 with the labels of the second version, over the same queries", digits=4)
    change: Figure = figure("ndcg_after minus ndcg_before", digits=4)
    rank_before: int | None = figure("1 for the best")
    rank_after: int | None = figure("1 for the best")
    own_before: float | None = figure("nDCG@10 over all queries with a relevant document in the first version")
    own_after: float | None = figure("nDCG@10 over all queries with a relevant document in the second version")
    holes_before: int = figure("unjudged documents of its top tens, first version")
    holes_after: int = figure("unjudged documents of its top tens, second version")


class LabelEffects(Record, schema_name="effects"):
    """What changed labels do to systems."""

    queries: Mapping[str, Any] = figure("queries with a relevant document: both, before, after")
    systems: tuple[SystemChange, ...] = figure("best first, by the second version")
    tau: Figure = figure("Kendall's tau-b of the two orders")
    tau_ap: float | None = figure("tau_AP of the second order against the first, null where tau-b is not defined")


def effects(before: LabelVersion, after: LabelVersion, files: pl.DataFrame, seed: int) -> LabelEffects | None:
    """Return the systems' scores and ranks with both versions' labels, and rank correlation; None without systems.

    Systems are the retrievers of both pools and those of run files (`files`, a table `rankings`). `ndcg_before`,
    `ndcg_after` and `change` are means over the queries that have a relevant document in both versions; `own_before`
    and `own_after` are over all queries that have one in that version. A system that only one version ranks is scored
    by the same ranking in both.
    """
    rankings = (version.rankings for version in (before, after))
    sides = [coverage.lists(files if table is None else pl.concat([table, files])) for table in rankings]
    names = sorted(sides[0].keys() | sides[1].keys())
    if not names:
        return None
    old_lists, new_lists = (
        {name: lists.get(name, fallback.get(name, {})) for name in names} for lists, fallback in (sides, sides[::-1])
    )
    labels = [coverage.labels(version.verdicts.filter(pl.col("verdict") == "relevant")) for version in (before, after)]
    both = {query: labels[0][query] for query in sorted(labels[0].keys() & labels[1].keys())}
    scores = coverage.scores(old_lists, labels[0], both), coverage.scores(new_lists, labels[1], both)
    figures = coverage.compared(*scores, seed) if both else [Figure(None)] * (3 * len(names) + 1)
    count = len(names)
    ranks = [
        _ranks([score.value for score in scores_of_side])
        for scores_of_side in (figures[:count], figures[count : 2 * count])
    ]
    judged = [set(version.verdicts.select(PAIR).iter_rows()) for version in (before, after)]
    rows = [
        SystemChange(
            system=name,
            ranking=_presence(name, sides),
            ndcg_before=figures[index],
            ndcg_after=figures[count + index],
            change=figures[2 * count + index],
            rank_before=ranks[0][index],
            rank_after=ranks[1][index],
            own_before=_mean(old_lists[name], labels[0]),
            own_after=_mean(new_lists[name], labels[1]),
            holes_before=_holes(old_lists[name], before.queries, judged[0]),
            holes_after=_holes(new_lists[name], after.queries, judged[1]),
        )
        for index, name in enumerate(names)
    ]
    means = [
        {name: score.value for name, score in zip(names, scores_of_side, strict=True) if score.value is not None}
        for scores_of_side in (figures[:count], figures[count : 2 * count])
    ]
    tau, ap_correlation = figures[-1], tau_ap(*means) if figures[-1].value is not None else None
    return LabelEffects(
        queries={"both": len(both), "before": len(labels[0]), "after": len(labels[1])},
        systems=tuple(sorted(rows, key=lambda row: (row.rank_after is None, row.rank_after or 0, row.system))),
        tau=tau,
        tau_ap=None if ap_correlation is None else round(ap_correlation, DIGITS),
    )


def _presence(name: str, sides: Sequence[Mapping[str, object]]) -> str:
    """Return which version ranks a system or, if both do, whether the rankings are equal.

    One of "before only", "after only", "same", "differs".
    """
    if name not in sides[0]:
        return "after only"
    if name not in sides[1]:
        return "before only"
    return "same" if sides[0][name] == sides[1][name] else "differs"


def _ranks(means: Sequence[float | None]) -> list[int | None]:
    """Return the rank of every mean, 1 for the best; equal means share the better rank; None for an undefined one."""
    defined = [round(mean, TIE) for mean in means if mean is not None]
    return [
        None if mean is None else 1 + sum(competitor > round(mean, TIE) for competitor in defined) for mean in means
    ]


def _mean(ranked: Mapping[str, Sequence[str]], relevant: Relevant) -> float | None:
    if not relevant:
        return None
    system: Rankings = {"": ranked}
    return round(float(np.mean(coverage.scores(system, relevant, relevant))), 6)


def _holes(ranked: Mapping[str, Sequence[str]], queries: Collection[str], judged: set[Any]) -> int:
    """Return the number of unjudged documents in a system's first ten, summed over `queries`."""
    return sum((query, doc) not in judged for query in queries for doc in ranked.get(query, ())[:DEPTH])


# Changed labels of two versions, each with the reason as far as the folders contain it.

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
"""Columns of the table of changed labels; verdict and gain are null in a version that did not judge the pair."""
UNEXPLAINED = "not explained by what the folders hold"
PEOPLE = "people's answers"
BEYOND = {"accept": "threshold on the sum of grades", "settle": "judge that settles contested pairs"}
"""Decision after the consensus rule, a key of `LabelVersion.beyond` -> reason of a changed label."""
Pair = tuple[str, str]
FoundBy = Mapping[Pair, list[str]]
"""Pair -> the retrievers that found it."""


@dataclass(frozen=True)
class Judged:
    """Label of a pair in one version: verdict, gain, judges' grades, and the rule that decided."""

    verdict: str
    gain: int | None
    """Gain of a graded label; None if the version has none."""
    votes: Mapping[str, str | None]
    policy: str


def changes(before: LabelVersion, after: LabelVersion) -> pl.DataFrame:
    """Return the table of changed labels: pairs whose label differs or that only one version judged, sorted by pair.

    Labels are verdicts and, if both versions have graded labels, gains. Columns: `COLUMNS`.
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
    """Return the number of pairs with equal verdicts but different judges' grades."""
    old, new = _judged(before), _judged(after)
    both = ((judged, new[pair]) for pair, judged in old.items() if pair in new)
    return sum(
        old_label.verdict == new_label.verdict and old_label.votes != new_label.votes for old_label, new_label in both
    )


def altered(before: LabelVersion, after: LabelVersion) -> dict[str, dict[str, list[str]]]:
    """Return, for `queries` and `documents`, the ids that only one version has and those whose texts differ."""
    return {
        text_kind: {
            "before_only": sorted(old_texts.keys() - new_texts.keys()),
            "after_only": sorted(new_texts.keys() - old_texts.keys()),
            "text_differs": sorted(
                name for name in old_texts.keys() & new_texts.keys() if old_texts[name] != new_texts[name]
            ),
        }
        for text_kind, old_texts, new_texts in (
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
    """Return pair -> names of the retrievers that returned it, sorted; None for an export, which has no pool."""
    if version.pool is None:
        return None
    return {
        (query, doc): sorted(hit["retriever"] for hit in hits)
        for query, doc, hits in version.pool.select(*PAIR, "hits").iter_rows()
    }


def _texts(pair: Pair, before: LabelVersion, after: LabelVersion) -> tuple[str, str] | None:
    """Return (change of the pair's query or document, why it was dropped); None if the texts are equal in both."""
    sides: tuple[tuple[str, str, str, Callable[[LabelVersion], Mapping[str, str]]], ...] = (
        ("query", "queries", pair[0], lambda version: version.queries),
        ("document", "documents", pair[1], lambda version: version.documents),
    )
    for what, table, name, texts in sides:
        old_text, new_text = texts(before).get(name), texts(after).get(name)
        if old_text is not None and new_text is None:
            return f"{what} left", after.gone.get((table, name), "")
        if old_text is None and new_text is not None:
            return f"{what} joined", before.gone.get((table, name), "")
        if old_text != new_text:
            return f"text of the {what} differs", ""
    return None


def _pooled(
    pair: Pair,
    old: Judged | None,
    new: Judged | None,
    found_by: tuple[FoundBy | None, FoundBy | None],
) -> tuple[str, str] | None:
    """Return ("joined the pool" or "left the pool", retrievers that returned the pair); None if both judged it."""
    if old and new:
        return None
    where = found_by[0] if new else found_by[1]
    detail = "" if where is None else ", ".join(where.get(pair, []))
    return ("joined the pool" if new else "left the pool"), detail


def _decided(old: Judged, new: Judged, before: LabelVersion, after: LabelVersion) -> tuple[str, str] | None:
    """Return (reason, detail) of a changed label of a pair judged in both versions; None if unknown.

    The first reason that applies: assessors' answer; a changed threshold or tie-breaker; judges' grades; threshold or
    tie-breaker applied in one version only; consensus rule; scale.
    """
    policies = f"{old.policy} -> {new.policy}"
    if EXPERTS in (old.policy, new.policy):
        return PEOPLE, policies
    beyond = [name for name in (_other_decision(new), _other_decision(old)) if name]
    for name in beyond:
        if before.beyond.get(name) != after.beyond.get(name):
            return BEYOND[name], f"{before.beyond.get(name, 'none')} -> {after.beyond.get(name, 'none')}"
    if moved := sorted(
        name for name in old.votes.keys() | new.votes.keys() if _answer(old, name) != _answer(new, name)
    ):
        grades = ", ".join(f"{name} {_answer(old, name)} -> {_answer(new, name)}" for name in moved)
        return _judges(moved, old, new, before, after), grades
    if old.policy != new.policy:
        return BEYOND[beyond[0]] if beyond else "another rule", policies
    return _scaled(old, new, before, after) or ((BEYOND["settle"], policies) if "settle" in beyond else None)


def _scaled(old: Judged, new: Judged, before: LabelVersion, after: LabelVersion) -> tuple[str, str] | None:
    """Return (reason, detail) if scale, relevance threshold or the rule from grades to a gain changed; else None."""
    if before.cut != after.cut:
        return "another scale or cut", f"{before.cut} -> {after.cut}"
    if old.verdict == new.verdict and before.gain != after.gain:
        return "another choice of the gain", f"{before.gain} -> {after.gain}"
    return None


def _other_decision(judged: Judged) -> str:
    """Return what decided a pair instead of the consensus rule: `settle`, `accept`, or empty for the rule."""
    if judged.policy.startswith(SETTLED):
        return "settle"
    return "accept" if judged.policy == ACCEPTED else ""


def _answer(judged: Judged, judge: str) -> str:
    return "not asked" if judge not in judged.votes else judged.votes[judge] or "no grade"


def _judges(moved: list[str], old: Judged, new: Judged, before: LabelVersion, after: LabelVersion) -> str:
    """Return the reason why judges' grades differ: other judges, other models or prompts, or other replies.

    `moved` are the names of the judges whose grades differ.
    """
    if old.votes.keys() != new.votes.keys():
        return "another panel"
    source: Any = next((name for name in ("run", "manifest") if name in before.panels and name in after.panels), None)
    if source is None:
        return "other grades of the same judges, of whose models and prompts the folders say nothing alike"
    old_digests, new_digests = before.panels[source], after.panels[source]
    if any(old_digests.get(name) != new_digests.get(name) for name in moved):
        return "another model, prompt or rubric of a judge"
    return "other grades by the same judges and prompts"
