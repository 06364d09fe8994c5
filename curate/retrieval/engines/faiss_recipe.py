"""Parameters of building and searching an index of FAISS: kind, storage, and defaults that depend on the corpus."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from curate.core.config import Json, digest
from curate.core.errors import MissingExtra

Kind = Literal["ivf", "hnsw"]
Storage = Literal["float32", "float16", "int8"]
_CODES = {"float32": "Flat", "float16": "SQfp16", "int8": "SQ8"}
SEED = 1234
"""Of k-means, of the sample that it is given, and of the levels of a graph."""
LAYOUT = 1
"""Part of the key: raised when the same numbers give another index."""
PER_LIST, FEWEST_PER_LIST = 64, 39
"""Vectors that k-means is given for each list, and the fewest with which FAISS calls a centroid learnt."""
TRAINED = 65_536
"""Vectors from which the range of eight-bit numbers is taken, where there are no lists to learn."""
ITERATIONS = 10


@dataclass(frozen=True)
class IndexRecipe:
    """All that an index is made from, besides the vectors."""

    kind: Kind
    storage: Storage
    documents: int
    dim: int
    lists: int = 0
    """Of ivf: lists, each with the documents that are nearest to its centroid."""
    links: int = 0
    """Of hnsw: neighbours that a document keeps in each layer of the graph, twice as many in the lowest."""
    ef_construction: int = 0
    """Of hnsw: candidates that are looked at when a document is added."""
    one_thread: bool = False
    """Of hnsw: threads race for neighbours, so that only one thread gives the same graph every time."""

    def key(self, vectors: Json) -> str:
        """Return what names the index of these vectors; another version of FAISS is another index."""
        return digest([LAYOUT, SEED, library().__version__, asdict(self), vectors])[:32]

    @property
    def shown(self) -> dict[str, Json]:
        """Return the numbers that say how it was built; a graph without `threads` may be another the next time."""
        if self.kind == "ivf":
            return {"lists": self.lists}
        threads = {"threads": 1} if self.one_thread else {}
        return {"links": self.links, "ef_construction": self.ef_construction, **threads}

    @property
    def to_learn_from(self) -> int:
        """Return how many vectors the index learns from before any is added; 0 if it learns nothing."""
        if self.kind == "ivf":
            return min(self.documents, self.lists * PER_LIST)
        return min(self.documents, TRAINED) if self.storage == "int8" else 0

    def empty(self) -> Any:  # noqa: ANN401 - see `library`
        """Return the index without vectors, not trained."""
        faiss, codes = library(), _CODES[self.storage]
        factory_string = f"IVF{self.lists},{codes}" if self.kind == "ivf" else f"HNSW{self.links}_{codes}"
        index = faiss.index_factory(self.dim, factory_string, faiss.METRIC_INNER_PRODUCT)
        if self.kind == "ivf":
            index.cp.seed, index.cp.niter = SEED, ITERATIONS
            index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, PER_LIST  # fewer: a warning
        else:
            index.hnsw.efConstruction = self.ef_construction
        return index


def library() -> Any:  # noqa: ANN401 - its type stubs lack half of what it has
    """Return FAISS; MissingExtra if it cannot be imported."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra(f"the engine faiss needs the package faiss ({error}): pip install faiss-cpu") from error
    return faiss


def default_lists(documents: int) -> int:
    """Return twice the root of the number of documents, and no more than can be learnt.

    FAISS advises four times or more: that takes 2.7 times as long to build, and a tenth less to search a million.
    """
    return max(1, min(round(2 * math.sqrt(documents)), documents // FEWEST_PER_LIST))


def default_probes(lists: int, documents: int, depth: int) -> int:
    """Return how many lists are looked through: a share of all, and as many as hold `REACH` times the depth."""
    return min(lists, max(math.ceil(lists / SHARE), math.ceil(REACH * depth * lists / max(documents, 1))))


def default_ef_search(depth: int) -> int:
    """Return how many candidates a graph is asked to keep: twice the depth, at least 128."""
    return max(128, 2 * depth)


SHARE, REACH = 24, 32
"""See `default_probes`; docs/performance.md has the recall that they give."""
