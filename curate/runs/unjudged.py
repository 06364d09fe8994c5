"""Unjudged documents in a ranking: Judged@k, and nDCG@10 with and without them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.retrieval.ranking import ndcg
from curate.runs.coverage import Relevant
from curate.stats.bootstrap import Figure, averages
from curate.stats.tally import Floats

DEPTHS = (10, 100)
DEEPEST = 1000
"""Documents of a ranking that are looked at: to fill ten places without holes takes more than ten."""
DECIDED = frozenset({"relevant", "not relevant", "not positive"})
"""Verdicts that say whether a document is a positive; others leave it in doubt."""


@dataclass(frozen=True)
class Depth:
    """What is known of the first `k` documents of a ranking, summed over all queries of the run."""

    k: int
    documents: int
    judged: Figure
    """Share of them with a verdict, Judged@k; of each query's documents, then the mean over queries."""
    holes: int
    """Documents without a verdict."""
    doubtful: int
    """Documents that are contested or incomplete."""


@dataclass(frozen=True)
class Covered:
    """How far the run's verdicts cover one system's rankings."""

    system: str
    queries: int
    """Queries with a relevant document, on which nDCG is measured."""
    absent: int
    """Those of them that the system did not answer: their nDCG is 0."""
    stock: Figure
    """nDCG@10 in which holes and doubtful documents count as not relevant."""
    condensed: Figure
    """nDCG@10 of the ranking without them (Sakai, SIGIR 2007)."""
    depths: tuple[Depth, ...]


def covered(
    system: str,
    lists: Mapping[str, Sequence[str]],
    verdicts: Mapping[tuple[str, str], str],
    relevant: Relevant,
    seed: int,
) -> Covered:
    """Return how far verdicts (by query and document) cover a system's lists (by query, best first)."""
    queries = sorted(relevant)
    whole = [lists.get(query, ()) for query in queries]
    kept = [
        [doc for doc in ranked if verdicts.get((query, doc)) in DECIDED]
        for query, ranked in zip(queries, whole, strict=True)
    ]
    stock, condensed = averages([_scores(each, queries, relevant) for each in (whole, kept)], seed)
    return Covered(
        system=system,
        queries=len(queries),
        absent=sum(not ranked for ranked in whole),
        stock=stock,
        condensed=condensed,
        depths=tuple(_depth(k, lists, verdicts, seed) for k in DEPTHS),
    )


def _depth(k: int, lists: Mapping[str, Sequence[str]], verdicts: Mapping[tuple[str, str], str], seed: int) -> Depth:
    said = [[verdicts.get((query, doc)) for doc in ranked[:k]] for query, ranked in sorted(lists.items()) if ranked]
    shares = np.array([1 - each.count(None) / len(each) for each in said])
    words = [word for each in said for word in each]
    return Depth(
        k=k,
        documents=len(words),
        judged=averages([shares], seed)[0],
        holes=words.count(None),
        doubtful=sum(word is not None and word not in DECIDED for word in words),
    )


def _scores(ranked: Sequence[Sequence[str]], queries: Sequence[str], relevant: Relevant) -> Floats:
    return np.array([ndcg(each, relevant[query]) for query, each in zip(queries, ranked, strict=True)])
