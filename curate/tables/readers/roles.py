"""Roles of columns by their names: what people call the ids, titles, texts, raters and groups of a table."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from curate.core.config import parse_yaml
from curate.core.errors import TableError, suggestion
from curate.system.resources import data_file
from curate.tables.readers import Table, listed
from curate.tables.readers.items import NAMES

_BETWEEN = re.compile(r"[-_.\s\xad\u200b\u200e\u200f\u2060\ufeff]")


def plain_name(name: str) -> str:
    """Return a column name in NFKC and casefolded, without white space, zero-width marks, `-`, `_` and `.`."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", name)).casefold()


def alike(name: str, names: Sequence[str]) -> str | None:
    """Return the name itself if `names` contains it, else the only one that differs in case alone, else None."""
    same = [candidate for candidate in names if candidate.casefold() == name.casefold()]
    return name if name in names else same[0] if len(same) == 1 else None


def column(source: str, columns: Sequence[str], name: str, option: str = "") -> str:
    """Return the column that a user named with `option`, ignoring case if that is unambiguous; DataError without it."""
    match = alike(name, columns)
    if match is None:
        similar_columns = suggestion(name, [listed([candidate]) for candidate in columns])
        remedy = f"{similar_columns}; correct {option}" if option else similar_columns
        raise TableError.at(source, f"no column {name!r}", "a column of this name", remedy)
    return match


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table; messages call a role by its key."""

    names: Mapping[str, Sequence[str]]
    """Role -> plain names that people give to its column, first choice first."""
    needed: Sequence[str] = ()
    """Roles without which the table is of no use."""
    remedy: str = ""
    """What to do about a missing role, `{role}` for its name."""
    once: bool = False
    """Whether only one column may have a name of a role."""
    listed: Callable[[Sequence[str]], str] = listed
    """How messages show columns."""

    def first(self, columns: Iterable[str], role: str) -> str | None:
        """Return the column whose name comes first among those of a role; None if none has one."""
        by_name = {plain_name(name): name for name in reversed(list(columns))}
        return next((by_name[name] for name in self.names[role] if name in by_name), None)

    def resolve(self, source: str, columns: Sequence[str], assigned: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return role -> column, as `assigned` or else by the role's names; no column has two roles.

        DataError if an assigned column, or that of a needed role, is missing, or if two have a role.
        """
        chosen = {role: column(source, columns, name) for role, name in (assigned or {}).items()}
        for role, names in self.names.items():
            numbers = [number for number, name in enumerate(columns, start=1) if plain_name(name) in names]
            if self.once and len(numbers) > 1:
                raise TableError.at(
                    source,
                    f"{role!r} in columns {numbers[0]} and {numbers[1]}",
                    "one column",
                    "delete one of them, or change its header",
                )
            match = self.first((name for name in columns if name not in chosen.values()), role)
            if role not in chosen and match is not None:
                chosen[role] = match
            if role in self.needed and role not in chosen:
                raise TableError.at(
                    source,
                    f"no column {role!r} among {self.listed(columns)}",
                    f"a column {role!r}",
                    self.remedy.format(role=role),
                )
        return {role: chosen[role] for role in self.names if role in chosen}


@cache
def roles(table: Table) -> Roles:
    """Return the roles of a table's columns by the names of BEIR and MTEB and those of `columns.yaml`."""
    words: dict[str, dict[str, list[str]]] = parse_yaml(data_file("tables/readers/columns.yaml").read_text("utf-8"))
    usual, further = NAMES.get(table, {}), words.get(table, {})
    return Roles(
        {
            role: tuple(map(plain_name, (*usual.get(role, ()), *further.get(role, ()))))
            for role in dict.fromkeys((*usual, *further))
        }
    )


def names_question(columns: Iterable[str]) -> str | None:
    """Return the column of texts whose name only queries have; None without one."""
    of_documents = {*roles("corpus").names["text"], *roles("corpus").names["title"]}
    return roles("queries").first([name for name in columns if plain_name(name) not in of_documents], "text")


def names_table(columns: Sequence[str], table: Table) -> bool:
    """Return whether columns are named as those of a table are: the ids of a pair, a question, or a document's text."""
    if table == "queries":
        return names_question(columns) is not None
    if table == "qrels":
        return all(roles(table).first(columns, role) for role in ("query_id", "doc_id"))
    return roles(table).first([name for name in columns if name != names_question(columns)], "text") is not None
