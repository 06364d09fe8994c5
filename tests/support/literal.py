"""Measures of agreement a second time: literal loops over raters and pairs, in exact fractions."""

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, permutations

K = 4
"""Categories of every matrix here; codes below 0 are missing."""
Rows = list[list[int]]


def total(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def rated(codes: Rows) -> Rows:
    """Return the ratings that every item has."""
    return [[code for code in row if code >= 0] for row in codes]


def pair_share(row: list[int], agree: Callable[[int, int], Fraction]) -> Fraction:
    """Return the mean agreement of the rater pairs of one item."""
    pairs = list(combinations(row, 2))
    return total(agree(a, b) for a, b in pairs) / len(pairs)


def weight(scheme: str) -> Callable[[int, int], Fraction]:
    """Return the agreement of two codes, 0 to 1."""
    power = {"linear": 1, "quadratic": 2}
    if scheme == "nominal":
        return lambda a, b: Fraction(a == b)
    return lambda a, b: 1 - Fraction(abs(a - b) ** power[scheme], (K - 1) ** power[scheme])


def observed(codes: Rows, scheme: str = "nominal") -> Fraction | None:
    shares = [pair_share(row, weight(scheme)) for row in rated(codes) if len(row) > 1]
    return total(shares) / len(shares) if shares else None


def parts(codes: Rows) -> list[Fraction]:
    """Return the mean over rated items of the share of each category."""
    rows = [row for row in rated(codes) if row]
    return [total(Fraction(row.count(c), len(row)) for row in rows) / len(rows) for c in range(K)]


def used(codes: Rows) -> set[int]:
    return {code for row in rated(codes) if len(row) > 1 for code in row}


def beyond(agreed: Fraction | None, chance: Fraction) -> Fraction | None:
    return None if agreed is None or chance == 1 else (agreed - chance) / (1 - chance)


def fleiss_gwet(codes: Rows) -> Fraction | None:
    return beyond(observed(codes), total(p * p for p in parts(codes))) if len(used(codes)) > 1 else None


def fleiss_drop(codes: Rows) -> Fraction | None:
    every = [code for row in rated(codes) if len(row) > 1 for code in row]
    return beyond(observed(codes), total(Fraction(n, len(every)) ** 2 for n in Counter(every).values()))


def uniform(codes: Rows) -> Fraction | None:
    return beyond(observed(codes), Fraction(1, K))


def gwet(codes: Rows, scheme: str) -> Fraction | None:
    if (agreed := observed(codes, scheme)) is None:
        return None
    spread = total(weight(scheme)(a, b) for a in range(K) for b in range(K)) / (K * (K - 1))
    return beyond(agreed, spread * total(p * (1 - p) for p in parts(codes)))


def krippendorff(codes: Rows, level: str) -> Fraction | None:
    """Return 1 - (mean squared distance within items) / (mean squared distance of any two ratings)."""
    rows = [row for row in rated(codes) if len(row) > 1]
    every = [code for row in rows for code in row]

    def rank(code: int) -> Fraction:
        return sum(1 for x in every if x < code) + Fraction(every.count(code), 2)

    def distance(a: int, b: int) -> Fraction:
        if level == "nominal":
            return Fraction(a != b)
        return Fraction((a - b) ** 2) if level == "interval" else (rank(a) - rank(b)) ** 2

    if len(set(every)) < 2:
        return None
    within = total(total(distance(a, b) for a, b in permutations(row, 2)) / (len(row) - 1) for row in rows)
    between = [distance(a, b) for a, b in permutations(every, 2)]
    return 1 - within / len(every) / (total(between) / len(between))


def cohen_pairs(codes: Rows, scheme: str) -> Fraction | None:
    """Return kappa of the first two raters: everything one said against everything the other said is chance."""
    both = [(a, b) for a, b, *_ in codes if a >= 0 and b >= 0]
    if not both:
        return None
    agree = weight(scheme)
    crossed = [agree(a, b) for a, _ in both for _, b in both]
    return beyond(total(agree(a, b) for a, b in both) / len(both), total(crossed) / len(crossed))


def specific_to(codes: Rows, category: int) -> Fraction | None:
    """Return how often the second of two raters, drawn in order from an item, says what the first one said."""
    top = bottom = Fraction(0)
    for row in rated(codes):
        for a, b in permutations(row, 2):
            step = Fraction(1, len(row) * (len(row) - 1))
            bottom += step * (a == category)
            top += step * (a == b == category)
    return top / bottom if bottom else None
