"""The ids of one table of texts, once it is read, and which of them the ids of another table mean."""

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
    """What is known of one table of texts; holds ids, no texts."""

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
    """Id as another table wrote it -> the id of the texts that is the same whole number."""

    def meant(self, name: str) -> str:
        """Return the id of the texts that another table's id means: itself, or the only one that is the same number.

        An id that no text has, or whose number several have, is returned as it is.
        """
        if name in self.known or name in self.left_out:
            return name
        same = [each for each in self._alike.get(_loose(name), ()) if integer_form(each) == integer_form(name)]
        if len(same) == 1:
            self.by_number[name] = same[0]
        return self.by_number.get(name, name)

    def remedy(self, name: str) -> str:
        """Return what to do about an id that no text has: the ids that look like it, or one that shows their form."""
        alike = self._alike.get(_loose(name), [])[:2]
        have = "the corpus has" if self.table == "corpus" else "the queries have"
        named = " and ".join(map(shown, alike)) or f"ids such as {shown(min(self.known))}"
        return f"{have} {named}{': is that meant?' if alike else ';'} {FIX}"

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        """Loose form -> the ids that have it, in order; made once all texts are read, where an id has none."""
        found: dict[str, list[str]] = {}
        for name in sorted(self.known | self.left_out):
            found.setdefault(_loose(name), []).append(name)
        return found


def _loose(name: str) -> str:
    """Return an id without what programs change in ids: case, zeros before a number, and `.0` at the end."""
    return re.sub(r"0*(\d)", r"\1", re.sub(r"\.0+$", "", name), count=1).casefold()
