"""The pairs that five judges and people graded, from the shared data: in the order of their ids, grades from 0 to 3."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from curate.core.scale import Scale

Ints = npt.NDArray[np.int64]
SCALE = Scale(("3", "2", "1", "0"), "2", (3, 2, 1, 0))


@dataclass(frozen=True)
class Assessed:
    """Pairs with grades; relevant is 2 and 3."""

    table: pl.DataFrame

    @classmethod
    def read(cls, shared: Path) -> "Assessed":
        table = pl.read_csv(shared / "multirater" / "llmjudge_8queries_5judges.csv").sort("query_id", "doc_id")
        return cls(table.with_columns(pl.col(pl.Int64).clip(0, 3)))

    @cached_property
    def judges(self) -> list[str]:
        return self.table.columns[3:]

    @property
    def panel(self) -> list[str]:
        return self.judges[:3]

    @cached_property
    def grades(self) -> dict[str, Ints]:
        return {name: self.table[name].to_numpy().astype(np.int64) for name in self.judges}

    @cached_property
    def relevant(self) -> Ints:
        return (self.table["human"] >= 2).cast(pl.Int64).to_numpy()

    @cached_property
    def query(self) -> Ints:
        return (self.table["query_id"].rank("dense") - 1).cast(pl.Int64).to_numpy()

    @cached_property
    def votes(self) -> Ints:
        return np.asarray(sum((self.grades[name] >= 2).astype(np.int64) for name in self.panel))

    @property
    def ratings(self) -> pl.DataFrame:
        """Return query_id, doc_id, judge and grade."""
        long = self.table.unpivot(self.judges, index=["query_id", "doc_id"], variable_name="judge", value_name="grade")
        return long.with_columns(pl.col("grade").cast(pl.String))

    def ranks(self, key: Ints) -> Ints:
        """Return the rank of every pair in its query by a key, ties by document id as text: the order of the table."""
        ranked = self.table.select("query_id", key=pl.Series(key))
        return ranked.select(pl.col("key").rank("ordinal").over("query_id").cast(pl.Int64))["key"].to_numpy()
