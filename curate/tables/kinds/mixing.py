"""Mixes of two texts after integrity gradients (Soffer et al.).

Of a pair (source X, destination) the first 100, 75, 50 or 25 % of the source are kept and completed with the end of
another source Z; at level 0 the source is complete and the destination is that of another pair Y. Z and Y depend only
on the texts, so that `curate verify` can derive every level again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from curate.core.sampling import shuffled

MIX = "mix"
FEWEST = 3
"""Minimum number of pairs: X, and different pairs Y and Z."""
LEVELS = (0, 25, 50, 75, 100)
_SEED = 0
"""Fixed, so that the order depends on the texts and not on the run's seed."""


@dataclass(frozen=True)
class MixPair:
    """A source and its destination."""

    source: str
    destination: str
    query_id: str
    source_id: str


def mixed(text: str, other: str, share: float) -> str:
    """Return the first `share` of a text and the last 1 - `share` of another, in code points."""
    return text[: round(share * len(text))] + other[round(share * len(other)) :]


def successors(order: Sequence[str]) -> dict[str, str]:
    """Return name -> next name in a cyclic order."""
    return dict(zip(order, [*order[1:], *order[:1]], strict=True))


def partners(pairs: Mapping[str, tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> Z and name -> Y of all pairs (name -> source, destination)."""
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


def rows(pairs: Mapping[str, MixPair]) -> list[dict[str, object]]:
    """Return the rows of all levels of all pairs."""
    if not pairs:
        return []
    texts = {name: (pair.source, pair.destination) for name, pair in pairs.items()}
    z, y = partners(texts)
    records: list[dict[str, object]] = []
    for name, pair in pairs.items():
        for share in LEVELS:
            source, destination, alternate = level(name, share, texts, z, y)
            row = {"item_id": f"{name}-{share}", "kind": MIX, "variant": MIX, "level": share, "source": source}
            row |= {"destination": destination, "query_id": pair.query_id or None, "source_id": pair.source_id}
            records.append({**row, "alternate_id": alternate, "pair_id": name, "verdict": "unconfirmed", "votes": []})
    return records
