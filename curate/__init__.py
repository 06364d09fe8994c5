"""Turn raw queries and documents into a retrieval benchmark whose labels can be trusted.

The names below are the public ones; each is imported when it is first used, so that `import curate` costs nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` takes longer to import than all the rest before Ctrl-C is heard
if TYPE_CHECKING:
    from curate.agreement import Agreement, measure
    from curate.config import Section
    from curate.errors import CurateError, UserError
    from curate.exporters.loading import load_task, load_tasks
    from curate.ledger import Ledger
    from curate.pipeline import Pipeline
    from curate.protocols import Benchmark, Corpus, Encoder, Exporter, Hits, Judge, Kit, Progress, Provider, Retriever
    from curate.records import Document, Hit, Outcome, Query
    from curate.run import Run

__version__ = "0.1.0"

_HOMES = {
    "Agreement": "agreement",
    "Benchmark": "protocols",
    "Corpus": "protocols",
    "CurateError": "errors",
    "Document": "records",
    "Encoder": "protocols",
    "Exporter": "protocols",
    "Hit": "records",
    "Hits": "protocols",
    "Judge": "protocols",
    "Kit": "protocols",
    "Ledger": "ledger",
    "Outcome": "records",
    "Pipeline": "pipeline",
    "Progress": "protocols",
    "Provider": "protocols",
    "Query": "records",
    "Retriever": "protocols",
    "Run": "run",
    "Section": "config",
    "UserError": "errors",
    "load_task": "exporters.loading",
    "load_tasks": "exporters.loading",
    "measure": "agreement",
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
