"""Guess from a file's first rows which columns hold ids, titles and texts; a person checks it in the pipeline file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import yaml

from curate.errors import DataError
from curate.readers import Problem, Source, Table
from curate.readers.items import NAMES, OPTIONAL
from curate.resources import data_file

LOOKED = 200
"""First rows that are looked at."""
MOST_ID = 64
"""Longer values are no ids."""


@dataclass(frozen=True)
class Guess:
    """What the first rows of a table look like."""

    columns: Mapping[str, str]
    """Field -> column; a field that stands under a usual name, or is not there, is left out."""
    others: Sequence[str]
    """Columns that hold text and were not chosen, longest first."""
    texts: Sequence[str] = field(repr=False, default=())
    """The texts of these rows."""


def guess(source: Source, table: Table) -> Guess:
    """Return the columns of a table by their names, and by what stands in them where no name is known.

    Dotted names reach into JSON objects. DataError, which names the columns that are there, if no column can hold a
    field that the table needs.
    """
    rows = [dict(_flat(row.values)) for row in islice(source.rows(), LOOKED) if not isinstance(row, Problem)]
    columns: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    if not rows:
        raise DataError(f"{source.place}: found no row that can be read, expected {table}; check the file")
    taken: dict[str, str] = {}
    for wanted in sorted(NAMES[table], key=["id", "query_id", "doc_id", "score", "title", "text"].index):
        free = {name: values for name, values in columns.items() if name not in taken.values()}
        found = _named(wanted, NAMES[table][wanted], free) or _fitting(wanted, free, len(rows))
        if found is not None:
            taken[wanted] = found
        elif wanted not in OPTIONAL and table != "qrels":
            names = ", ".join(columns)
            raise DataError(
                f"{source.place}: found the columns {names}, none of which looks like the {wanted} of {table}"
            )
    usual = {each: column for each, column in taken.items() if column in NAMES[table][each]}
    free = {name: values for name, values in columns.items() if name not in taken.values() and _length(values) > 0}
    return Guess(
        {each: column for each, column in taken.items() if each not in usual},
        sorted(free, key=lambda name: -_length(free[name])),
        [str(value) for value in columns.get(taken.get("text", ""), [])],
    )


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _named(wanted: str, usual: Sequence[str], columns: Mapping[str, Sequence[object]]) -> str | None:
    """Return the column with a usual name, else one of the names that people give such a column."""
    known: dict[str, list[str]] = yaml.safe_load(data_file("readers/columns.yaml").read_text(encoding="utf-8"))
    names = {name.rsplit(".", 1)[-1].strip().lower(): name for name in reversed(list(columns))}
    exact = next((name for name in usual if name in columns), None)
    return exact or next((names[name] for name in known.get(wanted, ()) if name in names), None)


def _fitting(wanted: str, columns: Mapping[str, Sequence[object]], rows: int) -> str | None:
    """Return the column whose values fit: ids are short, different and without white space; a text is the longest."""
    if wanted == "id":
        return next((name for name, values in columns.items() if _ids(values, rows)), None)
    if wanted == "text":
        length = {name: _length(values) for name, values in columns.items()}
        return max((name for name in length if length[name] > 0), key=length.__getitem__, default=None)
    return None


def _ids(values: Sequence[object], rows: int) -> bool:
    names = [str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
    short = all(0 < len(name) <= MOST_ID and not any(map(str.isspace, name)) for name in names)
    return len(names) == rows == len(set(names)) and short


def _length(values: Sequence[object]) -> float:
    """Return the mean length of a column's texts; 0 if it holds anything else."""
    texts = [value for value in values if isinstance(value, str)]
    return sum(map(len, texts)) / len(texts) if len(texts) == len([v for v in values if v is not None]) > 0 else 0.0
