"""Splits of queries: near-duplicates stay together, so that no text of one split stands nearly so in the other."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from curate.core.sampling import shuffled
from curate.stats.shortcuts import overlap

ALIKE = 0.9
"""Overlap of characters from which on two queries are near-duplicates."""


def near_duplicates(
    texts: Mapping[str, str], lists: Iterable[Mapping[str, Sequence[str]]], deep: int = 10
) -> list[tuple[str, str]]:
    """Return the pairs of queries that share nearly all characters, of those that a retriever ranks near each other."""
    close = {
        (min(query, other), max(query, other))
        for each in lists
        for query, others in each.items()
        for other in others[:deep]
    }
    return sorted(pair for pair in close if overlap(texts[pair[0]], texts[pair[1]]) >= ALIKE)


def grouped(ids: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return id -> the first id of its group: those that pairs join."""
    root = {each: each for each in ids}

    def top(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for one, other in pairs:
        first, second = sorted((top(one), top(other)))
        root[second] = first
    return {name: top(name) for name in root}


def sides(group: Mapping[str, str], wanted: Mapping[str, int], seed: int) -> dict[str, str]:
    """Return query -> split: whole groups, in an order by seed, each to the split that is furthest from its share."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for name, first in group.items():
        members[first].append(name)
    held = {name: 0 for name, number in wanted.items() if number}
    found: dict[str, str] = {}
    for first in shuffled(sorted(members), seed, "sides"):
        split = min(held, key=lambda name: (held[name] / wanted[name], name))
        held[split] += len(members[first])
        found |= dict.fromkeys(members[first], split)
    return found
