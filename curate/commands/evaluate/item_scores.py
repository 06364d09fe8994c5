"""Scores of single queries from what a model found: nDCG and average precision, under readings of doubt.

*stock* counts a pair in doubt as not relevant, as every tool does that knows only the qrels. *condensed* takes pairs in
doubt out of the ranking first. *optimistic* counts a contested pair as relevant, in the ranking and in the best ranking
that there could be, so that it may also be the lowest of the three. *median* takes the raw lower median of the judges'
grades for the gain of a pair, contested ones included: judges who differ do not make it "not relevant".
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

TOP = 10
READINGS = ("stock", "condensed", "optimistic")
MEDIAN = "median"
"""Reading of binary labels where the judges' grades and their gains are known."""
GRADED = ("stock", "exponential", "mean")
"""Readings of graded labels: linear gain, as stock mteb has it; 2^gain - 1; the mean of the judges' gains, linear."""
DOUBT = frozenset({"contested", "incomplete"})
"""Verdicts of pairs that are in no qrels and no negatives either."""
Gains = Mapping[str, float]
"""Document -> its gain; what is not in it gains nothing."""


def ordered(found: Mapping[str, float]) -> list[str]:
    """Return documents by score, best first, ties by id, the greater first: the order of trec_eval and pytrec_eval.

    Scores are compared as 32-bit floats, which is what trec_eval keeps of them.
    """
    return sorted(found, key=lambda doc: (np.float32(found[doc]), doc), reverse=True)


def ndcg(ranking: Sequence[str], gains: Gains, depth: int = TOP) -> float:
    """Return nDCG at `depth`, 0 to 1: linear gain, discount 1 / log2(rank + 1), as trec_eval's ndcg_cut.

    ValueError where no document gains anything: the measure is then not defined.
    """
    best = _discounted(sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:depth])
    if not best:
        raise ValueError("nDCG is not defined for a query without a relevant document")
    return _discounted([max(gains.get(doc, 0), 0) for doc in ranking[:depth]]) / best


def average_precision(ranking: Sequence[str], gains: Gains, depth: int = TOP) -> float:
    """Return average precision at `depth`, 0 to 1, as trec_eval's map_cut: every gain above 0 is relevant.

    The sum of precision at the ranks of relevant documents, over the number of all relevant ones. ValueError where
    there is none.
    """
    relevant = sum(gain > 0 for gain in gains.values())
    if not relevant:
        raise ValueError("average precision is not defined for a query without a relevant document")
    ranks = [rank for rank, doc in enumerate(ranking[:depth], start=1) if gains.get(doc, 0) > 0]
    return sum(place / rank for place, rank in enumerate(ranks, start=1)) / relevant


MEASURES = {"ndcg_at_10": ndcg, "map_at_10": average_precision}
"""mteb's name of a measure -> the function of one query."""


@dataclass(frozen=True)
class Looked:
    """What can be said of one query's ranking."""

    scores: Mapping[str, float]
    """By reading of doubt."""
    first: int | None
    """Rank of the first relevant document; None if none was found."""
    shown: int
    """Documents among the first ten."""
    holes: int
    """Those of them that were never judged."""
    doubtful: int
    """Those of them that are contested or incomplete."""


def look(
    ranking: Sequence[str], gains: Gains, verdicts: Mapping[str, str], measure: str, median: Gains | None = None
) -> Looked:
    """Return the scores of one query's ranking, and what the panel knows of its first ten documents.

    `verdicts` are the panel's words by document, empty where nothing is known of a panel. `measure` is a name of
    `MEASURES`; `median` are the gains of that reading, without which it is left out.
    """
    score = MEASURES[measure]
    settled = [doc for doc in ranking if verdicts.get(doc) not in DOUBT]
    contested = (doc for doc, word in verdicts.items() if word == "contested")
    hopeful = {**gains, **{doc: max(gains.get(doc, 0), 1) for doc in contested}}
    said = [verdicts.get(doc) for doc in ranking[:TOP]]
    values = (score(ranking, gains), score(settled, gains), score(ranking, hopeful))
    return Looked(
        scores=dict(zip(READINGS, values, strict=True)) | ({} if median is None else {MEDIAN: score(ranking, median)}),
        first=first_relevant(ranking, {doc for doc, gain in gains.items() if gain > 0}),
        shown=len(said),
        holes=said.count(None),
        doubtful=sum(word in DOUBT for word in said),
    )


def look_graded(ranking: Sequence[str], gains: Gains, verdicts: Mapping[str, str], mean: Gains) -> Looked:
    """Return what `look` does for graded labels, nDCG@10 by each reading of `GRADED`.

    `mean` holds the mean of the judges' gains by document. Contested pairs have a label, so only incomplete ones are in
    doubt.
    """
    exponential = {doc: 2**gain - 1 for doc, gain in gains.items()}
    said = [verdicts.get(doc) for doc in ranking[:TOP]]
    values = [ndcg(ranking, each) for each in (gains, exponential, mean or gains)]
    return Looked(
        scores=dict(zip(GRADED, values, strict=True)),
        first=first_relevant(ranking, {doc for doc, gain in gains.items() if gain > 0}),
        shown=len(said),
        holes=said.count(None),
        doubtful=said.count("incomplete"),
    )


def first_relevant(ranking: Sequence[str], relevant: Collection[str]) -> int | None:
    """Return the rank of the first relevant document; None if there is none."""
    return next((rank for rank, doc in enumerate(ranking, start=1) if doc in relevant), None)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
