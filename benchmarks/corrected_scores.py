"""Corrected scores of simulated models: how often the 95 % intervals hold the truth, and how wide they are.

Each seed makes the top tens of four models for 50 queries that share documents, three judges' votes, and what people
would say of every pair, by the share of relevant pairs in its stratum and query. A sample as `curate review export
--for-scores` draws it is read, and the score of the first model and its difference from the second are corrected.
Coverage is the share of seeds whose interval holds the value that reading every pair would give. The second table is
of people who do not answer half of the relevant pairs, from a tenth of the seeds.

Run: python -m benchmarks.corrected_scores [--seeds 2000]
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from curate.panel import sampling_design
from curate.stats.corrected_scores import WEIGHTS, Frame, corrected, nonresponse, weights
from curate.stats.tally import Floats, Ints

QUERIES, DOCUMENTS, MODELS = 50, 18, 4
VOTES = (0.45, 0.18, 0.1, 0.27)
"""Share of the pairs by votes for them."""
SPREADS = (0.3, 0.5, 0.5, 0.45)
TRUTHS: Mapping[str, tuple[float, ...]] = {
    "good panel": (0.05, 0.3, 0.6, 0.9),
    "poor panel": (0.15, 0.4, 0.45, 0.65),
    "useless panel": (0.3, 0.3, 0.3, 0.3),
    "few relevant": (0.01, 0.05, 0.2, 0.5),
}
"""Share of pairs that people find relevant, by votes."""
SIZES = (50, 100, 200, 400)


@dataclass(frozen=True)
class Pool:
    """The pairs in the top tens of some models for one set of queries."""

    query: Ints
    votes: Ints
    relevant: Ints
    ranks: Ints
    """Rank of each pair by each model, 0 outside of its first ten; shape (models, pairs)."""

    def weight(self, measure: str, *, apart: bool) -> Floats:
        """Return the weights of the first model, or those of its difference from the second."""
        first, second = (weights(self.ranks[model], measure, QUERIES) for model in (0, 1))
        return first - second if apart else first


def pool(random: np.random.Generator, truth: tuple[float, ...]) -> Pool:
    """Return a pool in which queries differ in how much is relevant, and a better model ranks more of it on top."""
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    votes = random.choice(4, len(query), p=VOTES)
    shift = random.normal(0, 0.8, QUERIES)[query]
    rate = np.array(truth)[votes]
    odds = np.log(rate / (1 - rate)) + shift
    relevant = (random.random(len(query)) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    ranks = np.zeros((MODELS, len(query)), np.int64)
    for model in range(MODELS):
        score = (MODELS - model) * 0.25 * (votes / 3 + 0.5 * relevant) + random.random(len(query))
        for place in range(QUERIES):
            own = np.flatnonzero(query == place)
            best = own[np.argsort(-score[own], kind="stable")[:10]]
            ranks[model, best] = np.arange(1, 11)
    seen = ranks.any(axis=0)
    return Pool(query[seen], votes[seen], relevant[seen], ranks[:, seen])


def drawn(made: Pool, size: int) -> Floats:
    """Return the answers per stratum, as a sample for scores has them."""
    counts = np.bincount(made.votes, minlength=4)
    sizes = {f"{votes}": int(count) for votes, count in enumerate(counts)}
    shares = {name: count * SPREADS[int(name)] for name, count in sizes.items()}
    return np.array(list(sampling_design.apportion(sizes, shares, size).values()), dtype=float)


def read(random: np.random.Generator, made: Pool, each: Floats, answered: float = 1.0) -> Frame:
    """Return the frame with a random sample read; of relevant pairs only a share is answered."""
    answers = np.full(len(made.votes), -1)
    for votes, count in enumerate(each.astype(int)):
        places = random.choice(np.flatnonzero(made.votes == votes), count, replace=False)
        kept = places[(made.relevant[places] == 0) | (random.random(count) < answered)]
        answers[kept if len(kept) else places[:1]] = made.relevant[kept if len(kept) else places[:1]]
    return Frame(made.query, made.votes, answers, QUERIES)


def measured(truth: tuple[float, ...], size: int, seeds: int, answered: float = 1.0) -> dict[str, tuple[float, ...]]:
    """Return what is measured -> mean half width, coverage, and with missing answers coverage of the widened one."""
    found: dict[str, list[tuple[float, bool, bool]]] = {}
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        made = pool(random, truth)
        each = drawn(made, size)
        frame = read(random, made, each, answered)
        for measure in WEIGHTS:
            for apart in (False, True):
                weight = made.weight(measure, apart=apart)
                score, value = corrected(frame, weight), float((weight * made.relevant).sum())
                low, high = nonresponse(frame, weight, each) or (0.0, 0.0)
                off, half = value - score.value, score.half + 1e-12
                name = f"{'difference in ' if apart else ''}{measure}"
                found.setdefault(name, []).append((score.half, abs(off) <= half, low - half <= off <= high + half))
    return {name: tuple(np.mean(rows, axis=0).tolist()) for name, rows in found.items()}


def table(seeds: int, answered: float = 1.0) -> list[str]:
    """Print a row per truth, size and figure; returns those of which the interval covers less than 93 %."""
    wide = " | with the bounds of missing answers" if answered < 1 else ""
    print(f"\n| truth | answers | figure | half width | coverage{wide} |\n|{' --- |' * (6 if answered < 1 else 5)}")
    short = []
    for name, truth in TRUTHS.items():
        for size in SIZES:
            for figure, (half, held, widened) in measured(truth, size, seeds, answered).items():
                more = f" | {widened:.3f}" if answered < 1 else ""
                print(f"| {name} | {size} | {figure} | {half:.3f} | {held:.3f}{more} |", flush=True)
                if held < 0.93:
                    short.append(f"{name}, {size}, {figure}: {held:.3f}")
    return short


def main() -> None:
    """Print both tables, then every figure of a complete review that falls short of 93 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    seeds = parser.parse_args().seeds
    short = table(seeds)
    print("\nhalf of the relevant pairs are not answered, which `curate evaluate` warns of:")
    table(max(seeds // 10, 1), 0.5)
    print("\nunder 93 % though everybody answered:", *(short or ["none"]), sep="\n- ")


if __name__ == "__main__":
    main()
