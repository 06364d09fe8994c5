"""`curate notes`: evaluate embeddings of labelled texts, by recall of texts of one group and by label.

Files: `figures.json` (all figures) and `README.md` (tables).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from curate.commands.notes import encoders, export, figures
from curate.commands.notes.encoders import NoteEncoder
from curate.commands.notes.figures import FloorGap, NoteFigure, NoteModel, NotesFigures
from curate.commands.notes.measuring import MeasurePlan, feasible, measured
from curate.commands.notes.table import NotesLayout, NotesTable, named, read
from curate.core.errors import ConfigError
from curate.core.figures import Record, figure
from curate.core.progress import StepLabel, counting, waiting
from curate.retrieval.vectors.cache import keys_of
from curate.runs.command import Names, argument, option, setting
from curate.runs.options import OnTable
from curate.runs.outputs import free_place
from curate.stats.neighbour_recall import NEAR
from curate.system.extras import require
from curate.system.files import write_json, write_text
from curate.view.answers import Result
from curate.view.record_words import RecordWords
from curate.view.text import as_table, too_few

TRIED = 32
"""Number of texts that a time estimate encodes per encoder; their vectors stay in the cache."""
NOTED = 0.01
"""Effect of ties on a recall above which there is a note."""


class LeftTexts(Record, schema_name="left"):
    """Texts that one model has left to encode."""

    model: str = figure("name of the model")
    texts: int = figure("distinct texts")
    to_encode: int = figure("distinct texts that are not in the cache")
    seconds: float = figure("estimate, timed on some of the texts", digits=1)


class NotesPlan(Record, schema_name="planned"):
    """What is left to encode."""

    plan: tuple[LeftTexts, ...] = figure("a row per model")


class NotesCommand(OnTable):
    """Test embeddings of notes.

    Of patients, or of other labelled texts: recall along chains, AUROC, silhouettes.
    """

    words = "notes"
    examples = (
        "notes notes.csv --models e5 --column group=patient_id",
        "notes notes.xlsx --models minilm,e5 --column label=ward --out figures",
    )

    table: Path = argument("Texts, a row each: CSV, TSV, .xlsx, JSON lines, Parquet or Arrow.")
    models: Names = option(
        "minilm, use, e5, a folder, or a model of the hub; separated by commas.",
        (),
        flag="--models,-m",
        metavar="NAMES",
    )
    column: tuple[str, ...] = option(
        "Column of id, title, text, group, order, label or style, such as group=patient_id; may be repeated.",
        (),
        metavar="FIELD=NAME",
    )
    floors: bool = option("Measure text length, shared characters and chance too.", True)
    out: Path | None = option("Folder for figures.json and README.md.", None, metavar="FOLDER")
    export: Path | None = option("Folder for two masked tasks that stock mteb scores.", None, metavar="FOLDER")
    device: str | None = option("Where to compute.", None, metavar="cpu|cuda|cuda:1")
    plan: bool = option("Print what each model has left to encode.", False)
    folds: int = setting("Parts that the probe of the label is fitted on in turn.", 2)
    seeds: int = setting("How often the texts are parted anew for the probe.", 3)
    seed: int = setting("Seed of resamples and parts.", 0, ge=0)
    max_length: int | None = setting("Longest input in tokens, of all models but use and e5.", None, ge=1)
    delimiter: str | None = setting("Between the cells of the table, such as ';'; found without it.", None)
    sheet: str | None = setting("Sheet of an .xlsx file; default: the only one with data.", None)
    language: str | None = setting("Language of the exported texts; default: detected.", None)

    def result(self) -> Result[NotesFigures | NotesPlan]:
        """Return the figures; with `plan`, a row per model with the texts that are left to encode."""
        say = RecordWords("notes/notes")
        if self.plan:
            plan = planned(self)
            rows = [vars(row) for row in plan.plan]
            return Result(plan, [as_table(rows) if rows else say("nothing_left")])
        summary = evaluate(self)
        return Result(summary, _text(summary, say), summary.notes)

    def texts(self) -> NotesTable:
        """Read the table."""
        return read(self.table, NotesLayout(named(self.column), self.delimiter, self.sheet, self.bounds))


def _text(summary: NotesFigures, say: RecordWords) -> Iterator[str]:
    yield figures.head(summary, say)
    if summary.figures:
        yield say("figures", table=as_table(figures.overview(summary, say)))
    if summary.differences:
        yield say("gaps", table=as_table(figures.apart(summary, say)))
    yield ""
    yield from figures.undefined(summary, say)
    yield from summary.notes
    yield from figures.exported(summary.export, say)
    if summary.folder:
        yield say("folder", summary)


def evaluate(command: NotesCommand) -> NotesFigures:
    """Return all figures; write the folders `out` and `export` if requested."""
    progress = command.progress
    if command.out is not None:
        free_place(command.out, ["figures.json"])
    contestants = _contestants(command)
    if command.export is not None:
        export.need_free(command.export)
    with waiting(progress, StepLabel(f"reading {command.table.name}")):
        table = command.texts()
    plan = feasible(table, command.folds, [command.seed + offset for offset in range(command.seeds)])
    if not plan.measures and command.export is None:
        raise ConfigError(f"{command.table}: nothing can be measured: {next(iter(plan.undefined.values()))}")
    results = {}
    for contestant in counting(contestants, progress, StepLabel("encoders"), len(contestants)):
        results[contestant.name] = measured(plan, contestant.encode(table.texts), contestant.name, progress)
    with waiting(progress, StepLabel("resampling groups")):
        summary = _summary(plan, contestants, *figures.drawn(plan, results, command.seed))
    if command.export is not None:
        written = export.write(table, plan, command.export, command.language, progress)
        summary = replace(summary, export=written)
    if command.out is None:
        return summary
    command.out.mkdir(parents=True, exist_ok=True)
    write_json(command.out / "figures.json", summary.to_json("folder"))
    write_text(command.out / "README.md", figures.readme(summary))
    return replace(summary, folder=str(command.out))


def planned(command: NotesCommand) -> NotesPlan:
    """Return number of uncached texts and estimated seconds per encoder, by encoding up to `TRIED` texts."""
    table = command.texts()
    return NotesPlan(tuple(_left(model, table) for model in _contestants(command) if model.cached is not None))


def _left(contestant: NoteEncoder, table: NotesTable) -> LeftTexts:
    assert contestant.cached is not None
    texts = list(dict.fromkeys(table.texts))
    if not (missing := contestant.cached.missing(keys_of(texts, encoders.ROLE), encoders.ROLE)):
        return LeftTexts(contestant.name, len(texts), 0, 0.0)
    sample = texts[:: max(len(texts) // TRIED, 1)][:TRIED]
    contestant.cached.encoder.encode(sample[:1], encoders.ROLE)  # loads the weights
    start = monotonic()
    contestant.cached.encoder.encode(sample, encoders.ROLE)
    seconds = round((monotonic() - start) / len(sample) * missing, 3)
    return LeftTexts(contestant.name, len(texts), missing, seconds)


def _contestants(command: NotesCommand) -> list[NoteEncoder]:
    for name, count, least in (("folds", command.folds, 2), ("seeds", command.seeds, 1)):
        if count < least:
            raise ConfigError(f"{name}: found {count}, expected {least} or more")
    models = encoders.named(command.models, command.max_length, command.device, command.progress)
    if not models and not command.floors:
        raise ConfigError("notes: found no model, expected one; name some with --models, or leave out --no-floors")
    if clashes := {model.name for model in models} & set(encoders.FLOORS):
        raise ConfigError(f"--models {min(clashes)}: is the name of a floor, expected another; give ./{min(clashes)}")
    require("sklearn", "curate notes")
    return [*models, *(encoders.floors() if command.floors else ())]


def _summary(
    plan: MeasurePlan, contestants: Sequence[NoteEncoder], strict: figures.Board, chance: figures.Board
) -> NotesFigures:
    table, chains = plan.table, plan.table.chains
    models = [contestant.name for contestant in contestants if not contestant.is_floor]
    floors = [contestant.name for contestant in contestants if contestant.is_floor]
    rows = figures.rows(plan, strict, chance)
    against = tuple(figures.against_floors(plan, chance, models, floors))
    return NotesFigures(
        table=table.location,
        columns=table.columns,
        texts=len(table.texts),
        groups=table.groups,
        chains=chains.chains,
        pairs=len(chains.query),
        labels={name: len(table.codes(name)[0]) for name in table.labels},
        dropped=table.dropped,
        folds=plan.folds,
        seeds=len(plan.seeds),
        models=tuple(NoteModel(model.name, model.revision, model.is_floor) for model in contestants),
        figures=rows,
        differences=tuple(figures.differences(plan, chance, models)),
        against_floors=against,
        undefined=plan.undefined,
        notes=(*table.notes, *plan.notes, *_caveats(plan, models, rows, against)),
        export=None,
        folder=None,
    )


def _caveats(
    plan: MeasurePlan, models: Sequence[str], rows: Sequence[NoteFigure], against: Sequence[FloorGap]
) -> list[str]:
    """Return notes on dropped rows, few groups, tied vectors, and models that do not beat the best trivial baseline."""
    table, notes, say = plan.table, list[str](), RecordWords("notes/notes")
    if table.dropped:
        notes.append("left out: " + ", ".join(f"{count:,} rows {why}" for why, count in table.dropped.items()))
    notes += too_few(table.groups, "groups")
    tied = [row for row in rows if row.by_chance is not None]
    for name in models:
        most = max(
            ((row.value or 0.0) - (row.by_chance or 0.0) for row in tied if row.model == name),
            default=0.0,
        )
        if most > NOTED:
            notes.append(
                f"{name}: vectors of different texts are equal (closer than {NEAR:g}); with ties by chance a recall "
                f"falls by up to {most:.3f}"
            )
    for name in models:
        comparisons = [row for row in against if row.model == name]
        lost = [figures.shown_name(comparison, say) for comparison in comparisons if not comparison.beaten]
        if lost:
            on = "any measure" if len(lost) == len(comparisons) else ", ".join(lost)
            notes.append(f"{name} is not shown to beat the best floor on {on}")
    return notes
