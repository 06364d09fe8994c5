"""Detection of a table's columns of ids, titles and texts from its first rows; the pipeline file lists the result."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from curate.core.errors import DataError, TableError
from curate.tables.readers import Problem, Row, Source, Table
from curate.tables.readers.file import File
from curate.tables.readers.items import LINE, NAMES, OPTIONAL, as_id, plain
from curate.tables.readers.roles import plain_name, roles
from curate.tables.readers.tagged import ASKED
from curate.tables.readers.text_rows import numbered

# Guess from a file's first rows which columns hold ids, titles and texts; a person checks it in the pipeline file.

LOOKED = 200
"""Maximum number of first rows that are read."""
ORDER = ("id", "query_id", "doc_id", "score", "title", "text")
"""Order in which fields choose their column."""
_ORDERS = {3: ("query_id", "doc_id", "score"), 4: ("query_id", "iteration", "doc_id", "score")}
"""Number of columns of qrels without a header -> their order in BEIR and in TREC."""
TABULAR = frozenset({"csv", "tsv", "xlsx"})
"""Formats whose first row names the columns."""
SHORT = 20
"""Maximum length of a column name in messages: a longer one may be a text, if the file has no header."""


class NoColumnError(DataError):
    """No column looks like a required field."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Guess:
    """Detected columns of a table."""

    columns: Mapping[str, str]
    """Field -> column, for columns that the pipeline file must name."""
    usual: Mapping[str, str]
    """Field -> column, for columns with a default name, which the pipeline file may omit."""
    others: Sequence[str]
    """Text columns without a field, in descending order of mean length."""
    texts: Sequence[str] = field(repr=False, default=())
    """Values of the text column in the first rows."""
    seen: Sequence[str] = ()
    """Names of all columns."""
    unused: Sequence[str] = ()
    """Names of all columns without a field, texts first; of a list of objects as `answers[].text`."""


def guess(source: Source, table: Table, named: Mapping[str, str] | None = None, other: Collection[str] = ()) -> Guess:
    """Return the columns of a table detected by name, or by content if no name is known.

    Dotted names refer to fields within JSON objects. `named` (field -> column) are the user's choices and are retained;
    columns in `other` hold texts of another table. DataError, with a list of the columns, if a named column is missing,
    or if no column can hold a required field.
    """
    columns, count = first_columns(source)
    if not count:
        problem = next((row for row in source.rows() if isinstance(row, Problem)), None)
        if problem is not None:
            raise problem.error(source.location)
        raise TableError.at(source.location, "no row", table, "check the file")
    chosen: dict[str, str] = dict(named or {})
    if table == "queries" and isinstance(source, File) and source.kind == "tagged":
        query_field = next((name for name in ASKED if name in columns), None)
        chosen = ({"text": query_field} if query_field else {}) | chosen
    if table == "qrels" and [*columns] == numbered(len(columns)) and len(columns) in _ORDERS:  # without a header
        chosen = dict(zip(_ORDERS[len(columns)], columns, strict=True)) | chosen
        chosen.pop("iteration", None)
    _check_named(source, table, list(columns), chosen)
    for find in (_column_by_name, _column_by_values):  # by name first, else a short text may be taken for an id
        for role in sorted(set(NAMES[table]) - set(chosen), key=ORDER.index):
            free = {name: values for name, values in columns.items() if name not in {*chosen.values(), *other}}
            column = find(role, table, free, count)
            if column is not None:
                chosen[role] = column
    if "id" in NAMES[table] and "id" not in chosen and (other or _column_by_name("text", table, columns, count)):
        chosen["id"] = LINE  # a column is named like a text, so the first row holds names and not data
    _complain(source, table, list(columns), chosen)
    usual = {
        role: column
        for role, column in chosen.items()
        if column == next((name for name in NAMES[table][role] if name in columns), None) and role not in (named or {})
    }
    free = {name: values for name, values in columns.items() if name not in chosen.values() and _length(values) > 0}
    others = sorted(free, key=lambda name: -_length(free[name]))
    used = {*others, *chosen.values()}
    return Guess(
        {role: column for role, column in chosen.items() if role not in usual},
        usual,
        others,
        [str(cell) for cell in columns.get(chosen.get("text", ""), [])],
        list(columns),
        [*others, *(name for name in _all_names(source, columns) if name not in used)],
    )


def _all_names(source: Source, columns: Iterable[str]) -> list[str]:
    """Return the names of all columns in the first rows; of a form that makes other rows, those it does not know."""
    if not isinstance(source, File) or source.form is None:
        raw, role_names = source.rows(), set[str]()
    else:
        names_of_roles = [*roles("queries").names.values(), *roles("corpus").names.values()]
        raw, role_names = source.raw(), {*chain.from_iterable(names_of_roles)}
    first = (row for row in islice(raw, LOOKED) if isinstance(row, Row))
    names = dict.fromkeys(name for row in first for name in _deep(row.values))
    return [name for name in names or columns if plain_name(name.rsplit(".", 1)[-1]) not in role_names]


def _deep(content: object, prefix: str = "") -> Iterable[str]:
    """Yield the dotted names of a record; those in the objects of a list behind `[]`."""
    if isinstance(content, Mapping):
        for name, cell in content.items():
            yield from _deep(cell, f"{prefix}.{name}" if prefix else name)
    elif isinstance(content, list) and content and isinstance(content[0], Mapping):
        yield from _deep(content[0], f"{prefix}[]")
    else:
        yield prefix


def first_columns(source: Source) -> tuple[dict[str, list[object]], int]:
    """Return column -> values in the first `LOOKED` readable rows, and the number of these rows."""
    columns: dict[str, list[object]] = {}
    count = 0
    readable = (row for row in source.rows() if not isinstance(row, Problem))
    for row in islice(readable, LOOKED):
        count += 1
        for name, cell in _flat(row.values):
            columns.setdefault(name, []).append(cell)
    return columns, count


def has_known_name(names: Iterable[str], table: Table, fields: Iterable[str] = ()) -> bool:
    """Return whether any of `names` is a known column name of the table's `fields`, by default of any field."""
    spelled = {plain_name(spelling) for name in names for spelling in (name, name.rsplit(".", 1)[-1])}
    return any(spelled & set(roles(table).names[field]) for field in fields or NAMES[table])


def _check_named(source: Source, table: Table, columns: Sequence[str], named: Mapping[str, str]) -> None:
    for role, column in named.items():
        if column not in columns and column != LINE:
            raise TableError.at(
                source.location,
                f"the columns {_column_list(columns)}",
                f"{column!r}, which is named for the {role} of {table}",
                "name one of these",
            )


def _column_list(columns: Sequence[str]) -> str:
    return ", ".join(name if len(name) <= SHORT else f"one of {len(name)} characters" for name in columns)


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, cell in values.items():
        if isinstance(cell, Mapping):
            yield from _flat(cell, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", cell


def _complain(source: Source, table: Table, columns: Sequence[str], chosen: Mapping[str, str]) -> None:
    """Raise DataError if a required field has no column, or if the header looks like a row of data."""
    names = _column_list(columns)
    absent = [field for field in NAMES[table] if field not in {*chosen, *OPTIONAL}]
    if absent:
        hint = f"; what is between columns can be said with ingest.{table}.delimiter" if len(columns) == 1 else ""
        raise NoColumnError(
            f"{source.location}: found the columns {names}, none of which looks like the {absent[0]} of {table}; "
            f"name the one that holds it {absent[0]!r}, or add one{hint}",
            absent[0],
        )
    if isinstance(source, File) and source.format in TABULAR and any(map(str.isdigit, chosen.values())):
        raise TableError.at(
            f"{source.location}:1",
            f"the columns {names}",
            "names",
            f"put a line such as id,text above the data, or set ingest.{table}.header: false",
        )


def _column_by_name(field: str, table: Table, columns: Mapping[str, Sequence[object]], _: int) -> str | None:
    """Return the column with a default name, else one with a known alternative name; case and punctuation are ignored.

    If no complete name fits, the last part of a dotted name is compared.
    """
    if field == "text":  # a list, such as `answers`, is no text
        columns = {name: values for name, values in columns.items() if not all(isinstance(v, list) for v in values)}
    exact = next((name for name in NAMES[table][field] if name in columns), None)
    spelt = {plain_name(name.rsplit(".", 1)[-1]): name for name in sorted(columns, key=lambda name: -name.count("."))}
    undotted = {plain_name(name): name for name in reversed(list(columns)) if "." not in name}
    by_spelling = spelt | undotted
    return exact or next((by_spelling[name] for name in roles(table).names[field] if name in by_spelling), None)


def _column_by_values(field: str, _: Table, columns: Mapping[str, Sequence[object]], rows: int) -> str | None:
    """Return the column whose values fit a field.

    Ids are short, distinct and ASCII; the text is the longest column; scores are the only column of few small numbers.
    """
    if field == "score":
        grades = [name for name, values in columns.items() if _grades(values)]
        return grades[0] if len(grades) == 1 else None
    if field == "id":
        return next((name for name, values in columns.items() if _ids(values, rows)), None)
    if field == "text":
        length = {name: _length(values) for name, values in columns.items()}
        return max((name for name in length if length[name] > 0), key=length.__getitem__, default=None)
    return None


def _ids(values: Sequence[object], rows: int) -> bool:
    names = [name for name in map(as_id, values) if name]
    fit = all(plain(name) and not any(map(str.isspace, name)) for name in names)
    return len(names) == rows == len(set(names)) and fit


def _grades(values: Sequence[object]) -> bool:
    """Return whether values are whole numbers from 0 to 10 and not all 0, such as an iteration of TREC."""
    numbers = {as_id(value) for value in values}
    return numbers <= set(map(str, range(11))) and bool(numbers - {"0"})


def _length(values: Sequence[object]) -> float:
    """Return the mean length of a column's texts; 0 if it holds anything else."""
    texts = [cell for cell in values if isinstance(cell, str)]
    return (
        sum(map(len, texts)) / len(texts)
        if len(texts) == len([cell for cell in values if cell is not None]) > 0
        else 0.0
    )
