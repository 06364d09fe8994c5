"""One JSON document: the list of records in it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

Record = Mapping[str, Any]


def unwrapped(document: object) -> list[Any] | None:
    """Return the records of a JSON document: a list, pandas' `split`, `columns`, `index` or `table`, or a wrapped list.

    None for an object that is a record itself.
    """
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return [dict(zip(map(str, columns), row, strict=False)) for row in data]
    if _is_frame(document):
        return _frame_rows(document)
    return _wrapped(document)


def _is_frame(document: Record) -> bool:
    """Return whether all values are objects with the same keys, as `DataFrame.to_json` writes."""
    inner = list(document.values())
    if len(inner) < 2 or not all(isinstance(entry, Mapping) for entry in inner):
        return False
    keys = [list(entry) for entry in inner]
    return len(keys[0]) > 0 and all(names == keys[0] for names in keys)


def _frame_rows(document: Record) -> list[Record]:
    """Return the rows of `columns` (column -> row -> value) or `index` (row -> column -> value)."""
    names, rows = list(document), list(next(iter(document.values())))
    if _numbered(names) and not _numbered(rows):
        return [dict(entry) for entry in document.values()]
    return [{name: document[name][row] for name in names} for row in rows]


def _numbered(names: Sequence[str]) -> bool:
    return all(name.isdecimal() for name in names)


def _wrapped(document: Record) -> list[Any] | None:
    """Return the only list of objects in a document, or in the objects in it; None unless there is exactly one.

    A document with a text of its own beside the list is a record.
    """
    if any(isinstance(entry, str) and len(entry.split()) > 3 for entry in document.values()):
        return None
    lists = [list(entry) for entry in document.values() if is_objects(entry)]
    inner = [_wrapped(entry) for entry in document.values() if isinstance(entry, Mapping)] if not lists else []
    lists += [entries for entries in inner if entries is not None]
    return lists[0] if len(lists) == 1 else None


def is_objects(content: object) -> TypeGuard[list[Record]]:
    """Return whether a value is a list of objects, and not empty."""
    return isinstance(content, list) and bool(content) and all(isinstance(entry, Mapping) for entry in content)
