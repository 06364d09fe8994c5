"""One version of a benchmark, as `curate diff` compares it: texts, final labels, and how they were made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from curate.checks.pool import label_stage
from curate.core.config import digest
from curate.core.errors import ConfigError, UserError
from curate.core.scale import FIVE, Scale
from curate.formats.exporters import reading
from curate.runs.foreign_files import is_run
from curate.runs.pipeline import Pipeline
from curate.stages.context import Context, home
from curate.system.files import batches, read_json, read_table, there

READERS = {"mteb": reading.mteb, "beir": reading.beir, "trec": reading.trec}
DROPPING = ("ingest", "mask", "diversify")
"""Stages that drop queries and documents, in their order."""


@dataclass(frozen=True)
class LabelVersion:
    """Texts and final labels of a run, or of an export without its run."""

    place: Path
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    """Document -> digest of title and text."""
    verdicts: pl.DataFrame
    """The table of that name: one row per judged pair."""
    panels: Mapping[str, Mapping[str, str]]
    """Where it is written (`run`, `manifest`) -> judge -> digest of model, prompt and rubric."""
    cut: str
    """The scale's grades, and from which on a pair is relevant."""
    seed: int | None = None
    pool: pl.DataFrame | None = None
    """The table of that name; None for an export."""
    rankings: pl.DataFrame | None = None
    gone: Mapping[str, str] = field(default_factory=dict)
    """Query or document that a stage dropped -> by which stage, and why."""
    context: Context | None = None
    """Of a run."""


def load(folder: Path) -> LabelVersion:
    """Read a run folder, the folder `export` of a run, or one format of an export.

    UserError for a folder that holds neither; DataError for one that cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give a run, or an export of one")
    if is_run(folder):
        return _run(folder)
    formats = [folder, *(folder / name for name in READERS)]
    for place in formats:
        if (place / "MANIFEST.json").is_file():
            return _export(place)
    raise UserError(f"{folder}: found no run and no MANIFEST.json of an export; give a run, or a folder with one")


def _run(folder: Path) -> LabelVersion:
    pipeline = Pipeline.load(folder / "pipeline.yaml")
    context = Context(run=folder, out=folder, home=home(), seed=pipeline.head.seed)
    stage = label_stage(folder)
    for name, table in (("pool", "pool"), (stage, "verdicts"), ("diversify", "queries")):
        if not there(folder / name, table):
            raise UserError(f"{folder}: no labels yet ({name}/{table} is missing); run `curate consensus` first")
    panel: Mapping[str, Any] = read_json(folder / "judge" / "panel.json")
    exported = next(iter(sorted((folder / "export").glob("*/MANIFEST.json"))), None)
    panels = {"run": {name: digest(what) for name, what in panel.items()}}
    queries = context.read("diversify", "queries")
    return LabelVersion(
        place=folder,
        queries=dict(queries.select("query_id", "text").iter_rows()),
        documents=_documents(batches(folder / "diversify", "corpus")),
        verdicts=context.read(stage, "verdicts"),
        panels=panels | ({"manifest": _panel(read_json(exported))} if exported else {}),
        cut=_cut(context.scale),
        seed=context.seed,
        pool=context.read("pool", "pool"),
        rankings=context.read("pool", "rankings"),
        gone=dict(_gone(folder)),
        context=context,
    )


def _export(folder: Path) -> LabelVersion:
    manifest = read_json(folder / "MANIFEST.json")
    reader = READERS.get(manifest.get("format", ""))
    if reader is None or not there(folder, "verdicts"):
        raise ConfigError(
            f"{folder}: found an export as {manifest.get('format')!r} without labels of a panel; expected "
            f"{', '.join(READERS)}"
        )
    contents, made = reader(folder), manifest["labels"]
    return LabelVersion(
        place=folder,
        queries=dict(contents.queries.select("query_id", "text").iter_rows()),
        documents=_documents(contents.documents()),
        verdicts=read_table(folder, "verdicts"),
        panels={"manifest": _panel(manifest)},
        cut=_cut(Scale.from_json(made["scale"]) if "scale" in made else FIVE),
        seed=made["seed"],
    )


def _panel(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest([what["judge"], what["rubric"]]) for name, what in manifest["labels"]["panel"].items()}


def _cut(scale: Scale) -> str:
    return f"{' '.join(scale.labels)}, relevant from {scale.relevant_from}"


def _documents(parts: Iterator[pl.DataFrame]) -> dict[str, str]:
    """Return document -> digest of its title and text."""
    rows = (row for part in parts for row in part.select("doc_id", "title", "text").iter_rows())
    return {doc: digest([title or "", text]) for doc, title, text in rows}


def _gone(run: Path) -> Iterator[tuple[str, str]]:
    """Yield queries and documents that were dropped, with the stage and its reason."""
    for stage in DROPPING:
        if there(run / stage, "dropped"):
            rows = read_table(run / stage, "dropped")
            for name, reason, nearest in rows.select("id", "reason", "nearest_id").iter_rows():
                yield name, f"{stage}: {reason}{f' ({nearest})' if nearest else ''}"
