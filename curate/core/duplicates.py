"""Exact duplicates: classes of equal texts, and qrels and aliases with merged ids replaced by surviving ones."""

from collections.abc import Mapping
from hashlib import blake2b

import polars as pl


class Firsts:
    """Classes of equal texts, numbered from 0, with the id of each class's first text; stores digests, no texts."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.names: list[str] = []
        """Id of the first text of each class."""

    def number(self, name: str, text: str) -> int:
        """Return the class of a text, ignoring outer white space; a new class if no earlier text is equal.

        Pass the text as a judge reads it, because documents that a judge cannot distinguish are duplicates.
        """
        key = blake2b(text.strip().encode("utf-8"), digest_size=16).digest()
        number = self._numbers.setdefault(key, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def same_text(classes: pl.DataFrame, table: str) -> pl.DataFrame:
    """Return id and `class` of the texts of one table, in its order; equal texts have the same class."""
    return classes.filter(pl.col("table") == table).select("id", "class")


def made_equal(texts: pl.DataFrame) -> pl.DataFrame:
    """Return id and `equal_to` of the texts that masking made equal to another text, in their order.

    `texts` has one row per text, in order: id, `class` (of the raw text) and `masked` (class of the masked text).
    `equal_to` is the id of the first text with the same masked text and a different raw text.
    """
    first_class = pl.col("class").first()
    id_of_another_class = pl.col("id").filter(pl.col("class") != first_class).first()
    equal_to = pl.when(pl.col("class") == first_class.over("masked")).then(id_of_another_class.over("masked"))
    mixed = texts.filter(pl.col("class").n_unique().over("masked") > 1)
    return mixed.select("id", equal_to=equal_to.otherwise(pl.col("id").first().over("masked")))


def follow_qrels(qrels: pl.DataFrame, queries: Mapping[str, str], documents: Mapping[str, str]) -> pl.DataFrame:
    """Return qrels with merged ids replaced by surviving ids, sorted.

    `queries` and `documents` map merged ids to surviving ids. Pairs that become equal are merged, with their highest
    score.
    """
    moved = qrels.with_columns(_moved("query_id", queries), _moved("doc_id", documents))
    return moved.group_by("query_id", "doc_id").agg(pl.col("score").max()).sort("query_id", "doc_id")


def follow_aliases(aliases: pl.DataFrame, table: str, merged: Mapping[str, str]) -> pl.DataFrame:
    """Return the aliases of one table with newly merged ids added.

    Older aliases are redirected to the surviving ids.
    """
    old = aliases.filter(pl.col("table") == table).with_columns(_moved("kept_id", merged))
    rows = [
        {"table": table, "old_id": merged_id, "kept_id": surviving_id} for merged_id, surviving_id in merged.items()
    ]
    new = pl.DataFrame(rows, schema=aliases.schema)
    return pl.concat([old, new]).sort("old_id")


def _moved(column: str, merged: Mapping[str, str]) -> pl.Expr:
    return pl.col(column).replace(dict(merged)) if merged else pl.col(column)
