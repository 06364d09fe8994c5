"""TREC topics and documents: blocks of tagged fields, in SGML with or without end tags, or in XML."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from curate.tables.readers import Problem, Row
from curate.tables.readers.encoding import TextFile
from curate.tables.readers.text_rows import FIX

_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)([^<>]*)>")
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_LABEL = re.compile(r"\s*(\w+)\s*:\s*")
ASKED = ("question", "title", "query")
"""Fields of a topic that hold the query, in order; `desc` and `narr` explain it."""
LOOKED = 400
"""Number of first lines that decide which tag begins a record."""


def block(file: TextFile) -> str | None:
    """Return the name of the tag that encloses a record: the first that holds others and comes again; None if none.

    A file whose first line is no tag has none.
    """
    head = [line.text or "" for line in islice(file.lines(), LOOKED)]
    first = next((line.strip() for line in head if line.strip()), "")
    if not first.startswith("<"):
        return None
    names = [match[2] for line in head for match in _TAG.finditer(line) if not match[1]]
    counts = Counter(names)
    return next((name for name in names if counts[name] > 1), names[-1] if names and len(counts) == 1 else None)


def rows(file: TextFile, name: str) -> Iterator[Row | Problem]:
    """Yield a row per record: field -> text, without tags and without a label that all texts of a field begin with."""
    records = _records(file, name)
    first = list(islice(records, LOOKED))
    labelled = unlabelled([record for record in first if isinstance(record, Row)])
    for record in chain(first, records):
        if isinstance(record, Row):
            values = {
                key: _LABEL.sub("", str(text), count=1) if key in labelled else text
                for key, text in record.values.items()
            }
            yield Row(record.line, values, record.position)
        else:
            yield record


def _records(file: TextFile, name: str) -> Iterator[Row | Problem]:
    """Yield a row per record: field -> text; a field that comes twice is joined by line breaks."""
    begin, end = re.compile(rf"<{re.escape(name)}(?=[\s>])", re.IGNORECASE), f"</{name}>".casefold()
    buffer: list[str] = []
    started = size = 0
    for line in file.lines():
        if line.text is None:
            yield file.unread(line)
            continue
        if not buffer:
            if begin.search(line.text) is None:
                continue
            started, size = line.number, 0
        buffer.append(line.text)
        size += len(line.text)
        if end in line.text.casefold():
            yield Row(started, fields("".join(buffer), name), line.position)
            buffer = []
        elif size > file.bounds.record:
            raise file.too_long(started)
    if buffer:
        yield Problem(started, f"a record <{name}> without an end", end, FIX)


def fields(text: str, name: str) -> dict[str, str]:
    """Return field -> text of one record, its attributes first."""
    opening = next(match for match in _TAG.finditer(text) if match[2].casefold() == name.casefold())
    record = {
        attribute[1]: html.unescape(attribute[2] or attribute[3] or "") for attribute in _ATTRIBUTE.finditer(opening[3])
    }
    body = text[opening.end() : text.casefold().rindex(f"</{name}>".casefold())]
    position = 0
    while match := _TAG.search(body, position):
        if match[1]:
            position = match.end()
            continue
        closing = re.compile(rf"</{re.escape(match[2])}\s*>", re.IGNORECASE).search(body, match.end())
        following = _TAG.search(body, match.end())
        stop = closing.start() if closing else following.start() if following else len(body)
        content = html.unescape(_TAG.sub(" ", body[match.end() : stop])).strip()
        record[match[2]] = "\n".join(filter(None, (record.get(match[2], ""), content)))
        position = closing.end() if closing else stop
    return record


def unlabelled(records: list[Row]) -> list[str]:
    """Return the fields whose texts all begin with one word and a colon, as in `<num> Number: 701`."""
    labels: dict[str, set[str]] = {}
    for record in records:
        for name, content in record.values.items():
            match = _LABEL.match(str(content))
            labels.setdefault(name, set()).add(match[1] if match else "")
    return [name for name, words in labels.items() if len(words) == 1 and "" not in words]
