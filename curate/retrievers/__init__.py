"""Retrievers by kind: corpus and queries -> rankings. The name of an encoder means dense retrieval by it."""

from collections.abc import Callable

from curate.protocols import Retriever
from curate.registry import Registry

RETRIEVERS: Registry[Callable[..., Retriever]] = Registry(
    "retriever",
    {
        "bm25": "curate.retrievers.bm25:Bm25",
        "dense": "curate.retrievers.dense:Dense",
        "qdrant": "curate.retrievers.qdrant:Qdrant",
        "runfile": "curate.retrievers.runfile:RunFile",
    },
)
"""Kinds of retrievers; every encoder's name stands for `dense` with that encoder."""
