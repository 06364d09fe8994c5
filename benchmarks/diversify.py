"""How fast redundant texts are found, beside the same rule one item at a time and beside the product alone.

60,000 vectors of 768 dimensions of which about 40 % are near-duplicates of an earlier one; t 0.78, n 1, every item is
tested. Contenders: `curate`, with the screen that it chooses on this processor and with single precision; the products
that the rule in blocks needs in single precision, without any decision; the rule literally, with one product of a
vector and one matrix per item (numpy); and `curate`'s approximate index. Decisions of all but the last must be equal.
semhash, if it is installed, drops all that resembles anything: another rule with other answers, by an approximate
index. Then the shapes that a corpus may have, by the chosen screen and by single precision, and with `--data FOLDER`
vectors of real texts (zh_legacy) at the threshold that drops a tenth; then 229,457 vectors.

Run: python -m benchmarks.diversify [--items 60000] [--large 229457] [--repeats 3] [--data FOLDER] [--write]
"""

import argparse
import importlib.util
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import harness, vectors
from benchmarks.harness import Figures, Result, Watch, ratio, share, shown
from curate.core.protocols import Vectors
from curate.retrieval.similarity.devices import screen_for_pairs
from curate.retrieval.similarity.diversity import BLOCK, Kept, disagreement, diversify, threshold
from curate.retrieval.similarity.near_duplicates import CHUNK
from curate.retrieval.similarity.screening import FLOAT32, Screen

T, N = 0.78, 1
REAL, MAIN = "real texts by USE, 512 dimensions", "40 % near-duplicates"
SHAPES: dict[str, Callable[[int], Vectors]] = {
    MAIN: vectors.near_duplicates,
    "nothing alike": lambda items: vectors.near_duplicates(items, 0.0),
    "1,000 clusters": vectors.clusters,
    "few dimensions": vectors.few_dimensions,
    "all identical": lambda items: np.repeat(vectors.near_duplicates(1), items, axis=0),
    "all alike, just below t": lambda items: vectors.alike_at(items, T - 0.06),
}


def literal(items: Vectors) -> Kept:
    """Apply the rule to one item after the other, with a product of a matrix and a vector each."""
    kept, index, size = np.zeros(len(items), bool), np.empty_like(items), 0
    for row, vector in enumerate(items):
        if np.count_nonzero(np.round(index[:size] @ vector, 5) > T) <= N:
            kept[row], index[size] = True, vector
            size += 1
    return kept


def products(items: Vectors, kept: Kept) -> None:
    """Multiply what the rule in blocks has to: every block with all that was kept before, and with itself."""
    for start in range(0, len(items), BLOCK):
        block, before = items[start : start + BLOCK], items[:start][kept[:start]]
        for low in range(0, len(before), CHUNK):
            block @ before[low : low + CHUNK].T
        block @ block.T


def semhash(items: Vectors) -> int:
    """Return how many items semhash keeps at the same threshold."""
    from semhash import SemHash  # type: ignore[import-not-found]

    names = [str(row) for row in range(len(items))]
    return len(SemHash.from_embeddings(items, names, model=None).self_deduplicate(threshold=T).selected)


def ruled(folder: Path, items: Vectors, chosen: Screen) -> dict[str, float]:
    """Apply the rule by a screen; the first to do so leaves its decisions, the others count where theirs are others."""
    t, path = json.loads((folder / "t.json").read_text()), folder / "nearest.npy"
    with Watch() as watch:
        found = diversify(items, t, N, screen=chosen)
    if not path.exists():
        np.save(folder / "kept.npy", found.kept)
        np.save(path, found.nearest)
    other = np.count_nonzero(found.nearest != np.load(path))
    return {**watch.figures, "other": float(other), "kept": float(found.kept.sum()), "items": float(len(items))}


def bare(folder: Path, items: Vectors) -> dict[str, float]:
    """Multiply alone."""
    kept = np.load(folder / "kept.npy")
    with Watch() as watch:
        products(items, kept)
    return watch.figures


def one_by_one(folder: Path, items: Vectors) -> dict[str, float]:
    """Apply the rule literally."""
    with Watch() as watch:
        kept = literal(items)
    return {**watch.figures, "other": float(np.count_nonzero(kept != np.load(folder / "kept.npy")))}


def near(_folder: Path, items: Vectors) -> dict[str, float]:
    """Apply the rule by the approximate index."""
    with Watch() as watch:
        found = diversify(items, T, N, approximate=5)
    missed = disagreement(items, found, N, 0, min(1_000, len(items)))
    return {**watch.figures, **({} if missed is None else {"missed": missed})}


def hashed(_folder: Path, items: Vectors) -> dict[str, float]:
    """Let semhash drop what resembles anything."""
    with Watch() as watch:
        kept = semhash(items)
    return {**watch.figures, "kept": float(kept)}


def by_choice(folder: Path, items: Vectors) -> dict[str, float]:
    """Apply the rule by the screen that `curate` chooses; choosing, which imports torch, stands before the clock."""
    chosen = screen_for_pairs("cpu", len(items))
    return {**ruled(folder, items, chosen), "int8": float(chosen is not FLOAT32)}


CHOSEN, SINGLE, LOOP, BARE = "curate", "curate, single precision", "one item at a time (numpy)", "the products alone"
CONTENDERS: dict[str, Callable[[Path, Vectors], dict[str, float]]] = {
    CHOSEN: by_choice,
    SINGLE: lambda folder, items: ruled(folder, items, FLOAT32),
    BARE: bare,
    LOOP: one_by_one,
    "curate, `approximate`": near,
    **({"semhash, another rule": hashed} if importlib.util.find_spec("semhash") else {}),
}
ONCE = list(CONTENDERS)[3:]


def make(folder: Path, shape: str, given: argparse.Namespace) -> None:
    """Write the vectors of a shape, and the threshold."""
    if shape == REAL:
        items = vectors.encoded(given.data / "zh_legacy" / "corpus.jsonl", "document")
    else:
        items = SHAPES[shape](given.items)
    np.save(folder / "vectors.npy", items)
    (folder / "t.json").write_text(json.dumps(threshold(items, N, 0.1) if shape == REAL else T))


def measured(shape: str, names: list[str], given: argparse.Namespace, repeats: int) -> dict[str, Result]:
    """Let contenders take turns on one shape."""
    with tempfile.TemporaryDirectory() as name:
        words = ["--folder", name, f"--items={given.items}", f"--data={given.data}"]
        harness.child("diversify", "--make", shape, *words)
        turns = {each: partial(harness.child, "diversify", "--measure", each, "--folder", name) for each in names}
        return harness.interleaved(turns, repeats, given.again, ONCE)


def differs(figures: Figures) -> str:
    """Return how decisions differ from the rule's, as a cell."""
    if "missed" in figures:
        return f"{figures['missed']:.1%} of 1,000"
    return f"{figures['other']:.0f}" if "other" in figures else ""


def first(found: Mapping[str, Result]) -> str:
    """Return the table of the contenders."""
    rows = []
    for name, each in found.items():
        cells = (f"{each.figures[key]:.1f}" for key in ("wall", "cpu"))
        times = shown(ratio(each, found[CHOSEN]))
        rows.append([name, *cells, share(each.figures["foreign"]), str(each.runs), differs(each.figures), times])
    heads = ["contender", "wall s", "CPU s", "foreign CPU", "runs", "other decisions", "x curate's time"]
    return harness.table(heads, rows)


def shapes(found: Mapping[str, Mapping[str, Result]]) -> str:
    """Return the table of the shapes."""
    rows = []
    for shape, each in found.items():
        own, single = each[CHOSEN], each[SINGLE]
        kept = f"{own.figures['kept']:,.0f} of {own.figures['items']:,.0f}"
        times = (f"{one.figures[key]:.1f}" for one in (own, single) for key in ("wall", "cpu"))
        foreign = share(max(own.figures["foreign"], single.figures["foreign"]))
        rows.append([shape, kept, *times, foreign, differs(single.figures), shown(ratio(own, single))])
    heads = ["vectors", "kept", "wall s", "CPU s", "single precision, wall s", "CPU s", "foreign CPU"]
    return harness.table([*heads, "other decisions", "of single precision's time"], rows)


def said(found: Mapping[str, Result]) -> str:
    """Return the ratios in words, as far as there are any."""
    whole = "by whole numbers of eight bits" if found[CHOSEN].figures["int8"] else "in single precision"
    loop, alone = ratio(found[LOOP], found[CHOSEN]), ratio(found[CHOSEN], found[BARE])
    words = [f"`curate` multiplies {whole} here."]
    words += [f"It is {loop:.0f} times as fast as one item at a time."] if loop else []
    words += [f"It takes {alone:.2f} of the time of the bare products in single precision."] if alone else []
    return " ".join([*words, harness.disturbed(found)]).strip()


def main(given: argparse.Namespace) -> None:
    """Measure the contenders, the shapes and the large set, and publish."""
    found = measured(MAIN, list(CONTENDERS), given, given.repeats)
    kinds = [*SHAPES, *([REAL] if given.data else [])]
    by_shape = {shape: measured(shape, [CHOSEN, SINGLE], given, 1) for shape in kinds if shape != MAIN}
    figures = found[CHOSEN].figures
    parts = [
        f"{given.items:,} vectors, {MAIN}: {figures['kept']:,.0f} kept; t {T}, n {N}; medians of the runs.",
        first(found),
        said(found),
        "By shape of the vectors, once each:",
        shapes({MAIN: found, **by_shape}),
    ]
    if given.large:
        large = argparse.Namespace(items=given.large, data=None, again=given.again)
        one = measured(MAIN, [CHOSEN], large, 1)[CHOSEN].figures
        words = f"{one['kept']:,.0f} kept in {one['wall']:.0f} s, {one['cpu']:.0f} CPU s"
        parts.append(f"{given.large:,} vectors, {MAIN}: {words}, foreign CPU {share(one['foreign'])}.")
    harness.publish("diversify", "\n\n".join(parts), given.write)


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    options = harness.parser(__doc__)
    options.add_argument("--items", type=int, default=60_000)
    options.add_argument("--large", type=int, default=229_457, help="0 leaves it out")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--data", type=Path)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--make", help=argparse.SUPPRESS)
    options.add_argument("--measure", help=argparse.SUPPRESS)
    return options.parse_args()


if __name__ == "__main__":
    typed = arguments()
    if typed.make:
        make(typed.folder, typed.make, typed)
        print("{}")
    elif typed.measure:
        print(json.dumps(CONTENDERS[typed.measure](typed.folder, np.load(typed.folder / "vectors.npy"))))
    else:
        main(typed)
