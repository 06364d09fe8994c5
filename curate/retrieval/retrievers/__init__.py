"""Retrievers by kind, which rank the documents of a corpus for queries."""

from collections.abc import Callable

from curate.core.protocols import Retriever
from curate.core.registry import Registry

RETRIEVERS: Registry[Callable[..., Retriever]] = Registry(
    "retriever",
    {
        "bm25": "curate.retrieval.retrievers.bm25:Bm25",
        "dense": "curate.retrieval.retrievers.dense:DenseRetriever",
        "qdrant": "curate.retrieval.retrievers.qdrant:Qdrant",
        "reranker": "curate.retrieval.retrievers.reranker:Reranker",
        "runfile": "curate.retrieval.retrievers.runfile:RunFile",
        "sparse": "curate.retrieval.retrievers.sparse:SparseRetriever",
    },
)
"""Kinds of retrievers. As a retriever, the name of an encoder means `dense` with that encoder."""
