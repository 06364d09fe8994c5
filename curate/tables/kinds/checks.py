"""Sentences on what must not be exported: counts and example ids, and never a text."""

from collections.abc import Iterator, Sequence

import polars as pl

SHOWN = 3
"""How many ids a sentence gives as examples."""


def sentence(table: str, ids: Sequence[str], what: str, remedy: str) -> Iterator[str]:
    """Yield one sentence on rows that must not be so; none without any."""
    if ids:
        yield f"{table}: {len(ids)} {what}, for example {listed(ids)}; {remedy}"


def listed(ids: Sequence[str]) -> str:
    """Return the first ids as a sentence gives examples."""
    return ", ".join(repr(each) for each in ids[:SHOWN])


def repeated(table: str, rows: pl.DataFrame, key: str) -> Iterator[str]:
    """Yield a sentence on ids that stand in a table more than once."""
    twice = rows.filter(~pl.col(key).is_first_distinct())[key].to_list()
    yield from sentence(table, twice, "ids stand there twice", "give every row an id of its own")


def empty(table: str, rows: pl.DataFrame, key: str, *texts: str) -> Iterator[str]:
    """Yield a sentence on rows of which a text is empty."""
    void = rows.filter(pl.any_horizontal(pl.col(*texts).str.strip_chars() == ""))[key].to_list()
    yield from sentence(table, void, "rows have an empty text", "drop them")
