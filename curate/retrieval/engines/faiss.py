"""Approximate search by an index of FAISS, for corpora too large for exact search."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from curate.core.config import Json, Section
from curate.core.errors import ConfigError
from curate.core.protocols import Progress, Result, Task, Vectors
from curate.retrieval.engines.faiss_building import opened, threads_of_faiss
from curate.retrieval.engines.faiss_recipe import (
    FEWEST_PER_LIST,
    IndexRecipe,
    Kind,
    Storage,
    default_ef_search,
    default_lists,
    default_probes,
    library,
)
from curate.retrieval.similarity.screening import Rows

_OF = {"ivf": ("lists", "probes"), "hnsw": ("links", "ef_construction", "ef_search")}
"""Kind of index -> settings that only it has."""
BEYOND = {"float32": 1.0, "float16": 1.1, "int8": 1.5}
"""Storage -> candidates to rescore exactly, as a multiple of the depth, since rounding changes their order."""


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
    """Look documents up in an index that is kept on disk; all else is done here, one task after the other."""

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
        """Yield the function's result for every task, in order; its errors as they are."""
        return map(function, tasks)

    def lookup(self, folder: Path, key: Json, vectors: Vectors, depth: int, progress: Progress) -> "FaissLookup":
        """Return the index of these vectors, which `key` identifies, from the folder; it is built if need be."""
        recipe = self.recipe(*vectors.shape)
        index = opened(folder / "faiss" / recipe.key(key), recipe, vectors, self.config.threads, progress)
        return FaissLookup(index, recipe, self.config, depth)

    def recipe(self, documents: int, dim: int) -> IndexRecipe:
        """Return what the index of so many documents is made from; ConfigError for more lists than can be learnt."""
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
        """Return candidate rows for every query, padded with -1."""
        with threads_of_faiss(self._threads):
            _, rows = self._index.search(queries, self._count, params=self._how)
        return np.asarray(rows, dtype=np.int64)
