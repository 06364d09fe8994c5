"""Exact duplicates under several ids: numbered, and followed by qrels and aliases."""

from collections.abc import Mapping
from hashlib import blake2b

import polars as pl


class Firsts:
    """Equality classes of texts: a running number each, and the id that first had it; holds digests, never a text."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.names: list[str] = []
        """Class -> the id that was first in it."""

    def number(self, name: str, text: str) -> int:
        """Return the class of a text, a new one if `name` is the first that has it; white space at the ends is ignored.

        A document's text is what a judge is shown: two that look the same to it are the same.
        """
        key = blake2b(text.strip().encode("utf-8"), digest_size=16).digest()
        number = self._numbers.setdefault(key, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def same_text(classes: pl.DataFrame, table: str) -> pl.DataFrame:
    """Return id and `class` of the texts of one table, in its order; equal ones have one class."""
    return classes.filter(pl.col("table") == table).select("id", "class")


def made_equal(texts: pl.DataFrame) -> pl.DataFrame:
    """Return id and `equal_to` of the texts that masking made equal to another one, in their order.

    `texts` has a row per text, in order: id, `class` (of its raw text) and `masked` (the class of its masked one).
    `equal_to` is the first text that was another one before.
    """
    first, other = pl.col("class").first(), pl.col("id").filter(pl.col("class") != pl.col("class").first()).first()
    equal_to = pl.when(pl.col("class") == first.over("masked")).then(other.over("masked"))
    mixed = texts.filter(pl.col("class").n_unique().over("masked") > 1)
    return mixed.select("id", equal_to=equal_to.otherwise(pl.col("id").first().over("masked")))


def follow_qrels(qrels: pl.DataFrame, queries: Mapping[str, str], documents: Mapping[str, str]) -> pl.DataFrame:
    """Return qrels with every merged id replaced by its kept one, sorted.

    Pairs that become equal are one, with the highest of their scores. `queries` and `documents` map merged to kept ids.
    """
    moved = qrels.with_columns(_moved("query_id", queries), _moved("doc_id", documents))
    return moved.group_by("query_id", "doc_id").agg(pl.col("score").max()).sort("query_id", "doc_id")


def follow_aliases(aliases: pl.DataFrame, table: str, merged: Mapping[str, str]) -> pl.DataFrame:
    """Return the aliases of one table with newly merged ids added, and old ones following them to the last kept id."""
    old = aliases.filter(pl.col("table") == table).with_columns(_moved("kept_id", merged))
    rows = [{"table": table, "old_id": name, "kept_id": kept} for name, kept in merged.items()]
    new = pl.DataFrame(rows, schema=aliases.schema)
    return pl.concat([old, new]).sort("old_id")


def _moved(column: str, merged: Mapping[str, str]) -> pl.Expr:
    return pl.col(column).replace(dict(merged)) if merged else pl.col(column)
