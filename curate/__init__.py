"""Turn raw queries and documents into a retrieval benchmark whose labels can be trusted.

The names below are the public ones; each is imported when it is first used, so that `import curate` costs nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` takes longer to import than all the rest before Ctrl-C is heard
if TYPE_CHECKING:
    from curate.core.config import Section
    from curate.core.errors import CurateError, UserError
    from curate.core.protocols import (
        Benchmark,
        Corpus,
        Encoder,
        Exporter,
        Hits,
        Judge,
        Kit,
        Progress,
        Provider,
        Retriever,
    )
    from curate.core.records import Document, Hit, Outcome, Query
    from curate.formats.exporters.loading import load_task, load_tasks
    from curate.ledger import Ledger
    from curate.runs.pipeline import Pipeline
    from curate.runs.run import Run
    from curate.stats.agreement import Agreement, measure

__version__ = "0.1.0"

_HOMES = {
    "Agreement": "stats.agreement",
    "Benchmark": "core.protocols",
    "Corpus": "core.protocols",
    "CurateError": "core.errors",
    "Document": "core.records",
    "Encoder": "core.protocols",
    "Exporter": "core.protocols",
    "Hit": "core.records",
    "Hits": "core.protocols",
    "Judge": "core.protocols",
    "Kit": "core.protocols",
    "Ledger": "ledger",
    "Outcome": "core.records",
    "Pipeline": "runs.pipeline",
    "Progress": "core.protocols",
    "Provider": "core.protocols",
    "Query": "core.records",
    "Retriever": "core.protocols",
    "Run": "runs.run",
    "Section": "core.config",
    "UserError": "core.errors",
    "load_task": "formats.exporters.loading",
    "load_tasks": "formats.exporters.loading",
    "measure": "stats.agreement",
}

__all__ = [
    "Agreement",
    "Benchmark",
    "Corpus",
    "CurateError",
    "Document",
    "Encoder",
    "Exporter",
    "Hit",
    "Hits",
    "Judge",
    "Kit",
    "Ledger",
    "Outcome",
    "Pipeline",
    "Progress",
    "Provider",
    "Query",
    "Retriever",
    "Run",
    "Section",
    "UserError",
    "load_task",
    "load_tasks",
    "measure",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'curate' has no attribute {name!r}")
    return getattr(import_module(f"curate.{_HOMES[name]}"), name)
