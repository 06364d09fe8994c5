"""Encoders of texts as vectors, by name, for near-duplicate filtering, dense retrieval and heuristic judges."""

from collections.abc import Callable

from curate.core.protocols import Encoder
from curate.core.registry import Registry

ENCODERS: Registry[Callable[..., Encoder]] = Registry(
    "encoder",
    {
        "e5": "curate.retrieval.encoders.e5:E5",
        "use": "curate.retrieval.encoders.use:Use",
        "dense": "curate.retrieval.encoders.dense:DenseEncoder",
        "api": "curate.retrieval.encoders.api:Api",
        "asymmetric": "curate.retrieval.encoders.asymmetric:Asymmetric",
    },
)
"""Kinds of encoders: two whose weights come inside a package, any sentence-transformers model, a server, and two of
these for queries and documents."""
UNDEFINED = frozenset({"dense", "api", "asymmetric"})
"""Kinds of encoders that need settings, so that their name alone does not name an encoder."""
