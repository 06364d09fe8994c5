"""Approximate search of a million documents by `engine: {kind: faiss}`: recall, time and memory beside exact search.

Vectors have 384 dimensions whose spread falls like that of real embeddings, in subjects of very different size, drawn
by seed, in a memory-mapped file; queries lie near documents. Each step runs in a process of its own. `make` writes
vectors, `build` builds the indexes into DIR/cache and says what that costs, `search` finds the best 500 of every query
exactly and by each index, and prints recall over all queries. A build that is killed goes on when it is started again,
and its figures are then those of the last part. Anonymous memory is what the process itself holds: the rest are pages
of mapped files, which the system takes back when it needs them.

Run: python -m benchmarks.faiss_engine --folder DIR [--steps make build search] [--documents 1000000] [--only ivf hnsw]
"""

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curate.core.protocols import Vectors, quiet
from curate.retrieval.approximate_search.search import Asked, found_by
from curate.retrieval.engines.faiss import Config, Faiss, FaissLookup
from curate.retrieval.similarity.exact_search import Best, unit

DIM, K, BLOCK = 384, 500, 16_384
KINDS: dict[str, dict[str, Any]] = {
    "ivf": {"index": "ivf"},
    "ivf, 4,000 lists": {"index": "ivf", "lists": 4_000},
    "ivf, float16": {"index": "ivf", "storage": "float16"},
    "ivf, int8": {"index": "ivf", "storage": "int8"},
    "hnsw": {"index": "hnsw"},
    "hnsw, float16": {"index": "hnsw", "storage": "float16"},
}
EFFORTS = {"ivf": ("probes", (0.5, 1, 2)), "hnsw": ("ef_search", (0.5, 1, 2))}
"""Index -> what says how far it looks, and multiples of its default that are measured."""


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


def build(folder: Path, kind: str) -> dict[str, object]:
    """Build one index; return what it took and how large it is."""
    engine, vectors = Faiss(Config(**KINDS[kind])), np.load(folder / "documents.npy", mmap_mode="r")
    figures = measured(lambda: engine.lookup(folder / "cache", "benchmark", vectors, K, quiet))
    recipe = engine.recipe(*vectors.shape)
    size = sum(path.stat().st_size for path in (folder / "cache/faiss" / recipe.key("benchmark")).glob("*.faiss"))
    return {"kind": kind, **recipe.shown, "index_mb": size / 1e6, **figures}


def exact(folder: Path) -> dict[str, object]:
    """Search exactly, and write down what is found."""
    what, found = asked(folder), list[Best]()
    figures = measured(lambda: found.extend(what.exact(what.queries)))
    np.save(folder / "exact.npy", np.array([scores for _, scores in found]))
    return {"kind": "exact", **figures}


def approximate(folder: Path, kind: str, effort: float) -> dict[str, object]:
    """Search by an index that was built, and compare the answers to all queries with the exact ones."""
    name, _ = EFFORTS[KINDS[kind]["index"]]
    what, found, opened = asked(folder), list[Best](), list[FaissLookup]()

    def lookup(**settings: object) -> FaissLookup:
        return Faiss(Config(**KINDS[kind], **settings)).lookup(folder / "cache", "benchmark", what.documents, K, quiet)

    value = max(1, round(lookup().numbers[name] * effort))
    checked = measured(lambda: opened.append(lookup(**{name: value})))
    figures = measured(lambda: found.extend(found_by(opened[0], what, what.queries)))
    floors = np.load(folder / "exact.npy")[:, -1]
    shares = [(scores >= floor).sum() / K for (_, scores), floor in zip(found, floors, strict=True)]
    recall = {"recall": np.mean(shares), "lowest": np.min(shares)}
    return {"kind": kind, name: value, **recall, **figures, "opened_cpu_s": checked["cpu_s"]}


def measured(work: Callable[[], object]) -> dict[str, object]:
    """Return wall and processor seconds of some work, and the peak memory of this process in MB."""
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            held = next(line for line in lines if line.startswith("RssAnon"))
            peak[0] = max(peak[0], int(held.split()[1]) / 1e3)

    watcher = threading.Thread(target=watch)
    watcher.start()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        work()
        taken = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    finally:
        over.set()
        watcher.join()
    return {**taken, "anonymous_mb": peak[0], "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def table(rows: Sequence[dict[str, object]]) -> str:
    """Return rows of figures as a table in Markdown, a column for each name that one of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(names)} |", f"| --- {'| --: ' * (len(names) - 1)}|"]
    for row in rows:
        cells = [row.get(name, "") for name in names]
        shown = [f"{cell:,.3f}" if isinstance(cell, float) and cell <= 1 else cell for cell in cells]
        lines.append(f"| {' | '.join(f'{cell:,.1f}' if isinstance(cell, float) else str(cell) for cell in shown)} |")
    return "\n".join(lines)


def child(folder: Path, step: str, *words: str) -> dict[str, object]:
    """Do one step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.faiss_engine", "--folder", str(folder), "--child", step, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Do the steps and print a table for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--steps", nargs="+", default=["make", "build", "search"])
    options.add_argument("--documents", type=int, default=1_000_000)
    options.add_argument("--queries", type=int, default=734)
    options.add_argument("--only", nargs="+", default=list(KINDS))
    options.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        step, *words = given.child
        does = {"build": build, "exact": exact}.get(step)
        found = does(given.folder, *words) if does else approximate(given.folder, words[0], float(words[1]))
        print(json.dumps(found, default=float))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    if "make" in given.steps:
        make(given.folder, given.documents, given.queries)
    if "build" in given.steps:
        print(table([child(given.folder, "build", kind) for kind in given.only]))
    if "search" in given.steps:
        rows = [child(given.folder, "exact")]
        for kind in given.only:
            efforts = EFFORTS[KINDS[kind]["index"]][1]
            rows += [child(given.folder, "search", kind, str(effort)) for effort in efforts]
        print(table(rows))


if __name__ == "__main__":
    main()
