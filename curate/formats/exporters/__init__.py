"""Exporters: one module per format, each a function from a finished benchmark to files in an empty folder."""

from curate.core.protocols import Exporter
from curate.core.registry import Registry

EXPORTERS: Registry[Exporter] = Registry(
    "exporter",
    {
        "beir": "curate.formats.exporters.beir:export",
        "mteb": "curate.formats.exporters.mteb:export",
        "trec": "curate.formats.exporters.trec:export",
        "triples": "curate.formats.exporters.triples:export",
    },
)
"""Exporters by name; other packages add theirs under the entry-point group `curate.exporters`."""
