"""FAISS engine, approximate nearest-neighbour search: parameters, index files, resumable building, and search."""

import hashlib
import math
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from filelock import FileLock
from pydantic import Field, model_validator

from curate.core.config import Json, Section, digest
from curate.core.errors import ConfigError, DataError
from curate.core.progress import StepLabel, waiting
from curate.core.protocols import Progress, Result, Task, Vectors
from curate.retrieval.similarity.exact_search import longest
from curate.retrieval.similarity.screening import Rows
from curate.system.faiss_library import library
from curate.system.files import sha256
from curate.system.processes import cores

Kind = Literal["ivf", "hnsw"]
Storage = Literal["float32", "float16", "int8"]
_CODES = {"float32": "Flat", "float16": "SQfp16", "int8": "SQ8"}
SEED = 1234
"""Seed of k-means, of the training sample, and of the levels of a graph."""
LAYOUT = 1
"""Version in the cache key; increased when the same parameters give another index."""
PER_LIST, FEWEST_PER_LIST = 64, 39
"""Training vectors per list for k-means, and the minimum that FAISS recommends."""
TRAINED = 65_536
"""Number of training vectors for the value range of int8 storage in an index without lists."""
ITERATIONS = 10


@dataclass(frozen=True)
class IndexRecipe:
    """Parameters that determine an index, besides the vectors."""

    kind: Kind
    storage: Storage
    documents: int
    dim: int
    lists: int = 0
    """For ivf: number of lists, each with the documents nearest to its centroid."""
    links: int = 0
    """For hnsw: neighbours of a document in each layer of the graph (M); twice as many in the lowest."""
    ef_construction: int = 0
    """For hnsw: candidates examined when a document is added."""
    one_thread: bool = False
    """For hnsw: whether one thread builds the graph; only then is it the same every time."""

    def key(self, vectors: Json) -> str:
        """Return the cache key of the index of these vectors; it includes the version of FAISS."""
        return digest([LAYOUT, SEED, library().__version__, asdict(self), vectors])[:32]

    @property
    def shown(self) -> dict[str, Json]:
        """Return the build parameters to show; if they lack `threads`, rebuilding a graph may give a different one."""
        if self.kind == "ivf":
            return {"lists": self.lists}
        threads = {"threads": 1} if self.one_thread else {}
        return {"links": self.links, "ef_construction": self.ef_construction, **threads}

    @property
    def to_learn_from(self) -> int:
        """Return the number of training vectors; 0 if the index needs no training."""
        if self.kind == "ivf":
            return min(self.documents, self.lists * PER_LIST)
        return min(self.documents, TRAINED) if self.storage == "int8" else 0

    def empty(self) -> Any:  # noqa: ANN401 - see `library`
        """Return the untrained index, without vectors."""
        faiss, codes = library(), _CODES[self.storage]
        factory_string = f"IVF{self.lists},{codes}" if self.kind == "ivf" else f"HNSW{self.links}_{codes}"
        index = faiss.index_factory(self.dim, factory_string, faiss.METRIC_INNER_PRODUCT)
        if self.kind == "ivf":
            index.cp.seed, index.cp.niter = SEED, ITERATIONS
            index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, PER_LIST  # fewer: a warning
        else:
            index.hnsw.efConstruction = self.ef_construction
        return index


def default_lists(documents: int) -> int:
    """Return the default number of lists: twice the square root of the number of documents, if enough can be trained.

    FAISS recommends four times the root or more. With a million documents, that takes 2.7 times as long to build, and a
    tenth less to search.
    """
    return max(1, min(round(2 * math.sqrt(documents)), documents // FEWEST_PER_LIST))


def default_probes(lists: int, documents: int, depth: int) -> int:
    """Return the default number of lists searched per query: 1 / `SHARE` of all lists, but enough of them.

    Enough lists contain, on average, `REACH` times `depth` documents.
    """
    return min(lists, max(math.ceil(lists / SHARE), math.ceil(REACH * depth * lists / max(documents, 1))))


def default_ef_search(depth: int) -> int:
    """Return the default number of candidates of a graph search: twice the depth, at least 128."""
    return max(128, 2 * depth)


SHARE, REACH = 24, 32
"""Parameters of `default_probes`; docs/evidence.md has the recall that they give."""


# Files of an index, named by the number of vectors and a digest of their bytes; written atomically.

NEW = ".new"
_NAME = re.compile(r"(\d{12})-([0-9a-f]{32})\.faiss")
PIECE = 1 << 20
"""Number of bytes written to an index file at a time."""


def write(index: Any, folder: Path) -> Path:  # noqa: ANN401 - see `library`
    """Write an index (or a checkpoint of it) into a folder, delete older files there, and return the path.

    OSError for a full disk, which FAISS itself does not detect. A killed process leaves a hidden file, which `sweep`
    deletes.
    """
    faiss = library()
    hidden_path, hashed = folder / f".{uuid.uuid4().hex}{NEW}", hashlib.sha256()
    try:
        with hidden_path.open("xb", buffering=PIECE) as stream:

            def keep(piece: bytes) -> None:
                hashed.update(piece)
                stream.write(piece)

            faiss.write_index(index, faiss.PyCallbackIOWriter(keep, PIECE))
            stream.flush()
            os.fsync(stream.fileno())
        complete_path = hidden_path.replace(folder / f"{index.ntotal:012}-{hashed.hexdigest()[:32]}.faiss")
    except OSError as error:
        error.filename = str(folder)  # the name that a user can find
        raise
    finally:
        hidden_path.unlink(missing_ok=True)
    for path in folder.glob("*.faiss"):
        if path != complete_path:
            path.unlink()
    return complete_path


def newest(folder: Path, fewest: int = 0) -> tuple[Path, int] | None:
    """Return the undamaged index file with most vectors, and their number; None if no file has at least `fewest`.

    Damaged files are deleted.
    """
    for path in sorted(folder.glob("*.faiss"), reverse=True):
        match = _NAME.fullmatch(path.name)
        if match is None or int(match[1]) < fewest:
            continue
        with suppress(FileNotFoundError):  # the process that builds it has a newer one
            if sha256(path).startswith(match[2]):
                return path, int(match[1])
            path.unlink()
    return None


def sweep(folder: Path) -> None:
    """Delete incomplete files of killed processes; the caller must hold the lock."""
    for path in folder.glob(f".*{NEW}"):
        path.unlink()


# Build an index of FAISS block by block; an interrupted build resumes at its last checkpoint.

BLOCK = 16_384
"""Number of vectors added to an index at a time."""
GROWTH, FIRST = 1.125, 65_536
"""A checkpoint is written when the index has grown by the factor GROWTH, and by at least FIRST vectors.

So an interruption costs at most an eighth of the work. All checkpoints together are nine times as large as the finished
index.
"""
LONGEST = 6e4
"""Maximum length of a vector in float16 storage, since entries of a longer one may overflow."""


def opened(folder: Path, recipe: IndexRecipe, vectors: Vectors, threads: int | None, progress: Progress) -> Any:  # noqa: ANN401
    """Return the index of these vectors, mapped from a file in `folder`; built if there is none.

    If several processes call it, one builds the index and the others wait. DataError for vectors that hold NaN or
    infinity.
    """
    faiss = library()
    folder.mkdir(parents=True, exist_ok=True)
    if not (complete_file := newest(folder, len(vectors))):
        with FileLock(folder / ".lock"), threads_of_faiss(threads):
            sweep(folder)
            complete_file = newest(folder, len(vectors)) or _built(folder, recipe, vectors, progress)
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
            checkpoint, saved = write(index, folder), index.ntotal
        progress(label, len(vectors), index.ntotal)
    assert checkpoint is not None
    return checkpoint, saved


def _begun(folder: Path, recipe: IndexRecipe, vectors: Vectors, progress: Progress) -> tuple[Any, Path | None]:
    """Return the last checkpoint and its file; else an index without vectors, and its file if it needed training."""
    if checkpoint := newest(folder):
        return library().read_index(str(checkpoint[0])), checkpoint[0]
    index = recipe.empty()
    if not recipe.to_learn_from:
        return index, None
    with waiting(progress, StepLabel(f"training the index, {recipe.kind}")):
        drawn = np.random.default_rng(SEED).choice(len(vectors), recipe.to_learn_from, replace=False)
        index.train(_loaded(vectors, np.sort(drawn), recipe))
    return index, write(index, folder)


def _loaded(vectors: Vectors, rows: Rows, recipe: IndexRecipe) -> Vectors:
    """Return the vectors in `rows` in contiguous float32; DataError for one that the index cannot store."""
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
    """Set the number of FAISS threads within the context; None means one per core."""
    faiss = library()
    earlier = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number or cores())
    try:
        yield
    finally:
        faiss.omp_set_num_threads(earlier)


# Approximate search by an index of FAISS, for corpora too large for exact search.

_OF = {"ivf": ("lists", "probes"), "hnsw": ("links", "ef_construction", "ef_search")}
"""Kind of index -> settings that only it has."""
BEYOND = {"float32": 1.0, "float16": 1.1, "int8": 1.5}
"""Storage -> number of candidates to rescore exactly, as a multiple of the depth, since rounding changes the order."""


class Config(Section):
    """Which index finds documents, how it is built and asked, and what recall it must reach."""

    index: Kind = "ivf"
    """ivf sorts documents into lists around centroids and looks through the nearest ones; hnsw walks a graph of
    neighbours."""
    storage: Storage = "float32"
    """How the index keeps vectors: float16 needs half of the memory, int8 a quarter. Scores are exact with all."""
    lists: int | None = Field(default=None, ge=1)
    """Of ivf: how many lists; null is twice the root of the number of documents."""
    probes: int | None = Field(default=None, ge=1)
    """Of ivf: lists that are looked through for a query (nprobe); null depends on lists and `pool.depth`."""
    links: int = Field(default=32, ge=4, le=512)
    """Of hnsw: neighbours that a document keeps (M)."""
    ef_construction: int = Field(default=80, ge=8)
    """Of hnsw: candidates that are looked at when a document is added."""
    ef_search: int | None = Field(default=None, ge=1)
    """Of hnsw: candidates that are kept in a search; null is twice `pool.depth`."""
    threads: int | None = Field(default=None, ge=1)
    """null is one per core. A graph that one thread has built is the same every time, those of several are not."""
    exact_below: int = Field(default=100_000, ge=0)
    """With fewer documents every one is compared."""
    sample: int = Field(default=50, ge=1)
    """Queries, drawn by seed, on which recall is measured against exact search."""
    min_recall: float = Field(default=0.95, ge=0, le=1)
    """The pool is refused if recall at its depth is lower."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        others = {name for kind, names in _OF.items() if kind != self.index for name in names}
        if foreign := sorted(others & self.model_fields_set):
            raise ValueError(
                f"{', '.join(foreign)}: no setting of {self.index}, which has {', '.join(_OF[self.index])}"
            )
        return self


class Faiss:
    """Engine that searches by a FAISS index stored on disk; `map` runs tasks in this process, one after another."""

    shards = 1

    def __init__(self, config: Config) -> None:
        library()  # raises, if missing, before anything is encoded
        self.config = config
        self.exact_below, self.sample, self.min_recall = config.exact_below, config.sample, config.min_recall
        self._one_thread = config.index == "hnsw" and config.threads == 1
        self.identity: Json = {
            "kind": "faiss",
            **config.model_dump(exclude={"threads"}),
            "one_thread": self._one_thread,
        }

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield the function's result for every task, in order; its errors are raised unchanged."""
        return map(function, tasks)

    def lookup(self, folder: Path, key: Json, vectors: Vectors, depth: int, progress: Progress) -> "FaissLookup":
        """Return the index of the vectors, which `key` identifies, from the folder, or built and stored there."""
        recipe = self.recipe(*vectors.shape)
        index = opened(folder / "faiss" / recipe.key(key), recipe, vectors, self.config.threads, progress)
        return FaissLookup(index, recipe, self.config, depth)

    def recipe(self, documents: int, dim: int) -> IndexRecipe:
        """Return the parameters of an index of `documents` vectors; ConfigError for more lists than can be trained."""
        config = self.config
        if config.index == "hnsw":
            return IndexRecipe(
                "hnsw", config.storage, documents, dim, 0, config.links, config.ef_construction, self._one_thread
            )
        lists = config.lists or default_lists(documents)
        if lists > default_lists(documents) and documents < lists * FEWEST_PER_LIST:
            raise ConfigError(
                f"engine.lists: found {lists:,} for {documents:,} documents, expected {FEWEST_PER_LIST} documents or "
                f"more per list; set engine.lists={default_lists(documents)} or less"
            )
        return IndexRecipe("ivf", config.storage, documents, dim, lists)


class FaissLookup:
    """An index mapped from disk, with its search parameters for one depth."""

    def __init__(self, index: Any, recipe: IndexRecipe, config: Config, depth: int) -> None:  # noqa: ANN401
        faiss = library()
        self._index, self._threads = index, config.threads
        self._count = min(recipe.documents, round(depth * BEYOND[recipe.storage]))
        if recipe.kind == "ivf":
            name, effort = "probes", config.probes or default_probes(recipe.lists, recipe.documents, depth)
            effort = min(effort, recipe.lists)
            self._how = faiss.SearchParametersIVF(nprobe=effort)
        else:
            name, effort = "ef_search", max(config.ef_search or default_ef_search(depth), self._count)
            self._how = faiss.SearchParametersHNSW(efSearch=effort)
        self.remedy = f"engine.{name}={2 * effort} (now {effort})"
        self.numbers: dict[str, Any] = {"storage": recipe.storage, **recipe.shown, name: effort}
        self.facts: Mapping[str, Json] = {"engine": "faiss", "index": recipe.kind, "parameters": self.numbers}

    def nearest(self, queries: Vectors) -> Rows:
        """Return candidate rows for every query, shape (queries, candidates), padded with -1."""
        with threads_of_faiss(self._threads):
            _, rows = self._index.search(queries, self._count, params=self._how)
        return np.asarray(rows, dtype=np.int64)
