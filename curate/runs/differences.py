"""Differences between a table of labels and the expected one, in sentences with counts and ids."""

from collections.abc import Iterator, Sequence

import polars as pl

from curate.core.config import text_digest
from curate.panel.voting import PAIR
from curate.tables.kinds.benchmark_kind import SHOWN, listed


def differences(file: str, table: pl.DataFrame, correct: pl.DataFrame) -> Iterator[str]:
    """Yield sentences on surplus, missing, differing and repeated rows of a table."""
    keys = [name for name in PAIR if name in correct.columns]
    if correct.columns == table.columns and table.sort(keys).equals(correct.sort(keys)):
        return  # equal: found in a tenth of the time
    table, correct = _comparable(table), _comparable(correct)
    twice = table.filter(pl.struct(keys).is_duplicated())
    columns = correct.columns
    surplus = table.join(correct, on=columns, how="anti", nulls_equal=True, maintain_order="left")
    lacking = correct.join(table, on=columns, how="anti", nulls_equal=True, maintain_order="left")
    differing = surplus.join(lacking, on=keys, how="semi", maintain_order="left")
    for rows, what in (
        (differing, "rows say otherwise than the ledger"),
        (surplus.join(differing, on=keys, how="anti", maintain_order="left"), "rows should not be there"),
        (lacking.join(differing, on=keys, how="anti", maintain_order="left"), "rows are missing"),
        (twice, "rows stand there more than once"),
    ):
        if rows.height:
            yield f"{file}: {rows.height:,} {what}, for example {listed(names(rows, keys))}"


def _comparable(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of strings: votes sorted by judge, candidates in their order, texts as digests."""
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
    """Return the digest of a document's title and text."""
    return text_digest(f"{title}\0{text}")
