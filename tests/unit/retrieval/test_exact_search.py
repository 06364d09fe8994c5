"""Exact search is what brute force in exact arithmetic says, ties by id, in blocks of any size."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.errors import DataError
from curate.core.protocols import Vectors
from curate.retrieval.similarity import exact_search
from curate.retrieval.similarity.exact_search import Best, longest, products, top_k, unit


def brute_force(queries: Vectors, documents: Vectors, ids: Sequence[str], k: int) -> list[list[str]]:
    """Sort all documents by minus their exact product, then by id."""

    def exact(query: Vectors, document: Vectors) -> Fraction:
        pairs = zip(query.tolist(), document.tolist(), strict=True)
        return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))

    scores = [[exact(query, document) for document in documents] for query in queries]
    orders = [sorted(range(len(ids)), key=lambda row: (-of[row], ids[row])) for of in scores]
    return [[ids[row] for row in order[:k]] for order in orders]


def found(queries: Vectors, documents: Vectors, ids: Sequence[str], k: int) -> list[list[str]]:
    return [[ids[row] for row in rows] for rows, _ in top_k(queries, documents, ids, k)]


def listed(best: Iterator[Best]) -> list[tuple[list[int], list[float]]]:
    return [(rows.tolist(), scores.tolist()) for rows, scores in best]


def eighths(rows: list[list[int]], dim: int) -> Vectors:
    return np.array(rows, dtype=np.float32).reshape(-1, dim) / np.float32(8)


@st.composite
def tied(draw: st.DrawFn) -> tuple[Vectors, Vectors, list[str], int]:
    """A few vectors of eighths, so that many products are equal, under ids in no order."""
    dim = draw(st.integers(1, 4))
    rows = st.lists(st.lists(st.integers(-8, 8), min_size=dim, max_size=dim), max_size=12)
    queries, documents = (eighths(draw(rows), dim) for _ in range(2))
    names = st.text("ab01é中", min_size=1, max_size=3)
    ids = draw(st.lists(names, min_size=len(documents), max_size=len(documents), unique=True))
    return queries, documents, ids, draw(st.integers(1, 15))


@pytest.mark.slow
@given(tied(), st.integers(1, 5))
def test_order_is_exact_product_then_id(case: tuple[Vectors, Vectors, list[str], int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DOCUMENTS", "CONVERTED"):
            patch.setattr(exact_search, name, block)
        assert found(*case) == brute_force(*case)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 7, 100, 300, 1000])
def test_products_that_float32_cannot_tell_apart(k: int) -> None:
    rng = np.random.default_rng(5)
    documents = unit(rng.standard_normal((20, 48))).repeat(15, axis=0)
    for row in range(len(documents)):  # one step in the last bit of one component
        documents[row, row % 48] = np.nextafter(documents[row, row % 48], np.float32(row % 3 - 1))
    queries = unit(documents[::60] + 0.1 * rng.standard_normal((5, 48)).astype(np.float32))
    ids = [f"d{(row * 7919) % 300}" for row in range(300)]
    assert found(queries, documents, ids, k) == brute_force(queries, documents, ids, k)


@pytest.mark.slow
def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    documents = unit(rng.integers(-2, 3, (500, 8)))  # few directions: hundreds of ties
    ids = [str(row) for row in range(500)]
    whole = listed(top_k(documents[:70], documents, ids, 50))
    for asked, block, rescored in ((1, 7, 3), (7, 1, 64), (1000, 499, 1), (70, 1000, 1000)):
        monkeypatch.setattr(exact_search, "QUERIES", asked)
        for name in ("DOCUMENTS", "CONVERTED"):
            monkeypatch.setattr(exact_search, name, block)
        monkeypatch.setattr(exact_search, "RESCORED", rescored)
        assert listed(top_k(documents[:70], documents, ids, 50)) == whole


def test_ids_order_as_texts_and_scores_are_products() -> None:
    same = np.array([[0.6, 0.8]] * 3, dtype=np.float32)
    ((rows, scores),) = top_k(np.array([[1.0, 0.0]], dtype=np.float32), same, ["9", "10", "１"], 3)
    assert rows.tolist() == [1, 0, 2]
    assert set(scores.tolist()) == {float(np.float32(0.6))}


def test_a_query_of_zeros_ties_everything() -> None:
    documents = unit(np.eye(4))
    assert found(np.zeros((1, 4), np.float32), documents, ["d", "c", "b", "a"], 2) == [["a", "b"]]


@pytest.mark.parametrize(("queries", "documents", "expected"), [(0, 3, []), (2, 0, [[], []])])
def test_nothing_to_search(queries: int, documents: int, expected: list[list[str]]) -> None:
    ids = [str(row) for row in range(documents)]
    assert found(np.ones((queries, 2), np.float32), np.ones((documents, 2), np.float32), ids, 5) == expected


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_vectors_that_cannot_be_compared_are_refused(bad: float) -> None:
    good, broken = np.ones((3, 2), np.float32), np.ones((3, 2), np.float32)
    broken[1, 1] = bad
    with pytest.raises(DataError, match="1 document vectors hold NaN or infinity, the first in row 1"):
        found(good, broken, list("abc"), 1)
    with pytest.raises(DataError, match="1 query vectors hold NaN or infinity, the first in row 1"):
        found(broken, good, list("abc"), 1)


def test_vectors_whose_products_float32_cannot_hold_are_refused() -> None:
    long = np.array([[1, 0], [1e20, -1e20]], np.float32)
    with pytest.raises(DataError, match=r"1 document vectors are longer than 1e\+18, the first in row 1"):
        found(long[:1], long, list("ab"), 1)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1e-22, 1e-20, 1.0])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_vectors_of_any_precision_and_length(kind: npt.DTypeLike, length: float) -> None:
    """Some products are too small for float32, and some vectors are not float32; the order is that of float64."""
    draw = np.random.default_rng(8)
    queries, documents = (length * draw.standard_normal((rows, 32)) for rows in (100, 2000))
    if kind is np.float16:
        queries, documents = queries / length, documents / length
    asked, held = queries.astype(kind), np.asfortranarray(documents.astype(kind))
    exact = asked.astype(np.float64) @ held.astype(np.float64).T
    best = [rows for rows, _ in listed(top_k(asked, held, [str(row) for row in range(2000)], 100))]
    assert best == np.argsort(-exact, axis=1)[:, :100].tolist()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="query vectors have 2 dimensions, document vectors 3"):
        found(np.ones((1, 2), np.float32), np.ones((1, 3), np.float32), ["a"], 1)
    with pytest.raises(DataError, match="found 1 document ids for 2 document vectors"):
        found(np.ones((1, 2), np.float32), np.ones((2, 2), np.float32), ["a"], 1)


def test_a_product_does_not_depend_on_its_company() -> None:
    rng = np.random.default_rng(7)
    matrix, vector = unit(rng.standard_normal((100, 333))), unit(rng.standard_normal((1, 333)))[0]
    together = products(vector, matrix, np.arange(100))
    alone = [float(products(vector, matrix, np.array([row]))[0]) for row in range(100)]
    assert together.tolist() == alone
    assert alone == pytest.approx([math.fsum(vector.astype(float) * row.astype(float)) for row in matrix], abs=1e-15)


def test_unit_keeps_directions_and_zeros() -> None:
    rows = unit(np.array([[3, 4], [0, 0], [-2, 0]], dtype=np.float16))
    assert rows.dtype == np.float32
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0], [-1, 0]]), abs=1e-7)


@pytest.mark.parametrize("size", [0.0, 1e-40, 1e-25, 1e-3, 1.0, 1e16])
def test_no_vector_is_longer_than_the_longest(size: float) -> None:
    rows = (size * np.random.default_rng(10).standard_normal((50, 96))).astype(np.float32)
    exact = float(np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1)).max())
    assert exact <= longest(rows, "document") <= exact * (1 + 1e-4) + 1e-17
