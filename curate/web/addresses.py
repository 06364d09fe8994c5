"""Addresses of pages: ids as segments of a path, whatever characters they have."""

from urllib.parse import quote, unquote

_DOTS = (".", "..")


def segment(name: str) -> str:
    """Return an id as a segment of an address; browsers resolve dots alone, so these get a star in front."""
    return quote(f"*{name}" if name in _DOTS or name.startswith("*") else name, safe="")


def names(raw_path: bytes, prefix: str) -> list[str]:
    """Return the ids in an address behind a prefix, as `segment` wrote them."""
    segments = raw_path.partition(b"?")[0].decode("ascii", "replace").removeprefix(prefix).split("/")
    ids = [unquote(part) for part in segments if part]
    return [name.removeprefix("*") for name in ids]


def of_query(query_id: str) -> str:
    """Return the address of a query's pool."""
    return f"/q/{segment(query_id)}"


def of_pair(query_id: str, doc_id: str) -> str:
    """Return the address of a pair."""
    return f"/q/{segment(query_id)}/{segment(doc_id)}"


def of_doc(doc_id: str) -> str:
    """Return the address of a document."""
    return f"/doc/{segment(doc_id)}"
