"""Marks of queries that a model wrote, kept in a separate table of an export because no format has a field for them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from curate.system.files import read_table
from curate.tables.readers import Problem, Row
from curate.tables.readers.items import NAMES, reached

FILE = "sources.parquet"
_MANIFEST = "MANIFEST.json"


def beside(queries: Path) -> Path | None:
    """Return the export that a file of queries lies in, if the export has a table of marks."""
    folders = (queries.parent, queries.parent.parent)  # of BEIR, of a task of MTEB
    return next((folder for folder in folders if (folder / _MANIFEST).is_file() and (folder / FILE).is_file()), None)


def marked(rows: Iterable[Row | Problem], export: Path) -> Iterator[Row | Problem]:
    """Yield queries with their mark in the column `source`, where the export has one."""
    marks = dict(read_table(export, Path(FILE).stem).select("query_id", "source").iter_rows())
    for row in rows:
        cells = () if isinstance(row, Problem) else (reached(row.values, name) for name in NAMES["queries"]["id"])
        mark = next((marks[query_id] for values in cells for query_id in values if query_id in marks), None)
        yield replace(row, values={**row.values, "source": mark}) if mark and isinstance(row, Row) else row
