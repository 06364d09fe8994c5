"""Rows of JSON and JSONL files, and of files with a text per line."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from curate.core.config import kind_of
from curate.tables.readers import Problem, Row
from curate.tables.readers.encoding import Encoding, lines
from curate.tables.readers.packed import opened

FIX = "correct the line, or set ingest.on_error: drop"
CORRECT = "correct it, or write the file as JSONL, an object per line"
_BLANK = 100
"""Blank lines, at most, before a list begins."""
COLUMN = "text"
"""The one column of a file with a text per line."""
_PLAIN_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-."


def jsonl(path: Path, encoding: Encoding) -> Iterator[Row | Problem]:
    """Return the objects of all lines that are not blank, as they are read."""
    return each(path, encoding, lambda number, text, at: _object(number, text.rstrip(), at))


def is_list(path: Path, encoding: Encoding) -> bool:
    """Say whether a file is one list of JSON objects, rather than an object per line."""
    with opened(path) as stream:
        first = (line.text.strip() for line in islice(lines(stream, encoding), _BLANK) if line.text)
        return next(filter(None, first), "").startswith("[")


def json_list(path: Path, encoding: Encoding) -> Iterator[Row | Problem]:
    """Yield the objects of one list, numbered from 1; the file is read whole."""
    with opened(path) as stream:
        read = [*lines(stream, encoding)]
    bad = next((line.number for line in read if line.text is None), None)
    if bad is not None:
        yield undecodable(bad, encoding)
        return
    try:
        values = json.loads("".join(line.text or "" for line in read))
    except json.JSONDecodeError as error:
        yield Problem(error.lineno, f"a file that is not valid JSON ({error.msg})", "one list of objects", CORRECT)
        return
    except (ValueError, RecursionError):
        yield Problem(1, "a file that is not valid JSON", "one list of objects", CORRECT)
        return
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield Row(number, value, number)
        else:
            yield Problem(number, f"{kind_of(value)} as an entry of the list", "one JSON object", FIX)


def _object(number: int, text: str, at: int) -> Row | Problem:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        found = f"a line that is not valid JSON ({error.msg}, column {error.colno})"
        return Problem(number, found, "one JSON object", FIX)
    except (ValueError, RecursionError):  # a number of thousands of digits; brackets nested without end
        return Problem(number, "a line that is not valid JSON", "one JSON object", FIX)
    if not isinstance(value, dict):
        return Problem(number, kind_of(value), "one JSON object", FIX)
    return Row(number, value, at)


def plain(path: Path, encoding: Encoding) -> Iterator[Row | Problem]:
    """Return the texts of all lines that are not blank, as they are read."""
    return each(path, encoding, lambda number, text, at: Row(number, {COLUMN: text.strip()}, at))


def each(path: Path, encoding: Encoding, made: Callable[[int, str, int], Row | Problem]) -> Iterator[Row | Problem]:
    """Yield what is made of the number, the text and the end of every line that is not blank."""
    with opened(path) as stream:
        for line in lines(stream, encoding):
            if line.text is None:
                yield undecodable(line.number, encoding)
            elif line.text.strip():
                yield made(line.number, line.text, line.at)


def undecodable(number: int, encoding: Encoding) -> Problem:
    """Return the problem of a line whose bytes are not text in the file's encoding."""
    found = f"bytes that are not {encoding.upper()}"
    return Problem(number, found, "text in one encoding", "save the file as UTF-8, or name it with ingest.encoding")


def shown_names(names: list[str]) -> str:
    """Return column names for an error; one that may be data of a file without header is shown as its length."""
    plain = [name if name and set(name) <= set(_PLAIN_NAME) else f"one of {len(name)} characters" for name in names]
    return ", ".join(plain) or "none"
