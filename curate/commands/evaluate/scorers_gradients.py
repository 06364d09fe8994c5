"""Scorer of edited queries: which share of edits a model puts below the counterpart of the same meaning, by kind."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curate.ask.edits.changes import KINDS
from curate.commands.evaluate.scorers import ScoredTask, Values
from curate.commands.evaluate.scorers_pairs import COSINE, LABEL, SOURCE, LevelScorer
from curate.stats.replicated import Replicated, mean_value
from curate.stats.tally import Ints
from curate.stats.within import correct

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
