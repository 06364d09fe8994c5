"""Highlighting of the parts of a passage that also occur in the query.

In Chinese, which has no spaces, these are runs of at least two common characters; in other scripts common words.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby

from curate.core.config import parse_yaml
from curate.system.resources import template

SHORTEST = 2
"""Minimum characters of a Chinese match, since single characters occur in every passage."""
_DENSE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_DENSE}]{{{SHORTEST},}}")
_WORD = re.compile(f"[^\\W_{_DENSE}]+")


def pieces(query: str, passage: str) -> list[tuple[str, bool]]:
    """Return the passage split into pieces, as (text, whether it matches the query); joined, they are the passage.

    Case and full width are ignored. Adjacent matches are one piece.
    """
    folded, folded_query = _folded(passage), _folded(query)
    query_words = {word for word in _WORD.findall(folded_query) if len(word) >= SHORTEST} - set(_lists()["words"])
    spans = [word.span() for word in _WORD.finditer(folded) if word[0] in query_words]
    marked = [False] * len(passage)
    for start, end in (*spans, *_runs(folded_query, folded)):
        marked[start:end] = [True] * (end - start)
    return [
        ("".join(letter for letter, _ in letters), match)
        for match, letters in groupby(zip(passage, marked, strict=True), key=lambda entry: entry[1])
    ]


def _folded(text: str) -> str:
    """Return the text in lower case and half width, character by character, so that offsets stay the same."""
    return "".join(narrow if len(narrow := unicodedata.normalize("NFKC", one).lower()) == 1 else one for one in text)


def _runs(query: str, passage: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the longest match at every offset of the passage at which one begins."""
    parted = re.sub("|".join(sorted(_lists()["parting"], key=len, reverse=True)), " ", query)
    source = " ".join(_RUN.findall(parted))
    begins = {source[offset : offset + SHORTEST] for offset in range(len(source) - SHORTEST + 1)}
    for run in _RUN.finditer(passage):
        for start in range(run.start(), run.end() - SHORTEST + 1):
            end = start + SHORTEST
            if passage[start:end] in begins:
                while end < run.end() and passage[start : end + 1] in source:
                    end += 1
                yield start, end


@cache
def _lists() -> dict[str, list[str]]:
    lists = parse_yaml(template("web/highlight.yaml"))
    assert isinstance(lists, dict)
    return lists
