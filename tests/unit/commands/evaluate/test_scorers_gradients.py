"""Paired accuracy of edits by kind, as `curate evaluate` shows it beside the main score."""

import numpy as np
import pytest

from curate.ask.edits.rewriting import KINDS
from curate.commands.evaluate.scorers_by_type import EditScorer


class Columns:
    """The columns of a data set."""

    column_names = ("sentence1", "score", "kind", "pair-id")

    def __init__(self, rows: list[tuple[str, float, str]]) -> None:
        self.rows = rows

    def __getitem__(self, name: str) -> list[object]:
        places = {"pair-id": 0, "score": 1, "kind": 2}
        return [row[places[name]] for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)


def test_paired_accuracy_stands_beside_the_main_score_by_kind() -> None:
    rows = [(f"p{n}", score, kind) for n, kind in enumerate(("dose", "dose", "swap")) for score in (0.0, 1.0)]
    saved = {"cosine_scores": [0.1, 0.9, 0.5, 0.5, 0.8, 0.2]}
    scorer = EditScorer()
    values = scorer.items(saved, None, Columns(rows))["values"]  # type: ignore[arg-type]
    ones = np.ones((1, 3))
    found = {name: float(each(ones)[0]) for name, each in scorer.beside(values).items()}
    assert found == {
        "paired accuracy, mean of kinds": 0.375,
        "paired accuracy": pytest.approx(0.5),
        "paired accuracy, dose": 0.75,
        "paired accuracy, swap": 0.0,
    }
    assert float(scorer.compared(values, "stock")(ones)[0]) == 0.375, "the headline"
    assert set(values["kind"]) == {KINDS.index("dose"), KINDS.index("swap")}
