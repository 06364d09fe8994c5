"""Comparison of column names as people write them."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from curate.core.config import parse_yaml
from curate.core.errors import DataError
from curate.system.resources import data_file
from curate.tables.readers import Problem, Row, Source, Table
from curate.tables.readers.file import File
from curate.tables.readers.items import LINE, NAMES, OPTIONAL, as_id, plain

_BETWEEN = re.compile(r"[-_.\s\ufeff\u200b]")


def plain_name(name: str) -> str:
    """Return a name without case, width, white space, byte order mark and `-`, `_`, `.` between its words."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", name)).casefold()


# Guess from a file's first rows which columns hold ids, titles and texts; a person checks it in the pipeline file.

LOOKED = 200
"""First rows that are looked at."""
ORDER = ("id", "query_id", "doc_id", "score", "title", "text")
"""In which fields choose their column."""
TABULAR = frozenset({"csv", "tsv", "xlsx"})
"""Formats whose first row names the columns."""
SHORT = 20
"""A longer name of a column may be a text, in a file without a line of names, and is not shown."""


@dataclass(frozen=True)
class Guess:
    """What the first rows of a table look like."""

    columns: Mapping[str, str]
    """Field -> column, where a pipeline file has to say it."""
    usual: Mapping[str, str]
    """Field -> column of a name that is known anyway."""
    others: Sequence[str]
    """Columns that hold text and were not chosen, longest first."""
    texts: Sequence[str] = field(repr=False, default=())
    """The texts of these rows."""
    seen: Sequence[str] = ()
    """All columns."""


def guess(source: Source, table: Table, named: Mapping[str, str] | None = None, other: Collection[str] = ()) -> Guess:
    """Return the columns of a table by their names, and by what stands in them where no name is known.

    Dotted names reach into JSON objects. What a user has `named`, field -> column, is taken as it is; `other` columns
    hold texts of another table. DataError, which names the columns that are there, if a named one is not, or if no
    column can hold a field that the table needs.
    """
    columns, count = first_columns(source)
    if not count:
        raise DataError(_unread(source, table))
    taken: dict[str, str] = dict(named or {})
    _check_named(source, table, list(columns), taken)
    for find in (_named, _fitting):  # what is known by its name first: a short text is not to be taken for an id
        for wanted in sorted(set(NAMES[table]) - set(taken), key=ORDER.index):
            free = {name: values for name, values in columns.items() if name not in {*taken.values(), *other}}
            found = find(wanted, table, free, count)
            if found is not None:
                taken[wanted] = found
    if "id" in NAMES[table] and "id" not in taken and (other or _named("text", table, columns, count)):
        taken["id"] = LINE  # a column that is called a text is the name of one, and no first row of data
    _complain(source, table, list(columns), taken)
    usual = {
        each: column for each, column in taken.items() if column in NAMES[table][each] and each not in (named or {})
    }
    free = {name: values for name, values in columns.items() if name not in taken.values() and _length(values) > 0}
    return Guess(
        {each: column for each, column in taken.items() if each not in usual},
        usual,
        sorted(free, key=lambda name: -_length(free[name])),
        [str(value) for value in columns.get(taken.get("text", ""), [])],
        list(columns),
    )


def first_columns(source: Source) -> tuple[dict[str, list[object]], int]:
    """Return the values of every column in the first rows that can be read, and the number of these rows."""
    columns: dict[str, list[object]] = {}
    count = 0
    for row in islice(_readable(source), LOOKED):
        count += 1
        for name, value in _flat(row.values):
            columns.setdefault(name, []).append(value)
    return columns, count


def has_known_name(names: Iterable[str], table: Table, fields: Iterable[str] = ()) -> bool:
    """Say whether a column is named like one of some fields of a table, of any field if none is given."""
    spellings = {plain_name(part) for name in names for part in (name, name.rsplit(".", 1)[-1])}
    return any(spellings & set(_spellings(table, wanted)) for wanted in fields or NAMES[table])


def _check_named(source: Source, table: Table, columns: Sequence[str], named: Mapping[str, str]) -> None:
    for wanted, column in named.items():
        if column not in columns and column != LINE:
            raise DataError(
                f"{source.place}: found the columns {_shown(columns)}, expected {column!r}, which is named for the "
                f"{wanted} of {table}; name one of these"
            )


def _shown(columns: Sequence[str]) -> str:
    return ", ".join(name if len(name) <= SHORT else f"one of {len(name)} characters" for name in columns)


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _readable(source: Source) -> Iterator[Row]:
    return (row for row in source.rows() if not isinstance(row, Problem))


def _unread(source: Source, table: Table) -> str:
    """Return what to say of a source without a row that can be read: what is wrong with the first, if there is one."""
    problem = next((row for row in source.rows() if isinstance(row, Problem)), None)
    if problem is None:
        return f"{source.place}: found no row, expected {table}; check the file"
    return problem.sentence(source.place)


def _complain(source: Source, table: Table, columns: Sequence[str], taken: Mapping[str, str]) -> None:
    """Raise DataError if a field has no column, or the names of columns look like a first row of data."""
    names = _shown(columns)
    absent = [field for field in NAMES[table] if field not in {*taken, *OPTIONAL}]
    if absent:
        hint = f"; what is between columns can be said with ingest.{table}.delimiter" if len(columns) == 1 else ""
        raise DataError(
            f"{source.place}: found the columns {names}, none of which looks like the {absent[0]} of {table}; "
            f"name the one that holds it {absent[0]!r}, or add one{hint}"
        )
    if isinstance(source, File) and source.format in TABULAR and any(map(str.isdigit, taken.values())):
        raise DataError(
            f"{source.place}:1: found the columns {names}, expected names; put a line such as id,text above the data, "
            f"or set ingest.{table}.header: false"
        )


def _named(wanted: str, table: Table, columns: Mapping[str, Sequence[object]], _: int) -> str | None:
    """Return the column with a usual name, else one with a name that people give such a column, in any spelling.

    Of a dotted name the last part counts, where no whole name does.
    """
    exact = next((name for name in NAMES[table][wanted] if name in columns), None)
    spelt = {plain_name(name.rsplit(".", 1)[-1]): name for name in sorted(columns, key=lambda name: -name.count("."))}
    whole = {plain_name(name): name for name in reversed(list(columns)) if "." not in name}
    known = spelt | whole
    return exact or next((known[name] for name in _spellings(table, wanted) if name in known), None)


@cache
def _spellings(table: Table, wanted: str) -> tuple[str, ...]:
    known: dict[str, dict[str, list[str]]] = parse_yaml(data_file("tables/readers/columns.yaml").read_text("utf-8"))
    return tuple(plain_name(name) for name in (*NAMES[table][wanted], *known[table].get(wanted, ())))


def _fitting(wanted: str, _: Table, columns: Mapping[str, Sequence[object]], rows: int) -> str | None:
    """Return the column whose values fit: ids are short, different and of ASCII signs; a text is the longest."""
    if wanted == "id":
        return next((name for name, values in columns.items() if _ids(values, rows)), None)
    if wanted == "text":
        length = {name: _length(values) for name, values in columns.items()}
        return max((name for name in length if length[name] > 0), key=length.__getitem__, default=None)
    return None


def _ids(values: Sequence[object], rows: int) -> bool:
    names = [name for name in map(as_id, values) if name]
    fit = all(plain(name) and not any(map(str.isspace, name)) for name in names)
    return len(names) == rows == len(set(names)) and fit


def _length(values: Sequence[object]) -> float:
    """Return the mean length of a column's texts; 0 if it holds anything else."""
    texts = [value for value in values if isinstance(value, str)]
    return sum(map(len, texts)) / len(texts) if len(texts) == len([v for v in values if v is not None]) > 0 else 0.0
