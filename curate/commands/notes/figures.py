"""Figures of an evaluation of notes under resampled groups, and their tables for the terminal and Markdown.

Tables have one row per measure and one column per encoder.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from curate.commands.notes import measuring
from curate.commands.notes.measuring import EncoderResult, Measure, MeasurePlan
from curate.core.config import Json
from curate.stats.bootstrap import DIGITS, divided, resamples
from curate.stats.tally import Floats
from curate.view.page_tables import table

Figures = Mapping[str, Any]
NAMES = {
    "card": "card",
    "card_own_out": "card, own text out",
    "next": "next",
    "group": "group",
    "auroc_disjoint": "AUROC, folds by group",
    "auroc_random": "AUROC, random folds",
    "auroc_leak": "leak (random less by group)",
    "silhouette_label": "silhouette of the label",
    "silhouette_style": "silhouette of the style",
    "silhouette_delta": "silhouette, label less style",
}


def shown_name(row: Figures) -> str:
    """Return a measure's display name, with the depth of a recall."""
    name = NAMES[row["figure"]]
    return name if row["at"] is None else f"{name} @{row['at']}"


def overview(summary: Figures) -> list[dict[str, object]]:
    """Return one row per measure: figures of models with intervals, of trivial baselines, and the highest possible.

    In recalls of trivial baselines ties are broken at random, since their vectors often tie.
    """
    names = {model["model"]: model["model"] + (" (floor)" if model["floor"] else "") for model in summary["models"]}
    floors = {model["model"] for model in summary["models"] if model["floor"]}
    rows: dict[str, dict[str, object]] = {}
    for figure in summary["figures"]:
        row = rows.setdefault(shown_name(figure), {"measure": shown_name(figure)})
        if figure["model"] in floors:
            mean = figure["value"] if figure["by_chance"] is None else figure["by_chance"]
            row[names[figure["model"]]] = None if mean is None else f"{mean:.3f}"
        else:
            row[names[figure["model"]]] = _with_interval(figure)
    ceilings = {
        shown_name(figure): figure["ceiling"] for figure in summary["figures"] if figure["ceiling"] not in (None, 1)
    }
    if not ceilings:
        return list(rows.values())
    return [{**row, "at most": f"{ceilings[name]:.3f}" if name in ceilings else None} for name, row in rows.items()]


def apart(summary: Figures) -> list[dict[str, object]]:
    """Return one row per measure and pair of models: their difference, and whether its interval is above 0."""
    return [
        {
            "measure": shown_name(gap),
            "models": f"{gap['one']} less {gap['other']}",
            "difference": _with_interval(gap),
            "shown": "yes" if gap["low"] is not None and gap["low"] > 0 else "no",
        }
        for gap in summary["differences"]
    ]


def head(summary: Figures) -> str:
    """Return a sentence with the table's counts of texts, groups, pairs and chains, and its columns."""
    columns = ", ".join(f"{name} in {column}" for name, column in summary["columns"].items())
    counts = (
        f"{summary['texts']:,} texts of {summary['groups']:,} groups, {summary['pairs']:,} pairs in "
        f"{summary['chains']:,}"
    )
    return f"{summary['table']}: {counts} chains; {columns}"


def undefined(summary: Figures) -> Iterator[str]:
    """Yield one sentence per reason for undefined measures, with their names."""
    reasons: dict[str, list[str]] = {}
    for name, why in summary["undefined"].items():
        reasons.setdefault(why, []).append(NAMES[name])
    yield from (f"not defined: {', '.join(names)}: {why}" for why, names in reasons.items())


def readme(summary: Figures) -> str:
    """Return the text of README.md: tables, notes and settings, in Markdown."""
    sections = ["# Embeddings of notes", head(summary)]
    if summary["figures"]:
        sections += [table(overview(summary)), _method(summary)]
    if summary["differences"]:
        sections += ["## Differences between models", table(apart(summary))]
    lines = [*undefined(summary), *summary["notes"], *exported(summary)]
    sections += ["## To be known", "\n".join(f"- {line}" for line in lines)] if lines else []
    return "\n\n".join(sections) + "\n"


def exported(summary: Figures) -> Sequence[str]:
    """Return lines on the export: masked spans, tasks, notes; empty without an export."""
    export = summary["export"]
    if export is None:
        return []
    masked = ", ".join(f"{kind} {count:,}" for kind, count in export["masked"].items()) or "nothing"
    tasks = [f"{task['task']}: {task['rows']}" for task in export["tasks"]]
    warning = [f"{export['residual']:,} places still look like personal data: read them before it leaves the house"]
    return [f"masked before the export: {masked}", *(warning if export["residual"] else []), *tasks, *export["notes"]]


def _method(summary: Figures) -> str:
    return (
        "Recall at a depth, with 95 % intervals that resample groups, 1,000 times. A rank is 1 + the number of "
        "candidates that are strictly more similar. *card*: the next texts of all pairs are the candidates, the "
        "query's own text among them. *next*: its group is left out but for the true next. *group*: all texts but its "
        "own, and any of the group counts. AUROC: macro mean over labels of logistic regression, "
        f"{summary['folds']} folds, {summary['seeds']} seeds. Silhouettes by cosine distance; a text's own is kept in "
        "every resample. Differences, and the recalls of floors, count ties by chance."
    )


def _with_interval(row: Figures) -> str | None:
    if row["value"] is None:
        return None
    mean = f"{row['value']:.3f}"
    return mean if row["low"] is None else f"{mean} ({row['low']:.3f} to {row['high']:.3f})"


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


def rows(plan: MeasurePlan, strict: Board, chance: Board) -> list[dict[str, Json]]:
    """Return one row per measure and encoder: value, interval, value with random ties (recalls only), maximum."""
    return [
        {
            **_measure_fields(measure),
            "model": name,
            **_interval_fields(strict[name][measure]),
            "by_chance": _rounded(chance[name][measure].value) if measure.at is not None else None,
            "ceiling": _rounded(plan.table.chains.ceiling(measure.at))
            if measure.name == "card" and measure.at
            else None,
        }
        for measure in plan.measures
        for name in strict
    ]


def differences(plan: MeasurePlan, board: Board, models: Sequence[str]) -> list[dict[str, Json]]:
    """Return the paired difference of every two models per measure, the better minus the worse, with interval."""
    differences = []
    for measure in plan.measures:
        for first, second in combinations(models, 2):
            better, worse = (
                (first, second) if board[first][measure].value >= board[second][measure].value else (second, first)
            )
            differences.append(
                {
                    **_measure_fields(measure),
                    "one": better,
                    "other": worse,
                    **_interval_fields(_difference(board, measure, better, worse)),
                }
            )
    return differences


def against_floors(
    plan: MeasurePlan, board: Board, models: Sequence[str], floors: Sequence[str]
) -> list[dict[str, Json]]:
    """Return the difference of each model and the best trivial baseline, per quality measure, with interval.

    `beaten` is whether the interval is above 0.
    """
    comparisons = []
    for measure in (measure for measure in plan.measures if measure.is_quality):
        for name in models if floors else ():
            floor = max(floors, key=lambda floor: board[floor][measure].value)
            row = _interval_fields(_difference(board, measure, name, floor))
            low: Any = row["low"]
            comparisons.append(
                {
                    **_measure_fields(measure),
                    "model": name,
                    "floor": floor,
                    **row,
                    "beaten": low is not None and low > 0,
                }
            )
    return comparisons


def _difference(board: Board, measure: Measure, model: str, baseline: str) -> Drawn:
    minuend, subtrahend = board[model][measure], board[baseline][measure]
    return Drawn(minuend.value - subtrahend.value, minuend.draws - subtrahend.draws)


def _measure_fields(measure: Measure) -> dict[str, Json]:
    return {"figure": measure.name, "at": measure.at}


def _interval_fields(drawn_figure: Drawn) -> dict[str, Json]:
    defined = drawn_figure.draws[~np.isnan(drawn_figure.draws)]
    if np.isnan(drawn_figure.value) or len(defined) < 2:
        return {"value": _rounded(drawn_figure.value), "low": None, "high": None}
    low, high = np.quantile(defined, EDGES)
    return {"value": _rounded(drawn_figure.value), "low": _rounded(low), "high": _rounded(high)}


def _rounded(number: float) -> float | None:
    return None if np.isnan(number) else round(float(number), DIGITS)
