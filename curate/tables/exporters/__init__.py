"""Exporters: one module per format, each a function from a finished benchmark to files in an empty folder.

A format is a module and its rows in the tables here; without a reader and files `curate verify` checks its manifest.
"""

from collections.abc import Mapping

from curate.core.protocols import Exporter
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
"""Format -> function from a folder to `reading.ExportContents`, by which `curate verify` compares labels and texts."""
FILES: Mapping[str, tuple[str, ...]] = {
    "beir": ("(corpus|queries).jsonl", "qrels/(test|graded).tsv"),
    "mteb": ("tasks.py",),
    "repaired": ("tasks.py",),
    "trec": ("qrels(-graded)?.txt", "topics.(tsv|jsonl)", "docs.jsonl"),
    "triples": ("triples.jsonl", "(train|queries|documents)-HASH.parquet"),
}
"""Format that a manifest names -> patterns of its files beside README.md and verdicts.parquet; HASH is of content.

Those of the formats of FOLDERS have the files of every kind's folder, too.
"""
OF_CANDIDATES = ("triples",)
"""Formats that hold the candidates alone, with their texts and verdicts."""
FOLDERS = ("mteb", "repaired")
"""Formats with a folder per kind of benchmark."""
