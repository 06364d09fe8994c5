"""Readers: any user's files, folders and mteb tasks become rows that know their place."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Table = Literal["queries", "corpus", "qrels", "labels"]
TABLES: tuple[Table, ...] = ("queries", "corpus", "qrels")
"""Those that every source has; `labels` (classes of texts) are read where they are named."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source."""

    line: int
    """Line of a text file (where the row begins), or number of the row, from 1."""
    values: Mapping[str, object]
    at: int
    """How far the source is read, in the unit of its `size`."""
    part: str = ""
    """What stands before the line where that is the id, so that the lines of several files differ."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that cannot be used; it never holds any of the row's text."""

    line: int
    found: str
    expected: str
    remedy: str

    def sentence(self, place: str) -> str:
        """Return the problem as one sentence that begins with its place."""
        return f"{place}:{self.line}: found {self.found}, expected {self.expected}; {self.remedy}"


class Source(Protocol):
    """Where the rows of one table come from; it can be read several times."""

    @property
    def place(self) -> str:
        """Return what stands in front of a line number in an error."""
        ...

    @property
    def name(self) -> str:
        """Return what stands in the table's column `source`: a file's base name, or a task's name."""
        ...

    def size(self) -> int:
        """Return the length of the source, in bytes of a text file or in rows."""
        ...

    def header(self) -> list[str] | None:
        """Return the names of the columns; None where every row has names of its own."""
        ...

    def rows(self, wanted: Collection[str] = ()) -> Iterator[Row | Problem]:
        """Yield every row in order, or what is wrong with it; only the `wanted` columns have to be read."""
        ...

    def digest(self) -> str:
        """Return what changes when the content changes."""
        ...
