"""Highlighting of the parts of a passage that the query contains too.

Chinese has no blanks, so runs of at least two of its characters are compared; other scripts are compared word by word.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby

from curate.core.config import parse_yaml
from curate.system.resources import template

SHORTEST = 2
"""Characters of the shortest match: single characters of Chinese are in every passage."""
_DENSE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_DENSE}]{{{SHORTEST},}}")
_WORD = re.compile(f"[^\\W_{_DENSE}]+")


def pieces(query: str, passage: str) -> list[tuple[str, bool]]:
    """Return the passage in pieces, each with whether it matches the query; together they are the passage.

    Case and full width do not matter. Matches that touch are one piece.
    """
    folded = _folded(passage)
    marked = [False] * len(passage)
    for start, end in (*_words(_folded(query), folded), *_runs(_folded(query), folded)):
        marked[start:end] = [True] * (end - start)
    return [
        ("".join(letter for letter, _ in part), match)
        for match, part in groupby(zip(passage, marked, strict=True), key=lambda each: each[1])
    ]


def _folded(text: str) -> str:
    """Return the text in lower case and half width, character by character, so that places stay the same."""
    return "".join(plain if len(plain := unicodedata.normalize("NFKC", one).lower()) == 1 else one for one in text)


def _words(query: str, passage: str) -> Iterator[tuple[int, int]]:
    wanted = {word for word in _WORD.findall(query) if len(word) >= SHORTEST} - set(_lists()["words"])
    return (word.span() for word in _WORD.finditer(passage) if word[0] in wanted)


def _runs(query: str, passage: str) -> Iterator[tuple[int, int]]:
    """Yield the longest match at every place of the passage where one begins."""
    parted = re.sub("|".join(sorted(_lists()["parting"], key=len, reverse=True)), " ", query)
    source = " ".join(_RUN.findall(parted))
    begins = {source[place : place + SHORTEST] for place in range(len(source) - SHORTEST + 1)}
    for run in _RUN.finditer(passage):
        for start in range(run.start(), run.end() - SHORTEST + 1):
            end = start + SHORTEST
            if passage[start:end] in begins:
                while end < run.end() and passage[start : end + 1] in source:
                    end += 1
                yield start, end


@cache
def _lists() -> dict[str, list[str]]:
    found = parse_yaml(template("review/web/highlight.yaml"))
    assert isinstance(found, dict)
    return found
