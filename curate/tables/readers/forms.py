"""Forms of files in which a row is not a query or a document: dumps, nested records, TREC, chats, annotations.

A form is known by structure: which keys hold lists, which lines alternate, which tags stand around a text. Where names
decide, they are those of `columns.yaml`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import Any

from curate.tables.readers import Problem, Row, Table
from curate.tables.readers.roles import first_named, plain_name, spellings
from curate.tables.readers.unwrapping import is_objects

Rows = Iterable[Row | Problem]
Record = Mapping[str, Any]
LOOKED = 50
"""Number of first rows by which a form is recognised."""


@dataclass(frozen=True)
class Form:
    """A form of records that holds several tables, or none of its own."""

    name: str
    said: str
    """What a row is, for people."""
    tables: Mapping[Table, Callable[[Rows], Iterator[Row | Problem]]]
    """Table -> its rows, made of the rows of the file; the columns have their default names."""


# Elasticsearch: an action line, then the document that it stores.

_ACTIONS = frozenset({"index", "create", "update", "delete"})


def _action(record: Record) -> Record | None:
    """Return the address in an action line of a bulk file; None for any other record."""
    [name], [address] = (list(record), list(record.values())) if len(record) == 1 else ([""], [None])
    return address if name in _ACTIONS and isinstance(address, Mapping) else None


def _bulk_rows(rows: Rows) -> Iterator[Row | Problem]:
    """Yield the stored documents with the `_id` of their action."""
    address: Record = {}
    for row in rows:
        if isinstance(row, Problem):
            yield row
        elif (action := _action(row.values)) is not None:
            address = action
        else:
            source = row.values.get("doc", row.values) if set(row.values) <= {"doc", "doc_as_upsert"} else row.values
            yield Row(row.line, {**({"_id": address["_id"]} if "_id" in address else {}), **source}, row.at)


# Records in records: queries with their passages, or texts with the questions about them.

_QUESTIONS = ("question", "query", "问题", "問題", "提问", "查询")
_AGAINST = re.compile(r"neg|irrelevant|not_?relevant|负|負|不相关|不相關", re.IGNORECASE)
"""Pattern of the names of lists of passages that do not answer the query."""
_CHOSEN = ("is_selected", "is_relevant", "isrelevant", "selected", "relevance", "relevant", "rel", "label", "grade")
"""Names of a field that says whether a passage in a list answers the query."""


def _text_of(record: Record, table: Table, names: Iterable[str] = ()) -> str:
    """Return the text of a query or document in a record, by its usual names; empty if it has none."""
    texts = {name: content for name, content in record.items() if isinstance(content, str) and content.strip()}
    name = first_named(texts, table, "text")
    return texts[name] if name else ""


def _id_of(record: Record, table: Table, text: str) -> str:
    ids = {name: content for name, content in record.items() if isinstance(content, str | int) and str(content)}
    name = first_named(ids, table, "id")
    return str(ids[name]) if name else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _lists(record: Record) -> dict[str, list[Record]]:
    """Return the lists of objects in a record, also those that are stored as an object of lists."""
    lists = {}
    for name, content in record.items():
        if is_objects(content):
            lists[name] = content
        elif isinstance(content, Mapping) and (columns := _columns_of(content)):
            lists[name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return lists


def _columns_of(content: Record) -> dict[str, list[Any]]:
    columns = {name: cells for name, cells in content.items() if isinstance(cells, list)}
    same = len(columns) == len(content) > 1 and len({len(cells) for cells in columns.values()}) == 1
    return columns if same and any(isinstance(cell, str) for cells in columns.values() for cell in cells) else {}


@dataclass(frozen=True)
class _Document:
    id: str
    title: str
    text: str


@dataclass(frozen=True)
class _Query:
    id: str
    text: str
    judged: Sequence[tuple[_Document, int]]
    """Documents that the nesting names, with their scores."""


def _nodes(record: Record, line: int, title: str = "", above: _Document | None = None) -> Iterator[_Query | _Document]:
    """Yield the queries and documents in a record; `above` is the document whose questions it holds."""
    lists = _lists(record)
    title = str(record.get("title") or title)
    question = _question(record)
    passages = {name: entries for name, entries in lists.items() if any(map(_passage_text, entries))}
    if not question and above is None and passages and not _asked_about(lists):
        question = _own_text(record)
    if question:
        yield _query(record, question, line, passages, above)
        return
    if _asked_about(lists) and (text := _passage_text(record)):
        above = _Document(_id_of(record, "corpus", text), title, text)
        yield above
    for entries in lists.values():
        for entry in entries:
            yield from _nodes(entry, line, title, above)


def _question(record: Record) -> str:
    """Return the text under a name that only queries have; empty without one."""
    names = [name for name in record if isinstance(record[name], str) and record[name].strip()]
    own = [name for name in names if plain_name(name) not in _OF_DOCUMENTS()]
    name = first_named(own, "queries", "text")
    return str(record[name]) if name else ""


def _own_text(record: Record) -> str:
    return _text_of(record, "queries") or _text_of(record, "corpus")


def _passage_text(record: Record) -> str:
    return _text_of(record, "corpus") if isinstance(record, Mapping) else ""


def _asked_about(lists: Mapping[str, Sequence[Record]]) -> bool:
    return any(
        _question(entry) or _asked_about(_lists(entry))
        for entries in lists.values()
        for entry in islice(entries, LOOKED)
    )


@cache
def _OF_DOCUMENTS() -> frozenset[str]:
    return frozenset({*spellings("corpus", "text"), *spellings("corpus", "title"), "text", "title"})


def _query(
    record: Record, question: str, line: int, passages: Mapping[str, Sequence[Record]], above: _Document | None
) -> _Query:
    ids = first_named([name for name in record if isinstance(record[name], str | int)], "queries", "id")
    name = str(record[ids]) if ids else str(line)
    if above is not None:
        answerable = not record.get("is_impossible") and record.get("answers", True)
        return _Query(name, question, [(above, 1)] if answerable else [])
    judged = [
        (_Document(_id_of(entry, "corpus", text), str(entry.get("title") or ""), text), _score(key, entry))
        for key, entries in passages.items()
        for entry in entries
        if (text := _passage_text(entry))
    ]
    return _Query(name, question, judged)


def _score(name: str, entry: Record) -> int:
    """Return the score of a passage by the name of its list, or by a field of its own that says whether it answers."""
    if _AGAINST.search(name):
        return 0
    stated = next((entry[key] for key in entry if key.casefold() in _CHOSEN), 1)
    return int(stated) if isinstance(stated, int | bool) or (isinstance(stated, float) and stated.is_integer()) else 1


def _nested_queries(rows: Rows) -> Iterator[Row | Problem]:
    return _each(rows, lambda node: {"_id": node.id, "text": node.text} if isinstance(node, _Query) else None)


def _each(rows: Rows, convert: Callable[[Any], Record | None]) -> Iterator[Row | Problem]:
    seen: set[str] = set()
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        for node in _nodes(row.values, row.line):
            converted = convert(node)
            if converted is not None and converted["_id"] not in seen:
                seen.add(converted["_id"])
                yield Row(row.line, converted, row.at)


def _nested_documents(rows: Rows) -> Iterator[Row | Problem]:
    seen: set[str] = set()
    for row in rows:
        if isinstance(row, Problem):
            yield row
            continue
        for node in _nodes(row.values, row.line):
            for document in [node] if isinstance(node, _Document) else [judged for judged, _ in node.judged]:
                if document.id not in seen:
                    seen.add(document.id)
                    yield Row(row.line, {"_id": document.id, "title": document.title, "text": document.text}, row.at)


def _nested_pairs(rows: Rows) -> Iterator[Row | Problem]:
    for row in rows:
        if isinstance(row, Problem):
            continue
        for node in _nodes(row.values, row.line):
            for document, score in node.judged if isinstance(node, _Query) else ():
                yield Row(row.line, {"query-id": node.id, "corpus-id": document.id, "score": score}, row.at)


BULK = Form("elastic bulk", "a document behind its action line", {"corpus": _bulk_rows, "queries": _bulk_rows})
NESTED = Form(
    "nested",
    "a query with its passages, or a text with the questions about it",
    {"queries": _nested_queries, "corpus": _nested_documents, "qrels": _nested_pairs},
)


def recognised(rows: Rows, *, both: bool) -> Form | None:
    """Return the form of a file by its first rows; None if each row is an item of a table.

    `both` is whether the file was given for queries and for documents.
    """
    records = [row.values for row in islice(rows, LOOKED) if isinstance(row, Row)]
    if records and _action(records[0]) is not None:
        return BULK
    if any(_states_pairs(record, both=both) for record in records):
        return NESTED
    return None


def _states_pairs(record: Record, *, both: bool) -> bool:
    """Return whether a record holds a query and documents in one another, and is no row of a question and its answer."""
    if _question(record) and _passage_text(record):
        return False
    if not both and not _question(record) and not _asked_about(_lists(record)):
        return False
    return any(isinstance(node, _Query) and node.judged for node in _nodes(record, 1))
