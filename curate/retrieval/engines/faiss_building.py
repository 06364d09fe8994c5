"""Build an index of FAISS block by block; an interrupted build resumes at its last checkpoint."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from curate.core.errors import DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, Vectors
from curate.retrieval.engines import faiss_files
from curate.retrieval.engines.faiss_recipe import SEED, IndexRecipe, library
from curate.retrieval.similarity.exact_search import longest
from curate.retrieval.similarity.screening import Rows
from curate.system.processes import cores

BLOCK = 16_384
"""Vectors that are added at once."""
GROWTH, FIRST = 1.125, 65_536
"""A checkpoint is written when the index has grown by an eighth, and by so many vectors at least.

So a kill costs an eighth of the work at most, and all checkpoints together are nine times the finished index.
"""
LONGEST = 6e4
"""Numbers of a longer vector may be more than float16 can hold."""


def opened(folder: Path, recipe: IndexRecipe, vectors: Vectors, threads: int | None, progress: Progress) -> Any:  # noqa: ANN401
    """Return the index of these vectors, mapped from a file in `folder`; built if there is none.

    Several processes may ask: one builds, the others wait for it. DataError for vectors that hold NaN or infinity.
    """
    faiss = library()
    folder.mkdir(parents=True, exist_ok=True)
    if not (complete_file := faiss_files.newest(folder, len(vectors))):
        with FileLock(folder / ".lock"), threads_of_faiss(threads):
            faiss_files.sweep(folder)
            complete_file = faiss_files.newest(folder, len(vectors)) or _built(folder, recipe, vectors, progress)
    index = faiss.read_index(
        str(complete_file[0]), faiss.IO_FLAG_MMAP if recipe.kind == "ivf" else faiss.IO_FLAG_MMAP_IFC
    )
    if recipe.kind == "ivf":
        index.invlists.prefetch_nthread = 0  # threads that read every list ahead, to no use once it is in memory
    return index


def _built(folder: Path, recipe: IndexRecipe, vectors: Vectors, progress: Progress) -> tuple[Path, int]:
    index, checkpoint = _begun(folder, recipe, vectors, progress)
    saved = index.ntotal
    label = StepLabel(f"building the index, {recipe.kind}", "documents")
    progress(label, len(vectors), saved)
    for start in range(saved, len(vectors), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(vectors)))
        if recipe.kind == "hnsw":  # its state is in no checkpoint
            index.hnsw.rng = library().RandomGenerator(SEED + start)
        index.add(_loaded(vectors, rows, recipe))
        if index.ntotal == len(vectors) or index.ntotal >= max(saved * GROWTH, saved + FIRST):
            checkpoint, saved = faiss_files.write(index, folder), index.ntotal
        progress(label, len(vectors), index.ntotal)
    assert checkpoint is not None
    return checkpoint, saved


def _begun(folder: Path, recipe: IndexRecipe, vectors: Vectors, progress: Progress) -> tuple[Any, Path | None]:
    """Return the last checkpoint, or a trained index without vectors, and its file."""
    if checkpoint := faiss_files.newest(folder):
        return library().read_index(str(checkpoint[0])), checkpoint[0]
    index = recipe.empty()
    if not recipe.to_learn_from:
        return index, None
    with waiting(progress, StepLabel(f"training the index, {recipe.kind}")):
        drawn = np.random.default_rng(SEED).choice(len(vectors), recipe.to_learn_from, replace=False)
        index.train(_loaded(vectors, np.sort(drawn), recipe))
    return index, faiss_files.write(index, folder)


def _loaded(vectors: Vectors, rows: Rows, recipe: IndexRecipe) -> Vectors:
    """Return some rows in one piece of memory; DataError if the index cannot hold one."""
    block = np.ascontiguousarray(vectors[rows], dtype=np.float32)
    length = longest(block, "document", rows)
    if recipe.storage == "float16" and length > LONGEST:
        raise DataError(
            f"a document vector is {length:g} long, too long for {recipe.storage}; normalise the vectors, or set "
            "engine.storage=float32"
        )
    return block


@contextmanager
def threads_of_faiss(number: int | None) -> Iterator[None]:
    """Let FAISS use so many threads meanwhile, or one per core."""
    faiss = library()
    earlier = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number or cores())
    try:
        yield
    finally:
        faiss.omp_set_num_threads(earlier)
