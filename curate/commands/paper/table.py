"""A table of a paper: its columns, its cells, and the sentences that its caption is made of; CSV with every figure."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A figure, with its 95 % interval where there is one; `factor` and `digits` say how it is printed."""

    value: float | None
    low: float | None = None
    high: float | None = None
    digits: int = 2
    factor: float = 1.0
    best: bool = False

    @classmethod
    def of(
        cls, figure: Mapping[str, Any] | None, digits: int = 2, factor: float = 1.0, *, best: bool = False
    ) -> "Cell":
        """Return the cell of a figure as JSON has it: value, low, high; undefined for None."""
        found = figure or {"value": None}
        return cls(found["value"], found.get("low"), found.get("high"), digits, factor, best)

    def shown(self) -> str | None:
        """Return the figure as print has it, such as `0.824 [0.756, 0.885]`; None if it is not defined."""
        if self.value is None:
            return None
        value, low, high = (None if each is None else self._printed(each) for each in (self.value, self.low, self.high))
        return str(value) if low is None or high is None else f"{value} [{low}, {high}]"

    def _printed(self, figure: float) -> str:
        return f"{round(self.factor * figure, self.digits) + 0.0:,.{self.digits}f}"


Shown = Cell | str | int | None


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper; the first `keys` columns name the rows."""

    name: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Shown]]
    keys: int = 1

    def csv(self) -> str:
        """Return the table as CSV, with both ends of the intervals in columns of their own; empty if not defined."""
        wide = [any(_bounded(row[at]) for row in self.rows) for at in self._places]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([name for at in self._places for name in _names(self.heads[at], wide[at])])
        writer.writerows([value for at in self._places for value in _values(row[at], wide[at])] for row in self.rows)
        return out.getvalue()

    @property
    def _places(self) -> range:
        return range(len(self.heads))


def _bounded(shown: Shown) -> bool:
    return isinstance(shown, Cell) and shown.low is not None


def _names(head: str, wide: bool) -> Iterator[str]:
    yield head
    if wide:
        yield from (f"{head}, low", f"{head}, high")


def _values(cell: Shown, wide: bool) -> Iterator[object]:
    """Yield the cell's fields as they were computed, rounded by nothing."""
    if isinstance(cell, Cell):
        yield from (cell.value, cell.low, cell.high) if wide else (cell.value,)
    else:
        yield from (cell, None, None) if wide else (cell,)
