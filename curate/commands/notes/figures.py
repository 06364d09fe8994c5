"""Figures of an evaluation of notes under resampled groups, and their tables for the terminal and Markdown.

Tables have one row per measure and one column per encoder.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from curate.commands.notes import measuring
from curate.commands.notes.export import NotesExport
from curate.commands.notes.measuring import EncoderResult, Measure, MeasurePlan
from curate.core.figures import Figure, Record, figure
from curate.stats.bootstrap import DIGITS, divided, resamples
from curate.stats.tally import Floats
from curate.view.page_tables import ranged, table
from curate.view.record_words import DASH, RecordWords


class NoteFigure(Record, schema_name="row"):
    """A measure of one encoder."""

    measure: str = figure("a protocol, an AUROC or a silhouette", key="figure")
    at: int | None = figure("depth of a recall")
    model: str = figure("name of the encoder")
    value: float | None = figure("the measure")
    low: float | None = figure("lower bound of the 95 % interval over groups")
    high: float | None = figure("upper bound")
    by_chance: float | None = figure("recall if ties are ordered by chance")
    ceiling: float | None = figure("highest recall possible under the protocol")


class ModelGap(Record, schema_name="difference"):
    """Paired difference of two models, the better less the worse."""

    measure: str = figure("a protocol, an AUROC or a silhouette", key="figure")
    at: int | None = figure("depth of a recall")
    one: str = figure("the better model")
    other: str = figure("the other model")
    value: float | None = figure("better less worse model, ties ordered by chance")
    low: float | None = figure("lower bound of the 95 % interval over groups")
    high: float | None = figure("upper bound")


class FloorGap(Record, schema_name="above"):
    """Difference of a model and the best trivial baseline."""

    measure: str = figure("a protocol, an AUROC or a silhouette", key="figure")
    at: int | None = figure("depth of a recall")
    model: str = figure("name of the model")
    floor: str = figure("name of the best trivial baseline")
    value: float | None = figure("model less baseline, ties ordered by chance")
    low: float | None = figure("lower bound of the 95 % interval over groups")
    high: float | None = figure("upper bound")
    beaten: bool = figure("whether the interval is above 0")


class NoteModel(Record, schema_name="encoder"):
    """An encoder of the texts."""

    model: str = figure("name of the encoder")
    revision: str = figure("its revision")
    floor: bool = figure("whether it is a trivial baseline")


class NotesFigures(Record, schema_name="found"):
    """How well embeddings of labelled texts find what belongs together and show labels; with --plan what is left to encode."""  # noqa: E501

    table: str = figure("file of the texts")
    columns: Mapping[str, str] = figure("field -> column of the table")
    texts: int = figure("rows with a text")
    groups: int = figure("groups, such as patients")
    chains: int = figure("groups with at least one pair")
    pairs: int = figure("texts followed by another text of their group")
    labels: Mapping[str, int] = figure("label or style -> different values")
    dropped: Mapping[str, int] = figure("reason -> rows")
    folds: int = figure("folds of the cross-validated probe")
    seeds: int = figure("number of random splits into folds")
    models: tuple[NoteModel, ...] = figure("encoders, trivial baselines last")
    figures: tuple[NoteFigure, ...] = figure("a row per measure and encoder")
    differences: tuple[ModelGap, ...] = figure("paired differences, a row per measure and two models")
    against_floors: tuple[FloorGap, ...] = figure(
        "differences from the best baseline, a row per measure of quality and model"
    )
    undefined: Mapping[str, str] = figure("measure -> why it is not defined")
    notes: tuple[str, ...] = figure("caveats, one sentence each")
    export: NotesExport | None = figure("tasks that were written")
    folder: str | None = figure("folder of the written page, tables and charts; null if nothing was written")


def shown_name(row: NoteFigure | ModelGap | FloorGap, say: RecordWords) -> str:
    """Return a measure's display name, with the depth of a recall."""
    name = say(row.measure)
    return name if row.at is None else say("at", row, name=name)


def overview(summary: NotesFigures, say: RecordWords) -> list[dict[str, str]]:
    """Return one row per measure: figures of models with intervals, of trivial baselines, and the highest possible.

    In recalls of trivial baselines ties are broken at random, since their vectors often tie.
    """
    names = {model.model: say("floor", model) if model.floor else model.model for model in summary.models}
    floors = {model.model for model in summary.models if model.floor}
    rows: dict[str, dict[str, str]] = {}
    ceilings: dict[str, dict[str, str]] = {}
    for row in summary.figures:
        measure = shown_name(row, say)
        cells = rows.setdefault(measure, say.cells("measure", measure=measure))
        mean = row.value if row.by_chance is None else row.by_chance
        interval = ranged(Figure(mean) if row.model in floors else row, 1, 3)
        cells[names[row.model]] = interval or say.empty
        ceilings[measure] = say.cells("ceiling", row, **{"ceiling": None} if row.ceiling == 1 else {})
    if all(row.ceiling in (None, 1) for row in summary.figures):
        return list(rows.values())
    return [cells | ceilings[measure] for measure, cells in rows.items()]


def apart(summary: NotesFigures, say: RecordWords) -> list[dict[str, str]]:
    """Return one row per measure and pair of models: their difference, and whether its interval is above 0."""
    return [
        say.cells(
            "gap",
            gap,
            measure=shown_name(gap, say),
            difference=ranged(gap, 1, 3),
            above=gap.low is not None and gap.low > 0,
        )
        for gap in summary.differences
    ]


def head(summary: NotesFigures, say: RecordWords) -> str:
    """Return a sentence with the table's counts of texts, groups, pairs and chains, and its columns."""
    fields = ", ".join(say("field", name=name, column=column) for name, column in summary.columns.items())
    return say("head", summary, fields=fields)


def undefined(summary: NotesFigures, say: RecordWords) -> Iterator[str]:
    """Yield one sentence per reason for undefined measures, with their names."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in summary.undefined.items():
        names_by_reason.setdefault(reason, []).append(say(name))
    for reason, names in names_by_reason.items():
        yield say("not_defined", names=", ".join(names), reason=reason)


def readme(summary: NotesFigures) -> str:
    """Return the text of README.md: tables, notes and settings, in Markdown."""
    say = RecordWords("notes/notes", empty=DASH)
    sections = [say("title"), head(summary, say)]
    if summary.figures:
        sections += [table(overview(summary, say)), say("method", summary)]
    if summary.differences:
        sections += [say("differences"), table(apart(summary, say))]
    lines = [*undefined(summary, say), *summary.notes, *exported(summary.export, say)]
    sections += [say("notes"), "\n".join(f"- {line}" for line in lines)] if lines else []
    return "\n\n".join(sections) + "\n"


def exported(export: NotesExport | None, say: RecordWords) -> Iterator[str]:
    """Yield lines on the export: masked spans, tasks, notes."""
    if export is None:
        return
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in export.masked.items())
    yield say("masked", kinds=kinds or say("nothing"))
    if export.residual:
        yield say("residual", export)
    yield from (say("task", task) for task in export.tasks)
    yield from export.notes


# Figures of all encoders: group bootstrap intervals, paired differences, and comparisons with the best floor.

REPLICATES = 1_000
EDGES = (0.025, 0.975)
CELLS = 1 << 23
"""Maximum number of resample weights (float64) in memory at once: 64 MB."""


class Drawn(NamedTuple):
    """A figure, and its values in bootstrap resamples of groups."""

    value: float
    draws: Floats


_Values = dict[str, dict[Measure, Floats]]
Board = Mapping[str, Mapping[Measure, Drawn]]
"""Encoder -> measure -> figure."""


def drawn(plan: MeasurePlan, results: Mapping[str, EncoderResult], seed: int) -> tuple[Board, Board]:
    """Return all figures of all encoders in the same resamples, twice: by `strict` and by `chance` ranks.

    `strict`: ties are ranked in favour of the relevant text. `chance`: expectation over random orders of ties.
    """
    points = _means(plan, results, np.ones((1, plan.table.groups)))
    blocks = [_means(plan, results, weights) for weights in _weights(plan, seed)]
    strict, chance = (
        {
            name: {
                measure: Drawn(
                    float(point[measure][0]), np.concatenate([block[side][name][measure] for block in blocks])
                )
                for measure in plan.measures
            }
            for name, point in points[side].items()
        }
        for side in (0, 1)
    )
    return strict, chance


def _weights(plan: MeasurePlan, seed: int) -> Iterator[Floats]:
    """Yield blocks of resample weights, shape (resamples, groups): how often a group is drawn.

    For a single group, one row of NaN.
    """
    if plan.table.groups < 2:
        yield np.full((1, plan.table.groups), np.nan)
        return
    size = max(CELLS // len(plan.table.texts), 1)
    for block in resamples(plan.table.groups, REPLICATES, seed):
        yield from (block[start : start + size] for start in range(0, len(block), size))


def _means(plan: MeasurePlan, results: Mapping[str, EncoderResult], weights: Floats) -> tuple[_Values, _Values]:
    sides: tuple[_Values, _Values] = {}, {}
    for name, result in results.items():
        text_weights = weights[:, plan.table.chains.group] if result.probes else weights
        aurocs = {
            Measure(f"auroc_{folding}"): measuring.areas(seeds, text_weights)
            for folding, seeds in result.probes.items()
        }
        for side, sums in zip(sides, (result.strict, result.chance), strict=True):
            means = {
                measure: divided(weights @ sums[measure].above, weights @ sums[measure].below) for measure in sums
            } | aurocs
            gaps = {
                gap: (minuend, subtrahend)
                for gap, (minuend, subtrahend) in _GAPS.items()
                if minuend in means and subtrahend in means
            }
            side[name] = {
                **means,
                **{gap: means[minuend] - means[subtrahend] for gap, (minuend, subtrahend) in gaps.items()},
            }
    return sides


_GAPS = {
    Measure("auroc_leak"): (Measure("auroc_random"), Measure("auroc_disjoint")),
    Measure("silhouette_delta"): (Measure("silhouette_label"), Measure("silhouette_style")),
}


def rows(plan: MeasurePlan, strict: Board, chance: Board) -> tuple[NoteFigure, ...]:
    """Return one row per measure and encoder."""
    return tuple(
        NoteFigure(
            measure.name,
            measure.at,
            name,
            *_with_bounds(strict[name][measure]),
            by_chance=_rounded(chance[name][measure].value) if measure.at is not None else None,
            ceiling=_rounded(plan.table.chains.ceiling(measure.at)) if measure.name == "card" and measure.at else None,
        )
        for measure in plan.measures
        for name in strict
    )


def differences(plan: MeasurePlan, board: Board, models: Sequence[str]) -> Iterator[ModelGap]:
    """Yield the paired difference of every two models per measure."""
    for measure in plan.measures:
        for first, second in combinations(models, 2):
            better, worse = (
                (first, second) if board[first][measure].value >= board[second][measure].value else (second, first)
            )
            difference = _difference(board, measure, better, worse)
            yield ModelGap(measure.name, measure.at, better, worse, *_with_bounds(difference))


def against_floors(plan: MeasurePlan, board: Board, models: Sequence[str], floors: Sequence[str]) -> Iterator[FloorGap]:
    """Yield the difference of each model and the best trivial baseline, per quality measure."""
    for measure in (measure for measure in plan.measures if measure.is_quality):
        for name in models if floors else ():
            floor = max(floors, key=lambda floor: board[floor][measure].value)
            value, low, high = _with_bounds(_difference(board, measure, name, floor))
            yield FloorGap(measure.name, measure.at, name, floor, value, low, high, beaten=low is not None and low > 0)


def _difference(board: Board, measure: Measure, model: str, baseline: str) -> Drawn:
    minuend, subtrahend = board[model][measure], board[baseline][measure]
    return Drawn(minuend.value - subtrahend.value, minuend.draws - subtrahend.draws)


def _with_bounds(drawn_figure: Drawn) -> tuple[float | None, float | None, float | None]:
    """Return value, lower and upper bound."""
    defined = drawn_figure.draws[~np.isnan(drawn_figure.draws)]
    if np.isnan(drawn_figure.value) or len(defined) < 2:
        return _rounded(drawn_figure.value), None, None
    low, high = np.quantile(defined, EDGES)
    return _rounded(drawn_figure.value), _rounded(low), _rounded(high)


def _rounded(number: float) -> float | None:
    return None if np.isnan(number) else round(float(number), DIGITS)
