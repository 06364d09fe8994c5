"""Readers that turn users' files, folders and mteb tasks into rows with line numbers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from curate.core.config import kind_of
from curate.core.errors import TableError, TableFault

Table = Literal["queries", "corpus", "qrels", "labels", "ratings", "notes"]
TABLES: tuple[Table, ...] = ("queries", "corpus", "qrels")
"""Tables of every source; `labels` (classes of texts) are read only if a setting names them.

`ratings` and `notes` are read by the commands `agree` and `notes`.
"""

LONG = 40
"""Maximum length of a column name in messages."""


def listed(columns: Sequence[str]) -> str:
    """Return column names for a message.

    A long one, possibly a text of a file without header, is shown as its length.
    """
    return ", ".join(name if len(name) <= LONG else f"one of {len(name)} characters" for name in columns) or "none"


def json_kind(content: object) -> str:
    """Return a word for the type of a value of JSON, for a message."""
    return kind_of(content, mapping="an object")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source."""

    line: int
    """Line of a text file (where the row begins), or number of the row, from 1."""
    values: Mapping[str, object]
    position: int
    """Position in the source after this row, in the unit of `Source.size` (bytes or rows)."""
    line_prefix: str = ""
    """Prefix of the line number if line numbers serve as ids, so that ids of several files differ."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that cannot be used: what was read and expected, and the remedy, without any text of the row."""

    line: int
    got: str
    expected: str
    remedy: str
    column: str = ""
    """Column of the wrong cell; empty if it is not one cell."""

    def fault(self, location: str) -> TableFault:
        """Return the problem with its location: file, line and, if it is one cell, its column."""
        at = f"{location}:{self.line}" + (f", column {listed([self.column])}" if self.column else "")
        return TableFault(at, self.got, self.expected, self.remedy)

    def error(self, location: str, options: Sequence[Sequence[str]] = ()) -> TableError:
        """Return the error that this problem alone makes."""
        return TableError([self.fault(location)], options)


class Source(Protocol):
    """Source of the rows of one table; its rows can be read repeatedly."""

    @property
    def location(self) -> str:
        """Return the name of the source in errors, before the line number."""
        ...

    @property
    def name(self) -> str:
        """Return the value of the table's column `source`: a file's base name, or a task's name."""
        ...

    def size(self) -> int:
        """Return the length of the source, in bytes of a text file or in rows."""
        ...

    def header(self) -> list[str] | None:
        """Return the names of the columns; None if each row has its own, as in JSON."""
        ...

    def rows(self, columns: Collection[str] = ()) -> Iterator[Row | Problem]:
        """Yield each row in order, or a Problem in its place; columns other than `columns` may be left out."""
        ...

    def digest(self) -> str:
        """Return a digest that changes with the content."""
        ...
