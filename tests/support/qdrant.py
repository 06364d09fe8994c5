"""Collections of Qdrant for tests: the client's embedded mode, and the same behind HTTP, with faults.

No server runs here: what answers over HTTP is Qdrant's own embedded implementation behind the few paths of its REST
API that the retriever uses.
"""

import importlib.util
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.core.protocols import Vectors
from tests.conftest import need
from tests.support.http_server import serving
from tests.support.small import DIM, letters

Fault = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body of a reply; status 0 is silence for a second."""


def fill(
    client: Any,
    texts: Sequence[tuple[str, str]],
    name: str = "texts",
    vector: str | None = None,
    vectors: Vectors | None = None,
    distance: str = "Cosine",
) -> None:
    """Make a collection of a point a text, numbered, with its document's id in the payload."""
    from qdrant_client import models

    rows = letters([text for _, text in texts]) if vectors is None else vectors
    params = models.VectorParams(size=rows.shape[1], distance=models.Distance(distance))
    client.create_collection(name, vectors_config={vector: params} if vector else params)
    points = [
        models.PointStruct(
            id=number, vector={vector: row} if vector else row, payload={"doc_id": doc_id, "meta": {"id": doc_id}}
        )
        for number, ((doc_id, _), row) in enumerate(zip(texts, rows.tolist(), strict=True))
    ]
    if points:
        client.upsert(name, points)


def one_more(client: Any) -> None:
    """Add a document to the collection `texts`."""
    from qdrant_client import models

    client.upsert("texts", [models.PointStruct(id=99, vector=[1.0] * DIM, payload={"doc_id": "d99"})])


def _client(*where: str, **more: str) -> Any:
    need(importlib.util.find_spec("qdrant_client") is not None, "the package qdrant-client")
    from qdrant_client import QdrantClient

    return QdrantClient(*where, **more)


@contextmanager
def folder(path: Path) -> Iterator[Any]:
    """Open the embedded mode in a folder, to write into it."""
    client = _client(path=str(path))
    try:
        yield client
    finally:
        client.close()


@dataclass
class Server:
    """A running server, and what it was asked."""

    url: str
    client: Any
    key: str | None
    faults: list[Fault | None] = field(default_factory=list)
    """Used up one a search; None, or none left, is a right answer."""
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def reply(self, method: str, path: str, headers: Mapping[str, str], sent: bytes) -> Fault | None:
        path, body = path.partition("?")[0], json.loads(sent) if sent else None
        self.asked.append((method, path, body))
        if self.key is not None and headers.get("api-key") != self.key:
            return 401, {}, b"Must provide an API key or an Authorization bearer token"
        if path.endswith("/points/query/batch") and self.faults and (fault := self.faults.pop(0)):
            if fault[0] == 0:
                time.sleep(1.5)
                return None
            return fault
        return 200, {}, json.dumps({"result": self._result(path, body), "status": "ok", "time": 0.0}).encode()

    def _result(self, path: str, body: Any) -> Any:
        from qdrant_client.models import QueryRequest

        if path == "/collections":
            return self.client.get_collections().model_dump(mode="json")
        if path == "/aliases":
            return self.client.get_aliases().model_dump(mode="json")
        name = path.split("/")[2]
        if path.endswith("/points/count"):
            return self.client.count(name).model_dump(mode="json")
        if path.endswith("/points/query/batch"):
            searches = [QueryRequest(**{**each, "params": None}) for each in body["searches"]]
            return [each.model_dump(mode="json") for each in self.client.query_batch_points(name, searches)]
        return self.client.get_collection(name).model_dump(mode="json")

    @property
    def searches(self) -> list[Any]:
        return [body["searches"] for _, path, body in self.asked if path.endswith("/points/query/batch")]


@contextmanager
def server(key: str | None = None) -> Iterator[Server]:
    """Run an empty server on a free port of loopback."""
    client = _client(":memory:")
    state = Server("", client, key)
    try:
        with serving(state.reply) as state.url:
            yield state
    finally:
        client.close()
