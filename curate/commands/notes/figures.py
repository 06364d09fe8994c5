"""Figures of all encoders with intervals that resample groups, paired differences, and floors that were not beaten."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from curate.commands.notes import probing
from curate.commands.notes.measuring import EncoderResult, Measure, MeasurePlan
from curate.core.config import Json
from curate.stats.bootstrap import DIGITS, divided, resamples
from curate.stats.tally import Floats

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
                each: Drawn(float(found[each][0]), np.concatenate([part[side][name][each] for part in parts]))
                for each in asked.measures
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
            Measure(f"auroc_{folding}"): probing.areas(seeds, of_texts) for folding, seeds in result.probes.items()
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
            **_named(each),
            "model": name,
            **_figure(strict[name][each]),
            "by_chance": _rounded(chance[name][each].value) if each.at is not None else None,
            "ceiling": _rounded(asked.table.chains.ceiling(each.at)) if each.name == "card" and each.at else None,
        }
        for each in asked.measures
        for name in strict
    ]


def differences(asked: MeasurePlan, board: Board, models: Sequence[str]) -> list[dict[str, Json]]:
    """Return how far two models are apart on every measure, the better one first."""
    found = []
    for each in asked.measures:
        for one, other in combinations(models, 2):
            better, worse = (one, other) if board[one][each].value >= board[other][each].value else (other, one)
            found.append({**_named(each), "one": better, "other": worse, **_figure(_less(board, each, better, worse))})
    return found


def against_floors(
    asked: MeasurePlan, board: Board, models: Sequence[str], floors: Sequence[str]
) -> list[dict[str, Json]]:
    """Return how far every model is above the best floor of each measure of quality, and whether that is shown."""
    found = []
    for each in (measure for measure in asked.measures if measure.is_quality):
        for name in models if floors else ():
            floor = max(floors, key=lambda other: board[other][each].value)
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
