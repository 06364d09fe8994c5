"""Conversion of rows to items (id, title, text), labelled pairs or labels; an invalid row becomes a Problem."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from curate.core.errors import TableError
from curate.tables.readers import Problem, Row, Source, Table, json_kind
from curate.tables.readers.text_rows import FIX, shown_names

Names = Mapping[str, Sequence[str]]
"""Field -> names of the columns that may hold it, in order of preference."""

NAMES: Mapping[Table, Names] = {
    "queries": {"id": ("_id", "id", "query_id", "query-id", "qid"), "text": ("text", "query")},
    "corpus": {
        "id": ("_id", "id", "doc_id", "corpus-id", "corpus_id", "docid"),
        "title": ("title",),
        "text": ("text",),
    },
    "qrels": {
        "query_id": ("query-id", "query_id", "qid"),
        "doc_id": ("corpus-id", "corpus_id", "doc_id", "docid", "pid"),
        "score": ("score", "relevance"),
    },
    "labels": {
        "id": ("_id", "id", "query_id", "query-id", "qid", "doc_id", "corpus-id", "corpus_id", "docid"),
        "label": ("label", "class", "category"),
    },
}
"""Table -> default column names: those of BEIR and MTEB, and of curate's own tables."""

OPTIONAL = frozenset({"title"})
LINE = "<line>"
"""Placeholder for the id column of a table without ids: the line or row number is the id."""
_INT32 = 2**31
_EXACT = 2**53
"""2**53, the first integer whose successor a float cannot represent; floats from here on are not accepted as ids."""
_AS_FLOAT = re.compile(r"(-?\d{1,15})\.0+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Item:
    """A query (with an empty title) or a document, as in the source."""

    line: int
    id: str
    title: str
    text: str

    def empty(self) -> bool:
        """Return whether title and text have only white space, zero-width spaces or byte order marks."""
        return not (self.title + self.text).replace("\u200b", "").replace("\ufeff", "").strip()


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A judged pair: one line of qrels."""

    line: int
    query_id: str
    doc_id: str
    score: int


@dataclass(frozen=True, slots=True)
class ItemLabels:
    """The labels that a row assigns to a query or a document: none, one or several."""

    line: int
    id: str
    labels: tuple[str, ...]
    group: str | None
    """Group of the text, such as its author; None without a group column or value."""


class _UnfitError(Exception):
    """Failed conversion of a row; its arguments are what was found, what was expected, the remedy, and the column."""


Thing = TypeVar("Thing", Item, LabelledPair, ItemLabels)


def item(row: Row | Problem, names: Names) -> Item | Problem:
    """Return a row's query or document, or a Problem.

    A title may be missing, an id is an integer or a text without spaces.
    """
    if isinstance(row, Problem):
        return row
    try:
        title = _text(row, "title", names) if "title" in names else ""
        return Item(row.line, _id(row, "id", names), title, _text(row, "text", names))
    except _UnfitError as unfit:
        return Problem(row.line, *unfit.args)


def pair(row: Row | Problem, names: Names) -> LabelledPair | Problem:
    """Return the labelled pair in a row, or a Problem; the score must be a whole number."""
    if isinstance(row, Problem):
        return row
    try:
        return LabelledPair(row.line, _id(row, "query_id", names), _id(row, "doc_id", names), _score(row, names))
    except _UnfitError as unfit:
        return Problem(row.line, *unfit.args)


def item_labels(row: Row | Problem, names: Names) -> ItemLabels | Problem:
    """Return the labels in a row, with white space collapsed, or a Problem; an absent or empty cell has no label."""
    if isinstance(row, Problem):
        return row
    try:
        groups = _cells(row, "group", names) if "group" in names else ()
        return ItemLabels(row.line, _id(row, "id", names), _cells(row, "label", names), groups[0] if groups else None)
    except _UnfitError as unfit:
        return Problem(row.line, *unfit.args)


def as_id(cell: object) -> str:
    """Return a cell as an id: a text, or an integer, also if stored as a float; empty for anything else."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        cell = int(cell)
    return str(cell) if isinstance(cell, str | int) and not isinstance(cell, bool) else ""


def integer_form(name: str) -> str:
    """Return an integer id without its decimal part (`101.0` as `101`); any other id unchanged."""
    match = _AS_FLOAT.fullmatch(name)
    return match[1] if match else name


def plain(name: str) -> bool:
    """Return whether an id is ASCII with at most 64 characters.

    Any other may be a corpus text from a swapped column.
    """
    return len(name) <= 64 and name.isascii()


def shown(name: str) -> str:
    """Return an id for an error message: quoted, or only its length if it may be a corpus text."""
    return repr(name) if plain(name) else f"of {len(name)} characters"


def needed_columns(names: Names) -> set[str]:
    """Return all names of columns that may be read: complete names, and the first parts of dotted names."""
    choices = [name for names_of_field in names.values() for name in names_of_field]
    return {*choices, *(name.split(".")[0] for name in choices)}


def check_header(source: Source, table: Table, names: Names) -> None:
    """Raise DataError if a source with a header lacks a column.

    A title may be missing unless the user named its column.
    """
    header = source.header()
    absent = [] if header is None else _missing(header, names)
    if absent:
        raise TableError.at(
            f"{source.location}:1",
            f"the columns {shown_names(header or [])}",
            " and ".join(absent),
            f"name it with ingest.columns.{table}.{absent[0]}",
        )


def _missing(header: Sequence[str], names: Names) -> list[str]:
    return [
        field
        for field, choices in names.items()
        if not (field in OPTIONAL and choices == NAMES["corpus"]["title"])
        and choices != (LINE,)
        and not any(choice in header or choice.split(".")[0] in header for choice in choices)
    ]


def reached(values: Mapping[str, object], name: str) -> tuple[object, ...]:
    """Return the value of a column, named completely or by a dotted path, as a 1-tuple; () if the column is absent."""
    if name in values:
        return (values[name],)
    content: object = values
    for step in name.split("."):
        if not isinstance(content, Mapping) or step not in content:
            return ()
        content = content[step]
    return (content,)


def _column(row: Row, field: str, names: Names) -> str:
    return next((name for name in names[field] if reached(row.values, name)), "")


def _cell(row: Row, field: str, names: Names) -> object:
    for name in names[field]:
        if reached_cell := reached(row.values, name):
            return reached_cell[0]
    if field in OPTIONAL:
        return None
    expected = " or ".join(repr(name) for name in names[field])
    raise _UnfitError(f"no {field}", f"{expected}", f"name the column with ingest.columns ({field}: NAME)")


def _cells(row: Row, field: str, names: Names) -> tuple[str, ...]:
    """Return the distinct values of a cell, which may be a list, as texts."""
    cell = next((reached_cell[0] for name in names[field] if (reached_cell := reached(row.values, name))), None)
    values = cell if isinstance(cell, list | tuple) else [cell]
    if odd := next((entry for entry in values if not isinstance(entry, str | int | float | None)), None):
        expected = "a name (text or a number), or a list of names"
        raise _UnfitError(f"{json_kind(odd)} as {field}", expected, FIX, _column(row, field, names))
    entries = [int(entry) if isinstance(entry, float) and entry.is_integer() else entry for entry in values]
    texts = (" ".join(str(entry).split()) for entry in entries if entry is not None and entry == entry)  # noqa: PLR0124 - NaN
    return tuple(dict.fromkeys(filter(None, texts)))


def _text(row: Row, field: str, names: Names) -> str:
    cell = _cell(row, field, names)
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise _UnfitError(f"{json_kind(cell)} as {field}", "text", FIX, _column(row, field, names))
    if not _encodable(cell):
        raise _UnfitError(f"half a surrogate pair in {field}", "Unicode text", FIX, _column(row, field, names))
    return cell


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _id(row: Row, field: str, names: Names) -> str:
    if names[field] == (LINE,):
        return f"{row.line_prefix}{row.line}"
    cell = _cell(row, field, names)
    name = as_id(cell)
    if name and not any(character.isspace() for character in name) and _encodable(name):
        return name
    problem = (f"white space in {field}", "an id without white space", "write _ for it in all three tables")
    if not name:
        problem = (f"an empty {field}", "an id", "give every row an id of its own")
    if not name and not isinstance(cell, str):
        problem = (f"{json_kind(cell)} as {field}", "an id (text or a whole number)", "give every row an id")
    raise _UnfitError(*problem, _column(row, field, names))


def _score(row: Row, names: Names) -> int:
    cell = _cell(row, "score", names)
    try:
        number = float(cell) if isinstance(cell, str | int | float) and not isinstance(cell, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not number.is_integer() or abs(number) >= _INT32:
        score = f"{json_kind(cell)} as score" if number is None else "a score that is no whole number"
        raise _UnfitError(score, "a whole number: 0, 1, 2, ...", FIX, _column(row, "score", names))
    return int(number)
