"""Scorers: scores per item from a model's saved predictions, by task type."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from curate.commands.evaluate import item_scores
from curate.stats.significance import Replicated, Statistic, mean, means, of_sums, pearson, products, spearman
from curate.stats.tally import Floats
from curate.tables.kinds.benchmark_kind import BenchmarkKind

Values = Mapping[str, list[float]]


class ScoredTask(Protocol):
    """The attributes of a task that scorers need."""

    @property
    def measure(self) -> str:
        """Return mteb's name of the main measure."""
        ...

    @property
    def readings(self) -> tuple[str, ...]:
        """Return the names of the ways of scoring contested pairs, or graded labels."""
        ...

    @property
    def made(self) -> Any:  # noqa: ANN401 - mteb has no types
        """Return mteb's task object, with its settings of draws and embedded texts."""
        ...

    @property
    def training(self) -> Any:  # noqa: ANN401
        """Return the split on which classifiers are trained."""
        ...

    @property
    def verdicts(self) -> Mapping[str, Mapping[str, str]]:
        """Return query -> document -> verdict of the panel."""
        ...

    @property
    def gains(self) -> Mapping[str, int]:
        """Return grade -> gain of graded labels; empty for binary ones."""
        ...

    @property
    def median_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> gain of the judges' median grade; empty if the export does not contain it."""
        ...

    @property
    def mean_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> mean gain of the judges' grades."""
        ...


class Scorer(Protocol):
    """Computes scores per item from a model's saved predictions, and aggregates them; one class per task type."""

    unit: str
    """Name of the items, in the plural, such as queries."""
    texts: int = 1
    """Number of texts per item that a model encodes."""
    vectors: bool = False
    """Whether only models with vectors can be scored, which excludes BM25."""
    single: bool = True
    """Whether every item has its own score."""
    searched: bool = False
    """Whether a whole corpus is searched: then documents may be unjudged or contested, and BM25 measures difficulty."""
    exchanged: bool = True
    """Whether a randomisation test, which exchanges results per item, compares models; otherwise resampling does."""
    centred: bool = False
    """Whether scores of resamples are centred on the score, as needed for a measure that rises with repeated items."""
    headline: str | None = None
    """Measure of `beside` in which models are compared with baselines; None for the main measure."""
    statistic: Statistic = staticmethod(mean)
    """Function from the sum of the rows of `sums` to the score."""

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return fields of `Scored` from mteb's predictions: ids, values, first relevant ranks, counts by verdict."""
        ...

    def sums(self, values: Values, reading: str) -> Floats:
        """Return one row per item; `statistic` of the sum of the rows is the score."""
        return means(np.array(values[reading]))

    def size(self, values: Values) -> int:
        """Return the number of resampled items."""
        return len(next(iter(values.values())))

    def score(self, values: Values, reading: str) -> Replicated:
        """Return the main measure as a function of resampled items."""
        return of_sums(self.sums(values, reading), self.statistic)

    def beside(self, _values: Values, /) -> Mapping[str, Replicated]:
        """Return name -> further measure, on the same resampled items."""
        return {}

    def compared(self, values: Values, reading: str) -> Replicated:
        """Return the measure in which models are compared with baselines."""
        return self.score(values, reading) if self.headline is None else self.beside(values)[self.headline]

    def counted(self, _values: Values, /) -> Mapping[str, float]:
        """Return name -> further figure without an interval, such as the standard deviation over draws."""
        return {}


class RetrievalScorer(Scorer):
    """Scorer of retrieval: nDCG@10 per query, with several ways of scoring contested pairs."""

    unit = "queries"
    searched = True

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return scores per query; a query without a ranking scores 0, as in mteb."""
        rankings = saved
        labels = {query: gains for query, gains in data["relevant_docs"].items() if any(g > 0 for g in gains.values())}
        queries, verdicts = sorted(labels), task.verdicts
        ranked = {query: item_scores.ordered(rankings.get(query, {})) for query in queries}
        if task.gains:
            mean = task.mean_gains
            looked = [
                item_scores.look_graded(ranked[q], labels[q], verdicts.get(q, {}), mean.get(q, {})) for q in queries
            ]
        else:
            median = task.median_gains
            looked = [
                item_scores.look(ranked[q], labels[q], verdicts.get(q, {}), task.measure, median[q] if median else None)
                for q in queries
            ]
        return {
            "queries": queries,
            "values": {reading: [query_look.scores[reading] for query_look in looked] for reading in task.readings},
            "first": [query_look.first for query_look in looked],
            "shown": sum(query_look.shown for query_look in looked) if verdicts else 0,
            "holes": sum(query_look.holes for query_look in looked) if verdicts else 0,
            "doubtful": sum(query_look.doubtful for query_look in looked),
            "top": [ranked[query][: item_scores.TOP] for query in queries] if self.searched else [],
        }


class RerankingScorer(RetrievalScorer):
    """Scorer of reranking: MAP@10 per query; candidates are never contested."""

    searched = False


class PairScorer(Scorer):
    """Scorer of sentence pairs: Spearman's correlation of their cosines with their labels, and Pearson's beside it."""

    unit = "pairs"
    texts = 2
    vectors = True
    single = False
    exchanged = False

    def items(self, saved: Any, _task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the cosine and the label of every pair."""
        cosines = [float(score) for score in saved["cosine_scores"]]
        values = {"similarity": cosines, "label": [float(label) for label in data["score"]]}
        return {"queries": [str(index) for index in range(len(cosines))], "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return Spearman's correlation."""
        return spearman(np.array(values["similarity"]), np.array(values["label"]))

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return Pearson's correlation."""
        return {"Pearson": of_sums(_products(values), pearson)}


class PearsonScorer(PairScorer):
    """Scorer of sentence pairs whose task states Pearson's correlation, with Spearman's beside it."""

    exchanged = True
    statistic = staticmethod(pearson)

    def sums(self, values: Values, _reading: str) -> Floats:
        """Return one row per pair; `pearson` of the sum of the rows is the correlation."""
        return _products(values)

    def score(self, values: Values, reading: str) -> Replicated:
        """Return Pearson's correlation."""
        return of_sums(self.sums(values, reading), pearson)

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return Spearman's correlation."""
        return {"Spearman": super().score(values, "")}


def _products(values: Values) -> Floats:
    return products(np.array(values["similarity"]), np.array(values["label"]))


PEARSON = "cosine_pearson"
"""mteb's name of Pearson's correlation, which tasks may state instead of Spearman's."""


def scorer_of(kind: BenchmarkKind, measure: str) -> Scorer:
    """Return the scorer of a task type and its main measure."""
    module, _, name = kind.scorer.partition(":")
    scorer: Scorer = getattr(import_module(module), name)()
    return PearsonScorer() if type(scorer) is PairScorer and measure == PEARSON else scorer
