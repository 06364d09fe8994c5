"""One version of a benchmark for `curate diff`, read from a run or an export: texts, final labels, their provenance."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.export import Config as ExportConfig
from curate.core.config import check, digest
from curate.core.errors import ConfigError, UserError
from curate.core.records import FILTERED
from curate.core.scale import FIVE, Scale
from curate.panel.voting import PAIR
from curate.pipeline.facts import NO_GAIN, NO_POSITIVE, label_stage, pooled
from curate.pipeline.folder import is_run
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context, home
from curate.runs import graded_labels
from curate.runs.derive import replaced
from curate.system.files import batches, read_json, read_table, there
from curate.tables.exporters import reading
from curate.tables.exporters.labels import Gain


@dataclass(frozen=True)
class LabelVersion:
    """Texts and final labels of a run or an export; ids are those of the run, unless `new_ids`."""

    place: Path
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    """Document -> digest of title and text."""
    verdicts: pl.DataFrame
    """The table `verdicts`: one row per judged pair."""
    panels: Mapping[str, Mapping[str, str]]
    """Source (`run`, `manifest`) -> judge -> digest of model, prompt and rubric."""
    cut: str
    """Grades of the scale and the relevance threshold, as text."""
    seed: int | None = None
    pool: pl.DataFrame | None = None
    """The table `pool`; None for an export."""
    rankings: pl.DataFrame | None = None
    graded: pl.DataFrame | None = None
    """query_id, doc_id and score above 0 of graded labels; None if labels are binary only."""
    gain: str = ""
    """Description of how a pair's gain is chosen; empty without graded labels."""
    beyond: Mapping[str, str] = field(default_factory=dict)
    """Decisions after the consensus rule, as text: `accept` -> minimum sum of grades, `settle` -> tie-breaker judge."""
    removed: frozenset[str] = frozenset()
    """Documents of a run that a refined corpus excludes from its export."""
    gone: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(`queries` or `documents`, dropped or merged id) -> stage and reason."""
    context: Context | None = None
    """Context of the run; None for an export."""
    prefixed: bool = False
    """Whether ids in the export's files are prefixed by `q-` and `d-`."""
    new_ids: bool = False
    """Whether it is an export with new ids, which differ from the run's."""


def in_words(gain: Gain, scale: Scale) -> str:
    """Return a description of how a pair's gain is chosen, with the gain of every grade."""
    return f"{graded_labels.in_words(gain)}; {', '.join(map(str, scale.gains))}"


def published(run: LabelVersion) -> LabelVersion:
    """Return the part of a run that its export contains; an export is returned unchanged.

    Excluded are queries without a positive, or without a gain if labels are graded, and documents that a refined
    corpus excludes.
    """
    if run.context is None:
        return run
    verdicts = run.verdicts.filter(~pl.col("doc_id").is_in(sorted(run.removed)))
    with_positive = {*verdicts.filter(pl.col("verdict") == "relevant")["query_id"]}
    query_ids = with_positive if run.graded is None else with_positive & {*run.graded["query_id"]}
    left_out = {query: NO_GAIN if query in with_positive else NO_POSITIVE for query in run.queries.keys() - query_ids}
    is_published = pl.col("query_id").is_in(sorted(query_ids))
    return replace(
        run,
        queries={query: text for query, text in run.queries.items() if query in query_ids},
        documents={name: text_digest for name, text_digest in run.documents.items() if name not in run.removed},
        verdicts=verdicts.filter(is_published),
        graded=None if run.graded is None else run.graded.filter(is_published).join(verdicts, on=PAIR, how="semi"),
        gone={**run.gone, **{("queries", query): f"export: {why}" for query, why in left_out.items()}},
    )


# Versions of a benchmark read from a run folder, or from an export with or without its run.

READERS = {"mteb": reading.mteb, "beir": reading.beir, "trec": reading.trec}
DROPPING = ("ingest", "mask", FILTERED, "resolve", "export")
"""Stages that drop queries and documents, in the order in which they run."""
SIDES = {"queries": "queries", "corpus": "documents"}


def load_both(before: Path, after: Path) -> tuple[LabelVersion, LabelVersion]:
    """Return two versions; if one is an export, the other is reduced to its published part.

    UserError for a folder that is not a version of a benchmark, or if only one has new ids; DataError if unreadable.
    """
    old, new = load(before), load(after)
    if old.context is not None and new.context is not None:
        return old, new
    if old.new_ids != new.new_ids:
        raise UserError(f"{before}, {after}: the ids of one are new ones of its export; give the runs, or two exports")
    return published(old), published(new)


def load(folder: Path) -> LabelVersion:
    """Return the version in a run folder, in the folder `export` of a run, or in one format of an export.

    UserError for any other folder; DataError for one that cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give a run, or an export of one")
    if is_run(folder):
        return _run(folder)
    formats = [folder, *(folder / name for name in READERS)]
    for candidate in formats:
        if (candidate / "MANIFEST.json").is_file():
            return _export(candidate)
    raise UserError(f"{folder}: found no run and no MANIFEST.json of an export; give a run, or a folder with one")


def _run(folder: Path) -> LabelVersion:
    pipeline = Pipeline.load(folder / "pipeline.yaml")
    context = Context(run=folder, out=folder, home=home(), seed=pipeline.head.seed, settings=pipeline.settings)
    stage = label_stage(folder)
    for name, table in (("pool", "pool"), (stage, "verdicts"), (FILTERED, "queries")):
        if not there(folder / name, table):
            raise UserError(f"{folder}: no labels yet ({name}/{table} is missing); run `curate consensus` first")
    panel: Mapping[str, Any] = read_json(folder / "judge" / "panel.json")
    exported = next(iter(sorted((folder / "export").glob("*/MANIFEST.json"))), None)
    panels = {"run": {name: digest(what) for name, what in panel.items()}}
    verdicts, dropped = context.read(stage, "verdicts"), context.read(stage, "dropped")
    removed = frozenset(dropped.filter(pl.col("table") == "corpus")["id"])
    graded, gain = _gains(context, verdicts.filter(~pl.col("doc_id").is_in(sorted(removed))), stage)
    return LabelVersion(
        place=folder,
        queries=dict(pooled(context).select("query_id", "text").iter_rows()),
        documents=_documents(batches(folder / FILTERED, "corpus")),
        verdicts=verdicts,
        panels=panels | ({"manifest": _panel(read_json(exported))} if exported else {}),
        cut=_scale_words(context.scale),
        seed=context.seed,
        pool=context.read("pool", "pool"),
        rankings=context.read("pool", "rankings"),
        graded=graded,
        gain=gain,
        beyond=_other_decisions(context.done("resolve").facts) if stage == "resolve" else {},
        removed=removed,
        gone=dict(_removed_items(folder)),
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
    contents, provenance = reader(folder), manifest["labels"]
    scale = Scale.from_json(provenance["scale"]) if "scale" in provenance else FIVE
    skipped = 2 if provenance.get("prefixed") else 0
    pairs = [pl.col(name).str.slice(skipped) for name in PAIR]
    graded = None
    if "graded" in provenance:
        kinds = ("qrels", "judged") if replaced(provenance) else ("graded", "graded judged")
        graded = _positive_gains(next(table for kind, table in contents.tables.values() if kind in kinds))
    run = folder.absolute().parent.parent
    chosen = {name: provenance["graded"][name] for name in Gain.model_fields} if graded is not None else {}
    return LabelVersion(
        place=folder,
        queries={name[skipped:]: text for name, text in contents.queries.select("query_id", "text").iter_rows()},
        documents={name[skipped:]: text_digest for name, text_digest in _documents(contents.documents()).items()},
        verdicts=read_table(folder, "verdicts").with_columns(pairs),
        panels={"manifest": _panel(manifest)},
        cut=_scale_words(scale),
        seed=provenance["seed"],
        graded=None if graded is None else graded.with_columns(pairs),
        gain=in_words(Gain(**chosen), scale) if chosen else "",
        beyond=_other_decisions(provenance),
        gone=dict(_removed_items(run) if is_run(run) else _reasons(folder.parent)),
        prefixed=bool(skipped),
        new_ids=provenance.get("ids") == "new",
    )


def _gains(context: Context, verdicts: pl.DataFrame, stage: str) -> tuple[pl.DataFrame | None, str]:
    """Return the published graded labels above 0 and a description of how a gain is chosen; None if only binary."""
    config = check(ExportConfig, context.settings.get("export") or {}, "export")
    if config.gain is None or stage != "resolve":
        return None, ""
    graded = graded_labels.made(config, context, verdicts)
    assert graded is not None
    return _positive_gains(graded), in_words(config.gain, context.scale)


def _positive_gains(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("score") > 0).select(*PAIR, "score")


def _other_decisions(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the decisions after the consensus rule (see `beyond`), from the facts of a run or of a manifest."""
    decisions, accepted, settled = dict[str, str](), facts.get("accept"), facts.get("settle")
    if accepted and (threshold := accepted.get("threshold", accepted)):
        decisions["accept"] = f"a sum of {threshold['least']}"
    if settled:
        identity = settled.get("key") or {name: settled[name] for name in settled.keys() - {"name", "pairs"}}
        decisions["settle"] = f"{settled.get('judge' if 'key' in settled else 'name')} {digest(identity)[:8]}"
    return decisions


def _panel(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest([what["judge"], what["rubric"]]) for name, what in manifest["labels"]["panel"].items()}


def _scale_words(scale: Scale) -> str:
    return f"{' '.join(scale.labels)}, relevant from {scale.relevant_from}"


def _documents(tables: Iterable[pl.DataFrame]) -> dict[str, str]:
    """Return document -> digest of its title and text."""
    rows = (row for table in tables for row in table.select("doc_id", "title", "text").iter_rows())
    return {doc: digest([title or "", text]) for doc, title, text in rows}


def _removed_items(run: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield (kind, id) of merged and dropped queries and documents, with stage and reason; later stages last."""
    for stage in ("ingest", "mask"):
        if there(run / stage, "aliases"):
            for table, old, surviving in read_table(run / stage, "aliases").iter_rows():
                if old != surviving and table in SIDES:
                    yield (SIDES[table], old), f"{stage}: same text as {surviving}"
    for stage in DROPPING:
        yield from _reasons(run / stage)


def _reasons(folder: Path) -> Iterator[tuple[tuple[str, str], str]]:
    if not there(folder, "dropped"):
        return
    rows = read_table(folder, "dropped").select("table", "id", "stage", "reason", "nearest_id")
    for table, name, stage, reason, nearest in rows.iter_rows():
        if table in SIDES:
            yield (SIDES[table], name), f"{stage}: {reason}{f' ({nearest})' if nearest else ''}"
