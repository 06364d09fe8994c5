"""Scorers of pairs, labelled texts and edited queries: average precision, Spearman's rho, macro-F1, V-measure.

Pairs are resampled by source, because the pairs of a source share a text. The source is a column of the data; without
one, pairs with equal `sentence1` have the same source.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curate.ask.edits.rewriting import KINDS
from curate.commands.evaluate.scorers import ScoredTask, Scorer, Values
from curate.core.errors import UserError
from curate.stats.bootstrap import DIGITS
from curate.stats.confusion import confusions, macro_f1
from curate.stats.rank_correlation import correct, rising, within_rho
from curate.stats.significance import (
    Replicated,
    Statistic,
    average_precision,
    best,
    grouped,
    mean_of,
    mean_value,
    spearman,
    v_measure,
)
from curate.stats.tally import Floats, Ints

GROUPS = ("pair-id", "query-id", "source-id", "sentence1")
"""Columns that may hold the source of a pair; the first one with repeated values is used."""
LABEL, SOURCE, COSINE = "label", "source", "cosine_scores"
SIMILARITIES = (COSINE, "similarity_scores", "dot_scores", "manhattan_distances", "euclidean_distances")
"""mteb's names of similarities; `max_ap` uses the best of them."""


class _OfSources(Scorer):
    """Base class of the scorers of pairs, which are resampled by source."""

    unit = "sources"
    texts = 2
    vectors = True
    single = False
    exchanged = False

    def size(self, values: Values) -> int:
        """Return the number of sources."""
        return int(max(values[SOURCE])) + 1

    def _by_source(self, values: Values, score: Replicated) -> Replicated:
        return grouped(score, _sources(values))


class PairClassificationScorer(_OfSources):
    """Average precision with the best of mteb's similarities, and paired accuracy within sources."""

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return label, source and similarities of every pair; distances are negated."""
        values = {LABEL: [float(label) for label in data[task.made.label_column_name]], SOURCE: sources(data)}
        signs = {name: -1.0 if name.endswith("distances") else 1.0 for name in SIMILARITIES}
        values |= {name: [sign * float(score) for score in saved[name]] for name, sign in signs.items()}
        return {"queries": _item_ids(values), "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return the average precision with the best similarity: mteb's `max_ap`."""
        label = np.array(values[LABEL])
        columns = _distinct_columns([np.array(values[name]) for name in SIMILARITIES])
        return self._by_source(values, best([average_precision(column, label) for column in columns]))

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return the paired accuracy by cosine, with ties as 0.5; {} if no source has pairs of both labels."""
        right = correct(np.array(values[COSINE]), np.array(values[LABEL]), _sources(values))
        return {} if np.isnan(right).all() else {"paired accuracy": mean_value(right)}


class LevelScorer(_OfSources):
    """Spearman's rho of cosines and levels over all pairs.

    Further figures are rho within sources, and the share of sources whose cosines strictly rise with the level.
    """

    def items(self, saved: Any, _task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the cosine, the level and the source of every pair."""
        values = {LABEL: [float(level) for level in data["score"]], SOURCE: sources(data), COSINE: list(saved[COSINE])}
        return {"queries": _item_ids(values), "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return Spearman's rho over all pairs."""
        return self._by_source(values, spearman(np.array(values[COSINE]), np.array(values[LABEL])))

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return mean rho within sources, and the share of sources with strictly rising cosines, each if defined."""
        args = np.array(values[COSINE]), np.array(values[LABEL]), _sources(values)
        by_source = {"rho within source": within_rho(*args), "strict order": rising(*args)}
        return {
            name: mean_value(source_values)
            for name, source_values in by_source.items()
            if not np.isnan(source_values).all()
        }

    def counted(self, values: Values) -> Mapping[str, float]:
        """Return the number of sources with several levels but equal cosines, for which rho is undefined."""
        args = np.array(values[COSINE]), np.array(values[LABEL]), _sources(values)
        undefined = np.isnan(within_rho(*args)) & ~np.isnan(rising(*args))
        return {"sources without rho": int(undefined.sum())}


def sources(data: Any) -> list[float]:  # noqa: ANN401 - `datasets` has no types
    """Return the number of every pair's source, from 0 in order of appearance.

    Without sources, each pair is its own source.
    """
    for name in GROUPS:
        if name in data.column_names:
            number_by_source: dict[str, float] = {}
            column = list(data[name])
            numbers = [number_by_source.setdefault(source, float(len(number_by_source))) for source in column]
            if 1 < len(number_by_source) < len(column):
                return numbers
    return [float(index) for index in range(len(data))]


def _distinct_columns(columns: Sequence[Floats]) -> list[Floats]:
    """Return the columns without those that rank all pairs, including ties, as an earlier column does."""
    ranks = [np.unique(column, return_inverse=True)[1] for column in columns]
    return [
        column
        for index, column in enumerate(columns)
        if not any(np.array_equal(ranks[index], rank) for rank in ranks[:index])
    ]


def _sources(values: Values) -> Ints:
    return np.array(values[SOURCE], dtype=np.int64)


def _item_ids(values: Values) -> list[str]:
    return [str(index) for index in range(len(values[LABEL]))]


# Labelled texts: macro-F1 of mteb's few-shot classification, V-measure of its clustering.

TEXT_LABEL, CLASSES, DRAW, TIMES = "label", "classes", "draw", "times"
"""Keys of values: label, number of classes, and two per draw.

The latter are the predicted class or cluster, and how often a text was drawn.
"""


class _OfTexts(Scorer):
    """Base class of the scorers of labelled texts."""

    unit = "texts"
    vectors = True
    single = False

    def size(self, values: Values) -> int:
        """Return the number of scored texts."""
        return len(values[TEXT_LABEL])


class ClassificationScorer(_OfTexts):
    """Mean macro-F1 of the classifiers that mteb trains on a few texts per class; the items are test texts."""

    statistic: Statistic = staticmethod(macro_f1)

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the label of every test text, and each classifier's prediction."""
        column = task.made.label_column_name
        labels = list(data[column])
        names = {name: float(index) for index, name in enumerate(sorted({*labels, *task.training[column]}))}
        values = {TEXT_LABEL: [names[label] for label in labels], CLASSES: [float(len(names))]}
        values |= {
            f"{DRAW} {draw}": [names[prediction] for prediction in predictions]
            for draw, predictions in enumerate(saved)
        }
        return {"queries": [str(index) for index in range(len(labels))], "values": values, "first": []}

    def sums(self, values: Values, _reading: str) -> Floats:
        """Return a row of `confusions` per text, for all draws; macro-F1 is computed from the sum of the rows."""
        return self._confusions(values, drawn(values, DRAW))

    def counted(self, values: Values) -> Mapping[str, float]:
        """Return the standard deviation of macro-F1 over draws (ddof 0)."""
        f1_by_draw = [float(macro_f1(self._confusions(values, [draw]).sum(axis=0))) for draw in drawn(values, DRAW)]
        return {"sd over draws": round(float(np.std(f1_by_draw)), DIGITS)}

    def _confusions(self, values: Values, draws: Sequence[Sequence[float]]) -> Floats:
        return confusions(codes(values[TEXT_LABEL]), [codes(draw) for draw in draws], int(values[CLASSES][0]))


class ClusteringScorer(_OfTexts):
    """Mean V-measure of mteb's mini-batch k-means over random draws of texts; the items are embedded texts.

    mteb draws texts with replacement; its seed reproduces the draws. Bootstrap resamples keep the clusters and are
    centred on the measured value, because a resample has fewer distinct texts and thus a higher V-measure.
    """

    exchanged = False
    centred = True

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return each embedded text's label and, per draw of mteb, its cluster and how often it was drawn."""
        labels = list(data[task.made.label_column_name])
        if any(isinstance(label, list) for label in labels) or len(saved) != 1:
            raise UserError(f"{task.made.metadata.name}: found labels of several levels; expected one label per text")
        embedded, draws = clustered(task.made, len(labels))
        names = {name: float(index) for index, name in enumerate(sorted(set(labels)))}
        values = {TEXT_LABEL: [names[labels[index]] for index in embedded]}
        for number, (drawn_indices, clusters) in enumerate(zip(draws, next(iter(saved.values())), strict=True)):
            cluster = np.full(len(embedded), -1.0)
            cluster[drawn_indices] = clusters
            values[f"{DRAW} {number}"] = cluster.tolist()
            values[f"{TIMES} {number}"] = np.bincount(drawn_indices, minlength=len(embedded)).astype(float).tolist()
        return {"queries": [str(index) for index in embedded], "values": values, "first": []}

    def score(self, values: Values, _reading: str) -> Replicated:
        """Return the mean V-measure over mteb's draws."""
        return mean_of(self._v_measures(values))

    def counted(self, values: Values) -> Mapping[str, float]:
        """Return the mean AMI (scikit-learn's), and the standard deviation of the V-measure over draws."""
        from sklearn.metrics import adjusted_mutual_info_score

        unit_weights, label = np.ones((1, self.size(values))), codes(values[TEXT_LABEL])
        spread = np.std([float(replicated(unit_weights)[0]) for replicated in self._v_measures(values)])
        ami = [
            adjusted_mutual_info_score(np.repeat(label, codes(times)), np.repeat(codes(cluster), codes(times)))
            for cluster, times in zip(drawn(values, DRAW), drawn(values, TIMES), strict=True)
        ]
        return {
            "AMI": round(float(np.mean(ami)), DIGITS),
            "sd of AMI over draws": round(float(np.std(ami)), DIGITS),
            "sd over draws": round(float(spread), DIGITS),
        }

    def _v_measures(self, values: Values) -> list[Replicated]:
        label = codes(values[TEXT_LABEL])
        return [
            v_measure(label, codes(cluster), codes(times))
            for cluster, times in zip(drawn(values, DRAW), drawn(values, TIMES), strict=True)
        ]


def clustered(mteb_task: Any, texts: int) -> tuple[list[int], list[list[int]]]:  # noqa: ANN401 - mteb has no types
    """Return the indices of the texts that mteb embeds and, per draw, indices into these; both from mteb's seed."""
    state = random.Random(mteb_task.seed)  # noqa: S311 - mteb's
    most = mteb_task.max_document_to_embed
    if mteb_task.max_fraction_of_documents_to_embed is not None:
        most = int(mteb_task.max_fraction_of_documents_to_embed * texts)
    embedded = list(range(texts)) if most is None else state.sample(range(texts), k=min(texts, most))
    size = mteb_task.max_documents_per_cluster
    return embedded, [state.choices(range(len(embedded)), k=size) for _ in range(mteb_task.n_clusters)]


def drawn(values: Values, name: str) -> list[list[float]]:
    """Return the values named `name` of every draw."""
    return [draw_values for key, draw_values in values.items() if key.startswith(f"{name} ")]


def codes(values: Sequence[float]) -> Ints:
    """Return values as an array of integers."""
    return np.array(values, dtype=np.int64)


# Edited queries: share of edits scored below the counterpart with the same meaning, by kind.

KIND = "kind"


class EditScorer(LevelScorer):
    """Spearman's rho as in `LevelScorer`; also paired accuracy (chance is 0.5), the headline, with ties as 0.5.

    The headline is its mean over the kinds of edits, so that a kind with many edits does not hide the others.
    """

    headline = "paired accuracy, mean of kinds"

    def items(self, saved: Any, task: ScoredTask, data: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the fields of `LevelScorer`, and the index of each item's kind of edit."""
        fields = super().items(saved, task, data)
        kinds = data[KIND] if KIND in data.column_names else [""] * len(data)  # levels of other data sets have no kind
        kind_indices = [float(KINDS.index(kind)) if kind in KINDS else -1.0 for kind in kinds]
        return {**fields, "values": {**fields["values"], KIND: kind_indices}}

    def beside(self, values: Values) -> Mapping[str, Replicated]:
        """Return the paired accuracy: mean of the kinds of edits that occur, of all pairs, then of each kind."""
        source: Ints = np.array(values[SOURCE], dtype=np.int64)
        right = correct(np.array(values[COSINE]), np.array(values[LABEL]), source)
        _, first = np.unique(source, return_index=True)
        kinds = np.array(values.get(KIND, [-1.0] * len(source)))[first]  # scores stored before kinds existed
        by_kind = {
            f"paired accuracy, {kind}": mean_value(np.where(kinds == index, right, np.nan))
            for index, kind in enumerate(KINDS)
            if (kinds == index).any()
        }
        overall = mean_value(right)
        by_kinds = mean_of(list(by_kind.values()) or [overall])
        return {self.headline: by_kinds, "paired accuracy": overall, **by_kind}
