"""Questions beside their answers in one table: which column is which, by what stands in the cells."""

import re
from collections.abc import Mapping, Sequence

from curate.tables.readers import Source, Table
from curate.tables.readers.guess import first_columns
from curate.tables.readers.items import plain

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
    """Return column -> its texts in the first rows, of columns that hold nothing but texts."""
    columns, _ = first_columns(source)
    plain_ones = {name: values for name, values in columns.items() if all(isinstance(v, str | None) for v in values)}
    texts = {name: [str(each) for each in values if each and str(each).strip()] for name, values in plain_ones.items()}
    return {name: values for name, values in texts.items() if values}


def sentences(source: Source) -> dict[str, list[str]]:
    """Return those of a source's columns of texts that are no ids and differ in most rows."""

    def fits(texts: Sequence[str]) -> bool:
        return 2 * len(set(texts)) > len(texts) and not all(plain(text) and len(text.split()) == 1 for text in texts)

    return {name: texts for name, texts in text_columns(source).items() if fits(texts)}


def by_cells(columns: Mapping[str, Sequence[str]]) -> dict[Table, str]:
    """Return the column of questions as `queries` and that of answers as `corpus`; nothing where it is not plain.

    One column asks, and one other tells; of several that tell the one whose texts are as long on average as the
    questions.
    """
    asking = {name: sum(map(_asks, texts)) / len(texts) for name, texts in columns.items()}
    length = {name: sum(map(len, texts)) / len(texts) for name, texts in columns.items()}
    asked = [name for name, share in asking.items() if share >= _ASKING]
    told = [name for name, share in asking.items() if share <= _TELLING]
    if asked and len(told) > 1:
        told = [name for name in told if length[name] >= length[asked[0]]]
    return {"queries": asked[0], "corpus": told[0]} if len(asked) == len(told) == 1 else {}


def _asks(text: str) -> bool:
    return bool(_MARK.search(text) or (not _ENDED.search(text) and _ASKS.search(text.strip())))
