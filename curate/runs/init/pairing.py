"""Questions beside their answers in one table: which column is which, by its name, else by what stands in the cells."""

import re
from collections.abc import Iterable, Mapping, Sequence

from curate.formats.readers import Source, Table
from curate.formats.readers.guess import first_columns, has_known_name
from curate.formats.readers.items import as_id, plain

_TEXTS: Mapping[Table, Sequence[str]] = {"queries": ["text"], "corpus": ["title", "text"]}
_ASKING, _TELLING = 0.5, 0.2
"""Least share of questions among the cells of a column of questions, and highest among those of answers."""
_MARK = re.compile(r"[?？؟][\s\"'”’」』)）]*$")
_ENDED = re.compile(r"[.。!！;；]\s*$")
_ASKS = re.compile(
    r"^\W*(?:how|what|why|when|where|which|who|can|could|should|is|are|do|does|did|will|may)\b|[吗呢嗎]$|什么|甚麼|什麼|"
    r"怎|如何|为何|為何|多少|多久|多长|多大|哪|几[个天次点]|是否|能否|可否|([能会要可])不\1",
    re.IGNORECASE,
)
"""How a question is worded that has no mark; a text that ends as a sentence is none."""


def text_columns(source: Source) -> dict[str, list[str]]:
    """Return column -> its texts in the first rows, of the columns that may hold sentences.

    These hold nothing but texts, most of them different, and are no ids.
    """
    found = {}
    for name, cells in first_columns(source)[0].items():
        texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
        strings = all(isinstance(cell, str | None) for cell in cells)
        names = all(plain(as_id(text)) and not any(map(str.isspace, text)) for text in texts)
        if strings and not names and 2 * len(set(texts)) > len(texts):
            found[name] = texts
    return found


def by_name(columns: Iterable[str]) -> dict[Table, str]:
    """Return the columns whose names are those of queries alone, and of documents alone, one for each at most."""
    names: dict[Table, str] = {}
    sides: tuple[tuple[Table, Table], ...] = (("queries", "corpus"), ("corpus", "queries"))
    for table, other in sides:
        fitting = [
            column
            for column in columns
            if has_known_name([column], table, ["text"]) and not has_known_name([column], other, _TEXTS[other])
        ]
        if len(fitting) == 1:
            names[table] = fitting[0]
    return names


def by_cells(columns: Mapping[str, Sequence[str]]) -> dict[Table, str]:
    """Return the column of questions as `queries` and that of answers as `corpus`; nothing where it is not plain.

    One column asks, and one other tells in texts that are as long on average.
    """
    asking = {name: sum(map(_asks, texts)) / len(texts) for name, texts in columns.items()}
    length = {name: sum(map(len, texts)) / len(texts) for name, texts in columns.items()}
    asked = [name for name, share in asking.items() if share >= _ASKING]
    if len(asked) != 1:
        return {}
    told = [name for name, share in asking.items() if share <= _TELLING and length[name] >= length[asked[0]]]
    return {"queries": asked[0], "corpus": told[0]} if len(told) == 1 else {}


def _asks(text: str) -> bool:
    return bool(_MARK.search(text) or (not _ENDED.search(text) and _ASKS.search(text.strip())))
