"""Exporters: one module per format, each with a function that writes a benchmark into an empty folder.

A new format needs a module here and an entry in the tables below. Without entries in READERS and FILES, `curate verify`
checks only the manifest of such a folder.
"""

from collections.abc import Mapping

from curate.core.protocols import Benchmark, Exporter
from curate.core.registry import Registry

EXPORTERS: Registry[Exporter] = Registry(
    "exporter",
    {
        "beir": "curate.tables.exporters.beir:export",
        "mteb": "curate.tables.exporters.mteb:export",
        "trec": "curate.tables.exporters.trec:export",
        "triples": "curate.tables.exporters.triples:export",
    },
)
"""Exporters by name; other packages add theirs under the entry-point group `curate.exporters`."""
READERS: Mapping[str, str] = {
    "beir": "curate.tables.exporters.reading:beir",
    "mteb": "curate.tables.exporters.reading:mteb",
    "trec": "curate.tables.exporters.reading:trec",
    "triples": "curate.tables.exporters.reading:triples",
}
"""Format -> function that reads an exported folder into `reading.ExportContents`, which `curate verify` compares."""
FILES: Mapping[str, tuple[str, ...]] = {
    "beir": ("(corpus|queries).jsonl", "qrels/(test|graded).tsv"),
    "mteb": ("tasks.py",),
    "repaired": ("tasks.py",),
    "trec": ("qrels(-graded)?.txt", "topics.(tsv|jsonl)", "docs.jsonl"),
    "triples": ("triples.jsonl", "(train|queries|documents)-HASH.parquet"),
}
"""Format named in the manifest -> patterns of its files besides README.md and verdicts.parquet; HASH: digest of a file.

The formats of FOLDERS also have the files in the folder of each kind.
"""
OF_CANDIDATES = ("triples",)
"""Formats that contain only the benchmark's candidates (see `labels.candidates`), with texts and verdicts."""


def holds_candidates_only(benchmark: Benchmark, format_name: str) -> bool:
    """Return whether a format holds no documents but candidates: by its kind, or since there is no retrieval task."""
    return format_name in OF_CANDIDATES or benchmark.of_retrieval().queries.is_empty()


FOLDERS = ("mteb", "repaired")
"""Formats with one subfolder per kind of benchmark, such as `retrieval` and `sts`."""
