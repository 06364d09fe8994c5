"""Search by an approximate engine: its candidates in exact order, and its recall against exact search on a sample."""

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
from curate.retrieval.similarity.devices import screen_for_search
from curate.retrieval.similarity.exact_search import Best, check, longest, places, products, top_k
from curate.retrieval.similarity.screening import Rows
from curate.system.processes import cores

BLOCK = 256
"""Queries that an index is asked at once."""


class Lookup(Protocol):
    """An index that is ready to be asked."""

    facts: Mapping[str, Json]
    """`engine`, `index` (its kind) and `parameters`: how it was built, and how it is asked."""
    remedy: str
    """What to set so that it finds more."""

    def nearest(self, queries: Vectors) -> Rows:
        """Return rows that may be the nearest of each query, in any order, at least `depth`; -1 where there is none."""
        ...


@runtime_checkable
class ApproximateEngine(Engine, Protocol):
    """An engine that looks documents up in an index, which may miss some of the nearest."""

    identity: Json
    """All that changes what it finds."""
    exact_below: int
    """With fewer documents every one is compared."""
    sample: int
    """Queries on which its recall is measured."""
    min_recall: float
    """Below which it is refused."""

    def lookup(self, folder: Path, key: Json, vectors: Vectors, depth: int, progress: Progress) -> Lookup:
        """Return the index of these vectors, which `key` identifies; it is kept in the folder, and built if need be."""
        ...


@dataclass
class Asked:
    """What is searched, and what is to be said of the search in the end."""

    place: str
    """Of the retriever in the pipeline."""
    queries: Vectors
    documents: Vectors
    ids: Sequence[str]
    depth: int
    device: str
    """On which the exact answer is found."""
    facts: dict[str, Json] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def exact(self, queries: Vectors, looked: Callable[[int], None] = lambda _queries: None) -> Iterator[Best]:
        """Yield what exact search finds."""
        screen = screen_for_search(self.device, len(queries) * len(self.documents))
        return top_k(queries, self.documents, self.ids, self.depth, screen, looked)


def search(
    asked: Asked,
    engine: ApproximateEngine,
    folder: Path,
    key: Json,
    progress: Progress,
    looked: Callable[[int], None],
) -> Iterator[Best]:
    """Yield each query's best documents that the engine's index finds, by float64 product, ties by document id.

    CheckFailed before the first of them if recall on a sample of the queries is below what the engine asks for.
    """
    count = len(asked.documents)
    if count < engine.exact_below or asked.depth >= count:
        asked.facts["search"] = "exact"
        few = f"its {count:,} documents are fewer than engine.exact_below ({engine.exact_below:,})"
        all_of_them = f"a depth of {asked.depth:,} is all of its {count:,} documents"
        why = few if count < engine.exact_below else all_of_them
        asked.notes.append(f"{asked.place}: every document was compared, for {why}")
        yield from asked.exact(asked.queries, looked)
        return
    check(asked.queries, asked.documents, asked.ids)
    longest(asked.queries, "query")
    asked.documents = asked.documents.view(np.ndarray)  # a memory-mapped array is slower at taking rows
    index = engine.lookup(folder, key, asked.documents, asked.depth, progress)
    asked.facts |= {"search": "approximate", **index.facts, **_measured(asked, engine, index)}
    looked(0)
    short = 0
    for best in found_by(index, asked, asked.queries):
        short += len(best[0]) < asked.depth
        yield best
    asked.facts["queries_with_fewer"] = short
    asked.notes += _notes(asked, index)


def found_by(index: Lookup, asked: Asked, queries: Vectors) -> Iterator[Best]:
    """Yield what an index finds for each query, ordered as exact search orders."""
    place = cache(lambda: places(asked.ids))

    def ranked(query: Vectors, rows: Rows) -> Best:
        there = np.sort(rows[rows >= 0])
        exact = products(query, asked.documents, there)
        order = np.argsort(-exact)
        if (np.diff(exact[order]) == 0).any():  # seldom, and sorting the ids of a large corpus takes long
            order = np.lexsort((place()[there], -exact))
        return there[order[: asked.depth]], exact[order[: asked.depth]]

    with ThreadPoolExecutor(cores()) as pool:
        for start in range(0, len(queries), BLOCK):
            block = np.ascontiguousarray(queries[start : start + BLOCK])
            yield from pool.map(ranked, block, index.nearest(block))


def _measured(asked: Asked, engine: ApproximateEngine, index: Lookup) -> dict[str, Json]:
    """Return the recall on a sample of queries; CheckFailed if it is too low.

    A query's recall is the share of as many documents as exact search finds whose product is not below the last of
    its: of documents with equal products it does not matter which one is found.
    """
    number = min(engine.sample, len(asked.queries))
    drawn = sorted(generator(0, "recall", len(asked.queries)).sample(range(len(asked.queries)), number))
    some = asked.queries[drawn]
    shares = [
        float((found >= exact[-1]).sum()) / len(exact)
        for (_, found), (_, exact) in zip(found_by(index, asked, some), asked.exact(some), strict=True)
    ]
    recall, lowest = round(sum(shares) / number, 4), round(min(shares), 4)
    if recall < engine.min_recall:
        raise CheckFailed(
            f"{asked.place}: recall@{asked.depth} of the {index.facts['index']} index is {recall} on {number} queries, "
            f"expected engine.min_recall={engine.min_recall} or more; set {index.remedy}, or remove `engine` for exact "
            "search (the index is kept and not built again)"
        )
    return {"recall": recall, "recall_at": asked.depth, "lowest_recall": lowest, "recall_queries": number}


def _notes(asked: Asked, index: Lookup) -> list[str]:
    facts: dict[str, Any] = asked.facts
    numbers = ", ".join(f"{name} {value}" for name, value in facts["parameters"].items())
    said = (
        f"documents were looked up in an approximate index ({facts['engine']} {facts['index']}: {numbers}); "
        f"recall@{facts['recall_at']} against exact search is {facts['recall']} on {facts['recall_queries']} queries, "
        f"{facts['lowest_recall']} on the worst of them"
    )
    short = facts["queries_with_fewer"]
    fewer = [f"{short:,} queries found fewer than {asked.depth:,} documents; set {index.remedy}"] if short else []
    return [f"{asked.place}: {sentence}" for sentence in (said, *fewer)]
