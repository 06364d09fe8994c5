"""Confusion matrices of pairs of judges, from the ratings of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from curate.core.scale import Scale
from curate.panel import voting
from curate.panel.agreement_figures import PAIRED
from curate.stats.tally import crosstab


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix of two judges' grades; pairs without a grade by one of them are left out."""

    one: str
    other: str
    counts: list[list[int]]
    """Rows are grades of `one`, columns those of `other`, both from the best to the worst."""
    scale: Scale

    @property
    def pairs(self) -> int:
        """Pairs that both graded."""
        return sum(map(sum, self.counts))

    @property
    def equal(self) -> int:
        """Pairs to which both gave the same grade."""
        return sum(row[index] for index, row in enumerate(self.counts))

    @property
    def apart(self) -> int:
        """Pairs that one found relevant and the other not."""
        side = [label in self.scale.relevant for label in self.scale.labels]
        return sum(
            n
            for row, is_row_relevant in zip(self.counts, side, strict=True)
            for n, is_column_relevant in zip(row, side, strict=True)
            if is_row_relevant != is_column_relevant
        )


def confusions(ratings: pl.DataFrame, panel: Sequence[str], scale: Scale) -> list[Confusion]:
    """Return the confusion matrix of every two judges of a panel; [] for more than `PAIRED` judges."""
    grades = voting.codes(ratings, panel, scale)
    pairs = combinations(range(len(panel)), 2) if len(panel) <= PAIRED else ()
    size = len(scale.labels)
    tables = ((one, two, crosstab(grades[:, one], grades[:, two], size).table) for one, two in pairs)
    return [Confusion(panel[one], panel[two], table.astype(int).tolist(), scale) for one, two, table in tables]
