"""Which ids an export publishes, and the key of new ones: a file of the run, and never of the export."""

import os
from pathlib import Path

import polars as pl

from curate.commands.export import Config
from curate.pipeline.stage import Context
from curate.system.files import column
from curate.tables.exporters.ids import COLUMNS, KEY, PublishedIds, numbered
from curate.tables.readers import public_datasets

TELLING = r"\d{5}"
"""Digits that may be a number of a person; ids in which recognisers find something have new names since `mask`."""
OWN = r"^synthetic-[0-9a-f]{12}$"
"""Ids of queries that a model wrote: digests."""


def published(config: Config, context: Context) -> PublishedIds:
    """Return the ids that are published; the key of new ones is written for its owner alone."""
    folder, path = context.folder("diversify"), context.run / KEY
    ids = {"queries": column(folder, "queries", "query_id"), "corpus": column(folder, "corpus", "doc_id")}
    telling = any(each.str.replace(OWN, "").str.contains(TELLING).any() for each in ids.values())
    if config.ids == "keep" or (config.ids == "auto" and (_harmless(context) or not telling)):
        return PublishedIds()
    schema = dict.fromkeys(COLUMNS, pl.String)
    known = pl.read_csv(path, separator="\t", schema=schema) if path.is_file() else pl.DataFrame(schema=schema)
    key = pl.concat(numbered(known, table, each) for table, each in ids.items())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        key.write_csv(file, separator="\t")
    return PublishedIds.by(key)


def notes(ids: PublishedIds, context: Context) -> list[str]:
    """Return where the key of new ids is, in a sentence; nothing where ids are kept."""
    said = f"ids are new, as those of the source may name people; their key, for you alone: {context.run / KEY}"
    return [] if ids.key is None else [said]


def _harmless(context: Context) -> bool:
    """Return whether ids are those of a public set that the pipeline names, or the user says that they name nobody."""
    sections = (context.settings.get(name) or {} for name in ("ingest", "mask"))
    ingest, mask = (section if isinstance(section, dict) else {} for section in sections)
    source = str(ingest.get("source") or "")
    named = bool(source) and len(Path(source).parts) == 1 and not Path(source).expanduser().exists()
    return named or source.startswith(public_datasets.PREFIX) or mask.get("ids") == "keep"
