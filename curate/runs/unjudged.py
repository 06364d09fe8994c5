"""Unjudged documents in a ranking: Judged@k, and nDCG@10 with and without them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.retrieval.ranking import ndcg
from curate.runs.coverage import Relevant
from curate.stats.bootstrap import Figure, averages

DEPTHS = (10, 100)
DEEPEST = 1000
"""Documents read from a ranking: ten judged ones may need many more."""
DECIDED = frozenset({"relevant", "not relevant", "not positive"})
"""Verdicts that decide whether a document is a positive."""


@dataclass(frozen=True)
class Depth:
    """Verdicts on the first `k` documents of a ranking, summed over all queries of the run."""

    k: int
    documents: int
    judged: Figure
    """Judged@k: share of the documents with a verdict per query, mean over queries."""
    holes: int
    """Documents without a verdict."""
    doubtful: int
    """Documents that are contested or incomplete."""


@dataclass(frozen=True)
class Covered:
    """Coverage of one system's rankings by the run's verdicts."""

    system: str
    queries: int
    """Queries with a relevant document, on which nDCG is measured."""
    absent: int
    """Those without a ranking by the system: their nDCG is 0."""
    stock: Figure
    """nDCG@10 in which holes and doubtful documents count as not relevant."""
    condensed: Figure
    """nDCG@10 of the condensed list, without them (Sakai, SIGIR 2007)."""
    depths: tuple[Depth, ...]


def covered(
    system: str,
    lists: Mapping[str, Sequence[str]],
    verdicts: Mapping[tuple[str, str], str],
    relevant: Relevant,
    seed: int,
) -> Covered:
    """Return the coverage of a system's lists (by query, best first) by verdicts (by query and document)."""
    queries = sorted(relevant)
    full_lists = [lists.get(query, ()) for query in queries]
    condensed_lists = [
        [doc for doc in ranked if verdicts.get((query, doc)) in DECIDED]
        for query, ranked in zip(queries, full_lists, strict=True)
    ]
    stock, condensed = averages(
        [
            np.array([ndcg(ranked, relevant[query]) for query, ranked in zip(queries, rankings, strict=True)])
            for rankings in (full_lists, condensed_lists)
        ],
        seed,
    )
    return Covered(
        system=system,
        queries=len(queries),
        absent=sum(not ranked for ranked in full_lists),
        stock=stock,
        condensed=condensed,
        depths=tuple(_depth(k, lists, verdicts, seed) for k in DEPTHS),
    )


def _depth(k: int, lists: Mapping[str, Sequence[str]], verdicts: Mapping[tuple[str, str], str], seed: int) -> Depth:
    verdict_lists = [
        [verdicts.get((query, doc)) for doc in ranked[:k]] for query, ranked in sorted(lists.items()) if ranked
    ]
    shares = np.array([1 - listed.count(None) / len(listed) for listed in verdict_lists])
    words = [word for listed in verdict_lists for word in listed]
    return Depth(
        k=k,
        documents=len(words),
        judged=averages([shares], seed)[0],
        holes=words.count(None),
        doubtful=sum(word is not None and word not in DECIDED for word in words),
    )
