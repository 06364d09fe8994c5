"""Scorers: what a kind of benchmark makes of a model's saved predictions, item by item."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from curate.commands.evaluate import item_scores
from curate.stats.replicated import Replicated, of_sums
from curate.stats.significance import Statistic, mean, means, pearson, products
from curate.stats.tally import Floats
from curate.tables.kinds.benchmark_kind import BenchmarkKind

Values = Mapping[str, list[float]]


class ScoredTask(Protocol):
    """What a scorer asks of the task."""

    @property
    def measure(self) -> str:
        """Return mteb's name of the measure that counts."""
        ...

    @property
    def readings(self) -> tuple[str, ...]:
        """Return by what readings of doubt, or of grades, an item is scored."""
        ...

    @property
    def made(self) -> Any:  # noqa: ANN401 - mteb has no types
        """Return mteb's task, whose attributes say what was drawn and embedded."""
        ...

    @property
    def training(self) -> Any:  # noqa: ANN401
        """Return the split that classifiers are trained on."""
        ...

    @property
    def verdicts(self) -> Mapping[str, Mapping[str, str]]:
        """Return query -> document -> what the panel said."""
        ...

    @property
    def gains(self) -> Mapping[str, int]:
        """Return grade -> gain of graded labels; empty for binary ones."""
        ...

    @property
    def median_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> gain of the judges' median grade; empty where no export says it."""
        ...

    @property
    def mean_gains(self) -> Mapping[str, Mapping[str, float]]:
        """Return query -> document -> mean gain of the judges' grades."""
        ...


class Scorer(Protocol):
    """How the items of a kind are scored, and how a score is made of them."""

    unit: str
    """What an item is, in the plural."""
    texts: int = 1
    """Texts of an item that a model encodes for it."""
    vectors: bool = False
    """Whether a model must have vectors: BM25 has none."""
    single: bool = True
    """Whether an item has a score of its own."""
    searched: bool = False
    """Whether a whole corpus was searched: documents may be unjudged or in doubt, and BM25's rank says how hard."""
    exchanged: bool = True
    """Whether two models can exchange the results of an item, for the randomisation test; else items are resampled."""
    centred: bool = False
    """Whether scores of resamples are moved to the score itself: a measure that rises when items repeat needs it."""
    statistic: Statistic = staticmethod(mean)
    """Makes a score of the sum of rows of `sums`."""

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the fields of `Scored` that come from what mteb saved: ids, values, first relevant ranks, doubt."""
        ...

    def sums(self, values: Values, reading: str) -> Floats:
        """Return one row per item, of which `statistic` makes a score when they are added."""
        return means(np.array(values[reading]))

    def size(self, values: Values) -> int:
        """Return how many items are resampled."""
        return len(next(iter(values.values())))

    def score(self, values: Values, reading: str) -> Replicated:
        """Return the measure that counts, on resampled items."""
        return of_sums(self.sums(values, reading), self.statistic)

    def beside(self, _values: Values, /) -> Mapping[str, Replicated]:
        """Return further measures by name, on the same resampled items."""
        return {}

    def counted(self, _values: Values, /) -> Mapping[str, float]:
        """Return further figures by name that have no interval, such as the spread over draws."""
        return {}


class RetrievalScorer(Scorer):
    """nDCG@10 of every query, under several readings of doubt."""

    unit = "queries"
    searched = True

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return scores per query; a query without a ranking scores 0, as mteb has it."""
        rankings = saved
        labels = {query: gains for query, gains in data["relevant_docs"].items() if any(g > 0 for g in gains.values())}
        queries, known = sorted(labels), task.verdicts
        ranked = {query: item_scores.ordered(rankings.get(query, {})) for query in queries}
        if task.gains:
            mean = task.mean_gains
            looked = [item_scores.look_graded(ranked[q], labels[q], known.get(q, {}), mean.get(q, {})) for q in queries]
        else:
            median = task.median_gains
            looked = [
                item_scores.look(ranked[q], labels[q], known.get(q, {}), task.measure, median[q] if median else None)
                for q in queries
            ]
        return {
            "queries": queries,
            "values": {reading: [each.scores[reading] for each in looked] for reading in task.readings},
            "first": [each.first for each in looked],
            "shown": sum(each.shown for each in looked) if known else 0,
            "holes": sum(each.holes for each in looked) if known else 0,
            "doubtful": sum(each.doubtful for each in looked),
            "top": [ranked[query][: item_scores.TOP] for query in queries] if self.searched else [],
        }


class RerankingScorer(RetrievalScorer):
    """MAP@10 of every query's candidates, all of which were decided."""

    searched = False


class PairScorer(Scorer):
    """Pearson's correlation of the cosines of pairs with their labels."""

    unit = "pairs"
    texts = 2
    vectors = True
    single = False
    statistic = staticmethod(pearson)

    def items(self, saved: Any, _task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the cosine and the label of every pair."""
        cosines = [float(each) for each in saved["cosine_scores"]]
        values = {"similarity": cosines, "label": [float(each) for each in data["score"]]}
        return {"queries": [str(place) for place in range(len(cosines))], "values": values, "first": []}

    def sums(self, values: Values, _reading: str) -> Floats:
        """Return the products of which a correlation is made."""
        return products(np.array(values["similarity"]), np.array(values["label"]))


def scorer_of(kind: BenchmarkKind) -> Scorer:
    """Return the scorer that a kind names."""
    module, _, name = kind.scorer.partition(":")
    found: Scorer = getattr(import_module(module), name)()
    return found
