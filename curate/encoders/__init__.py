"""Encoders by name: text -> vectors. Diversify, dense retrieval and heuristic judges share them."""

from collections.abc import Callable

from curate.protocols import Encoder
from curate.registry import Registry

ENCODERS: Registry[Callable[..., Encoder]] = Registry(
    "encoder",
    {
        "e5": "curate.encoders.e5:E5",
        "use": "curate.encoders.use:Use",
        "dense": "curate.encoders.dense:Dense",
        "api": "curate.encoders.api:Api",
    },
)
"""Kinds of encoders: two whose weights come inside a package, any sentence-transformers model, and a server."""
