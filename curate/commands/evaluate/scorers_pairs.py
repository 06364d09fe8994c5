"""Scorers of pairs of texts that belong to sources: average precision of a label, Spearman's rho of levels.

What is resampled are sources with all their pairs, because the pairs of a source share a text. A column of the data
names them; without one, pairs of equal `sentence1` are one source's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curate.commands.evaluate.scorers import ScoredTask, Scorer, Values
from curate.stats.replicated import Replicated, average_precision, best, grouped, mean_value, spearman
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
