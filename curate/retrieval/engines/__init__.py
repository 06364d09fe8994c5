"""Engines by kind: they map a function over the parts of a corpus, in processes of this or of other machines."""

from collections.abc import Callable

from curate.core.protocols import Engine
from curate.core.registry import Registry

ENGINES: Registry[Callable[..., Engine]] = Registry(
    "engine",
    {
        "faiss": "curate.retrieval.engines.faiss:Faiss",
        "local": "curate.retrieval.engines.local:Local",
        "ray": "curate.retrieval.engines.ray:Ray",
    },
)
