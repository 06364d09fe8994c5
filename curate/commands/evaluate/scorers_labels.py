"""Scorers of labelled texts: macro-F1 of mteb's few-shot classification, V-measure of its clustering."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curate.commands.evaluate.scorers import ScoredTask, Scorer, Values
from curate.core.errors import UserError
from curate.stats.bootstrap import DIGITS
from curate.stats.confusion import confusions, macro_f1
from curate.stats.replicated import Replicated, mean_of, v_measure
from curate.stats.significance import Statistic
from curate.stats.tally import Floats, Ints

LABEL, CLASSES, DRAW, TIMES = "label", "classes", "draw", "times"
"""Names of values: labels, their number, and by draw the class or cluster that was found and how often it was drawn."""


class _OfTexts(Scorer):
    """What scorers of labelled texts have in common."""

    unit = "texts"
    vectors = True
    single = False

    def size(self, values: Values) -> int:
        """Return the number of texts that are scored."""
        return len(values[LABEL])


class ClassificationScorer(_OfTexts):
    """Mean macro-F1 of the classifiers that mteb trains on a few texts per class; an item is a test text."""

    statistic: Statistic = staticmethod(macro_f1)

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the label of every test text, and what each classifier predicted."""
        column = task.made.label_column_name
        labels = list(data[column])
        names = {name: float(place) for place, name in enumerate(sorted({*labels, *task.training[column]}))}
        values = {LABEL: [names[label] for label in labels], CLASSES: [float(len(names))]}
        values |= {f"{DRAW} {draw}": [names[each] for each in one] for draw, one in enumerate(saved)}
        return {"queries": [str(place) for place in range(len(labels))], "values": values, "first": []}

    def sums(self, values: Values, _reading: str) -> Floats:
        """Return per text and class what every draw's precision and recall are made of."""
        return self._of(values, drawn(values, DRAW))

    def counted(self, values: Values) -> Mapping[str, float]:
        """Return the standard deviation of macro-F1 over draws, as numpy has it."""
        found = [float(macro_f1(self._of(values, [each]).sum(axis=0))) for each in drawn(values, DRAW)]
        return {"sd over draws": round(float(np.std(found)), DIGITS)}

    def _of(self, values: Values, draws: Sequence[Sequence[float]]) -> Floats:
        return confusions(codes(values[LABEL]), [codes(draw) for draw in draws], int(values[CLASSES][0]))


class ClusteringScorer(_OfTexts):
    """Mean V-measure of mteb's mini-batch k-means on drawn texts; an item is a text that was embedded.

    The draws of mteb, with replacement, are made again from its seed. Resampling leaves clusters as they are, and is
    centred: fewer different texts fit any clusters better.
    """

    exchanged = False
    centred = True

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the label of every embedded text, and by draw its cluster and how often it was drawn."""
        labels = list(data[task.made.label_column_name])
        if any(isinstance(label, list) for label in labels) or len(saved) != 1:
            raise UserError(f"{task.made.metadata.name}: found labels of several levels; expected one label per text")
        embedded, draws = clustered(task.made, len(labels))
        names = {name: float(place) for place, name in enumerate(sorted(set(labels)))}
        values = {LABEL: [names[labels[place]] for place in embedded]}
        for number, (chosen, found) in enumerate(zip(draws, next(iter(saved.values())), strict=True)):
            cluster = np.full(len(embedded), -1.0)
            cluster[chosen] = found
            values[f"{DRAW} {number}"] = cluster.tolist()
            values[f"{TIMES} {number}"] = np.bincount(chosen, minlength=len(embedded)).astype(float).tolist()
        return {"queries": [str(place) for place in embedded], "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return the mean V-measure over draws."""
        return mean_of(self._each(values))

    def counted(self, values: Values) -> Mapping[str, float]:
        """Return mean AMI, as scikit-learn computes it, and the standard deviation of V over draws."""
        from sklearn.metrics import adjusted_mutual_info_score

        whole, label = np.ones((1, self.size(values))), codes(values[LABEL])
        spread = np.std([float(each(whole)[0]) for each in self._each(values)])
        ami = [
            adjusted_mutual_info_score(np.repeat(label, codes(times)), np.repeat(codes(cluster), codes(times)))
            for cluster, times in zip(drawn(values, DRAW), drawn(values, TIMES), strict=True)
        ]
        return {
            "AMI": round(float(np.mean(ami)), DIGITS),
            "sd of AMI over draws": round(float(np.std(ami)), DIGITS),
            "sd over draws": round(float(spread), DIGITS),
        }

    def _each(self, values: Values) -> list[Replicated]:
        label = codes(values[LABEL])
        return [
            v_measure(label, codes(cluster), codes(times))
            for cluster, times in zip(drawn(values, DRAW), drawn(values, TIMES), strict=True)
        ]


def clustered(made: Any, texts: int) -> tuple[list[int], list[list[int]]]:  # noqa: ANN401 - mteb has no types
    """Return which texts mteb embeds, and of each draw the places among them: by its seed, as it draws them."""
    state = random.Random(made.seed)  # noqa: S311 - mteb's
    most = made.max_document_to_embed
    if made.max_fraction_of_documents_to_embed is not None:
        most = int(made.max_fraction_of_documents_to_embed * texts)
    embedded = list(range(texts)) if most is None else state.sample(range(texts), k=min(texts, most))
    size = made.max_documents_per_cluster
    return embedded, [state.choices(range(len(embedded)), k=size) for _ in range(made.n_clusters)]


def drawn(values: Values, name: str) -> list[list[float]]:
    """Return the values of every draw."""
    return [each for key, each in values.items() if key.startswith(f"{name} ")]


def codes(values: Sequence[float]) -> Ints:
    """Return values as whole numbers."""
    return np.array(values, dtype=np.int64)
