"""Published ids of a run, and the key to new ids, a file that is in the run and never leaves it."""

import os
from pathlib import Path

import polars as pl

from curate.core.records import FILTERED
from curate.pipeline.stage import Context
from curate.system.files import column
from curate.tables.exporters.ids import COLUMNS, KEY, PublishedIds, numbered
from curate.tables.readers import public_datasets

TELLING = r"\d(?:[-_./ ]?\d){4}"
"""Pattern of digits that may identify a person, as record numbers do; `mask` has already renamed ids with PII."""
OWN = r"^synthetic-[0-9a-f]{12}$"
"""Pattern of the ids of synthetic queries, which are digests."""


def published_identifiers(context: Context) -> PublishedIds:
    """Return the published ids; the key to new ids is written, readable for the owner only."""
    folder, path = context.folder(FILTERED), context.run / KEY
    ids = {"queries": column(folder, "queries", "query_id"), "corpus": column(folder, "corpus", "doc_id")}
    telling = any(column_ids.str.replace(OWN, "").str.contains(TELLING).any() for column_ids in ids.values())
    section = context.settings.get("export")
    wanted = section.get("ids", "auto") if isinstance(section, dict) else "auto"
    if wanted == "keep" or (wanted == "auto" and (_are_public(context) or not telling)):
        return PublishedIds()
    schema = dict.fromkeys(COLUMNS, pl.String)
    known_key = pl.read_csv(path, separator="\t", schema=schema) if path.is_file() else pl.DataFrame(schema=schema)
    key = pl.concat(numbered(known_key, table, column_ids) for table, column_ids in ids.items())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        key.write_csv(file, separator="\t")
    return PublishedIds.by(key)


def id_notes(ids: PublishedIds, context: Context) -> list[str]:
    """Return a list with the path of the key to the new ids in a sentence; [] if ids are unchanged."""
    message = f"ids are new, as those of the source may name people; their key, for you alone: {context.run / KEY}"
    return [] if ids.key is None else [message]


def _are_public(context: Context) -> bool:
    """Return whether the source is a named public data set, or the settings keep its ids (`mask.ids: keep`)."""
    sections = (context.settings.get(name) or {} for name in ("ingest", "mask"))
    ingest, mask = (section if isinstance(section, dict) else {} for section in sections)
    source = str(ingest.get("source") or "")
    is_named = bool(source) and len(Path(source).parts) == 1 and not Path(source).expanduser().exists()
    return is_named or source.startswith(public_datasets.PREFIX) or mask.get("ids") == "keep"
