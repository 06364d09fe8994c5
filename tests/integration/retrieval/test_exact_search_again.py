"""Exact search orders documents as products in float64 do, ties by id, on vectors that are made to confuse it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from curate.core.protocols import Kit
from curate.core.records import Role
from curate.retrieval.engines.faiss import Config, Faiss
from curate.retrieval.retrievers.dense import Config as DenseConfig
from curate.retrieval.retrievers.dense import DenseRetriever
from curate.retrieval.vectors import CachedEncoder
from curate.testing import ListCorpus, listed

Vectors = npt.NDArray[np.float32]
Case = tuple[Vectors, Vectors, list[str]]


class Table:
    """An encoder whose vectors stand in a table: a text is the number of its row."""

    name, revision = "table", "1"

    def __init__(self, documents: Vectors, queries: Vectors) -> None:
        self.rows = {"document": documents, "query": queries}
        self.dim = documents.shape[1]

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        return self.rows[role][[int(text) for text in texts]]


def searched(folder: Path, case: Case, depth: int, engine: Any = None) -> list[list[tuple[str, float]]]:
    documents, queries, ids = case
    cached = CachedEncoder(Table(documents, queries), folder / "vectors")
    given = (lambda _: cached, folder / "cache") if engine is None else (lambda _: cached, folder / "cache", engine)
    retriever = DenseRetriever("dense", DenseConfig(encoder="x"), Kit(*given))
    corpus = ListCorpus({name: str(row) for row, name in enumerate(ids)})
    asked = {f"q{row:03}": str(row) for row in range(len(queries))}
    return [[(hit.doc_id, hit.score) for hit in hits] for hits in listed(retriever, corpus, asked, depth)]


def expected(case: Case, depth: int) -> list[list[str]]:
    """Return what float64 says: products of the very vectors, equal ones by id."""
    documents, queries, ids = case
    same: dict[bytes, int] = {}
    first = [same.setdefault(row.tobytes(), at) for at, row in enumerate(documents)]
    found = []
    for query in queries.astype(np.float64):
        products = (documents.astype(np.float64) * query).sum(axis=1)[first]
        found.append([ids[at] for at in sorted(range(len(ids)), key=lambda at: (-products[at], ids[at]))][:depth])
    return found


def unit(rows: npt.NDArray[Any]) -> Vectors:
    found: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def shuffled(count: int) -> list[str]:
    """Return ids whose order as texts has nothing to do with the order of rows."""
    return [f"d{number}" for number in np.random.default_rng(count).permutation(count)]


def duplicates() -> Case:
    random = np.random.default_rng(1)
    documents = unit(random.standard_normal((12, 24))).repeat(40, axis=0)
    return documents, unit(random.standard_normal((20, 24))), shuffled(480)


def near_ties() -> Case:
    """Products that differ by about 1e-7 of 1, which float32 cannot tell apart."""
    random = np.random.default_rng(2)
    query = unit(random.standard_normal((1, 64)))
    side = random.standard_normal((600, 64))
    side -= (side @ query.T.astype(np.float64)) * query
    documents = unit(query + 1e-3 * side / np.linalg.norm(side, axis=1, keepdims=True))
    return documents, np.concatenate([query, unit(random.standard_normal((9, 64)))]), shuffled(600)


def clusters() -> Case:
    random = np.random.default_rng(3)
    centres = random.standard_normal((8, 48)).repeat(150, axis=0)
    documents = unit(centres + 1e-4 * random.standard_normal((1200, 48)))
    return documents, unit(centres[::100] + 1e-2 * random.standard_normal((12, 48))), shuffled(1200)


def equal_at_the_cut() -> Case:
    """Few directions of eighths, so that hundreds of products are exactly equal wherever a list ends."""
    random = np.random.default_rng(4)
    rows = random.integers(-1, 2, (900, 4)).astype(np.float32)
    rows[~rows.any(axis=1)] = 1
    return rows / np.float32(2), rows[:15] / np.float32(2), shuffled(900)


def zeros() -> Case:
    random = np.random.default_rng(7)
    documents = unit(random.standard_normal((300, 16)))
    documents[::3] = 0
    queries = unit(random.standard_normal((6, 16)))
    queries[0] = 0
    return documents, queries, shuffled(300)


def one_document() -> Case:
    return unit(np.ones((1, 8))), unit(np.random.default_rng(8).standard_normal((5, 8))), ["only"]


CASES = (duplicates, near_ties, clusters, equal_at_the_cut, zeros, one_document)


@pytest.mark.parametrize("make", CASES)
def test_the_order_is_that_of_float64(make: Any, tmp_path: Path) -> None:
    """Lists of any depth, also beyond the corpus, have the order of float64 products, ties by id (today too)."""
    case = make()
    for depth in (1, 10, 100, len(case[2]) + 7):
        found = searched(tmp_path, case, depth)
        assert [[doc for doc, _ in some] for some in found] == expected(case, depth)
        assert all(len(some) == min(depth, len(case[2])) for some in found)


def test_scores_are_the_products_and_fall(tmp_path: Path) -> None:
    """The score of a hit is its product, and no hit has a higher one than the hit before it (today too)."""
    case = clusters()
    documents, queries, ids = case
    for query, some in zip(queries, searched(tmp_path, case, 50), strict=True):
        scores = [score for _, score in some]
        exact = [float(documents[ids.index(doc)].astype(float) @ query.astype(float)) for doc, _ in some]
        assert scores == pytest.approx(exact, abs=1e-6)
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("settings", [{"index": "ivf", "lists": 4, "probes": 4}, {"index": "hnsw", "threads": 1}])
def test_an_approximate_index_finds_nearly_all(settings: dict[str, Any], tmp_path: Path) -> None:
    """HNSW and IVF as the user asks for them find at least nine of ten of what exact search finds (today too)."""
    random = np.random.default_rng(9)
    case = unit(random.standard_normal((2000, 16))), unit(random.standard_normal((20, 16))), shuffled(2000)
    found = searched(tmp_path, case, 10, Faiss(Config(**{"exact_below": 0, "min_recall": 0.5, **settings})))
    hits = sum(len({doc for doc, _ in some} & set(best)) for some, best in zip(found, expected(case, 10), strict=True))
    assert hits >= 180
