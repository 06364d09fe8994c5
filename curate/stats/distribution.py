"""Distribution of whole numbers: quantiles, mean, and a histogram of few bins."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median

from curate.core.figures import Record, figure

NICE = (1, 2, 5)
"""Factors of bin widths: each width is one of these times a power of ten."""


class Bin(Record):
    """Bin of a histogram."""

    low: float = figure("smallest number of the bin")
    high: float | None = figure("largest number of the bin; null for an open last bin")
    count: int = figure("numbers in the bin")


class Spread(Record):
    """Summary of whole numbers; a figure is None if there are no numbers."""

    measured: int = figure("how many numbers there are")
    low: float | None = figure("minimum")
    median: float | None = figure("median")
    mean: float | None = figure("mean")
    p95: float | None = figure(
        "95th percentile by nearest rank: the smallest number such that at least 95 % of the numbers do not exceed it"
    )
    high: float | None = figure("maximum")
    bins: tuple[Bin, ...] = figure("bins of the histogram")


def spread(numbers: Sequence[int], most: int = 14) -> Spread:
    """Return the summary of numbers, with at most `most` bins up to the 99th percentile and an open one above."""
    if not numbers:
        return Spread(0, None, None, None, None, None, ())
    ordered = sorted(numbers)
    return Spread(
        measured=len(ordered),
        low=ordered[0],
        median=median(ordered),
        mean=fmean(ordered),
        p95=_nearest_rank(ordered, 0.95),
        high=ordered[-1],
        bins=tuple(_bins(ordered, most)),
    )


def _nearest_rank(ordered: Sequence[int], share: float) -> int:
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _bins(ordered: Sequence[int], most: int) -> list[Bin]:
    """Return equal bins up to the 99th percentile and an open last one.

    Equal bins up to the maximum would put nearly all numbers into one bin if there is a far outlier.
    """
    low, top = ordered[0], _nearest_rank(ordered, 0.99)
    width = next(
        step
        for power in range(20)
        for step in (factor * 10**power for factor in NICE)
        if top // step - low // step < most
    )
    first, last = low // width, top // width
    counted = Counter(number // width for number in ordered)
    bins = [Bin(index * width, (index + 1) * width - 1, counted[index]) for index in range(first, last + 1)]
    above = sum(count for index, count in counted.items() if index > last)
    return [*bins, Bin((last + 1) * width, None, above)] if above else bins
