"""Figures of two versions' difference, counted again from their tables without the package's statistics."""

import itertools
import math
import random
from pathlib import Path
from typing import Any

import polars as pl

Labels = dict[tuple[str, str], str]


def labels(run: Path) -> Labels:
    rows = pl.read_parquet(run / "resolve" / "verdicts.parquet").select("query_id", "doc_id", "verdict").rows()
    return {(query, doc): verdict for query, doc, verdict in rows}


def ranked(run: Path) -> dict[str, dict[str, list[str]]]:
    """Return system -> query -> documents, best first."""
    found: dict[str, dict[str, list[tuple[int, str]]]] = {}
    rows = pl.read_parquet(run / "pool" / "rankings.parquet").select("retriever", "query_id", "rank", "doc_id").rows()
    for system, query, rank, doc in rows:
        found.setdefault(system, {}).setdefault(query, []).append((rank, doc))
    return {
        system: {query: [doc for _, doc in sorted(docs)] for query, docs in lists.items()}
        for system, lists in found.items()
    }


def ndcg(docs: list[str], wanted: set[str]) -> float:
    gained = sum(1 / math.log2(place + 2) for place, doc in enumerate(docs[:10]) if doc in wanted)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))


def tau(one: list[float], other: list[float]) -> float | None:
    """Kendall's tau-b by its definition."""
    agree = ties_one = ties_other = total = 0
    for first, second in itertools.combinations(range(len(one)), 2):
        here, there = (round(side[first] - side[second], 12) for side in (one, other))
        total += 1
        ties_one += here == 0
        ties_other += there == 0
        agree += (here * there > 0) - (here * there < 0)
    below = math.sqrt((total - ties_one) * (total - ties_other))
    return agree / below if below else None


def tau_ap(one: dict[str, float], other: dict[str, float]) -> float:
    """tau_AP by its definition, ties by name: the share above each system, below the first, that is right."""
    first, second = (sorted(side, key=lambda name: (-side[name], name)) for side in (one, other))
    shares = [
        sum(first.index(above) < first.index(name) for above in second[:at]) / at
        for at, name in enumerate(second)
        if at
    ]
    return 2 * sum(shares) / len(shares) - 1


def effects(one: Path, other: Path) -> dict[str, Any]:
    """Return means of nDCG@10, changes with intervals of 400 resamples, ranks, holes and tau-b."""
    said = labels(one), labels(other)
    lists = ranked(one), ranked(other)
    relevant: tuple[dict[str, set[str]], ...] = ({}, {})
    for side, each in zip(said, relevant, strict=True):
        for (query, doc), verdict in side.items():
            if verdict == "relevant":
                each.setdefault(query, set()).add(doc)
    both = sorted(relevant[0].keys() & relevant[1].keys())
    systems = sorted(lists[0].keys() | lists[1].keys())
    shown = [{name: side.get(name, rest.get(name, {})) for name in systems} for side, rest in (lists, lists[::-1])]
    scores = [
        {name: [ndcg(rankings[name].get(query, []), truth[query]) for query in both] for name in systems}
        for rankings, truth in zip(shown, relevant, strict=True)
    ]
    means = [{name: sum(values) / len(both) for name, values in side.items()} for side in scores]
    draws = [random.Random(seed).choices(range(len(both)), k=len(both)) for seed in range(400)]
    changes = {
        name: sorted(sum(scores[1][name][at] - scores[0][name][at] for at in draw) / len(both) for draw in draws)
        for name in systems
    }
    return {
        "queries": {"both": len(both), "before": len(relevant[0]), "after": len(relevant[1])},
        "tau": tau([means[0][name] for name in systems], [means[1][name] for name in systems]),
        "tau_ap": tau_ap(*means),
        "systems": {
            name: {
                "own": [
                    sum(ndcg(rankings[name].get(query, []), docs) for query, docs in truth.items()) / len(truth)
                    for rankings, truth in zip(shown, relevant, strict=True)
                ],
                "before": means[0][name],
                "after": means[1][name],
                "low": changes[name][10],
                "high": changes[name][-11],
                "ranks": [1 + sum(round(each - side[name], 9) > 0 for each in side.values()) for side in means],
                "holes": [
                    sum((query, doc) not in judged for query, docs in rankings[name].items() for doc in docs[:10])
                    for rankings, judged in zip(shown, said, strict=True)
                ],
            }
            for name in systems
        },
    }
