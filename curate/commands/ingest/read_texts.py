"""The ids of the queries or documents, and the matching of ids in other tables to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from curate.tables.readers.items import integer_form, shown
from curate.tables.readers.text_rows import FIX

WORDS: Mapping[Literal["queries", "corpus"], str] = {"queries": "query", "corpus": "document"}


@dataclass
class ReadTexts:
    """The ids of the queries or documents read so far, without the texts."""

    table: Literal["queries", "corpus"]
    ids: set[str] = field(default_factory=set)
    merged: dict[str, str] = field(default_factory=dict)
    """Id of a merged text -> id of the retained one."""
    empty: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    """Ids of documents that were cut into passages."""
    left_out: set[str] = field(default_factory=set)
    """Ids of texts excluded by the settings."""
    lines: dict[tuple[str, int], str] = field(default_factory=dict)
    """(Prefix of the source, line number) -> id of the text in it, if rows are pairs."""
    retained: int = 0
    by_number: dict[str, str] = field(default_factory=dict)
    """Id in another table -> id of the text with the same whole number, as 101.0 -> 101."""

    def meant(self, name: str) -> str:
        """Return the text's id for an id in another table: the same, else the only one with the same whole number."""
        if name in self.ids or name in self.left_out:
            return name
        same = [
            candidate
            for candidate in self._alike.get(_loose(name), ())
            if integer_form(candidate) == integer_form(name)
        ]
        if len(same) == 1:
            self.by_number[name] = same[0]
        return self.by_number.get(name, name)

    def remedy(self, name: str) -> str:
        """Return the remedy for an unknown id: up to two ids that are equal in loose form, else one example."""
        alike = self._alike.get(_loose(name), [])[:2]
        have = "the corpus has" if self.table == "corpus" else "the queries have"
        examples = " and ".join(map(shown, alike)) or f"ids such as {shown(min(self.ids))}"
        return f"{have} {examples}{': is that meant?' if alike else ';'} {FIX}"

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        """Return loose form -> sorted ids; cached, so call it only after all texts are read."""
        ids_by_form: dict[str, list[str]] = {}
        for name in sorted(self.ids | self.left_out):
            ids_by_form.setdefault(_loose(name), []).append(name)
        return ids_by_form


def _loose(name: str) -> str:
    """Return an id's loose form: lower case, without leading zeros of its first number and without a final `.0`.

    Spreadsheets and other programs change these.
    """
    return re.sub(r"0*(\d)", r"\1", re.sub(r"\.0+$", "", name), count=1).casefold()
