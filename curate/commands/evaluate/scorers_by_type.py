"""Scorers of pairs of texts that belong to sources: average precision of a label, Spearman's rho of levels.

What is resampled are sources with all their pairs, because the pairs of a source share a text. A column of the data
names them; without one, pairs of equal `sentence1` are one source's.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curate.ask.edits.changes import KINDS
from curate.commands.evaluate.scorers import ScoredTask, Scorer, Values
from curate.core.errors import UserError
from curate.stats.bootstrap import DIGITS
from curate.stats.confusion import confusions, macro_f1
from curate.stats.replicated import (
    Replicated,
    average_precision,
    best,
    grouped,
    mean_of,
    mean_value,
    spearman,
    v_measure,
)
from curate.stats.significance import Statistic
from curate.stats.tally import Floats, Ints
from curate.stats.within import correct, rising, within_rho

GROUPS = ("pair-id", "query-id", "source-id", "sentence1")
"""Columns that name the source of a pair, the first that is there and whose values repeat."""
LABEL, SOURCE, COSINE = "label", "source", "cosine_scores"
SIMILARITIES = (COSINE, "similarity_scores", "dot_scores", "manhattan_distances", "euclidean_distances")
"""mteb's names of what it scores pairs by, of which `max_ap` takes the best."""


class _OfSources(Scorer):
    """What scorers of pairs that belong to sources have in common."""

    unit = "sources"
    texts = 2
    vectors = True
    single = False
    exchanged = False

    def size(self, values: Values) -> int:
        """Return the number of sources."""
        return int(max(values[SOURCE])) + 1

    def _of_pairs(self, values: Values, score: Replicated) -> Replicated:
        return grouped(score, _sources(values))


class PairClassificationScorer(_OfSources):
    """Average precision, by the best of mteb's similarities; beside it the share of sources whose pair is preferred."""

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return label, source and similarities of every pair, distances with their sign turned."""
        values = {LABEL: [float(each) for each in data[task.made.label_column_name]], SOURCE: sources(data)}
        values |= {name: _similar(name, saved[name]) for name in SIMILARITIES}
        return {"queries": _places(values), "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return the greatest average precision of any similarity, as mteb's `max_ap`."""
        label = np.array(values[LABEL])
        columns = _different([np.array(values[name]) for name in SIMILARITIES])
        return self._of_pairs(values, best([average_precision(column, label) for column in columns]))

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return paired accuracy by cosine, ties for half, where sources have pairs of both labels."""
        right = correct(np.array(values[COSINE]), np.array(values[LABEL]), _sources(values))
        return {} if np.isnan(right).all() else {"paired accuracy": mean_value(right)}


class LevelScorer(_OfSources):
    """Spearman's rho of cosines and levels over all pairs; beside it the same within each source, and strict order."""

    def items(self, saved: Any, _task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the cosine, the level and the source of every pair."""
        values = {LABEL: [float(each) for each in data["score"]], SOURCE: sources(data), COSINE: list(saved[COSINE])}
        return {"queries": _places(values), "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return Spearman's rho over all pairs."""
        return self._of_pairs(values, spearman(np.array(values[COSINE]), np.array(values[LABEL])))

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return mean rho within sources, where it is defined, and the share of sources in strictly rising order."""
        args = np.array(values[COSINE]), np.array(values[LABEL]), _sources(values)
        found = {"rho within source": within_rho(*args), "strict order": rising(*args)}
        return {name: mean_value(each) for name, each in found.items() if not np.isnan(each).all()}

    def counted(self, values: Values) -> Mapping[str, float]:
        """Return how many sources have several levels and equal scores: rho is not defined there."""
        args = np.array(values[COSINE]), np.array(values[LABEL]), _sources(values)
        undefined = np.isnan(within_rho(*args)) & ~np.isnan(rising(*args))
        return {"sources without rho": int(undefined.sum())}


def sources(data: Any) -> list[float]:  # noqa: ANN401 - `datasets` has no types
    """Return the number of every pair's source, from 0 in order of appearance; each pair's own where none repeats."""
    for name in GROUPS:
        if name in data.column_names:
            places: dict[str, float] = {}
            column = list(data[name])
            numbers = [places.setdefault(each, float(len(places))) for each in column]
            if 1 < len(places) < len(column):
                return numbers
    return [float(place) for place in range(len(data))]


def _similar(name: str, column: Sequence[float]) -> list[float]:
    return [-float(each) if name.endswith("distances") else float(each) for each in column]


def _different(columns: Sequence[Floats]) -> list[Floats]:
    """Return the columns that do not put the pairs, ties included, into the order of an earlier one."""
    ranks = [np.unique(column, return_inverse=True)[1] for column in columns]
    return [
        column
        for place, column in enumerate(columns)
        if not any(np.array_equal(ranks[place], rank) for rank in ranks[:place])
    ]


def _sources(values: Values) -> Ints:
    return np.array(values[SOURCE], dtype=np.int64)


def _places(values: Values) -> list[str]:
    return [str(place) for place in range(len(values[LABEL]))]


# Scorers of labelled texts: macro-F1 of mteb's few-shot classification, V-measure of its clustering.

TEXT_LABEL, CLASSES, DRAW, TIMES = "label", "classes", "draw", "times"
"""Names of values: labels, their number, and by draw the class or cluster that was found and how often it was drawn."""


class _OfTexts(Scorer):
    """What scorers of labelled texts have in common."""

    unit = "texts"
    vectors = True
    single = False

    def size(self, values: Values) -> int:
        """Return the number of texts that are scored."""
        return len(values[TEXT_LABEL])


class ClassificationScorer(_OfTexts):
    """Mean macro-F1 of the classifiers that mteb trains on a few texts per class; an item is a test text."""

    statistic: Statistic = staticmethod(macro_f1)

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the label of every test text, and what each classifier predicted."""
        column = task.made.label_column_name
        labels = list(data[column])
        names = {name: float(place) for place, name in enumerate(sorted({*labels, *task.training[column]}))}
        values = {TEXT_LABEL: [names[label] for label in labels], CLASSES: [float(len(names))]}
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
        return confusions(codes(values[TEXT_LABEL]), [codes(draw) for draw in draws], int(values[CLASSES][0]))


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
        values = {TEXT_LABEL: [names[labels[place]] for place in embedded]}
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

        whole, label = np.ones((1, self.size(values))), codes(values[TEXT_LABEL])
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
        label = codes(values[TEXT_LABEL])
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


# Scorer of edited queries: which share of edits a model puts below the counterpart of the same meaning, by kind.

KIND = "kind"


class EditScorer(LevelScorer):
    """Spearman's rho as for all levels; beside it paired accuracy, of all pairs and by kind of edit, chance .5."""

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return what every level has, and the kind of each item's edit by its place among all kinds."""
        found = super().items(saved, task, data)
        kinds = data[KIND] if KIND in data.column_names else [""] * len(data)  # a stranger's levels have none
        places = [float(KINDS.index(kind)) if kind in KINDS else -1.0 for kind in kinds]
        return {**found, "values": {**found["values"], KIND: places}}

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return the share of pairs in the right order, ties for half: of all pairs, then of each kind there is."""
        source: Ints = np.array(values[SOURCE], dtype=np.int64)
        right = correct(np.array(values[COSINE]), np.array(values[LABEL]), source)
        _, first = np.unique(source, return_index=True)
        kinds = np.array(values.get(KIND, [-1.0] * len(source)))[first]  # scores that were saved before kinds were
        by_kind = {
            f"paired accuracy, {kind}": mean_value(np.where(kinds == place, right, np.nan))
            for place, kind in enumerate(KINDS)
            if (kinds == place).any()
        }
        return {"paired accuracy": mean_value(right), **by_kind}
