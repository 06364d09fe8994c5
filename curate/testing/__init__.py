"""The contracts of plugins, for tests of ours and of other packages.

Each check takes what makes the plugin, and raises an AssertionError that says which promise is broken.
"""

from curate.testing.encoders import check_encoder
from curate.testing.exporters import FEVER, benchmark, check_exporter
from curate.testing.judges import PASSAGES, QUERY, check_judge
from curate.testing.providers import check_provider
from curate.testing.recognisers import check_recogniser
from curate.testing.retrievers import CORPUS, QUERIES, ListCorpus, check_retriever, listed

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
    "listed",
]
