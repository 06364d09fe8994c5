"""Conversions between records, rows of the ledger and data frames."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from curate.ledger.tables import Call

Row = tuple[Any, ...]
Rows = tuple[Sequence[Row], Sequence[Row]]
"""Rows of the table `calls`, and rows of the table `ratings`."""
_RAW, _MODEL = (1 + [field.name for field in fields(Call)].index(name) for name in ("raw", "model"))


def standing(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one rating per pair: the first one with a grade, else the last one; in no order.

    Only possible duplicates are sorted, which saves memory.
    """
    query, passage = pl.col("query_digest"), pl.col("passage_digest")
    several = rows.select(query.hash(seed=1) ^ passage.hash(seed=2)).to_series().is_duplicated()
    doubtful = rows.filter(several)
    rated = doubtful.filter(pl.col("status") == "rated").sort("rating_id")
    others = doubtful.filter(pl.col("status") != "rated").sort("rating_id", descending=True)
    settled = pl.concat([rated, others]).unique([query, passage], keep="first", maintain_order=True)
    return rows.filter(~several).vstack(settled) if len(doubtful) else rows


def storable(call: Row) -> Row:
    """Return a row of `calls` in which characters of the reply that a database cannot store are escaped as in JSON."""
    row = list(call)
    for index in (_RAW, _MODEL):
        row[index] = row[index].replace("\0", "\\u0000").encode(errors="backslashreplace").decode()
    return tuple(row)
