"""HTML in queries and documents: counted, and stripped where the settings say so."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from curate.tables.readers import Table
from curate.tables.readers.items import Item
from curate.tables.readers.markup import is_html, strip


@dataclass
class HtmlTexts:
    """What becomes of texts with tags, and how many there were."""

    policy: Literal["keep", "strip"]
    found: Counter[Table] = field(default_factory=Counter)

    def read(self, item: Item, table: Table) -> Item:
        """Return the item as the settings want it, and count it if its title or its text holds HTML."""
        if not (is_html(item.text) or is_html(item.title)):
            return item
        self.found[table] += 1
        return item if self.policy == "keep" else replace(item, title=strip(item.title), text=strip(item.text))

    def notes(self) -> Iterator[str]:
        """Yield a sentence per table with HTML."""
        words = {"queries": "queries", "corpus": "documents"}
        done = {"keep": "which is kept; ingest.html: strip removes it", "strip": "which was stripped"}
        for table, count in sorted(self.found.items()):
            yield f"{count:,} {words[table]} hold HTML, {done[self.policy]}"
