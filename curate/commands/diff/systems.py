"""What changed labels do to systems: nDCG@10, ranks and holes under two versions' labels, and tau-b of the orders."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from curate.commands.diff.version import LabelVersion
from curate.core.config import Json
from curate.panel.voting import PAIR
from curate.runs import coverage
from curate.runs.coverage import Rankings, Relevant
from curate.stats.bootstrap import DIGITS, Figure
from curate.stats.rank_correlation import tau_ap

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
    known = [round(each, TIE) for each in means if each is not None]
    return [None if each is None else 1 + sum(other > round(each, TIE) for other in known) for each in means]


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
