"""The ids of one table of texts, and the match of ids in other tables to them."""

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
    """The ids of one table of texts, without the texts."""

    table: Literal["queries", "corpus"]
    known: set[str] = field(default_factory=set)
    merged: dict[str, str] = field(default_factory=dict)
    """Merged id -> the id that was kept."""
    empty: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    """Ids of texts that are not taken."""
    lines: dict[int, str] = field(default_factory=dict)
    """Line of the file -> id of the text in it, where rows are pairs."""
    kept: int = 0
    by_number: dict[str, str] = field(default_factory=dict)
    """Id in another table -> id of the text that is the same whole number, as 101.0 -> 101."""

    def meant(self, name: str) -> str:
        """Return the text's id for another table's id: the same id, else the only one that is the same whole number.

        An id without a match, or with several, is returned unchanged.
        """
        if name in self.known or name in self.left_out:
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
        """Return the remedy for an unknown id: up to two ids of the same loose form, else one example."""
        alike = self._alike.get(_loose(name), [])[:2]
        have = "the corpus has" if self.table == "corpus" else "the queries have"
        examples = " and ".join(map(shown, alike)) or f"ids such as {shown(min(self.known))}"
        return f"{have} {examples}{': is that meant?' if alike else ';'} {FIX}"

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        """Loose form -> sorted ids; cached, so read it only once all texts are read."""
        ids_by_form: dict[str, list[str]] = {}
        for name in sorted(self.known | self.left_out):
            ids_by_form.setdefault(_loose(name), []).append(name)
        return ids_by_form


def _loose(name: str) -> str:
    """Return an id in lower case, without leading zeros of its first number and without a final `.0`.

    Spreadsheets and other programs change these.
    """
    return re.sub(r"0*(\d)", r"\1", re.sub(r"\.0+$", "", name), count=1).casefold()
