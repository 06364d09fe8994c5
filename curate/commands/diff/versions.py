"""One version of a benchmark, as `curate diff` compares it: texts, final labels, and how they were made."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from curate.commands.export import Config as ExportConfig
from curate.core.config import check, digest
from curate.core.errors import ConfigError, UserError
from curate.core.scale import FIVE, Scale
from curate.panel.voting import PAIR
from curate.pipeline.foreign_files import is_run
from curate.pipeline.freshness import label_stage
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.pooled import pooled
from curate.pipeline.reckoning import NO_GAIN, NO_POSITIVE
from curate.pipeline.stage import Context, home
from curate.runs import graded_labels
from curate.runs.derive import replaced
from curate.system.files import batches, read_json, read_table, there
from curate.tables.exporters import reading
from curate.tables.exporters.labels import Gain
from curate.tables.exporters.reading import ExportContents


@dataclass(frozen=True)
class LabelVersion:
    """Texts and final labels of a run, or of an export without its run; ids are the run's."""

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
    graded: pl.DataFrame | None = None
    """query_id, doc_id and score above 0 of graded labels; None where labels are binary alone."""
    gain: str = ""
    """How a pair's gain is chosen."""
    beyond: Mapping[str, str] = field(default_factory=dict)
    """What decides besides the policy: `accept` -> the least sum of grades, `settle` -> the judge and its digest."""
    removed: frozenset[str] = frozenset()
    """Documents of a run that a refined corpus leaves out of its export."""
    gone: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """`queries` or `documents`, and an id that a stage dropped or merged -> by which stage, and why."""
    context: Context | None = None
    """Of a run."""
    prefixed: bool = False
    """Whether the export's own files have `q-` and `d-` before all ids."""
    new_ids: bool = False
    """Whether it is an export whose ids are no run's."""


def in_words(gain: Gain, scale: Scale) -> str:
    """Return how a pair's gain is chosen, with the gains of the grades."""
    return f"{graded_labels.in_words(gain)}; {', '.join(map(str, scale.gains))}"


def published(run: LabelVersion) -> LabelVersion:
    """Return of a run what its export holds; an export, as it is.

    Left out are queries without a positive, or without a gain where labels are graded, and documents that a refined
    corpus does without.
    """
    if run.context is None:
        return run
    verdicts = run.verdicts.filter(~pl.col("doc_id").is_in(sorted(run.removed)))
    found = {*verdicts.filter(pl.col("verdict") == "relevant")["query_id"]}
    kept = found if run.graded is None else found & {*run.graded["query_id"]}
    left_out = {query: NO_GAIN if query in found else NO_POSITIVE for query in run.queries.keys() - kept}
    asked = pl.col("query_id").is_in(sorted(kept))
    return replace(
        run,
        queries={query: text for query, text in run.queries.items() if query in kept},
        documents={name: what for name, what in run.documents.items() if name not in run.removed},
        verdicts=verdicts.filter(asked),
        graded=None if run.graded is None else run.graded.filter(asked).join(verdicts, on=PAIR, how="semi"),
        gone={**run.gone, **{("queries", query): f"export: {why}" for query, why in left_out.items()}},
    )


# Versions of a benchmark read from a run folder, or from an export with or without its run.

READERS = {"mteb": reading.mteb, "beir": reading.beir, "trec": reading.trec}
DROPPING = ("ingest", "mask", "diversify", "resolve", "export")
"""Stages that drop queries and documents, in their order."""
SIDES = {"queries": "queries", "corpus": "documents"}


def load_both(before: Path, after: Path) -> tuple[LabelVersion, LabelVersion]:
    """Read two versions; where one is an export, a run beside it is taken as what it publishes.

    UserError for a folder that is no version of a benchmark; DataError for one that cannot be read.
    """
    one, other = load(before), load(after)
    if one.context is not None and other.context is not None:
        return one, other
    if one.new_ids != other.new_ids:
        raise UserError(f"{before}, {after}: the ids of one are new ones of its export; give the runs, or two exports")
    return published(one), published(other)


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
    context = Context(run=folder, out=folder, home=home(), seed=pipeline.head.seed, settings=pipeline.settings)
    stage = label_stage(folder)
    for name, table in (("pool", "pool"), (stage, "verdicts"), ("diversify", "queries")):
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
        documents=_documents(batches(folder / "diversify", "corpus")),
        verdicts=verdicts,
        panels=panels | ({"manifest": _panel(read_json(exported))} if exported else {}),
        cut=_cut(context.scale),
        seed=context.seed,
        pool=context.read("pool", "pool"),
        rankings=context.read("pool", "rankings"),
        graded=graded,
        gain=gain,
        beyond=_beyond(context.done("resolve").facts) if stage == "resolve" else {},
        removed=removed,
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
    scale = Scale.from_json(made["scale"]) if "scale" in made else FIVE
    skipped = 2 if made.get("prefixed") else 0
    pairs = [pl.col(name).str.slice(skipped) for name in PAIR]
    graded = _written(contents, made)
    run = folder.absolute().parent.parent
    chosen = {name: made["graded"][name] for name in Gain.model_fields} if graded is not None else {}
    return LabelVersion(
        place=folder,
        queries={name[skipped:]: text for name, text in contents.queries.select("query_id", "text").iter_rows()},
        documents={name[skipped:]: what for name, what in _documents(contents.documents()).items()},
        verdicts=read_table(folder, "verdicts").with_columns(pairs),
        panels={"manifest": _panel(manifest)},
        cut=_cut(scale),
        seed=made["seed"],
        graded=None if graded is None else graded.with_columns(pairs),
        gain=in_words(Gain(**chosen), scale) if chosen else "",
        beyond=_beyond(made),
        gone=dict(_gone(run) if is_run(run) else _reasons(folder.parent)),
        prefixed=bool(skipped),
        new_ids=made.get("ids") == "new",
    )


def _gains(context: Context, verdicts: pl.DataFrame, stage: str) -> tuple[pl.DataFrame | None, str]:
    """Return the graded labels that a run publishes, those above 0, and how they are chosen; None for none."""
    config = check(ExportConfig, context.settings.get("export") or {}, "export")
    if config.gain is None or stage != "resolve":
        return None, ""
    made = graded_labels.made(config, context, verdicts)
    assert made is not None
    return _gaining(made), in_words(config.gain, context.scale)


def _written(contents: ExportContents, made: Mapping[str, Any]) -> pl.DataFrame | None:
    """Return the graded labels of an export, those above 0; None where labels are binary alone."""
    if "graded" not in made:
        return None
    wanted = ("qrels", "judged") if replaced(made) else ("graded", "graded judged")
    return _gaining(next(table for kind, table in contents.tables.values() if kind in wanted))


def _gaining(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("score") > 0).select(*PAIR, "score")


def _beyond(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what decided besides the policy, of a run's or a manifest's facts, which name it alike."""
    found, accepted, settled = dict[str, str](), facts.get("accept"), facts.get("settle")
    if accepted and (threshold := accepted.get("threshold", accepted)):
        found["accept"] = f"a sum of {threshold['least']}"
    if settled:
        identity = settled.get("key") or {name: settled[name] for name in settled.keys() - {"name", "pairs"}}
        found["settle"] = f"{settled.get('judge' if 'key' in settled else 'name')} {digest(identity)[:8]}"
    return found


def _panel(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest([what["judge"], what["rubric"]]) for name, what in manifest["labels"]["panel"].items()}


def _cut(scale: Scale) -> str:
    return f"{' '.join(scale.labels)}, relevant from {scale.relevant_from}"


def _documents(parts: Iterable[pl.DataFrame]) -> dict[str, str]:
    """Return document -> digest of its title and text."""
    rows = (row for part in parts for row in part.select("doc_id", "title", "text").iter_rows())
    return {doc: digest([title or "", text]) for doc, title, text in rows}


def _gone(run: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield queries and documents that were merged or dropped, with the stage and its reason; later stages last."""
    for stage in ("ingest", "mask"):
        if there(run / stage, "aliases"):
            for table, old, kept in read_table(run / stage, "aliases").iter_rows():
                if old != kept and table in SIDES:
                    yield (SIDES[table], old), f"{stage}: same text as {kept}"
    for stage in DROPPING:
        yield from _reasons(run / stage)


def _reasons(folder: Path) -> Iterator[tuple[tuple[str, str], str]]:
    if not there(folder, "dropped"):
        return
    rows = read_table(folder, "dropped").select("table", "id", "stage", "reason", "nearest_id")
    for table, name, stage, reason, nearest in rows.iter_rows():
        if table in SIDES:
            yield (SIDES[table], name), f"{stage}: {reason}{f' ({nearest})' if nearest else ''}"
