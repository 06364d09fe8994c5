"""Mixes of two texts by the recipe of integrity gradients: the first part of one, completed from another.

Soffer et al.: of a pair (source X, destination) the source is kept by 100, 75, 50 or 25 %, and completed with the end
of another source Z; at level 0 the source is whole and the destination that of another pair Y. Which pairs are Z and Y
follows from the texts alone, so that `curate verify` derives every level again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.sampling import shuffled

MIX = "mix"
FEWEST = 3
"""Pairs that are needed for a foreign source and another destination."""
LEVELS = (0, 25, 50, 75, 100)
_SEED = 0
"""Orders depend on the texts, not on the run's seed."""


@dataclass(frozen=True)
class MixPair:
    """A source and the destination that belongs to it."""

    source: str
    destination: str
    query_id: str
    source_id: str


def mixed(text: str, other: str, share: float) -> str:
    """Return the first `share` of a text and the last 1 - `share` of another, in code points."""
    return text[: round(share * len(text))] + other[round(share * len(other)) :]


def successors(order: Sequence[str]) -> dict[str, str]:
    """Return each one's next in an order, the first after the last."""
    return dict(zip(order, [*order[1:], *order[:1]], strict=True))


def partners(pairs: Mapping[str, tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return for every pair (name -> source, destination) the pair Z that completes it, and Y of level 0, by name."""
    order = sorted(pairs, key=lambda name: pairs[name])
    texts = [list(pairs[name]) for name in order]
    z, y = (shuffled(order, _SEED, "gradient", purpose, texts) for purpose in ("Z", "Y"))
    return successors(z), successors(y)


def level(
    name: str, share: int, pairs: Mapping[str, tuple[str, str]], z: Mapping[str, str], y: Mapping[str, str]
) -> tuple[str, str, str | None]:
    """Return source, destination and the other pair of a level of the pair `name`: None at the highest."""
    source, destination = pairs[name]
    if share == LEVELS[0]:
        return source, pairs[y[name]][1], y[name]
    if share == LEVELS[-1]:
        return source, destination, None
    return mixed(source, pairs[z[name]][0], share / 100), destination, z[name]


def rows(made: Mapping[str, MixPair]) -> list[dict[str, object]]:
    """Return the rows of all levels of all pairs."""
    if not made:
        return []
    texts = {name: (pair.source, pair.destination) for name, pair in made.items()}
    z, y = partners(texts)
    found: list[dict[str, object]] = []
    for name, pair in made.items():
        for share in LEVELS:
            source, destination, other = level(name, share, texts, z, y)
            row = {"item_id": f"{name}-{share}", "kind": MIX, "variant": MIX, "level": share, "source": source}
            row |= {"destination": destination, "query_id": pair.query_id or None, "source_id": pair.source_id}
            found.append({**row, "alternate_id": other, "pair_id": name, "verdict": "unconfirmed", "votes": []})
    return found
