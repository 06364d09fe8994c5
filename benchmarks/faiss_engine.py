"""Approximate search of a million documents by `engine: {kind: faiss}`: recall, time and memory beside exact search.

Vectors have 384 dimensions whose spread falls like that of real embeddings, in subjects of very different size, drawn
by seed, in a memory-mapped file; queries lie near documents. Every index is built once, into DIR/cache, and each search
runs in a process of its own. A build that is killed goes on when the benchmark is started again; its figures are then
those of the last part, which the table says. Memory is what the process itself holds: the rest are pages of mapped
files, which the system takes back when it needs them. What the folder holds already is used as it is.

Run: python -m benchmarks.faiss_engine [--folder DIR] [--documents 1000000] [--queries 734] [--only ivf hnsw]
"""

import argparse
import json
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.harness import Figures, Result
from curate.core.protocols import Vectors, quiet
from curate.retrieval.engines import faiss
from curate.retrieval.engines.faiss import Config, Faiss, FaissLookup
from curate.retrieval.similarity.exact_search import Best, unit
from curate.retrieval.similarity.faiss_search import Asked, found_by
from curate.system.files import write_json

DIM, K, BLOCK = 384, 500, 16_384
KINDS: dict[str, dict[str, Any]] = {
    "ivf": {"index": "ivf"},
    "ivf, 4,000 lists": {"index": "ivf", "lists": 4_000},
    "ivf, float16": {"index": "ivf", "storage": "float16"},
    "ivf, int8": {"index": "ivf", "storage": "int8"},
    "hnsw": {"index": "hnsw"},
    "hnsw, float16": {"index": "hnsw", "storage": "float16"},
}
FAR = {"ivf": "probes", "hnsw": "ef_search"}
"""Index -> what says how far it looks."""
EFFORTS = (0.5, 1, 2)
"""Multiples of its default that are measured."""


def make(folder: Path, documents: int, queries: int) -> None:
    """Write document and query vectors, block by block: subjects of very different size, topics in them, documents."""
    draw = np.random.default_rng(1)
    spread = ((1 + np.arange(DIM)) ** -0.5).astype(np.float32)

    def some(count: int) -> Vectors:
        return unit(draw.standard_normal((count, DIM), np.float32) * spread)

    subjects, topics = max(50, documents // 2_000), max(50, documents // 50)
    subject = np.minimum((draw.pareto(1.0, topics) * subjects / 20).astype(int), subjects - 1)
    centres = unit(some(subjects)[subject] + np.float32(0.8) * some(topics))
    found = np.lib.format.open_memmap(folder / "documents.npy", "w+", np.float32, (documents, DIM))
    for start in range(0, documents, BLOCK):
        size = min(BLOCK, documents - start)
        found[start : start + size] = unit(centres[draw.integers(0, topics, size)] + np.float32(0.8) * some(size))
    picked = np.sort(draw.choice(documents, queries, replace=False))
    np.save(folder / "queries.npy", unit(found[picked] + np.float32(0.7) * some(queries)))


def asked(folder: Path) -> Asked:
    """Return the search, its documents mapped."""
    documents = np.load(folder / "documents.npy", mmap_mode="r")
    ids = [f"d{row:08}" for row in range(len(documents))]
    return Asked("benchmark", np.load(folder / "queries.npy"), documents, ids, K, "cpu")


def build(folder: Path, kind: str) -> dict[str, float]:
    """Build one index; return what it took and how large it is."""
    engine, vectors = Faiss(Config(**KINDS[kind])), np.load(folder / "documents.npy", mmap_mode="r")
    place = folder / "cache/faiss" / engine.recipe(*vectors.shape).key("benchmark")
    _, begun = faiss.newest(place) or (place, 0)
    figures = measured(lambda: engine.lookup(folder / "cache", "benchmark", vectors, K, quiet))
    return {**figures, "file": sum(path.stat().st_size for path in place.glob("*.faiss")) / 1e6, "begun": begun}


def exact(folder: Path) -> dict[str, float]:
    """Search exactly, and write down what is found."""
    what, found = asked(folder), list[Best]()
    figures = measured(lambda: found.extend(what.exact(what.queries)))
    np.save(folder / "exact.npy", np.array([scores for _, scores in found]))
    return figures


def approximate(folder: Path, kind: str, effort: float) -> dict[str, float]:
    """Search by an index that was built, and compare the answers to all queries with the exact ones."""
    name, what, found, opened = FAR[KINDS[kind]["index"]], asked(folder), list[Best](), list[FaissLookup]()

    def lookup(**settings: Any) -> FaissLookup:  # noqa: ANN401 - settings of any type
        return Faiss(Config(**KINDS[kind], **settings)).lookup(folder / "cache", "benchmark", what.documents, K, quiet)

    far = max(1, round(lookup().numbers[name] * effort))
    checked = measured(lambda: opened.append(lookup(**{name: far})))
    figures = measured(lambda: found.extend(found_by(opened[0], what, what.queries)))
    floors = np.load(folder / "exact.npy")[:, -1]
    shares = [float((scores >= floor).sum()) / K for (_, scores), floor in zip(found, floors, strict=True)]
    recall = {"recall": sum(shares) / len(shares), "lowest": min(shares)}
    return {**figures, "opened": checked["cpu"], **recall, "far": opened[0].numbers[name]}


def measured(work: Callable[[], object]) -> dict[str, float]:
    """Return wall and processor seconds of some work, foreign CPU, and the most memory of this process in MB."""
    held, over = [0.0], threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            held.append(max(held.pop(), *(int(line.split()[1]) / 1e3 for line in lines if line.startswith("RssAnon"))))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with harness.Watch() as watch:
            work()
    finally:
        over.set()
        looking.join()
    return {**watch.figures, "memory": held[0]}


def told(folder: Path, step: str, *words: object) -> Figures:
    """Return what one step in a process of its own came to."""
    found: Figures = harness.child("faiss_engine", "--folder", folder, "--step", step, *words)
    return found


def built(folder: Path, kind: str) -> Figures:
    """Return what the build of an index came to, now or when the folder was made."""
    kept = folder / f"{kind}.json"
    if not kept.exists():
        write_json(kept, told(folder, "build", kind))
    found: Figures = json.loads(kept.read_text(encoding="utf-8"))
    return found


def body(builds: dict[str, Figures], searches: dict[str, Result], kinds: Sequence[str]) -> str:
    """Return a table of builds and one of searches."""
    said = {
        kind: f", from document {builds[kind]['begun']:,} on" if builds[kind].get("begun") else "" for kind in kinds
    }
    cells = [(kind + said[kind], builds[kind], ("wall", "cpu", "memory", "file")) for kind in kinds]
    made = [
        [kind, *(f"{row[name]:,.0f}" for name in names), harness.share(row["foreign"])] for kind, row, names in cells
    ]
    heads = ["index", "s", "CPU s", "memory MB", "file MB", "foreign CPU"]
    parts = [harness.table(heads, made)]
    rows = []
    for name, found in searches.items():
        row = found.figures
        far = f"{row['far']:,.0f}" if "far" in row else ""
        recall = [f"{row.get(key, 1):.3f}" for key in ("recall", "lowest")]
        times = [f"{row['wall']:.1f}", f"{row['cpu']:.1f}", f"{row['opened']:.1f}" if "opened" in row else ""]
        rows.append([name, far, *recall, *times, f"{row['memory']:,.0f}", harness.share(row["foreign"])])
    heads = ["search", "probes, ef_search", f"recall@{K}", "worst query", "s", "CPU s", "CPU s to open", "memory MB"]
    return "\n\n".join([*parts, harness.table([*heads, "foreign CPU"], rows)])


def run(folder: Path, given: argparse.Namespace) -> str:
    """Make what the folder lacks, search, and return the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "queries.npy").exists():
        make(folder, given.documents, given.queries)
    builds = {kind: built(folder, kind) for kind in given.only}
    contenders: dict[str, Callable[[], Figures]] = {"exact": partial(told, folder, "exact")}
    for kind in given.only:
        contenders |= {f"{kind}, x {effort}": partial(told, folder, "search", kind, effort) for effort in EFFORTS}
    searches = harness.interleaved(contenders, given.repeats, given.again)
    documents, queries = (len(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ("documents", "queries"))
    size = f"{documents:,} documents x {DIM} dimensions, {queries:,} queries, the best {K}."
    return f"{size}\n\n{body(builds, searches, given.only)}"


def main() -> None:
    """Do one step and print its figures, or all of them and publish the tables."""
    options = harness.parser(__doc__)
    options.add_argument("--folder", type=Path)
    options.add_argument("--documents", type=int, default=1_000_000)
    options.add_argument("--queries", type=int, default=734)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--only", nargs="+", default=["ivf", "ivf, 4,000 lists", "hnsw"], choices=KINDS)
    options.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.step:
        step, *words = given.step
        if step == "search":
            print(json.dumps(approximate(given.folder, words[0], float(words[1]))))
        else:
            print(json.dumps(build(given.folder, *words) if step == "build" else exact(given.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        harness.publish("faiss_engine", run(given.folder or Path(name), given), given.write)


if __name__ == "__main__":
    main()
