"""Addresses of pages: on the server, and as relative paths of files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlencode

_DOTS = (".", "..")


def segment(name: str) -> str:
    """Return an id as a segment of an address; browsers resolve dots alone, so these get a star in front."""
    return quote(f"*{name}" if name in _DOTS or name.startswith("*") else name, safe="")


def names(raw_path: bytes, prefix: str) -> list[str]:
    """Return the ids in an address after a prefix, as `segment` wrote them."""
    segments = raw_path.partition(b"?")[0].decode("ascii", "replace").removeprefix(prefix).split("/")
    ids = [unquote(part) for part in segments if part]
    return [name.removeprefix("*") for name in ids]


def anchor(doc_id: str) -> str:
    """Return the address of a document's place on the page of a query in an export."""
    return f"#d-{quote(doc_id, safe='')}"


@dataclass(frozen=True)
class Links:
    """Addresses of the server."""

    base: str = ""
    """Path of the public URL, which stands before every address."""

    def page(self, name: str, params: Mapping[str, str] | None = None) -> str:
        """Return the address of a page; parameters without a value are left out."""
        words = urlencode({key: value for key, value in (params or {}).items() if value})
        path = f"{self.base}/{name}"
        return f"{path}?{words}" if words else path

    def static(self, name: str) -> str:
        """Return the address of a file of style."""
        return f"{self.base}/static/{name}"

    def query(self, query_id: str) -> str:
        """Return the address of a query's pool."""
        return f"{self.base}/q/{segment(query_id)}"

    def pair(self, query_id: str, doc_id: str) -> str:
        """Return the address of a pair."""
        return f"{self.query(query_id)}/{segment(doc_id)}"

    def doc(self, doc_id: str) -> str:
        """Return the address of a document; empty if it has no page of its own."""
        return f"{self.base}/doc/{segment(doc_id)}"


@dataclass(frozen=True)
class FileLinks(Links):
    """Relative paths of an exported folder, from a page in it or, with `above` set to `../`, in one of its folders."""

    rows: Mapping[str, int] = field(default_factory=dict)
    """Query id -> its row."""
    above: str = ""

    def page(self, name: str, params: Mapping[str, str] | None = None) -> str:
        """Return the path of a page; of a list, its parameter `page` is the number of the file."""
        number = (params or {}).get("page", "1")
        return f"{self.above}{name or 'index'}{'' if number == '1' else f'-{number}'}.html"

    def static(self, name: str) -> str:
        """Return the path of a file of style."""
        return f"{self.above}{name}"

    def query(self, query_id: str) -> str:
        """Return the path of the page of a query."""
        return f"{self.above}q/{self.rows[query_id]:06}.html"

    def pair(self, query_id: str, doc_id: str) -> str:
        """Return the path of a pair: a place on the page of its query."""
        return f"{self.query(query_id)}{anchor(doc_id)}"

    def doc(self, doc_id: str) -> str:  # noqa: ARG002
        """Return nothing: a document is shown with its pairs."""
        return ""
