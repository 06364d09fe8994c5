"""Effects of corrected labels on a comparison of systems: scores and ranks under both, and their correlation."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from curate.commands.audit.labels import mean
from curate.core.config import Json
from curate.retrieval import ranking
from curate.stats import rank_correlation
from curate.stats.tally import Floats

TOP = 10
DIGITS = 5
Labels = Mapping[str, Collection[str]]
"""Query -> its relevant documents."""


@dataclass(frozen=True)
class Effect:
    """One system under the old and the new labels: means over the queries that have a positive under both."""

    system: str
    ndcg_old: float
    ndcg_new: float
    change: float
    low: float | None
    """Bounds of the 95 % interval of the change of nDCG@10, which resamples queries."""
    high: float | None
    recall_old: float
    recall_new: float
    judged: float | None
    """Share of its first ten documents that the panel judged: what was not counts as not relevant."""
    rank_old: int = 0
    rank_new: int = 0
    circular: bool = False
    """Whether its encoder is also a judge: the new labels are then its own, and its score proves nothing."""


def compare(
    rankings: pl.DataFrame,
    old: pl.DataFrame,
    new: pl.DataFrame,
    judged: pl.DataFrame,
    *,
    depth: int,
    seed: int,
    judges: Collection[str] = (),
) -> dict[str, Json]:
    """Return `queries` (how many are compared), `systems` (`Effect`s, best first under the new labels), and `tau_b`.

    `rankings` is a table of that name; recall is at `depth`, which stands in its keys: `recall_at_50_old`. The
    orders are those by nDCG@10. `judges` are the encoders that are judges.
    """
    before, after, seen = _by_query(old), _by_query(new), _by_query(judged)
    queries = sorted(before.keys() & after.keys())
    found = []
    for (system,), part in rankings.sort("retriever", "query_id", "rank").group_by("retriever", maintain_order=True):
        lists = {str(key[0]): hits["doc_id"].to_list() for key, hits in part.group_by("query_id", maintain_order=True)}
        if queries:
            ranked = {query: lists.get(query, []) for query in queries}
            found.append(_effect(str(system), ranked, before, after, seen, depth, seed))
    ranks = [_ranks([each.ndcg_old for each in found]), _ranks([each.ndcg_new for each in found])]
    placed = [
        replace(each, rank_old=one, rank_new=two, circular=each.system in judges)
        for each, one, two in zip(found, *ranks, strict=True)
    ]
    scores = [{each.system: getattr(each, side) for each in found} for side in ("ndcg_old", "ndcg_new")]
    return {
        "queries": len(queries),
        "recall_depth": depth,
        "systems": [_named(each, depth) for each in sorted(placed, key=lambda each: (each.rank_new, each.system))],
        "tau_b": rank_correlation.tau_b(*scores),
    }


def _named(effect: Effect, depth: int) -> dict[str, Json]:
    """Return an effect with the depth of recall in its keys."""
    return {name.replace("recall_", f"recall_at_{depth}_"): value for name, value in asdict(effect).items()}


def _effect(
    system: str, ranked: Mapping[str, Sequence[str]], old: Labels, new: Labels, seen: Labels, depth: int, seed: int
) -> Effect:
    """Return what the labels do to one system, its ranks left out."""
    before, after = (_each(ranked, labels) for labels in (old, new))
    change, low, high = mean(after - before, seed)
    shown = [doc in seen.get(query, ()) for query, docs in ranked.items() for doc in docs[:TOP]]
    return Effect(
        system=system,
        ndcg_old=_rounded(before.mean()),
        ndcg_new=_rounded(after.mean()),
        change=_rounded(change),
        low=None if low is None else _rounded(low),
        high=None if high is None else _rounded(high),
        recall_old=_rounded(np.mean([recall(docs, old[query], depth) for query, docs in ranked.items()])),
        recall_new=_rounded(np.mean([recall(docs, new[query], depth) for query, docs in ranked.items()])),
        judged=_rounded(np.mean(shown)) if shown else None,
    )


def _each(ranked: Mapping[str, Sequence[str]], labels: Labels) -> Floats:
    """Return the nDCG@10 of every query."""
    return np.array([ranking.ndcg(docs, labels[query], TOP) for query, docs in ranked.items()])


def recall(docs: Sequence[str], relevant: Collection[str], depth: int) -> float:
    """Return the share of the relevant documents among the first `depth` of a ranking; `relevant` is not empty."""
    return len(set(docs[:depth]) & set(relevant)) / len(relevant)


def _ranks(scores: Sequence[float]) -> list[int]:
    """Return the rank of every score, 1 for the highest; equal scores share the better one."""
    return [1 + sum(other > score for other in scores) for score in scores]


def _rounded(figure: float | np.floating) -> float:
    return round(float(figure), DIGITS)


def _by_query(pairs: pl.DataFrame) -> dict[str, set[str]]:
    return {str(key[0]): set(part["doc_id"]) for key, part in pairs.group_by("query_id")}
