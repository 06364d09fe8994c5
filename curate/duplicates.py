"""Equal texts under several ids: find the first id of each, and let qrels and aliases follow it."""

from collections.abc import Mapping
from hashlib import blake2b

import polars as pl


class Firsts:
    """Which id first had a text; holds ids and 16-byte digests, never a text."""

    def __init__(self) -> None:
        self._first: dict[bytes, str] = {}

    def of(self, name: str, text: str) -> str:
        """Return the id that first had the same text, `name` if it is new; white space at the ends is ignored.

        A document's text is what a judge is shown: two that look the same to it are the same.
        """
        key = blake2b(text.strip().encode("utf-8"), digest_size=16)
        return self._first.setdefault(key.digest(), name)


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
