"""How alike two orders of the same things are: Kendall's tau-b, and rank-biased overlap."""

from collections.abc import Mapping

import numpy as np

PERSISTENCE = 0.9
"""How likely a reader of a ranking goes on to the next rank: the first ten carry 86 % of the weight."""


def tau_b(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return Kendall's tau-b (1945) of two scores by name, -1 to 1, for the names that both have.

    Concordant less discordant pairs, over the root of the pairs untied in the one times those untied in the other.
    None for fewer than two names, or where one of the two ties all of them.
    """
    names = sorted(first.keys() & second.keys())
    one, other = (np.sign(np.subtract.outer(*[[scores[name] for name in names]] * 2)) for scores in (first, second))
    untied = float(np.abs(one).sum() * np.abs(other).sum())
    return float((one * other).sum() / np.sqrt(untied)) if untied else None


def rank_biased_overlap(
    first: Mapping[str, float], second: Mapping[str, float], persistence: float = PERSISTENCE
) -> float | None:
    """Return the extrapolated rank-biased overlap of two scores by name, 0 to 1, best first, ties by name.

    Webber, Moffat and Zobel (TOIS 2010), equation 30, for rankings of the names that both have: at depth d counts the
    share of the first d that are common, times p^(d-1) (1 - p); the last share stands for all that is deeper. None for
    fewer than two names, of which there is but one order.
    """
    names = first.keys() & second.keys()
    if len(names) < 2:
        return None
    one, other = (sorted(names, key=lambda name: (-scores[name], name)) for scores in (first, second))
    common = [len(set(one[:depth]) & set(other[:depth])) / depth for depth in range(1, len(names) + 1)]
    weights = [(1 - persistence) * persistence**place for place in range(len(names))]
    return sum(w * share for w, share in zip(weights, common, strict=True)) + persistence ** len(names) * common[-1]
