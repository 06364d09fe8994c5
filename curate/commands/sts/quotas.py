"""Exact quotas: one kind per query, with a given number of queries of each kind, drawn by seed.

The kinds available per query limit the total. By Hall's theorem, quotas can be met if and only if, for every set of
kinds, enough queries have one of these kinds.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from curate.core.sampling import generator, shuffled

Options = Mapping[str, Collection[str]]
"""Query -> kinds with a usable sentence."""


def quotas(number: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Return kind -> count, in total `number`, by largest remainders; shares need not add up to 1."""
    exact = {kind: number * share / sum(shares.values()) for kind, share in shares.items()}
    # 1e-9: an amount just below an integer by rounding is that integer
    counts = {kind: int(amount + 1e-9) for kind, amount in exact.items()}
    order = sorted(shares, key=lambda kind: (counts[kind] - exact[kind], kind))
    for kind in order[: number - sum(counts.values())]:
        counts[kind] += 1
    return counts


def most(options: Options, target: int, shares: Mapping[str, float]) -> int:
    """Return the largest total, up to `target`, whose quotas these queries can meet."""
    available = Counter(frozenset(kinds) & frozenset(shares) for kinds in options.values())
    available.pop(frozenset(), None)
    return next(
        (n for n in range(min(target, available.total()), 0, -1) if _is_possible(available, quotas(n, shares))), 0
    )


def draw(options: Options, number: int, shares: Mapping[str, float], seed: int, *purpose: str) -> dict[str, str]:
    """Return query -> kind for `number` queries, quotas met exactly; ValueError if they cannot be.

    Queries are visited in random order. Each gets a random kind, weighted by the remaining quotas, among the kinds that
    leave the rest of the quotas feasible.
    """
    remaining = quotas(number, shares)
    available = Counter(frozenset(kinds) & frozenset(shares) for kinds in options.values())
    if not _is_possible(available, remaining):
        raise ValueError(f"{number} cannot be had in these shares")
    kind_by_query: dict[str, str] = {}
    for query in shuffled(sorted(options), seed, "quotas", *purpose):
        if len(kind_by_query) == number:
            break
        kinds = frozenset(options[query]) & frozenset(shares)
        available[kinds] -= 1
        free_kinds = [
            kind
            for kind in sorted(kinds)
            if remaining[kind] and _is_possible(available, {**remaining, kind: remaining[kind] - 1})
        ]
        if free_kinds:
            kind = generator(seed, "quotas", *purpose, query).choices(
                free_kinds, [remaining[free_kind] for free_kind in free_kinds]
            )[0]
            remaining[kind] -= 1
            kind_by_query[query] = kind
    return kind_by_query


def split(sizes: Mapping[str, int], targets: Mapping[str, int], seed: int) -> dict[str, str]:
    """Return group -> split: whole groups, the largest first, each to the split with the smallest share of its size.

    Splits of size 0 get none; groups of equal size are in random order.
    """
    filled = dict.fromkeys((name for name, number in targets.items() if number), 0)
    split_by_group: dict[str, str] = {}
    for group in sorted(shuffled(sorted(sizes), seed, "split"), key=lambda candidate: -sizes[candidate]):
        if filled:
            name = min(filled, key=lambda name: (filled[name] / targets[name], list(filled).index(name)))
            filled[name] += sizes[group]
            split_by_group[group] = name
    return split_by_group


def _is_possible(available: Mapping[frozenset[str], int], remaining: Mapping[str, int]) -> bool:
    """Whether queries, counted by their sets of available kinds, can meet all quotas: Hall's condition."""
    kinds: Sequence[str] = sorted(remaining)
    return all(
        sum(remaining[kind] for kind in combination)
        <= sum(count for query_kinds, count in available.items() if query_kinds & set(combination))
        for size in range(1, len(kinds) + 1)
        for combination in combinations(kinds, size)
    )
