"""Unit vectors for benchmarks, drawn by seed or made of real texts."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.retrieval.encoders.use import Config, Use
from curate.retrieval.similarity.exact_search import unit

DIM, BLOCK, NOISE = 768, 16_384, np.float32(0.03)


def at_random(items: int, dim: int = DIM) -> Vectors:
    """Return vectors of which no two are alike."""
    return unit(np.random.default_rng(1).standard_normal((items, dim), np.float32))


def near_duplicates(items: int, share: float = 0.4) -> Vectors:
    """Return vectors of which a share is close to an earlier one (cosine about 0.9)."""
    draw = np.random.default_rng(2)
    found = unit(draw.standard_normal((items, DIM), np.float32))
    for row in np.flatnonzero(draw.random(items) < share)[1:]:
        found[row] = found[draw.integers(0, row)] + 0.5 * found[row]
    return unit(found)


def clusters(items: int, centres: int = 1_000, spread: float = 0.5) -> Vectors:
    """Return vectors around centres; with a spread of 0.5 those of a cluster are alike at about 0.8."""
    draw = np.random.default_rng(3)
    middles = unit(draw.standard_normal((centres, DIM), np.float32))
    return around(middles[draw.integers(0, centres, items)], spread)


def around(middles: Vectors, spread: float) -> Vectors:
    """Return a vector near each, moved by so much of its length; in place, for there may be many."""
    draw = np.random.default_rng(6)
    for start in range(0, len(middles), BLOCK):
        part = middles[start : start + BLOCK]
        part += np.float32(spread) * unit(draw.standard_normal(part.shape, np.float32))
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return middles


def alike_at(items: int, cosine: float) -> Vectors:
    """Return vectors of which any two have about this cosine: one direction in common, else at right angles."""
    draw = np.random.default_rng(4)
    own = draw.standard_normal((items, DIM), np.float32)
    own[:, 0] = 0
    found = np.float32(np.sqrt(1 - cosine)) * unit(own)
    found[:, 0] = np.sqrt(cosine)
    return unit(found)


def few_dimensions(items: int) -> Vectors:
    """Return vectors near a space of 48 dimensions, 40 % of them near an earlier one."""
    draw = np.random.default_rng(5)
    plane = unit(draw.standard_normal((items, 48), np.float32) @ draw.standard_normal((48, DIM), np.float32))
    for row in np.flatnonzero(draw.random(items) < 0.4)[1:]:
        plane[row] = plane[draw.integers(0, row)]
    return unit(plane + np.float32(0.3) * unit(draw.standard_normal((items, DIM), np.float32)))


def texts(path: Path) -> list[str]:
    """Return titles and texts of a JSONL file."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [f"{row.get('title') or ''}\n{row['text']}".strip() for row in rows]


def encoded(path: Path, role: Role, size: int | None = None) -> Vectors:
    """Return the vectors of a JSONL file's texts, or of some of them, by USE: 512 numbers each."""
    held = texts(path)
    chosen = np.random.default_rng(8).permutation(len(held))[:size].tolist()
    return Use("use", Config()).encode([held[each] for each in chosen], role)


def asked(documents: Vectors, queries: int) -> Vectors:
    """Return vectors of queries, each near a document."""
    draw = np.random.default_rng(7)
    picked = documents[np.sort(draw.choice(len(documents), queries, replace=False))]
    return unit(picked + NOISE * draw.standard_normal(picked.shape, np.float32))


def real(folder: Path, documents: int, queries: int) -> tuple[Vectors, Vectors]:
    """Return queries and documents of real texts, these again and again with noise until there are enough."""
    held = encoded(folder / "corpus.jsonl", "document")
    tiled = np.resize(held, (documents, held.shape[1]))
    tiled[: len(held)] = held[:documents]
    tiled[len(held) :] = around(tiled[len(held) :], 0.3)
    return encoded(folder / "queries.jsonl", "query", queries), tiled


SEARCHED: dict[str, Callable[[int], Vectors]] = {
    "random": at_random,
    "clustered": lambda items: clusters(items, 2_000, 1.0),
}
