"""Exact shares: one of several kinds per query, so many of each kind as a quota says, chosen by seed.

Which queries can give which kinds decides how many there can be. By Hall's theorem quotas can be met if and only if,
for every set of kinds, enough queries can give one of them.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from curate.core.sampling import generator, shuffled

Options = Mapping[str, Collection[str]]
"""Query -> kinds of which there is a sentence."""


def quotas(number: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Return how many of each kind make `number` in all, by the largest remainders; shares need not add up to 1."""
    exact = {kind: number * share / sum(shares.values()) for kind, share in shares.items()}
    found = {kind: int(amount + 1e-9) for kind, amount in exact.items()}
    order = sorted(shares, key=lambda kind: (found[kind] - exact[kind], kind))
    for kind in order[: number - sum(found.values())]:
        found[kind] += 1
    return found


def most(options: Options, wanted: int, shares: Mapping[str, float]) -> int:
    """Return the largest number, up to `wanted`, whose quotas these queries can meet."""
    there = Counter(frozenset(kinds) & frozenset(shares) for kinds in options.values())
    there.pop(frozenset(), None)
    return next((n for n in range(min(wanted, there.total()), 0, -1) if _possible(there, quotas(n, shares))), 0)


def draw(options: Options, number: int, shares: Mapping[str, float], seed: int, *purpose: str) -> dict[str, str]:
    """Return query -> kind for `number` queries, quotas met exactly; ValueError if they cannot be.

    Queries are gone through in a random order. Each gets a kind by chance, weighted by what is left of the quotas, out
    of those after which the others can still meet theirs.
    """
    left = quotas(number, shares)
    there = Counter(frozenset(kinds) & frozenset(shares) for kinds in options.values())
    if not _possible(there, left):
        raise ValueError(f"{number} cannot be had in these shares")
    found: dict[str, str] = {}
    for query in shuffled(sorted(options), seed, "quotas", *purpose):
        if len(found) == number:
            break
        kinds = frozenset(options[query]) & frozenset(shares)
        there[kinds] -= 1
        free = [kind for kind in sorted(kinds) if left[kind] and _possible(there, {**left, kind: left[kind] - 1})]
        if free:
            kind = generator(seed, "quotas", *purpose, query).choices(free, [left[each] for each in free])[0]
            left[kind] -= 1
            found[query] = kind
    return found


def split(sizes: Mapping[str, int], wanted: Mapping[str, int], seed: int) -> dict[str, str]:
    """Return group -> split: whole groups, the largest first, each to the split that lacks the largest part of its own.

    Splits without anything wanted get none; equally large groups come in an order by seed.
    """
    held = dict.fromkeys((name for name, number in wanted.items() if number), 0)
    found: dict[str, str] = {}
    for group in sorted(shuffled(sorted(sizes), seed, "split"), key=lambda each: -sizes[each]):
        if held:
            name = min(held, key=lambda each: (held[each] / wanted[each], list(held).index(each)))
            held[name] += sizes[group]
            found[group] = name
    return found


def _possible(there: Mapping[frozenset[str], int], left: Mapping[str, int]) -> bool:
    """Say whether queries, counted by what they can give, can meet all quotas: Hall's condition."""
    kinds: Sequence[str] = sorted(left)
    return all(
        sum(left[kind] for kind in combination)
        <= sum(count for given, count in there.items() if given & set(combination))
        for size in range(1, len(kinds) + 1)
        for combination in combinations(kinds, size)
    )
