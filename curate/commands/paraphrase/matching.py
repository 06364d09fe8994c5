"""Choice of pairs: as many negatives as positives of each class of overlap, so that shared characters tell nothing.

Within a class, sources that can have both a positive and a negative come first: such pairs also give a paired accuracy.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from curate.core.sampling import shuffled


@dataclass(frozen=True)
class MatchItem:
    """A pair as far as choosing it is concerned."""

    pair_id: str
    source: str
    label: int
    family: str
    """Of its kind: the kinds of negatives of one class are taken in turn."""
    overlap: float


def matched(items: Sequence[MatchItem], classes: int, most: int, seed: int, purpose: str) -> set[str]:
    """Return the ids of at most `most` pairs, half of them positive in every class of overlap.

    Classes lie between quantiles of the overlap of all items; a quantile that items have is a class of its own.
    """
    place = dict(zip((each.pair_id for each in items), _classes(items, classes), strict=True))
    mixed = shuffled(sorted(items, key=lambda each: each.pair_id), seed, "match", purpose)
    positives, negatives = ([each for each in mixed if each.label == label] for label in (1, 0))
    sides = _by_class(positives, place), _by_class(_in_turn(negatives), place)
    sizes = {at: min(len(found), len(sides[1][at])) for at, found in sides[0].items() if at in sides[1]}
    slots = shuffled([at for at, size in sorted(sizes.items()) for _ in range(size)], seed, "slots", purpose)
    wanted = {at: slots[: most // 2].count(at) for at in sizes}
    sources = [{each.source for each in side} for side in (positives, negatives)]
    first = _taken(sides[1], wanted, sources[0])
    chosen = _taken(sides[0], wanted, {each.source for each in first}, sources[1])
    second = _taken(sides[1], wanted, {each.source for each in chosen})
    return {each.pair_id for each in (*chosen, *second)}


def paired(items: Sequence[MatchItem]) -> int:
    """Return how many sources have both a positive and a negative."""
    labels: defaultdict[str, set[int]] = defaultdict(set)
    for each in items:
        labels[each.source].add(each.label)
    return sum(len(each) == 2 for each in labels.values())


def _classes(items: Sequence[MatchItem], classes: int) -> list[int]:
    overlaps = np.array([each.overlap for each in items])
    if not len(overlaps):
        return []
    edges = np.quantile(overlaps, np.arange(1, classes) / classes)
    below, at = (np.searchsorted(edges, overlaps, side=side) for side in ("left", "right"))
    found: list[int] = (below + at).tolist()
    return found


def _by_class(items: Sequence[MatchItem], place: Mapping[str, int]) -> dict[int, list[MatchItem]]:
    found: defaultdict[int, list[MatchItem]] = defaultdict(list)
    for each in items:
        found[place[each.pair_id]].append(each)
    return dict(found)


def _in_turn(items: Sequence[MatchItem]) -> list[MatchItem]:
    """Return the items so that families take turns: of each as many as there are while others last."""
    families: defaultdict[str, list[MatchItem]] = defaultdict(list)
    for each in items:
        families[each.family].append(each)
    rounds = zip_longest(*(families[name] for name in sorted(families)))
    return [each for each in chain.from_iterable(rounds) if each is not None]


def _taken(side: Mapping[int, Sequence[MatchItem]], wanted: Mapping[int, int], *preferred: set[str]) -> list[MatchItem]:
    """Return so many of each class, those of the most preferred sources first, and in the order given among equals."""
    found: list[MatchItem] = []
    for at, number in wanted.items():
        found += sorted(side[at], key=lambda each: [each.source not in sources for sources in preferred])[:number]
    return found
