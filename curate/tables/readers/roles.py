"""Roles of columns by their names: what people call the ids, titles and texts of a table."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache

from curate.core.config import parse_yaml
from curate.system.resources import data_file
from curate.tables.readers import Table
from curate.tables.readers.items import NAMES

_BETWEEN = re.compile(r"[-_.\s\ufeff\u200b]")


def plain_name(name: str) -> str:
    """Return a column name in NFKC and casefolded, without white space, byte order marks, `-`, `_` and `.`."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", name)).casefold()


@cache
def spellings(table: Table, role: str) -> tuple[str, ...]:
    """Return the plain names of a role, first choice first."""
    names: dict[str, dict[str, list[str]]] = parse_yaml(data_file("tables/readers/columns.yaml").read_text("utf-8"))
    return tuple(plain_name(name) for name in (*NAMES[table][role], *names[table].get(role, ())))


def first_named(columns: Iterable[str], table: Table, role: str) -> str | None:
    """Return the column whose name comes first among those of a role; None if none has one."""
    by_name = {plain_name(name): name for name in reversed(list(columns))}
    return next((by_name[name] for name in spellings(table, role) if name in by_name), None)


def names_question(columns: Iterable[str]) -> str | None:
    """Return the column of texts whose name only queries have; None without one."""
    of_documents = {*spellings("corpus", "text"), *spellings("corpus", "title")}
    return first_named([name for name in columns if plain_name(name) not in of_documents], "queries", "text")


def names_table(columns: Sequence[str], table: Table) -> bool:
    """Return whether columns are named as those of a table are: the ids of a pair, a question, or a document's text."""
    if table == "queries":
        return names_question(columns) is not None
    roles = ("query_id", "doc_id") if table == "qrels" else ("text",)
    others = {*spellings("queries", "text")} - {*spellings("corpus", "text")} if table == "corpus" else set()
    return all(first_named([name for name in columns if plain_name(name) not in others], table, role) for role in roles)
