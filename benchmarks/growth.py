"""How the time of each stage grows with the corpus: diversify, the index of BM25, search, fusing and writing.

Corpora of 10,000 to 229,457 documents as in `benchmarks.pool`, 734 queries, every size in processes of its own. CPU
seconds, and the foreign CPU beside them; the exponent e is that of the least-squares line through the logarithms: time
grows like documents^e. `--picture FILE` draws them as SVG.

Run: python -m benchmarks.growth [--sizes 10000 30000 100000 229457] [--queries 734] [--corpus FILE] [--picture FILE]
[--write]
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks import harness, paper, pool
from benchmarks.harness import Watch, share
from curate.retrieval.similarity.devices import screen_for_pairs
from curate.retrieval.similarity.diversity import diversify
from curate.system.files import write_text

THRESHOLD, SEED_SIZE = 0.78, 5_000
Times = dict[str, list[float]]
WIDE, HIGH, LEFT, BELOW, RIGHT = 720, 400, 60, 40, 190
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2")


def diversified(folder: Path) -> dict[str, dict[str, float]]:
    """Diversify the first file of vectors, and return the one step."""
    vectors = np.load(folder / f"{pool.DENSE[0]}.npy", mmap_mode="r")
    clock = paper.Clock()
    diversify(vectors, THRESHOLD, 1, min(SEED_SIZE, len(vectors) // 10), screen_for_pairs("cpu", len(vectors)))
    clock.book("diversify")
    return clock.steps


def seconds(folder: Path, documents: int, queries: int, source: Path | None) -> dict[str, float]:
    """Return the CPU seconds of every stage at one size, and `foreign`; of several dense retrievers it is the mean."""
    pool.make(folder, documents, queries, source)
    with Watch() as watch:
        steps = harness.child("growth", "--child", folder)["steps"]
        steps = {**steps, **pool.measured("index", folder), **pool.measured("pooled", folder)}
    found = {name: step["cpu"] for name, step in steps.items()}
    dense = [value for name, value in found.items() if name in {f"searching, {each}" for each in pool.DENSE}]
    kept = ("diversify", "cut and index, bm25", "searching, bm25", "fuse, choose, write")
    own = {name: found[name] for name in kept}
    return {**own, "searching, a dense retriever": sum(dense) / len(dense), "foreign": watch.figures["foreign"]}


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of log time over log size, to two digits."""
    return round(float(np.polyfit(np.log(sizes), np.log(times), 1)[0]), 2) + 0.0  # which makes 0 of -0


def table(sizes: Sequence[int], times: Mapping[str, Sequence[float]]) -> str:
    """Return a row per stage."""
    rows = [
        [name, *(f"{each:.2f}" for each in found), f"{exponent(sizes, found):.2f}"] for name, found in times.items()
    ]
    return harness.table(["CPU s at documents", *(f"{size:,}" for size in sizes), "exponent"], rows)


def picture(sizes: Sequence[int], times: Mapping[str, Sequence[float]]) -> str:
    """Return a line per stage as SVG, both axes logarithmic; a stage may lack the last sizes."""
    every = [math.log10(each) for found in times.values() for each in found]
    low, high = math.floor(min(every)), math.ceil(max(every))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def place(size: float, time: float) -> tuple[float, float]:
        across = LEFT + (math.log10(size) - first) / (last - first) * (WIDE - LEFT - RIGHT)
        return across, 10 + (high - math.log10(time)) / (high - low) * (HIGH - BELOW - 10)

    marks = []
    for power in range(low, high + 1):
        _, top = place(sizes[0], 10.0**power)
        marks.append(f'<line x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{top:.1f}" y2="{top:.1f}" stroke="#ddd"/>')
        marks.append(f'<text x="{LEFT - 6}" y="{top + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for size in sizes:
        across, _ = place(size, 10.0**low)
        marks.append(f'<text x="{across:.1f}" y="{HIGH - BELOW + 20}" text-anchor="middle">{size:,}</text>')
    ends = sorted(times, key=lambda name: -times[name][-1])
    tops: list[float] = []
    for name, colour in zip(ends, COLOURS, strict=False):
        points = [place(*each) for each in zip(sizes, times[name], strict=False)]
        tops.append(max(points[-1][1], tops[-1] + 16 if tops else 0))  # labels do not cover one another
        line = " ".join(f"{across:.1f},{top:.1f}" for across, top in points)
        marks.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        marks.append(f'<text x="{WIDE - RIGHT + 8}" y="{tops[-1] + 4:.1f}" fill="{colour}">{name}</text>')
    marks.append(f'<text x="{(LEFT + WIDE - RIGHT) / 2}" y="{HIGH - 4}" text-anchor="middle">documents</text>')
    shape = f'viewBox="0 0 {WIDE} {HIGH}" font-family="sans-serif" font-size="12"'
    title = "<title>CPU seconds by stage and size of the corpus</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>{title}<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([head, *marks, "</svg>\n"])


def main(sizes: Sequence[int], queries: int, source: Path | None, drawing: Path | None, docs: Path | None) -> None:
    """Measure every size and publish the table."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found.append(seconds(Path(folder), size, queries, source))
        print(size, json.dumps(found[-1]), file=sys.stderr, flush=True)
    foreign = ", ".join(share(each.pop("foreign")) for each in found)
    times: Times = {name: [each[name] for each in found] for name in found[0]}
    harness.publish("growth", f"{queries:,} queries; foreign CPU {foreign}.\n\n{table(sizes, times)}", docs)
    if drawing := drawing or (docs and docs / "growth.svg"):
        write_text(drawing, picture(sizes, times))


if __name__ == "__main__":
    parser = harness.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 229_457])
    parser.add_argument("--queries", type=int, default=734)
    parser.add_argument("--corpus", type=Path, help="JSONL with `text`")
    parser.add_argument("--picture", type=Path, help="where the SVG goes")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.child:
        print(json.dumps({"steps": diversified(typed.child)}))
    else:
        main(typed.sizes, typed.queries, typed.corpus, typed.picture, typed.write)
