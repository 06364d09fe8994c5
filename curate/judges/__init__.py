"""Judges by name: what rates passages, offline or by asking a model."""

from collections.abc import Callable

from curate.protocols import Judge
from curate.registry import Registry

JUDGES: Registry[Callable[..., Judge]] = Registry(
    "judge",
    {
        "lexical": "curate.judges.heuristic:Lexical",
        "similarity": "curate.judges.heuristic:Similarity",
        "replay": "curate.judges.replay:Replay",
    },
)
"""`lexical` and `similarity` are heuristics, `replay` gives recorded grades. A language model is a provider's kind."""
