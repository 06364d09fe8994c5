"""How fast the best 500 of 229,457 documents are found for 734 queries, exactly, beside what one would use instead.

Vectors have 768 dimensions, in clusters, drawn by seed. Contenders: `curate` with the documents in memory, and in a
memory-mapped file; FAISS IndexFlatIP; mteb's own search; sentence_transformers.util.semantic_search; and the bare
product by numpy, the limit without half precision. Each runs in a process of its own, for its peak memory,
and they take turns; medians. Time is that of the search, without reading the file; `cpu` are processor seconds, for a
machine may be shared. For 20 queries the ids are compared with a float64 product of all documents.

Run: python -m benchmarks.search [--documents 229457] [--queries 734] [--repeats 3] [--folder DIR]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from curate.core.protocols import Vectors
from curate.retrieval.similarity.exact_search import products, top_k, unit

DIM, K, BLOCK, CHECKED = 768, 500, 16_384, 20


def make(folder: Path, documents: int, queries: int) -> None:
    """Write document and query vectors, in clusters, block by block."""
    draw = np.random.default_rng(1)
    centres = draw.standard_normal((2_000, DIM)).astype(np.float32)
    found = np.lib.format.open_memmap(folder / "documents.npy", "w+", np.float32, (documents, DIM))
    for start in range(0, documents, BLOCK):
        size = min(BLOCK, documents - start)
        near = centres[draw.integers(0, len(centres), size)]
        found[start : start + size] = unit(near + draw.standard_normal((size, DIM), np.float32))
    picked = np.sort(draw.choice(documents, queries, replace=False))
    noise = np.float32(0.03) * draw.standard_normal((queries, DIM), np.float32)
    np.save(folder / "queries.npy", unit(found[picked] + noise))


def names(documents: Vectors) -> list[str]:
    """Return document ids."""
    return [f"d{row:07}" for row in range(len(documents))]


def curate(queries: Vectors, documents: Vectors) -> Callable[[], object]:
    """Return our search."""
    ids = names(documents)
    return lambda: [row for best in top_k(queries, documents, ids, K) for row, _ in best]


def product(queries: Vectors, documents: Vectors) -> Callable[[], object]:
    """Return the product alone, in the blocks of our search."""

    def multiply() -> None:
        for start in range(0, len(documents), BLOCK):
            queries @ documents[start : start + BLOCK].T

    return multiply


def faiss(queries: Vectors, documents: Vectors) -> Callable[[], object]:
    """Return FAISS' exact index, filled."""
    import faiss

    index = faiss.IndexFlatIP(DIM)
    index.add(documents)
    return lambda: index.search(queries, K)


def sentence_transformers(queries: Vectors, documents: Vectors) -> Callable[[], object]:
    """Return the search of sentence-transformers."""
    import torch
    from sentence_transformers.util import dot_score, semantic_search

    left, right = torch.from_numpy(queries), torch.from_numpy(documents)
    return lambda: semantic_search(left, right, top_k=K, score_function=dot_score)


def mteb(queries: Vectors, documents: Vectors) -> Callable[[], object]:
    """Return mteb's search in chunks of 50,000, with vectors that are there already in the place of an encoder."""
    import datasets
    import torch
    from mteb import get_task
    from mteb.models.search_wrappers import chunked_full_corpus_search

    rows = datasets.Dataset.from_dict({"id": names(documents), "text": [""] * len(documents)})
    asked = {row: str(row) for row in range(len(queries))}
    metadata = get_task("NFCorpus").metadata  # any task of texts

    def search() -> object:
        chunks = iter(range(0, len(documents), 50_000))

        def encode(*_: object, **__: object) -> Any:  # noqa: ANN401 - an array of torch
            start = next(chunks)
            return torch.from_numpy(documents[start : start + 50_000])

        return chunked_full_corpus_search(
            task_corpus=rows,
            corpus_chunk_size=50_000,
            query_idx_to_id=asked,
            query_embeddings=torch.from_numpy(queries),
            task_metadata=metadata,
            hf_subset="default",
            hf_split="test",
            top_k=K,
            encode_kwargs={"show_progress_bar": False},
            encode_fn=encode,
            similarity_fn=lambda left, right: left @ right.T,
        )

    return search


CONTENDERS: dict[str, tuple[str, Callable[[Vectors, Vectors], Callable[[], object]]]] = {
    "numpy": ("numpy's product alone", product),
    "curate": ("curate", curate),
    "mapped": ("curate, documents in a memory-mapped file", curate),
    "faiss": ("FAISS IndexFlatIP", faiss),
    "mteb": ("mteb's search", mteb),
    "sentence-transformers": ("sentence_transformers semantic_search", sentence_transformers),
}


def measure(name: str, folder: Path) -> dict[str, float]:
    """Return wall and processor seconds of one search, and the peak memory of this process beside the documents."""
    documents = np.load(folder / "documents.npy", mmap_mode="r" if name == "mapped" else None)
    search = CONTENDERS[name][1](np.load(folder / "queries.npy"), documents)
    wall, cpu = time.perf_counter(), time.process_time()
    search()
    taken = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return {**taken, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def differences(folder: Path) -> int:
    """Return for how many of some queries our ids are not those of float64 products of all documents, ties by id."""
    documents, queries = np.load(folder / "documents.npy", mmap_mode="r"), np.load(folder / "queries.npy")[:CHECKED]
    rows, wrong = np.arange(len(documents)), 0
    for query, best in zip(queries, top_k(queries, documents, names(documents), K), strict=True):
        exact = products(query, documents, rows)
        wrong += [row for row, _ in best] != np.lexsort((rows, -exact))[:K].tolist()
    return wrong


def rounds(folder: Path, repeats: int, only: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """Let the contenders take turns, each in a process of its own."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in only}
    for _ in range(repeats):
        for name in only:
            command = [sys.executable, "-m", "benchmarks.search", "--measure", name, "--folder", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return found


def main() -> None:
    """Make the vectors, let all search, print a table in Markdown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--documents", type=int, default=229_457)
    options.add_argument("--queries", type=int, default=734)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--only", default=",".join(CONTENDERS))
    options.add_argument("--folder", type=Path)
    options.add_argument("--measure", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.folder)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        make(folder, given.documents, given.queries)
        found = rounds(folder, given.repeats, given.only.split(","))
        print("| contender | wall s | cpu s | peak MB |\n| --- | --: | --: | --: |")
        for key, each in found.items():
            figures = " | ".join(f"{median(one[unit_] for one in each):,.2f}" for unit_ in ("wall", "cpu", "peak"))
            print(f"| {CONTENDERS[key][0]} | {figures} |")
        print(f"\nother ids than by float64 products: {differences(folder)} of {min(CHECKED, given.queries)} queries")


if __name__ == "__main__":
    main()
