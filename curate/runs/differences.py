"""Differences between a table of labels and what it must be, in sentences with counts and ids."""

from collections.abc import Iterator, Sequence

import polars as pl

from curate.core.config import text_digest
from curate.panel.voting import PAIR
from curate.tables.kinds.benchmark_kind import SHOWN, listed


def differences(place: str, found: pl.DataFrame, wanted: pl.DataFrame) -> Iterator[str]:
    """Yield what a table holds that it must not, what it lacks, and where it says otherwise."""
    keys = [name for name in PAIR if name in wanted.columns]
    if wanted.columns == found.columns and found.sort(keys).equals(wanted.sort(keys)):
        return  # as it should be, in a tenth of the time
    found, wanted = _comparable(found), _comparable(wanted)
    twice = found.filter(pl.struct(keys).is_duplicated())
    columns = wanted.columns
    surplus = found.join(wanted, on=columns, how="anti", nulls_equal=True, maintain_order="left")
    lacking = wanted.join(found, on=columns, how="anti", nulls_equal=True, maintain_order="left")
    other = surplus.join(lacking, on=keys, how="semi", maintain_order="left")
    for rows, what in (
        (other, "rows say otherwise than the ledger"),
        (surplus.join(other, on=keys, how="anti", maintain_order="left"), "rows should not be there"),
        (lacking.join(other, on=keys, how="anti", maintain_order="left"), "rows are missing"),
        (twice, "rows stand there more than once"),
    ):
        if rows.height:
            yield f"{place}: {rows.height:,} {what}, for example {listed(names(rows, keys))}"


def _comparable(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose cells are texts: votes in the order of judges, candidates in theirs, texts by digest."""
    if "votes" in table.columns:
        one = pl.element().struct.field("judge") + "=" + pl.element().struct.field("grade").fill_null("-")
        table = table.with_columns(pl.col("votes").list.eval(one).list.sort().list.join(" "))
    if "corpus-ids" in table.columns:
        table = table.with_columns(pl.col("corpus-ids").list.join(" "))
    if "title" in table.columns:
        rows = [(doc_id, content(title, text)) for doc_id, title, text in table.iter_rows()]
        table = pl.DataFrame(rows, dict.fromkeys(["doc_id", "content"], pl.String), orient="row")
    return table


def names(rows: pl.DataFrame, keys: Sequence[str] = PAIR) -> list[str]:
    """Return the keys of the first rows."""
    return [" ".join(row) for row in rows.select(keys).head(SHOWN).iter_rows()]


def content(title: str, text: str) -> str:
    """Return what identifies a document's title and text."""
    return text_digest(f"{title}\0{text}")
