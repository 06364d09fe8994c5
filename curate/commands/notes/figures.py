"""Figures of notes for people: a row per measure, a column per encoder, in the terminal and in Markdown."""

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
    """Return a measure as people read it."""
    name = NAMES[row["figure"]]
    return name if row["at"] is None else f"{name} @{row['at']}"


def overview(found: Figures) -> list[dict[str, object]]:
    """Return one row per measure: every model's figure with its interval, the floors', and the ceiling of card.

    Of floors, whose vectors often tie, recalls are those by chance.
    """
    names = {each["model"]: each["model"] + (" (floor)" if each["floor"] else "") for each in found["models"]}
    floors = {each["model"] for each in found["models"] if each["floor"]}
    rows: dict[str, dict[str, object]] = {}
    for each in found["figures"]:
        row = rows.setdefault(shown_name(each), {"measure": shown_name(each)})
        row[names[each["model"]]] = _floor(each) if each["model"] in floors else _ranged(each)
    tops = {shown_name(each): each["ceiling"] for each in found["figures"] if each["ceiling"] not in (None, 1)}
    if not tops:
        return list(rows.values())
    return [{**row, "at most": f"{tops[name]:.3f}" if name in tops else None} for name, row in rows.items()]


def _floor(row: Figures) -> str | None:
    value = row["value"] if row["by_chance"] is None else row["by_chance"]
    return None if value is None else f"{value:.3f}"


def apart(found: Figures) -> list[dict[str, object]]:
    """Return one row per measure and pair of models."""
    return [
        {
            "measure": shown_name(each),
            "models": f"{each['one']} less {each['other']}",
            "difference": _ranged(each),
            "shown": "yes" if each["low"] is not None and each["low"] > 0 else "no",
        }
        for each in found["differences"]
    ]


def head(found: Figures) -> str:
    """Return what was read in one sentence."""
    columns = ", ".join(f"{name} in {column}" for name, column in found["columns"].items())
    counts = f"{found['texts']:,} texts of {found['groups']:,} groups, {found['pairs']:,} pairs in {found['chains']:,}"
    return f"{found['table']}: {counts} chains; {columns}"


def undefined(found: Figures) -> Iterator[str]:
    """Yield why measures are not defined, a sentence per reason."""
    reasons: dict[str, list[str]] = {}
    for name, why in found["undefined"].items():
        reasons.setdefault(why, []).append(NAMES[name])
    yield from (f"not defined: {', '.join(names)}: {why}" for why, names in reasons.items())


def readme(found: Figures) -> str:
    """Return the page that lies beside the figures."""
    parts = ["# Embeddings of notes", head(found)]
    if found["figures"]:
        parts += [table(overview(found)), _method(found)]
    if found["differences"]:
        parts += ["## Differences between models", table(apart(found))]
    lines = [*undefined(found), *found["notes"], *exported(found)]
    parts += ["## To be known", "\n".join(f"- {line}" for line in lines)] if lines else []
    return "\n\n".join(parts) + "\n"


def exported(found: Figures) -> Sequence[str]:
    """Return what was exported, a sentence per task, and what was masked before; nothing without an export."""
    made = found["export"]
    if made is None:
        return []
    masked = ", ".join(f"{kind} {count:,}" for kind, count in made["masked"].items()) or "nothing"
    tasks = [f"{each['task']}: {each['rows']}" for each in made["tasks"]]
    left = [f"{made['residual']:,} places still look like personal data: read them before it leaves the house"]
    return [f"masked before the export: {masked}", *(left if made["residual"] else []), *tasks, *made["notes"]]


def _method(found: Figures) -> str:
    return (
        "Recall at a depth, with 95 % intervals that resample groups, 1,000 times. A rank is 1 + the number of "
        "candidates that are strictly more similar. *card*: the next texts of all pairs are the candidates, the "
        "query's own text among them. *next*: its group is left out but for the true next. *group*: all texts but its "
        "own, and any of the group counts. AUROC: macro mean over labels of logistic regression, "
        f"{found['folds']} folds, {found['seeds']} seeds. Silhouettes by cosine distance; a text's own is kept in "
        "every resample. Differences, and the recalls of floors, count ties by chance."
    )


def _ranged(row: Figures) -> str | None:
    if row["value"] is None:
        return None
    shown = f"{row['value']:.3f}"
    return shown if row["low"] is None else f"{shown} ({row['low']:.3f} to {row['high']:.3f})"


# Figures of all encoders with intervals that resample groups, paired differences, and floors that were not beaten.

REPLICATES = 1_000
EDGES = (0.025, 0.975)
CELLS = 1 << 23
"""Weights of texts that are held at once: 64 MB."""


class Drawn(NamedTuple):
    """A figure and what it is in resamples of the groups."""

    value: float
    draws: Floats


_Values = dict[str, dict[Measure, Floats]]
Board = Mapping[str, Mapping[Measure, Drawn]]
"""Encoder -> measure -> figure."""


def drawn(asked: MeasurePlan, results: Mapping[str, EncoderResult], seed: int) -> tuple[Board, Board]:
    """Return every figure of every encoder, all from the same resamples: strict ones, and those by chance."""
    once = _both(asked, results, np.ones((1, asked.table.groups)))
    parts = [_both(asked, results, weights) for weights in _weights(asked, seed)]
    strict, chance = (
        {
            name: {
                measure: Drawn(float(found[measure][0]), np.concatenate([part[side][name][measure] for part in parts]))
                for measure in asked.measures
            }
            for name, found in once[side].items()
        }
        for side in (0, 1)
    )
    return strict, chance


def _weights(asked: MeasurePlan, seed: int) -> Iterator[Floats]:
    """Yield blocks of how often every group is drawn; one of NaN, which defines nothing, if there is but one group."""
    if asked.table.groups < 2:
        yield np.full((1, asked.table.groups), np.nan)
        return
    size = max(CELLS // len(asked.table.texts), 1)
    for block in resamples(asked.table.groups, REPLICATES, seed):
        yield from (block[start : start + size] for start in range(0, len(block), size))


def _both(asked: MeasurePlan, results: Mapping[str, EncoderResult], weights: Floats) -> tuple[_Values, _Values]:
    sides: tuple[_Values, _Values] = {}, {}
    for name, result in results.items():
        of_texts = weights[:, asked.table.chains.group] if result.probes else weights
        probed = {
            Measure(f"auroc_{folding}"): measuring.areas(seeds, of_texts) for folding, seeds in result.probes.items()
        }
        for side, sums in zip(sides, (result.strict, result.chance), strict=True):
            mine = {each: divided(weights @ sums[each].above, weights @ sums[each].below) for each in sums} | probed
            gaps = {gap: (one, other) for gap, (one, other) in _GAPS.items() if one in mine and other in mine}
            side[name] = {**mine, **{gap: mine[one] - mine[other] for gap, (one, other) in gaps.items()}}
    return sides


_GAPS = {
    Measure("auroc_leak"): (Measure("auroc_random"), Measure("auroc_disjoint")),
    Measure("silhouette_delta"): (Measure("silhouette_label"), Measure("silhouette_style")),
}


def rows(asked: MeasurePlan, strict: Board, chance: Board) -> list[dict[str, Json]]:
    """Return a row per measure and encoder: the value with its interval, and what it is if chance orders ties."""
    return [
        {
            **_named(measure),
            "model": name,
            **_figure(strict[name][measure]),
            "by_chance": _rounded(chance[name][measure].value) if measure.at is not None else None,
            "ceiling": _rounded(asked.table.chains.ceiling(measure.at))
            if measure.name == "card" and measure.at
            else None,
        }
        for measure in asked.measures
        for name in strict
    ]


def differences(asked: MeasurePlan, board: Board, models: Sequence[str]) -> list[dict[str, Json]]:
    """Return how far two models are apart on every measure, the better one first."""
    found = []
    for measure in asked.measures:
        for one, other in combinations(models, 2):
            better, worse = (one, other) if board[one][measure].value >= board[other][measure].value else (other, one)
            found.append(
                {**_named(measure), "one": better, "other": worse, **_figure(_less(board, measure, better, worse))}
            )
    return found


def against_floors(
    asked: MeasurePlan, board: Board, models: Sequence[str], floors: Sequence[str]
) -> list[dict[str, Json]]:
    """Return how far every model is above the best floor of each measure of quality, and whether that is shown."""
    found = []
    for each in (measure for measure in asked.measures if measure.is_quality):
        for name in models if floors else ():
            floor = max(floors, key=lambda floor: board[floor][each].value)
            row = _figure(_less(board, each, name, floor))
            low: Any = row["low"]
            found.append({**_named(each), "model": name, "floor": floor, **row, "beaten": low is not None and low > 0})
    return found


def _less(board: Board, each: Measure, one: str, other: str) -> Drawn:
    first, second = board[one][each], board[other][each]
    return Drawn(first.value - second.value, first.draws - second.draws)


def _named(each: Measure) -> dict[str, Json]:
    return {"figure": each.name, "at": each.at}


def _figure(found: Drawn) -> dict[str, Json]:
    defined = found.draws[~np.isnan(found.draws)]
    if np.isnan(found.value) or len(defined) < 2:
        return {"value": _rounded(found.value), "low": None, "high": None}
    low, high = np.quantile(defined, EDGES)
    return {"value": _rounded(found.value), "low": _rounded(low), "high": _rounded(high)}


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), DIGITS)
