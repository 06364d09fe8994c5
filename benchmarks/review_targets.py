"""What 5,000 reviews of a pool of the paper's size prove of precision and recall, before and after `--target`.

People are simulated: every stratum has a fixed number of relevant pairs, and a sample finds as many of them as a draw
without replacement gives (hypergeometric), by seed. Before: Neyman's allocation for the agreement with one guess per
pattern of grades, and Wilson's interval for the recall. After: `curate.review.planning` and
`curate.stats.sample_estimates`.
A figure's coverage is the share of seeds whose 95 % interval holds the pool's true value; its half width is the mean.

Run: python -m benchmarks.review_targets [--seeds 3000]
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, mean

import numpy as np

from curate.panel import sampling_design
from curate.review import planning
from curate.review.planning import FIGURES, TARGETS, wanted
from curate.stats.sample_estimates import StratumCounts, recall, share

STRATA = (
    "relevant, one grade, top 50",
    "relevant, one grade, deeper",
    "relevant, split, top 50",
    "relevant, split, deeper",
    "not relevant, all D, top 50",
    "not relevant, all D, deeper",
    "not relevant, mixed, top 50",
    "not relevant, mixed, deeper",
    "contested, top 50",
    "contested, deeper",
    "incomplete",
)
PAPER = dict(
    zip(STRATA, (3200, 1800, 3900, 2455, 14000, 290000, 6000, 30465, 9000, 5680, 500), strict=True)
)  # 734 queries x 500, 11,355 of them positive, 4 % contested
SMALL = dict(zip(STRATA, (20, 14, 24, 16, 60, 300, 36, 70, 36, 20, 4), strict=True))
BEFORE = dict(zip(STRATA, (0.05, 0.05, 0.1, 0.1, 0.02, 0.02, 0.1, 0.1, 0.5, 0.5, 0.3), strict=True))
GOOD = (0.96, 0.94, 0.9, 0.85)
TRUTHS: Mapping[str, Sequence[float]] = {
    "many missed": (0.95, 0.95, 0.9, 0.9, 0.02, 0.02, 0.1, 0.1, 0.5, 0.5, 0.3),
    "poor panel": (0.7, 0.6, 0.5, 0.4, 0.03, 0.01, 0.2, 0.1, 0.5, 0.4, 0.4),
    "some missed": (*GOOD, 0.004, 0.002, 0.05, 0.02, 0.4, 0.25, 0.2),
    "few: 0.02 % of all D": (*GOOD, 0.001, 0.0002, 0.02, 0.005, 0.35, 0.2, 0.2),
    "fewer": (*GOOD, 0.0005, 0.0001, 0.01, 0.002, 0.1, 0.05, 0.1),
    "0.02 %, 0.1 %, 2 %": (*GOOD, 0.0002, 0.0002, 0.001, 0.001, 0.02, 0.02, 0.02),
    "0.02 % of all D alone": (*GOOD, 0.0002, 0.0002, 0, 0, 0, 0, 0),
    "0.1 % of deep D alone": (*GOOD, 0, 0.001, 0, 0, 0, 0, 0),
    "false positives": (0.5, 0.4, 0.3, 0.2, 0.001, 0.0002, 0.02, 0.005, 0.1, 0.05, 0.1),
    "nearly perfect": (0.999, 0.999, 0.995, 0.995, 0.0002, 0.0002, 0.001, 0.001, 0.02, 0.02, 0.02),
}
SMALL_TRUTHS: Mapping[str, Sequence[float]] = {
    **{name: TRUTHS[name] for name in ("many missed", "poor panel", "some missed", "false positives")},
    "few missed": (0.95, 0.93, 0.9, 0.9, 0.017, 0.007, 0.03, 0.02, 0.1, 0.1, 0),
    "one of all D": (0.95, 0.93, 0.9, 0.9, 0, 0.0034, 0, 0, 0.1, 0, 0),
    "contested alone": (1, 1, 0.95, 0.95, 0, 0, 0, 0, 0.5, 0.3, 0),
    "five of deep D alone": (0.95, 0.93, 0.9, 0.9, 0, 5 / 300, 0, 0, 0, 0, 0),
}
POSITIVE = 4
"""How many strata come first that are relevant."""


@dataclass(frozen=True)
class Measured:
    """A figure over the seeds: mean half width, and coverage in the first 300 and in all."""

    half: float
    first: float
    every: float


def wilson(parts: Sequence[StratumCounts]) -> tuple[float, float] | None:
    """Return the interval of the recall as it was before: Wilson's with an effective number of rows."""
    size, drawn, hits = (np.array([getattr(part, name) for part in parts]) for name in ("size", "answered", "hits"))
    smooth, one = (hits + 0.5) / (drawn + 1), np.arange(len(parts)) < POSITIVE
    total, likely = size * hits / drawn, size * smooth
    if not total.sum():
        return None
    value, middle = total[one].sum() / total.sum(), likely[one].sum() / likely.sum()
    spread = size**2 * (size - drawn) / np.maximum(size - 1, 1) * smooth * (1 - smooth) / drawn
    variance = (np.where(one, 1 - middle, middle) ** 2 * spread).sum() / likely.sum() ** 2
    square = NormalDist().inv_cdf(0.975) ** 2 * variance / (middle * (1 - middle)) if variance else 0.0
    centre = (value + square / 2) / (1 + square)
    half = math.sqrt(square * (value * (1 - value) + square / 4)) / (1 + square)
    return min(centre - half, value), max(centre + half, value)


def now(parts: Sequence[StratumCounts]) -> tuple[float, float] | None:
    """Return the interval of the recall as it is."""
    found = recall(parts[:POSITIVE], parts[POSITIVE:])
    return (found.low, found.high) if found else None


def confirmed(parts: Sequence[StratumCounts]) -> tuple[float, float] | None:
    """Return the interval of the precision."""
    found = share(parts[:POSITIVE])
    return (found.low, found.high) if found else None


def measured(truth: float, bounds: Sequence[tuple[float, float] | None]) -> Measured:
    """Return half width and coverage; a seed without an interval does not cover."""
    held = [each is not None and bool(each[0] - 1e-12 <= truth <= each[1] + 1e-12) for each in bounds]
    halves = [(high - low) / 2 for low, high in filter(None, bounds)]
    return Measured(mean(halves), mean(held[:300]), mean(held))


def samples(
    sizes: Mapping[str, int], rates: Sequence[float], drawn: Mapping[str, int], seeds: int
) -> tuple[list[int], list[list[StratumCounts]]]:
    """Return the relevant pairs of every stratum, and what the sample of every seed finds of them."""
    pairs, rows = [sizes[name] for name in STRATA], [drawn[name] for name in STRATA]
    good = [round(size * rate) for size, rate in zip(pairs, rates, strict=True)]
    bad = [size - hits for size, hits in zip(pairs, good, strict=True)]
    seen = (np.random.default_rng(seed).hypergeometric(good, bad, rows).tolist() for seed in range(seeds))
    return good, [[StratumCounts(*each) for each in zip(pairs, rows, found, strict=True)] for found in seen]


def design(sizes: Mapping[str, int], size: int, target: str | None) -> dict[str, int]:
    """Return the allocation for a target, or for None the one before."""
    if target is None:
        return sampling_design.allocate(sizes, BEFORE, size)
    return planning.allocate(sizes, sampling_design.guesses(STRATA), size, wanted(target, ()))


def widths_and_coverage(
    sizes: Mapping[str, int], rates: Sequence[float], size: int, target: str | None, seeds: int
) -> tuple[float, Measured, Measured]:
    """Return the true recall, and what the seeds give for precision and recall."""
    good, found = samples(sizes, rates, design(sizes, size, target), seeds)
    truth, right = sum(good[:POSITIVE]) / sum(good), sum(good[:POSITIVE]) / sum(list(sizes.values())[:POSITIVE])
    interval = now if target else wilson
    return truth, measured(right, [confirmed(each) for each in found]), measured(truth, [interval(p) for p in found])


def rows_table(sizes: Mapping[str, int], size: int) -> None:
    """Print how the rows of every design go over the strata, and the half widths that the plan promises."""
    found = {target or "before": design(sizes, size, target) for target in (None, *TARGETS)}
    guesses = sampling_design.guesses(STRATA)
    print(f"\n| stratum | pairs | guess | {' | '.join(found)} |\n| --- | --: | --: |{' --: |' * len(found)}")
    for name in STRATA:
        rows = " | ".join(f"{drawn[name]:,}" for drawn in found.values())
        print(f"| {name} | {sizes[name]:,} | {100 * guesses[name]:.1f} % | {rows} |")
    for figure, shown in FIGURES.items():
        halves = [planning.half_width(figure, sizes, guesses, drawn) or math.nan for drawn in found.values()]
        print(f"| half width: {shown} | | | {' | '.join(f'{half:.4f}' for half in halves)} |")


def coverage_table(
    sizes: Mapping[str, int], size: int, truths: Mapping[str, Sequence[float]], target: str, seeds: int
) -> list[str]:
    """Print half width and coverage before and after a target; returns the cells after that fall short of 93 %."""
    print(
        f"\n--target {target}, {size:,} of {sum(sizes.values()):,} pairs: half width, and coverage in percent of 300 "
        f"seeds / of {seeds:,}; before -> after\n\n"
        "| truth | recall | precision | coverage | recall ± | coverage |\n| --- | --: | --: | --: | --: | --: |"
    )
    short = []
    for name, rates in truths.items():
        truth, *before = widths_and_coverage(sizes, rates, size, None, seeds)
        _, *after = widths_and_coverage(sizes, rates, size, target, seeds)
        cells = [
            f"{one.half:.3f} -> {two.half:.3f} | {_percent(one)} -> {_percent(two)}"
            for one, two in zip(before, after, strict=True)
        ]
        print(f"| {name} | {truth:.3f} | {' | '.join(cells)} |", flush=True)
        for figure, each in zip(("precision", "recall"), after, strict=True):
            if min(each.first, each.every) < 0.93:
                short.append(f"{size:,} of {sum(sizes.values()):,}, {target}, {name}: {figure} {_percent(each)}")
    return short


def _percent(figure: Measured) -> str:
    return f"{100 * figure.first:.1f} / {100 * figure.every:.1f}"


def main() -> None:
    """Print the tables, then every cell that falls short of 93 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3000)
    seeds = parser.parse_args().seeds
    rows_table(PAPER, 5000)
    short = [
        line
        for target in ("both", "precision", "recall")
        for line in coverage_table(PAPER, 5000, TRUTHS, target, seeds)
    ]
    for size in (60, 100, 200):
        short += coverage_table(SMALL, size, SMALL_TRUTHS, "both", seeds)
    print("\nunder 93 %:", *(short or ["none"]), sep="\n- ")


if __name__ == "__main__":
    main()
