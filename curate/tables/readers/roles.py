"""Roles of columns by their names: what people call the ids, titles and texts of a table."""

import re
import unicodedata
from collections.abc import Iterable
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
