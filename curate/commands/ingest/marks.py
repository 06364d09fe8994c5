"""The mark of queries that a model wrote, as a row of any file of queries may carry it."""

from curate.core import synthetic
from curate.tables.readers import Problem, Row, Table
from curate.tables.readers.items import Names, reached

_PLACES = ("source", "metadata.source")


def columns(table: Table) -> Names:
    """Return the columns that may hold a mark, to be read beside those of the table."""
    return {"source": _PLACES} if table == "queries" else {}


def source(table: Table, row: Row | Problem, file: str) -> str:
    """Return the mark of a query that a model wrote, as its row has it; the name of the file for all other texts."""
    if table == "queries" and isinstance(row, Row):
        for value in (value for name in _PLACES for value in reached(row.values, name)):
            if isinstance(value, str) and synthetic.writer(value):
                return value
    return file
