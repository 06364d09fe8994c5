"""Exporters: one module a format, each a function from a finished benchmark to files in an empty folder."""

from curate.protocols import Exporter
from curate.registry import Registry

EXPORTERS: Registry[Exporter] = Registry(
    "exporter",
    {
        "beir": "curate.exporters.beir:export",
        "mteb": "curate.exporters.mteb:export",
        "trec": "curate.exporters.trec:export",
        "triples": "curate.exporters.triples:export",
    },
)
"""Exporters by name; other packages add theirs under the entry-point group `curate.exporters`."""
