"""Profile of a user's table from one pass over all rows; `init` asks about anything that it leaves ambiguous."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from curate.core.errors import DataError
from curate.core.protocols import Progress, quiet
from curate.tables.readers import Problem, Row, Source, Table
from curate.tables.readers import encoding as packed
from curate.tables.readers.file import BINARY, File
from curate.tables.readers.guess import SHORT, TABULAR, Guess, first_columns, guess, has_known_name
from curate.tables.readers.items import LINE, Item, Names, as_id, item, needed_columns, pair, reached, shown
from curate.tables.readers.markup import is_html

LONG = 32_000
"""Number of characters above which a text exceeds the context of most judges and encoders."""
_EVERY = 2_000
_ASKS = ("?", "？", "。", "！", "!")
"""Sentence punctuation; a column name with it is probably a text."""


@dataclass(frozen=True)
class IdColumn:
    """Detected or configured id column of a table, with counts of defective ids."""

    column: str
    repeated: int
    """Number of rows whose id occurs in an earlier row."""
    missing: int
    """Number of rows without a valid id; valid are whole numbers, and texts without white space."""
    by: Literal["name", "values", "user"]
    example: str = ""
    """Example of a repeated id, such as `'A12' in rows 4 and 90`."""


@dataclass(frozen=True)
class TableLook:
    """Profile of one table."""

    table: Table
    location: str
    format: str
    """Format of the files; `task` for a dataset of mteb or ir_datasets."""
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    packed: str | None
    """File extension of the compression without its dot, such as gz; None if uncompressed."""
    header: bool
    headless: bool
    """Whether the header looks like a row of data."""
    columns: Sequence[str]
    """Names of the columns in the first rows; dotted for fields within JSON objects."""
    guess: Guess | None
    error: DataError | None
    """Error of a failed column detection; None if there is a guess."""
    id: IdColumn | None
    """Id column; None if no column looks like one."""
    rows: int
    problems: int
    """Number of unreadable rows and of rows with an invalid text or score; id defects are counted in `id`."""
    problem: str
    """Error message of the first such row."""
    empty: int
    html: int
    long: int
    longest: int
    content: int
    """Digest of all texts, in any order."""
    form: str = ""
    """What a row of the file is, if it is no row of the table, and what its labels leave out."""

    @property
    def html_share(self) -> float | None:
        """Return the share of rows with HTML in title or text; None without rows."""
        return self.html / self.rows if self.rows else None


def look(
    sources: Sequence[Source],
    table: Table,
    named: Mapping[str, str] | None = None,
    progress: Progress = quiet,
    other: Collection[str] = (),
) -> TableLook:
    """Return the profile of a table's sources; `named` (field -> column) are the columns that the user named.

    Columns in `other` belong to another table in the same file. DataError or ConfigError if a file cannot be opened or
    lacks a column in `named`.
    """
    first = sources[0]
    guessed, error = _guessed(first, table, named, other)
    counts = _Counts(table, guessed)
    for source in sources:
        size = source.size()
        for number, row in enumerate(source.rows(needed_columns(counts.names) if guessed else ())):
            if isinstance(row, Row) and number % _EVERY == 0:
                progress(f"looking at {table}", size, min(row.position, size - 1))
            counts.add(row, source)
        progress(f"looking at {table}", size, size)
    columns = guessed.seen if guessed else list(first_columns(first)[0])
    return TableLook(
        table=table,
        location=first.location + (f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""),
        **_form(first, table, columns),
        columns=columns,
        guess=guessed,
        error=error,
        id=counts.id(named or {}),
        **counts.figures,
        problem=counts.problem,
    )


def _guessed(
    source: Source, table: Table, named: Mapping[str, str] | None, other_columns: Collection[str]
) -> tuple[Guess | None, DataError | None]:
    try:
        return guess(source, table, named, other_columns), None
    except DataError as error:
        return None, error


def _form(source: Source, table: Table, columns: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a `TableLook` that describe the file format."""
    if not isinstance(source, File):
        none = dict.fromkeys(("encoding", "delimiter", "sheet", "packed"))
        return {**none, "format": "task", "header": True, "headless": False, "form": ""}
    kind = source.kind
    # names that look like a row of data: none is a known name, one is a number or a sentence
    of_data = not has_known_name(columns, table) and any(
        name.isdigit() or len(name) > SHORT or name.endswith(_ASKS) for name in columns
    )
    return {
        "format": kind,
        "encoding": None if kind in BINARY else source.text_encoding,
        "delimiter": source.dialect.delimiter if kind in ("csv", "tsv") else None,
        "sheet": source.workbook.name if kind == "xlsx" else None,
        "packed": packed.ending(source.path)[1].removeprefix(".") or None,
        "header": source.has_header,
        "form": "; ".join(filter(None, (source.form.row_is, source.note()))) if source.form else "",
        "headless": kind in TABULAR and source.has_header and of_data,
    }


@dataclass
class _Counts:
    """Counts over the rows of a table, as input for a `TableLook`."""

    table: Table
    guess: Guess | None
    lines: dict[str, int] = field(default_factory=dict)
    """Id -> line or row number of its first occurrence."""
    example: str = ""
    problem: str = ""
    repeated: int = 0
    missing: int = 0

    def __post_init__(self) -> None:
        column_of = {**self.guess.usual, **self.guess.columns} if self.guess else {}
        self.column = column_of.get("id")
        self.names: Names = {field_name: (column,) for field_name, column in column_of.items()}
        self.texts: Names = {**self.names, "id": (LINE,)}  # defects of ids are counted separately
        counted = ("rows", "problems", "empty", "html", "long", "longest", "content")
        self.figures: dict[str, Any] = dict.fromkeys(counted, 0)

    def add(self, row: Row | Problem, source: Source) -> None:
        """Count a row."""
        self.figures["rows"] += isinstance(row, Row)
        read = row if not self.guess else pair(row, self.names) if self.table == "qrels" else item(row, self.texts)
        if isinstance(read, Problem):
            self.figures["problems"] += 1
            self.problem = self.problem or str(read.fault(source.location))
        elif isinstance(read, Item):
            length = len(read.text)
            self.figures["empty"] += read.empty()
            self.figures["html"] += is_html(read.text) or is_html(read.title)
            self.figures["long"] += length > LONG
            self.figures["longest"] = max(length, self.figures["longest"])
            digest = blake2b(read.text.strip().encode("utf-8", "surrogatepass"), digest_size=8).digest()
            self.figures["content"] = (self.figures["content"] + int.from_bytes(digest)) % 2**64
        if isinstance(row, Row) and self.column not in (None, LINE):
            self._id(row, str(self.column))

    def _id(self, row: Row, column: str) -> None:
        cell = reached(row.values, column)
        name = as_id(cell[0]) if cell else ""
        if not name or any(map(str.isspace, name)):
            self.missing += 1
            return
        if name not in self.lines:
            self.lines[name] = row.line
            return
        self.repeated += 1
        self.example = self.example or f"{shown(name)} in rows {self.lines[name]:,} and {row.line:,}"

    def id(self, named: Mapping[str, str]) -> IdColumn | None:
        """Return the id column with its defects; None if there is none, or if row numbers serve as ids by default."""
        if self.column is None or (self.column == LINE and "id" not in named):
            return None
        if "id" in named:
            by: Literal["name", "values", "user"] = "user"
        else:
            by = "name" if has_known_name([self.column], self.table, ["id"]) else "values"
        return IdColumn(self.column, self.repeated, self.missing, by, self.example)
