"""How fast redundant texts are found, beside the same rule one item at a time and beside the product alone.

60,000 vectors of 768 dimensions of which about 40 % are near-duplicates of an earlier one; t 0.78, n 1, every item is
tested. Contenders: `curate`, with the screen that it chooses on this processor and with single precision; the products
that the rule in blocks needs in single precision, without any decision; the rule literally, with one product of a
vector and one matrix per item (numpy); and `curate`'s approximate index. Decisions of all but the last must be equal.
semhash, if it is installed, drops all that resembles anything: another rule with other answers, by an approximate
index. Then the shapes that a corpus may have: nothing alike, clusters, few dimensions, all identical, all just below t.
`--vectors` measures the same on vectors of real texts, at a threshold that drops a tenth. Time in processor seconds
too, for a machine may be shared.

Run: python -m benchmarks.diversify [--items 60000] [--large 229457] [--no-literal] [--vectors FILE.npy ...]
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from curate.core.protocols import Vectors
from curate.retrieval.similarity.approximate import FLOAT32
from curate.retrieval.similarity.devices import WORTHWHILE, screen_on
from curate.retrieval.similarity.diversity import BLOCK, Kept, disagreement, diversify, threshold
from curate.retrieval.similarity.exact_search import unit
from curate.retrieval.similarity.near_duplicates import CHUNK

DIM, T, N = 768, 0.78, 1
CHOSEN = partial(screen_on, "cpu", WORTHWHILE)
Thing = TypeVar("Thing")


def near_duplicates(items: int, share: float = 0.4) -> Vectors:
    """Return vectors of which a share is close to an earlier one (cosine about 0.9)."""
    draw = np.random.default_rng(2)
    found = unit(draw.standard_normal((items, DIM), np.float32))
    for row in np.flatnonzero(draw.random(items) < share)[1:]:
        found[row] = found[draw.integers(0, row)] + 0.5 * found[row]
    return unit(found)


def clusters(items: int) -> Vectors:
    """Return vectors around 1,000 centres, within a cluster alike at about 0.8."""
    draw = np.random.default_rng(3)
    centres = unit(draw.standard_normal((1_000, DIM), np.float32))
    noise = unit(draw.standard_normal((items, DIM), np.float32))
    return unit(centres[draw.integers(0, len(centres), items)] + np.float32(0.5) * noise)


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


SHAPES: dict[str, Callable[[int], Vectors]] = {
    "nothing alike": lambda items: near_duplicates(items, 0.0),
    "40 % near-duplicates": near_duplicates,
    "1,000 clusters": clusters,
    "few dimensions": few_dimensions,
    "all identical": lambda items: np.repeat(near_duplicates(1), items, axis=0),
    "all alike, just below t": lambda items: alike_at(items, T - 0.06),
}


def literal(vectors: Vectors) -> Kept:
    """Apply the rule to one item after the other, with a product of a matrix and a vector each."""
    kept, index, size = np.zeros(len(vectors), bool), np.empty_like(vectors), 0
    for row, vector in enumerate(vectors):
        if np.count_nonzero(np.round(index[:size] @ vector, 5) > T) <= N:
            kept[row], index[size] = True, vector
            size += 1
    return kept


def products(vectors: Vectors, kept: Kept) -> None:
    """Multiply what the rule in blocks has to: every block with all that was kept before, and with itself."""
    for start in range(0, len(vectors), BLOCK):
        block, before = vectors[start : start + BLOCK], vectors[:start][kept[:start]]
        for low in range(0, len(before), CHUNK):
            block @ before[low : low + CHUNK].T
        block @ block.T


def timed(task: Callable[[], Thing]) -> tuple[Thing, float, float]:
    """Return what a task returns, its seconds, and its processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = task()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def semhash(vectors: Vectors) -> int:
    """Return how many items semhash keeps at the same threshold."""
    from semhash import SemHash

    names = [str(row) for row in range(len(vectors))]
    found = SemHash.from_embeddings(vectors, names, model=None).self_deduplicate(threshold=T)
    return len(found.selected)


def compare(items: int, *, with_literal: bool) -> None:
    """Print the contenders' times on near-duplicates."""
    vectors = near_duplicates(items)
    screen = screen_on("cpu", items)
    decided, *own = timed(lambda: diversify(vectors, T, N, screen=screen))
    single, *plain = timed(lambda: diversify(vectors, T, N))
    _, *bare = timed(lambda: products(vectors, decided.kept))
    other = np.count_nonzero(single.kept != decided.kept)
    rows = [(f"curate, {type(screen).__name__}", own), (f"curate, Float32, {other} other decisions", plain)]
    rows.append(("the products alone, float32", bare))
    if with_literal:
        kept, *slow = timed(lambda: literal(vectors))
        rows.append((f"one item at a time, {np.count_nonzero(kept != decided.kept)} other decisions", slow))
        near, *graph = timed(lambda: diversify(vectors, T, N, approximate=5))
        missed = disagreement(vectors, near, N, 0, 1_000)
        rows.append((f"curate, approximate, {missed:.1%} of a sample decided otherwise", graph))
    if importlib.util.find_spec("semhash"):
        count, *other = timed(lambda: semhash(vectors))
        rows.append((f"semhash, which keeps {count:,}", other))
    print(f"| {items:,} items, {decided.kept.sum():,} kept | wall s | cpu s |\n| --- | --: | --: |")
    for name, (wall, cpu) in rows:
        print(f"| {name} | {wall:.1f} | {cpu:.1f} |")


def shaped(name: str, vectors: Vectors, t: float) -> None:
    """Print the times of one shape: the screen that is chosen, and single precision."""
    found = [timed(lambda chosen=chosen: diversify(vectors, t, N, screen=chosen)) for chosen in (CHOSEN(), FLOAT32)]
    (own, *times), (plain, *others) = found
    same = "same decisions" if np.array_equal(own.nearest, plain.nearest) else "OTHER DECISIONS"
    cells = [name, f"{t:g}", f"{own.kept.sum():,} of {len(vectors):,}", *(f"{s:.1f}" for s in (*times, *others)), same]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print tables in Markdown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--items", type=int, default=60_000)
    options.add_argument("--large", type=int, default=229_457)
    options.add_argument("--no-literal", action="store_true")
    options.add_argument("--vectors", nargs="*", default=[], help="files of unit vectors of real texts, by numpy.save")
    given = options.parse_args()
    compare(given.items, with_literal=not given.no_literal)
    print("\n| vectors | t | kept | wall s | cpu s | Float32, wall s | cpu s | |")
    print("| --- | --: | --: | --: | --: | --: | --: | --- |")
    for name, make in SHAPES.items():
        shaped(name, make(given.items), T)
    for path in given.vectors:
        vectors = np.load(path)
        shaped(Path(path).stem, vectors, threshold(vectors, N, 0.1))
    if given.large:
        vectors = near_duplicates(given.large)
        decided, wall, cpu = timed(lambda: diversify(vectors, T, N, screen=CHOSEN()))
        kept = decided.kept.sum()
        print(f"\n{given.large:,} items, 40 % near-duplicates: {kept:,} kept in {wall:.1f} s, {cpu:.1f} CPU s")


if __name__ == "__main__":
    main()
