"""Evaluation of embeddings of labelled texts: reads a table, encodes, measures, compares, and writes the results.

Files: `figures.json` (all figures) and `README.md` (tables).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from curate.commands.notes import encoders, export, figures
from curate.commands.notes import figures as page
from curate.commands.notes.encoders import NoteEncoder
from curate.commands.notes.measuring import MeasurePlan, feasible, measured
from curate.commands.notes.table import NotesLayout, NotesTable, read
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.progress import StepLabel, counting, waiting
from curate.core.protocols import Progress, quiet
from curate.retrieval.vectors.cache import keys_of
from curate.runs.outputs import free_place
from curate.stats.bootstrap import FEW
from curate.stats.neighbour_recall import NEAR
from curate.system.extras import require
from curate.system.files import write_json, write_text

TRIED = 32
"""Number of texts that a time estimate encodes per encoder; their vectors stay in the cache."""
NOTED = 0.01
"""Effect of ties on a recall above which there is a note."""


@dataclass(frozen=True)
class NotesRequest:
    """Table, models and settings of one evaluation."""

    file: Path
    models: Sequence[str] = ()
    layout: NotesLayout = field(default_factory=NotesLayout)
    floors: bool = True
    folds: int = 2
    seeds: int = 3
    seed: int = 0
    """Seed of the resamples, and the first of the seeds of folds."""
    max_length: int | None = None
    """Maximum input of a sentence-transformers model, in tokens."""
    device: str | None = None
    out: Path | None = None
    """Folder for figures.json and README.md; None writes neither."""
    export: Path | None = None
    """New folder for tasks that stock mteb scores."""
    language: str | None = None
    """Language of the texts, as tasks name it; None: detected from their script."""


def evaluate(order: NotesRequest, progress: Progress = quiet) -> dict[str, Any]:
    """Return all figures as JSON types; write the folders `out` and `export` if requested."""
    if order.out is not None:
        free_place(order.out, ["figures.json"])
    contestants = _contestants(order, progress)
    if order.export is not None:
        export.need_free(order.export)
    with waiting(progress, StepLabel(f"reading {order.file.name}")):
        table = read(order.file, order.layout)
    plan = feasible(table, order.folds, [order.seed + offset for offset in range(order.seeds)])
    if not plan.measures and order.export is None:
        raise ConfigError(f"{order.file}: nothing can be measured: {next(iter(plan.undefined.values()))}")
    results = {}
    for contestant in counting(contestants, progress, StepLabel("encoders"), len(contestants)):
        results[contestant.name] = measured(plan, contestant.encode(table.texts), contestant.name, progress)
    with waiting(progress, StepLabel("resampling groups")):
        summary = _summary(plan, contestants, *figures.drawn(plan, results, order.seed))
    if order.export is not None:
        summary["export"] = export.write(table, plan, order.export, order.language, progress)
    if order.out is not None:
        order.out.mkdir(parents=True, exist_ok=True)
        write_json(order.out / "figures.json", summary)
        write_text(order.out / "README.md", page.readme(summary))
    return {**summary, "folder": None if order.out is None else str(order.out)}


def planned(order: NotesRequest, progress: Progress = quiet) -> list[dict[str, Json]]:
    """Return one row per encoder: number of uncached texts, and estimated seconds, by encoding up to `TRIED` texts."""
    table = read(order.file, order.layout)
    return [_plan(contestant, table) for contestant in _contestants(order, progress) if contestant.cached is not None]


def _plan(contestant: NoteEncoder, table: NotesTable) -> dict[str, Json]:
    assert contestant.cached is not None
    texts = list(dict.fromkeys(table.texts))
    row: dict[str, Json] = {"model": contestant.name, "texts": len(texts)}
    if not (missing := contestant.cached.missing(keys_of(texts, encoders.ROLE), encoders.ROLE)):
        return {**row, "to_encode": 0, "seconds": 0.0}
    sample = texts[:: max(len(texts) // TRIED, 1)][:TRIED]
    contestant.cached.encoder.encode(sample[:1], encoders.ROLE)  # loads the weights
    start = monotonic()
    contestant.cached.encoder.encode(sample, encoders.ROLE)
    return {**row, "to_encode": missing, "seconds": round((monotonic() - start) / len(sample) * missing, 3)}


def _contestants(order: NotesRequest, progress: Progress) -> list[NoteEncoder]:
    for name, count, least in (("folds", order.folds, 2), ("seeds", order.seeds, 1)):
        if count < least:
            raise ConfigError(f"{name}: found {count}, expected {least} or more")
    models = encoders.named(order.models, order.max_length, order.device, progress)
    if not models and not order.floors:
        raise ConfigError("notes: found no model, expected one; name some with --models, or leave out --no-floors")
    if clashes := {model.name for model in models} & set(encoders.FLOORS):
        raise ConfigError(f"--models {min(clashes)}: is the name of a floor, expected another; give ./{min(clashes)}")
    require("sklearn", "curate notes")
    return [*models, *(encoders.floors() if order.floors else ())]


def _summary(
    plan: MeasurePlan, contestants: Sequence[NoteEncoder], strict: figures.Board, chance: figures.Board
) -> dict[str, Any]:
    table, chains = plan.table, plan.table.chains
    models = [contestant.name for contestant in contestants if not contestant.is_floor]
    floors = [contestant.name for contestant in contestants if contestant.is_floor]
    rows = figures.rows(plan, strict, chance)
    against = figures.against_floors(plan, chance, models, floors)
    return {
        "table": table.place,
        "columns": dict(table.columns),
        "texts": len(table.texts),
        "groups": table.groups,
        "chains": chains.chains,
        "pairs": len(chains.query),
        "labels": {name: len(table.codes(name)[0]) for name in table.labels},
        "dropped": dict(table.dropped),
        "folds": plan.folds,
        "seeds": len(plan.seeds),
        "models": [
            {"model": contestant.name, "revision": contestant.revision, "floor": contestant.is_floor}
            for contestant in contestants
        ],
        "figures": rows,
        "differences": figures.differences(plan, chance, models),
        "against_floors": against,
        "undefined": dict(plan.undefined),
        "notes": [*table.notes, *plan.notes, *_caveats(plan, models, rows, against)],
        "export": None,
    }


def _caveats(
    plan: MeasurePlan, models: Sequence[str], rows: Sequence[dict[str, Any]], against: Sequence[dict[str, Any]]
) -> list[str]:
    """Return notes on dropped rows, few groups, tied vectors, and models that do not beat the best trivial baseline."""
    table, notes = plan.table, list[str]()
    if table.dropped:
        notes.append("left out: " + ", ".join(f"{count:,} rows {why}" for why, count in table.dropped.items()))
    if table.groups < FEW:
        notes.append(f"under {FEW} groups: these intervals are too narrow")
    tied = [row for row in rows if row["by_chance"] is not None]
    for name in models:
        most = max(
            (row["value"] - row["by_chance"] for row in tied if row["model"] == name),
            default=0.0,
        )
        if most > NOTED:
            notes.append(
                f"{name}: vectors of different texts are equal (closer than {NEAR:g}); with ties by chance a recall "
                f"falls by up to {most:.3f}"
            )
    for name in models:
        comparisons = [row for row in against if row["model"] == name]
        lost = [page.shown_name(comparison) for comparison in comparisons if not comparison["beaten"]]
        if lost:
            on = "any measure" if len(lost) == len(comparisons) else ", ".join(lost)
            notes.append(f"{name} is not shown to beat the best floor on {on}")
    return notes
