"""Checks that a plugin fulfils its interface, for the tests of this and of other packages.

Each check takes a function that returns the plugin, and raises an AssertionError that names the violated requirement.
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
