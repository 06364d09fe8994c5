"""The contracts of plugins, for tests of ours and of other packages.

Each check takes what makes the plugin, and raises an AssertionError that says which promise is broken.
"""

from curate.testing.contracts import (
    CORPUS,
    FEVER,
    PASSAGES,
    QUERIES,
    QUERY,
    ListCorpus,
    benchmark,
    check_encoder,
    check_exporter,
    check_judge,
    check_provider,
    check_recogniser,
    check_retriever,
    check_task,
    listed,
)

__all__ = [
    "CORPUS",
    "FEVER",
    "PASSAGES",
    "QUERIES",
    "QUERY",
    "ListCorpus",
    "benchmark",
    "check_encoder",
    "check_exporter",
    "check_judge",
    "check_provider",
    "check_recogniser",
    "check_retriever",
    "check_task",
    "listed",
]
