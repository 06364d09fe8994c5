"""Evaluate embeddings of labelled texts: read a table, encode, measure, compare, write.

Out, in a folder: `figures.json` (every figure) and `README.md` (the tables).
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
"""Texts that a plan encodes to tell how fast an encoder is; what they cost is kept."""
NOTED = 0.01
"""Ties that change a recall by more are said."""


@dataclass(frozen=True)
class NotesRequest:
    """What a user wants to know of a table."""

    file: Path
    models: Sequence[str] = ()
    layout: NotesLayout = field(default_factory=NotesLayout)
    floors: bool = True
    folds: int = 2
    seeds: int = 3
    seed: int = 0
    """Of the resamples, and of the first foldings."""
    max_length: int | None = None
    """Longest input of a sentence-transformers model, in tokens."""
    device: str | None = None
    out: Path | None = None
    """Folder to write to; none without it."""
    export: Path | None = None
    """New folder for the tasks of stock mteb."""
    language: str | None = None
    """Of the texts, as tasks name it; that of their script without it."""


def evaluate(order: NotesRequest, progress: Progress = quiet) -> dict[str, Any]:
    """Return all figures as plain values, and write what is asked for."""
    if order.out is not None:
        free_place(order.out, ["figures.json"])
    contestants = _contestants(order, progress)
    if order.export is not None:
        export.need_free(order.export)
    with waiting(progress, StepLabel(f"reading {order.file.name}")):
        table = read(order.file, order.layout)
    asked = feasible(table, order.folds, [order.seed + at for at in range(order.seeds)])
    if not asked.measures and order.export is None:
        raise ConfigError(f"{order.file}: nothing can be measured: {next(iter(asked.undefined.values()))}")
    results = {}
    for each in counting(contestants, progress, StepLabel("encoders"), len(contestants)):
        results[each.name] = measured(asked, each.encode(table.texts), each.name, progress)
    with waiting(progress, StepLabel("resampling groups")):
        found = _found(asked, contestants, *figures.drawn(asked, results, order.seed))
    if order.export is not None:
        found["export"] = export.write(table, asked, order.export, order.language, progress)
    if order.out is not None:
        order.out.mkdir(parents=True, exist_ok=True)
        write_json(order.out / "figures.json", found)
        write_text(order.out / "README.md", page.readme(found))
    return {**found, "folder": None if order.out is None else str(order.out)}


def planned(order: NotesRequest, progress: Progress = quiet) -> list[dict[str, Json]]:
    """Return what each encoder has left to encode and how long it takes, measured on `TRIED` of these texts."""
    table = read(order.file, order.layout)
    return [_plan(contestant, table) for contestant in _contestants(order, progress) if contestant.cached is not None]


def _plan(each: NoteEncoder, table: NotesTable) -> dict[str, Json]:
    assert each.cached is not None
    texts = list(dict.fromkeys(table.texts))
    row: dict[str, Json] = {"model": each.name, "texts": len(texts)}
    if not (missing := each.cached.missing(keys_of(texts, encoders.ROLE), encoders.ROLE)):
        return {**row, "to_encode": 0, "seconds": 0.0}
    tried = texts[:: max(len(texts) // TRIED, 1)][:TRIED]
    each.cached.encoder.encode(tried[:1], encoders.ROLE)  # loads the weights
    start = monotonic()
    each.cached.encoder.encode(tried, encoders.ROLE)
    return {**row, "to_encode": missing, "seconds": round((monotonic() - start) / len(tried) * missing, 3)}


def _contestants(order: NotesRequest, progress: Progress) -> list[NoteEncoder]:
    for name, value, least in (("--folds", order.folds, 2), ("--seeds", order.seeds, 1)):
        if value < least:
            raise ConfigError(f"{name}: found {value}, expected {least} or more")
    found = encoders.named(order.models, order.max_length, order.device, progress)
    if not found and not order.floors:
        raise ConfigError("notes: found no model, expected one; name some with --models, or leave out --no-floors")
    if taken := {each.name for each in found} & set(encoders.FLOORS):
        raise ConfigError(f"--models {min(taken)}: is the name of a floor, expected another; give ./{min(taken)}")
    require("sklearn", "curate notes")
    return [*found, *(encoders.floors() if order.floors else ())]


def _found(
    asked: MeasurePlan, contestants: Sequence[NoteEncoder], strict: figures.Board, chance: figures.Board
) -> dict[str, Any]:
    table, chains = asked.table, asked.table.chains
    models = [contestant.name for contestant in contestants if not contestant.is_floor]
    floors = [contestant.name for contestant in contestants if contestant.is_floor]
    rows = figures.rows(asked, strict, chance)
    against = figures.against_floors(asked, chance, models, floors)
    return {
        "table": table.place,
        "columns": dict(table.columns),
        "texts": len(table.texts),
        "groups": table.groups,
        "chains": chains.chains,
        "pairs": len(chains.query),
        "labels": {name: len(table.codes(name)[0]) for name in table.labels},
        "dropped": dict(table.dropped),
        "folds": asked.folds,
        "seeds": len(asked.seeds),
        "models": [
            {"model": contestant.name, "revision": contestant.revision, "floor": contestant.is_floor}
            for contestant in contestants
        ],
        "figures": rows,
        "differences": figures.differences(asked, chance, models),
        "against_floors": against,
        "undefined": dict(asked.undefined),
        "notes": [*table.notes, *asked.notes, *_caveats(asked, models, rows, against)],
        "export": None,
    }


def _caveats(
    asked: MeasurePlan, models: Sequence[str], rows: Sequence[dict[str, Any]], against: Sequence[dict[str, Any]]
) -> list[str]:
    """Return what must be known before a figure is used."""
    table, notes = asked.table, list[str]()
    if table.dropped:
        notes.append("left out: " + ", ".join(f"{count:,} rows {why}" for why, count in table.dropped.items()))
    if table.groups < FEW:
        notes.append(f"under {FEW} groups: these intervals are too narrow")
    tied = [row for row in rows if row["by_chance"] is not None]
    for name in models:
        most = max((each["value"] - each["by_chance"] for each in tied if each["model"] == name), default=0.0)
        if most > NOTED:
            notes.append(
                f"{name}: vectors of different texts are equal (closer than {NEAR:g}); with ties by chance a recall "
                f"falls by up to {most:.3f}"
            )
    for name in models:
        mine = [each for each in against if each["model"] == name]
        lost = [page.shown_name(each) for each in mine if not each["beaten"]]
        if lost:
            on = "any measure" if len(lost) == len(mine) else ", ".join(lost)
            notes.append(f"{name} is not shown to beat the best floor on {on}")
    return notes
