"""The cells of any table of ratings, as text: CSV, TSV, Excel, JSON, Parquet or Arrow, packed or not."""

from collections.abc import Collection, Iterator
from itertools import islice
from math import isnan
from pathlib import Path

from curate.core.errors import ConfigError, DataError
from curate.tables.readers import Problem, packed
from curate.tables.readers.delimiter import named
from curate.tables.readers.file import BINARY, ENDINGS, File

FORMATS = ("csv", "tsv", "xlsx", "parquet", "arrow", "jsonl")
"""Those of tables; the columns of JSON are the keys of its first rows."""
_FIRST = 200


def opened(path: Path, delimiter: str | None = None, sheet: str | None = None) -> File:
    """Return a file of ratings; what stands between its cells is found if it is not said."""
    ending, packing = packed.ending(path)
    found = ENDINGS.get(ending)
    if found not in FORMATS or (packing and found in BINARY):
        known = ", ".join(ending for ending, format_ in ENDINGS.items() if format_ in FORMATS)
        raise ConfigError(f"{path}: found the ending {f'{ending}{packing}'!r}, expected one of {known}; save it so")
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected one of ratings; check the path")
    try:
        sign = None if delimiter is None else named(delimiter)
    except ValueError as error:
        raise ConfigError(f"--delimiter: {error}, found {delimiter!r}; correct it") from error
    return File(path, found, option=None, delimiter=sign, sheet=sheet)


def header(source: File) -> list[str]:
    """Return the names of the columns: of a header, else the keys of the first objects, in their order."""
    named = source.header()
    if named is not None:
        return named
    found = (row for row in islice(source.rows(), _FIRST) if not isinstance(row, Problem))
    return list(dict.fromkeys(key for row in found for key in row.values))


def texts(source: File, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells of every row, by column; DataError at the first that cannot be read."""
    for row in source.rows(wanted):
        if isinstance(row, Problem):
            raise DataError(f"{source.place}:{row.line}: found {row.found}, expected {row.expected}; correct the line")
        yield row.line, {name: _text(row.values.get(name)) for name in wanted}


def _text(value: object) -> str:
    """Return a cell as text; empty for none, whole numbers without a point."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
