"""Scores of single queries: nDCG and average precision, with several ways of scoring contested and incomplete pairs.

*stock* counts such pairs as not relevant, as any tool does that reads only the qrels. *condensed* removes them from the
ranking first. *optimistic* counts contested pairs as relevant, in the ranking and in the ideal ranking, so it may even
be the lowest score. *median* uses the gain of the lower median grade for all pairs, including contested ones.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

TOP = 10
READINGS = ("stock", "condensed", "optimistic")
MEDIAN = "median"
"""Additional way of scoring binary labels, if grades and their gains are known."""
GRADED = ("stock", "exponential", "mean")
"""Ways of scoring graded labels: linear gain (as in mteb), gain 2^gain - 1, linear mean gain of the judges."""
DOUBT = frozenset({"contested", "incomplete"})
"""Verdicts of pairs that are neither positive nor negative."""
Gains = Mapping[str, float]
"""Document -> gain; absent documents have gain 0."""


def ordered(scores: Mapping[str, float]) -> list[str]:
    """Return documents by score, best first; ties by id, descending, as in trec_eval and pytrec_eval.

    Scores are compared as 32-bit floats, as in trec_eval.
    """
    return sorted(scores, key=lambda doc: (np.float32(scores[doc]), doc), reverse=True)


def ndcg(ranking: Sequence[str], gains: Gains, depth: int = TOP) -> float:
    """Return nDCG at `depth`, 0 to 1, as trec_eval's ndcg_cut: linear gain, discount 1 / log2(rank + 1).

    ValueError if no document has a gain, because nDCG is not defined then.
    """
    best = _discounted(sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:depth])
    if not best:
        raise ValueError("nDCG is not defined for a query without a relevant document")
    return _discounted([max(gains.get(doc, 0), 0) for doc in ranking[:depth]]) / best


def average_precision(ranking: Sequence[str], gains: Gains, depth: int = TOP) -> float:
    """Return average precision at `depth`, 0 to 1, as trec_eval's map_cut; documents with a gain above 0 are relevant.

    The sum of precision at the ranks of relevant documents, divided by the number of all relevant documents. ValueError
    without any.
    """
    relevant = sum(gain > 0 for gain in gains.values())
    if not relevant:
        raise ValueError("average precision is not defined for a query without a relevant document")
    ranks = [rank for rank, doc in enumerate(ranking[:depth], start=1) if gains.get(doc, 0) > 0]
    return sum(n_relevant / rank for n_relevant, rank in enumerate(ranks, start=1)) / relevant


MEASURES = {"ndcg_at_10": ndcg, "map_at_10": average_precision}
"""mteb's name of a measure -> function that computes it for one query."""


@dataclass(frozen=True)
class Looked:
    """Scores of one query's ranking, and counts of its top-ten documents by verdict."""

    scores: Mapping[str, float]
    """Way of scoring -> score."""
    first: int | None
    """Rank of the first relevant document; None if the ranking has none."""
    shown: int
    """Number of documents in the top ten, at most 10."""
    holes: int
    """Number of unjudged documents in the top ten."""
    doubtful: int
    """Number of contested or incomplete documents in the top ten."""


def look(
    ranking: Sequence[str], gains: Gains, verdicts: Mapping[str, str], measure: str, median: Gains | None = None
) -> Looked:
    """Return the scores of one query's ranking, and the counts by verdict in its top ten.

    `verdicts` maps documents to verdicts, and is empty if these are unknown. `measure` is a name in `MEASURES`.
    `median` holds the gains of that way of scoring, which is omitted if None.
    """
    score = MEASURES[measure]
    condensed = [doc for doc in ranking if verdicts.get(doc) not in DOUBT]
    contested = (doc for doc, word in verdicts.items() if word == "contested")
    optimistic_gains = {**gains, **{doc: max(gains.get(doc, 0), 1) for doc in contested}}
    top_verdicts = [verdicts.get(doc) for doc in ranking[:TOP]]
    values = (score(ranking, gains), score(condensed, gains), score(ranking, optimistic_gains))
    return Looked(
        scores=dict(zip(READINGS, values, strict=True)) | ({} if median is None else {MEDIAN: score(ranking, median)}),
        first=first_relevant(ranking, {doc for doc, gain in gains.items() if gain > 0}),
        shown=len(top_verdicts),
        holes=top_verdicts.count(None),
        doubtful=sum(word in DOUBT for word in top_verdicts),
    )


def look_graded(ranking: Sequence[str], gains: Gains, verdicts: Mapping[str, str], mean: Gains) -> Looked:
    """Return the nDCG@10 of one query's ranking for each way of `GRADED`, and counts as `look` does.

    `mean` maps a document to the mean gain of the judges. Contested pairs have a graded label, so `doubtful` counts
    only incomplete ones.
    """
    exponential = {doc: 2**gain - 1 for doc, gain in gains.items()}
    top_verdicts = [verdicts.get(doc) for doc in ranking[:TOP]]
    values = [ndcg(ranking, reading_gains) for reading_gains in (gains, exponential, mean or gains)]
    return Looked(
        scores=dict(zip(GRADED, values, strict=True)),
        first=first_relevant(ranking, {doc for doc, gain in gains.items() if gain > 0}),
        shown=len(top_verdicts),
        holes=top_verdicts.count(None),
        doubtful=top_verdicts.count("incomplete"),
    )


def first_relevant(ranking: Sequence[str], relevant: Collection[str]) -> int | None:
    """Return the rank of the first relevant document; None if there is none."""
    return next((rank for rank, doc in enumerate(ranking, start=1) if doc in relevant), None)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
