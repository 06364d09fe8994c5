"""Judges by name: they rate passages, offline or by a model."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from curate.core.registry import Registry

if TYPE_CHECKING:  # brings polars, which names of judges do without
    from curate.core.protocols import Judge

JUDGES: "Registry[Callable[..., Judge]]" = Registry(
    "judge",
    {
        "lexical": "curate.ask.judges.heuristic:Lexical",
        "similarity": "curate.ask.judges.heuristic:Similarity",
        "replay": "curate.ask.judges.replay:Replay",
    },
)
"""`lexical` and `similarity` are heuristics, `replay` gives recorded grades. A language model is a provider's kind."""
