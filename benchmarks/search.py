"""How fast the best 500 of 229,457 documents are found for 734 queries, exactly, beside what one would use instead.

Three sets: random vectors of 768 numbers; the same in 2,000 clusters; and vectors of 512 that the encoder `use` makes
of real texts (`--data FOLDER` with zh_legacy/corpus.jsonl and queries.jsonl), again and again with noise until there
are as many. Contenders: `curate`; FAISS IndexFlatIP as it is installed, and with the kernels that `curate` names for
its BLAS; sentence_transformers.util.semantic_search; and numpy's product alone, which finds nothing. Seconds are those
of the search; reading files, imports and filling an index stand before it. Other ids: of how many queries the 500 are
not those of float64 products of all documents, ties by id.

Run: python -m benchmarks.search [--documents 229457] [--queries 734] [--repeats 3] [--data FOLDER] [--write]
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import harness, paper, vectors
from benchmarks.harness import Result, Watch, ratio, share, shown
from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import products, top_k
from curate.retrieval.similarity.screening import Rows
from curate.system.faiss_library import CORE, KERNELS, library

K, BLOCK = 500, 16_384
Ids = list[list[int]]
Search = Callable[[], Ids | None]
REAL = "real texts"
HEADS = ["vectors", "contender", "wall s", "CPU s", "peak MB", "foreign CPU", "other ids", "x FAISS", "x s.-transf."]


def curate(queries: Vectors, documents: Vectors) -> Search:
    """Return our search."""
    library()
    ids = [f"d{row:07}" for row in range(len(documents))]
    return lambda: [rows.tolist() for rows, _ in top_k(queries, documents, ids, K)]


def product(queries: Vectors, documents: Vectors) -> Search:
    """Return the product alone, in blocks."""

    def multiply() -> None:
        for start in range(0, len(documents), BLOCK):
            queries @ documents[start : start + BLOCK].T

    return multiply


def faiss(queries: Vectors, documents: Vectors, *, kernels: bool) -> Search:
    """Return FAISS' exact index, filled; with `kernels`, its BLAS takes those that `curate` names."""
    if kernels:
        os.environ[CORE] = KERNELS
    import faiss

    os.environ.pop(CORE, None)

    index = faiss.IndexFlatIP(documents.shape[1])
    index.add(documents)

    def search() -> Ids:
        found: Ids = index.search(queries, K)[1].tolist()
        return found

    return search


def sentence_transformers(queries: Vectors, documents: Vectors) -> Search:
    """Return the search of sentence-transformers."""
    import torch
    from sentence_transformers.util import dot_score, semantic_search

    left, right = torch.from_numpy(queries), torch.from_numpy(documents)

    def search() -> Ids:
        found = semantic_search(left, right, top_k=K, score_function=dot_score)
        return [[each["corpus_id"] for each in best] for best in found]

    return search


CONTENDERS: dict[str, Callable[[Vectors, Vectors], Search]] = {
    "numpy, the product alone": product,
    "curate": curate,
    "FAISS IndexFlatIP": partial(faiss, kernels=False),
    "FAISS IndexFlatIP, kernels named": partial(faiss, kernels=True),
    "sentence-transformers semantic_search": sentence_transformers,
}
_, OURS, INSTALLED, FAISS, TRANSFORMERS = CONTENDERS


def measure(name: str, folder: Path) -> dict[str, float]:
    """Search once, and return seconds, the peak memory of this process, and for how many queries ids are others."""
    search = CONTENDERS[name](np.load(folder / "queries.npy"), np.load(folder / "documents.npy"))
    with Watch() as watch:
        found = search()
    figures = {**watch.figures, "peak": float(paper.highest())}
    if found is not None:
        right = np.load(folder / "exact.npy").tolist()
        figures["other"] = float(sum(one != other for one, other in zip(found, right, strict=True)))
    return figures


def exact(queries: Vectors, documents: Vectors) -> Iterator[Rows]:
    """Yield each query's best rows by float64 products of all documents, ties by id.

    A product of matrices in float64 tells which are far from the k-th best; the others get the sum that is published.
    """
    k = min(K, len(documents))
    for start in range(0, len(queries), 32):
        rough = np.empty((len(queries[start : start + 32]), len(documents)))
        for low in range(0, len(documents), BLOCK):
            part = documents[low : low + BLOCK].astype(np.float64)
            rough[:, low : low + BLOCK] = queries[start : start + 32].astype(np.float64) @ part.T
        for query, row in zip(queries[start : start + 32], rough, strict=True):
            near = np.flatnonzero(row >= np.partition(row, -k)[-k] - 1e-9)
            yield near[np.lexsort((near, -products(query, documents, near)))[:k]]


def make(folder: Path, kind: str, given: argparse.Namespace) -> None:
    """Write documents, queries and the right answer of one set."""
    if kind == REAL:
        queries, documents = vectors.real(given.data / "zh_legacy", given.documents, given.queries)
    else:
        documents = vectors.SEARCHED[kind](given.documents)
        queries = vectors.asked(documents, given.queries)
    np.save(folder / "documents.npy", documents)
    np.save(folder / "queries.npy", queries)
    np.save(folder / "exact.npy", np.stack(list(exact(queries, documents))))


def rounds(kind: str, given: argparse.Namespace) -> dict[str, Result]:
    """Let the contenders take turns on one set."""
    with tempfile.TemporaryDirectory() as name:
        harness.child("search", "--make", kind, "--folder", name, *sizes(given))
        turns = {each: partial(harness.child, "search", "--measure", each, "--folder", name) for each in CONTENDERS}
        return harness.interleaved(turns, given.repeats, given.again)


def sizes(given: argparse.Namespace) -> list[str]:
    """Return what a process that makes a set has to know."""
    return [f"--documents={given.documents}", f"--queries={given.queries}", f"--data={given.data}"]


def row(kind: str, name: str, each: Result, found: dict[str, Result]) -> list[str]:
    """Return one line of the table."""
    figures = each.figures
    cells = [f"{figures['wall']:.2f}", f"{figures['cpu']:.2f}", f"{figures['peak']:,.0f}", share(figures["foreign"])]
    other = f"{figures['other']:.0f}" if "other" in figures else ""
    return [kind, name, *cells, other, *(shown(ratio(found[base], each)) for base in (FAISS, TRANSFORMERS))]


def said(kind: str, found: dict[str, Result]) -> str:
    """Return the ratios in words, as far as there are any."""
    times = {name: ratio(found[name], found[OURS]) for name in (FAISS, INSTALLED)}
    words = [f"{time:.2f} x as fast as {name}" for name, time in times.items() if time is not None]
    return " ".join([f"On {kind} vectors: {', '.join(words)}." if words else "", harness.disturbed(found)]).strip()


def main(given: argparse.Namespace) -> None:
    """Measure every set, and publish one table."""
    held = given.data is not None
    found = {kind: rounds(kind, given) for kind in (*vectors.SEARCHED, *([REAL] if held else []))}
    lines = [row(kind, name, each, results) for kind, results in found.items() for name, each in results.items()]
    words = [f"- {each}" for kind, results in found.items() if (each := said(kind, results))]
    words += [] if held else [f"- Left out: {REAL}, for `--data` names no folder."]
    head = (
        f"{given.documents:,} documents, {given.queries:,} queries, k = {K}, medians of {given.repeats}; the greatest "
        "foreign CPU of them; `other ids` of the queries. `x FAISS`: how many times as fast as it."
    )
    harness.publish("search", "\n\n".join([head, harness.table(HEADS, lines, 2), "\n".join(words)]), given.write)


def arguments() -> argparse.Namespace:
    """Return what was typed."""
    options = harness.parser(__doc__)
    options.add_argument("--documents", type=int, default=229_457)
    options.add_argument("--queries", type=int, default=734)
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
        print(json.dumps(measure(typed.measure, typed.folder)))
    else:
        main(typed)
