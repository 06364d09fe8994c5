"""Qrels as TREC writes them: query, iteration, document and grade, with white space between and without a header."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from curate.tables.readers import Problem, Row
from curate.tables.readers.encoding import Encoding, lines
from curate.tables.readers.items import integer_form
from curate.tables.readers.packed import opened
from curate.tables.readers.text_rows import FIX, each

COLUMNS = ("query-id", "iteration", "corpus-id", "score")
_BLANK = 100


def is_qrels(path: Path, encoding: Encoding) -> bool:
    """Return whether the first line is one of TREC qrels: four words, the last a whole number, also as `1.0`."""
    with opened(path) as stream:
        words = ((line.text or "").split() for line in islice(lines(stream, encoding), _BLANK))
        first = next(filter(None, words), [])
    return len(first) == len(COLUMNS) and integer_form(first[-1].lstrip("+-")).isdecimal()


def rows(path: Path, encoding: Encoding) -> Iterator[Row | Problem]:
    """Yield the lines that are not blank."""

    def converted(number: int, text: str, position: int) -> Row | Problem:
        words = text.split()
        if len(words) == len(COLUMNS):
            return Row(number, dict(zip(COLUMNS, words, strict=True)), position)
        return Problem(number, f"{len(words)} words", "four as in TREC qrels: query 0 document grade", FIX)

    return each(path, encoding, converted)
