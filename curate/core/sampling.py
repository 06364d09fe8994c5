"""Seeded random choices; the purpose of each is part of its seed, so that choices are independent."""

import random
from collections.abc import Sequence
from typing import TypeVar

from curate.core.config import Json, digest

Item = TypeVar("Item")


def generator(seed: int, *purpose: Json) -> random.Random:
    """Return a random generator that depends only on the seed and on the purpose, such as stage and use."""
    return random.Random(int(digest([seed, *purpose])[:16], 16))  # noqa: S311 - not for secrets


def shuffled(items: Sequence[Item], seed: int, *purpose: Json) -> list[Item]:
    """Return the items in a random order that depends on the seed and the purpose."""
    mixed = list(items)
    generator(seed, *purpose).shuffle(mixed)
    return mixed


def chunks(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Return the items in groups of `size`, the last one smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def halves(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Return the two halves of the items, the first one larger for an odd number; empty halves are omitted."""
    middle = (len(items) + 1) // 2
    return [half for half in (items[:middle], items[middle:]) if half]
