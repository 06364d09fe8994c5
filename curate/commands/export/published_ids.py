"""Published ids of an export, and the key to new ids, a file that is in the run and never in an export."""

import os
from pathlib import Path

import polars as pl

from curate.commands.export import Config
from curate.core.errors import ConfigError, suggestion
from curate.core.protocols import Benchmark
from curate.core.records import FILTERED
from curate.pipeline.stage import Context
from curate.system.files import column
from curate.tables.exporters.ids import COLUMNS, KEY, PublishedIds, numbered
from curate.tables.exporters.task_metadata import block, licence_problem, missing
from curate.tables.kinds import kinds
from curate.tables.readers import public_datasets

TELLING = r"\d{5}"
"""Pattern of digits that may identify a person; `mask` has already renamed ids with recognised PII."""
OWN = r"^synthetic-[0-9a-f]{12}$"
"""Pattern of the ids of synthetic queries, which are digests."""


def published_identifiers(config: Config, context: Context) -> PublishedIds:
    """Return the published ids; the key to new ids is written, readable for the owner only."""
    folder, path = context.folder(FILTERED), context.run / KEY
    ids = {"queries": column(folder, "queries", "query_id"), "corpus": column(folder, "corpus", "doc_id")}
    telling = any(column_ids.str.replace(OWN, "").str.contains(TELLING).any() for column_ids in ids.values())
    if config.ids == "keep" or (config.ids == "auto" and (_are_public(context) or not telling)):
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


# Metadata for mteb: refuse settings of unknown tasks, and note missing fields.


def refuse_filling(config: Config) -> None:
    """Raise ConfigError for metadata of an unknown task."""
    names = [kind.name for kind in kinds()]
    for name in config.mteb.tasks:
        if name not in names:
            raise ConfigError(f"export.mteb.tasks.{name}: unknown task; {suggestion(name, names)}")


def lacking(benchmark: Benchmark) -> dict[str, list[str]]:
    """Return task -> missing metadata settings, without which mteb's `is_filled()` is False."""
    present = [kind for kind in kinds() if kind.present(benchmark)]
    return {kind.name: missing(block(kind.name, kind.mteb.type, benchmark.facts)) for kind in present}


def filling_notes(config: Config, benchmark: Benchmark) -> list[str]:
    """Return one sentence per set of missing metadata settings; [] without the format mteb."""
    if "mteb" not in config.formats:
        return []
    by_settings: dict[tuple[str, ...], list[str]] = {}
    for task, names in lacking(benchmark).items():
        by_settings.setdefault(tuple(names), []).append(task)
    wrong = licence_problem(config.license)
    return [
        *([wrong] if wrong else []),
        *(
            f"metadata for mteb is not complete ({', '.join(tasks)}): set {', '.join(names)}"
            for names, tasks in by_settings.items()
            if names
        ),
    ]
