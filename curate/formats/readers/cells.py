"""The cells of any table of ratings, as text: CSV, TSV or Parquet, with any separator."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from curate.core.errors import ConfigError, DataError
from curate.formats.readers import Problem
from curate.formats.readers.file import File, Format

ENDINGS: Mapping[str, Format] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}


def opened(path: Path) -> File:
    """Return a file of ratings; between its cells may stand something else than its ending says."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{path}: found the ending {path.suffix!r}, expected one of {', '.join(ENDINGS)}; save it so")
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected one of ratings; check the path")
    source = File(path, ENDINGS[path.suffix.lower()], option=None)
    header = source.header() or []
    between = next((each for each in ";\t,|" if len(header) == 1 and each in header[0]), None)
    return replace(source, delimiter=between) if source.format != "parquet" else source


def texts(source: File, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells of every row, by column; DataError at the first that cannot be read."""
    for row in source.rows(wanted):
        if isinstance(row, Problem):
            raise DataError(f"{source.place}:{row.line}: found {row.found}, expected {row.expected}; correct the line")
        yield row.line, {name: _text(row.values[name]) for name in wanted}


def _text(value: object) -> str:
    """Return a cell as text; empty for none, whole numbers without a point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
