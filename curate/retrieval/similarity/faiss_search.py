"""Approximate search: an index's candidates rescored exactly, and its recall on a sample of queries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from curate.core.config import Json
from curate.core.errors import CheckFailed
from curate.core.protocols import Engine, Progress, Vectors
from curate.core.sampling import generator
from curate.retrieval.similarity.devices import nearest_on
from curate.retrieval.similarity.exact_search import Best, check, longest, places, products, top_k
from curate.retrieval.similarity.screening import Rows
from curate.system.processes import cores

BLOCK = 256
"""Number of queries in one call of an index."""


class Lookup(Protocol):
    """An approximate index that is ready for queries."""

    facts: Mapping[str, Json]
    """Facts on the index: `engine`, `index` (its kind) and `parameters` (of building and of searching)."""
    remedy: str
    """Setting to change for a higher recall."""

    def nearest(self, queries: Vectors) -> Rows:
        """Return at least `depth` candidate rows per query, in any order, padded with -1 if there are fewer."""
        ...


@runtime_checkable
class ApproximateEngine(Engine, Protocol):
    """An engine with an index that may miss some of the nearest documents."""

    identity: Json
    """Everything that its results depend on, for fingerprints."""
    exact_below: int
    """Number of documents below which search is exact."""
    sample: int
    """Number of queries on which recall is measured."""
    min_recall: float
    """Minimum recall that is accepted."""

    def lookup(self, folder: Path, key: Json, vectors: Vectors, depth: int, progress: Progress) -> Lookup:
        """Return the index of the vectors, which `key` identifies, from the folder, or built and stored there."""
        ...


@dataclass
class Asked:
    """A search request, and the facts and notes that the search adds."""

    place: str
    """Path of the retriever in the pipeline, for messages."""
    queries: Vectors
    documents: Vectors
    ids: Sequence[str]
    depth: int
    device: str
    """Device of exact search."""
    facts: dict[str, Json] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def exact(self, queries: Vectors, looked: Callable[[int], None] = lambda _queries: None) -> Iterator[Best]:
        """Yield the result of exact search for `queries`, as `top_k`."""
        return top_k(queries, self.documents, self.ids, self.depth, nearest_on(self.device), looked)


def search(
    request: Asked,
    engine: ApproximateEngine,
    folder: Path,
    key: Json,
    progress: Progress,
    looked: Callable[[int], None],
) -> Iterator[Best]:
    """Yield the best candidates of the engine's index for each query, by float64 product, ties by document id.

    CheckFailed before the first result if recall on a sample of the queries is below `engine.min_recall`. Search is
    exact for few documents (`engine.exact_below`) and if the depth includes all documents. `key` identifies the
    vectors.
    """
    count = len(request.documents)
    if count < engine.exact_below or request.depth >= count:
        request.facts["search"] = "exact"
        too_few = f"its {count:,} documents are fewer than engine.exact_below ({engine.exact_below:,})"
        all_of_them = f"a depth of {request.depth:,} is all of its {count:,} documents"
        why = too_few if count < engine.exact_below else all_of_them
        request.notes.append(f"{request.place}: every document was compared, for {why}")
        yield from request.exact(request.queries, looked)
        return
    check(request.queries, request.documents, request.ids)
    longest(request.queries, "query")
    request.documents = request.documents.view(np.ndarray)  # a memory-mapped array is slower at taking rows
    index = engine.lookup(folder, key, request.documents, request.depth, progress)
    request.facts |= {"search": "approximate", **index.facts, **_measured(request, engine, index)}
    looked(0)
    short = 0
    for hits in found_by(index, request, request.queries):
        short += len(hits[0]) < request.depth
        yield hits
    request.facts["queries_with_fewer"] = short
    request.notes += _notes(request, index)


def found_by(index: Lookup, request: Asked, queries: Vectors) -> Iterator[Best]:
    """Yield the best of an index's candidates for each query, by float64 product, then by document id."""
    id_positions = cache(lambda: places(request.ids))

    def ranked(query: Vectors, rows: Rows) -> Best:
        candidates = np.sort(rows[rows >= 0])
        exact = products(query, request.documents, candidates)
        order = np.argsort(-exact)
        if (np.diff(exact[order]) == 0).any():  # seldom, and sorting the ids of a large corpus takes long
            order = np.lexsort((id_positions()[candidates], -exact))
        return candidates[order[: request.depth]], exact[order[: request.depth]]

    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, len(queries), BLOCK):
            block = np.ascontiguousarray(queries[start : start + BLOCK])
            yield from pool.map(ranked, block, index.nearest(block))


def _measured(request: Asked, engine: ApproximateEngine, index: Lookup) -> dict[str, Json]:
    """Return the recall on a sample of queries; CheckFailed if it is too low.

    A query's recall is the number of its documents whose product is at least that of the last document by exact search,
    divided by the number of documents by exact search. Documents with equal products are thus interchangeable.
    """
    number = min(engine.sample, len(request.queries))
    drawn = sorted(generator(0, "recall", len(request.queries)).sample(range(len(request.queries)), number))
    sampled_queries = request.queries[drawn]
    shares = [
        float((index_products >= exact_products[-1]).sum()) / len(exact_products)
        for (_, index_products), (_, exact_products) in zip(
            found_by(index, request, sampled_queries), request.exact(sampled_queries), strict=True
        )
    ]
    recall, lowest = round(sum(shares) / number, 4), round(min(shares), 4)
    if recall < engine.min_recall:
        raise CheckFailed(
            f"{request.place}: recall@{request.depth} of the {index.facts['index']} index is {recall} on {number} "
            f"queries, expected engine.min_recall={engine.min_recall} or more; set {index.remedy}, or remove `engine` "
            "for exact search (the index is kept and not built again)"
        )
    return {"recall": recall, "recall_at": request.depth, "lowest_recall": lowest, "recall_queries": number}


def _notes(request: Asked, index: Lookup) -> list[str]:
    facts: dict[str, Any] = request.facts
    numbers = ", ".join(f"{name} {setting}" for name, setting in facts["parameters"].items())
    recall_note = (
        f"documents were looked up in an approximate index ({facts['engine']} {facts['index']}: {numbers}); "
        f"recall@{facts['recall_at']} against exact search is {facts['recall']} on {facts['recall_queries']} queries, "
        f"{facts['lowest_recall']} on the worst of them"
    )
    short = facts["queries_with_fewer"]
    short_notes = (
        [f"{short:,} queries found fewer than {request.depth:,} documents; set {index.remedy}"] if short else []
    )
    return [f"{request.place}: {sentence}" for sentence in (recall_note, *short_notes)]
