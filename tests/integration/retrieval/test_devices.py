"""Rough products: whoever computes them, they are as near as they say, and what they screen decides nothing."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from curate.core.errors import ConfigError, DataError, MissingExtra
from curate.core.protocols import Vectors
from curate.retrieval.similarity import devices, diversity, exact_search, near_duplicates
from curate.retrieval.similarity.bf16 import BFloat16, Bits, RowsBf16, sums_in_float32
from curate.retrieval.similarity.devices import bf16_pays, int8_pays, screen_for_pairs, screen_for_search
from curate.retrieval.similarity.diversity import diversify
from curate.retrieval.similarity.exact_search import Best, longest, products, top_k, unit
from curate.retrieval.similarity.float16 import Float16
from curate.retrieval.similarity.int8 import Int8, Whole, WholeProducts, sums_exactly
from curate.retrieval.similarity.screening import FLOAT32, Float32, Rows, Scores, Screen, Tile

torch = pytest.importorskip("torch")
HALF = Float16(torch.device("cpu"))
INT8, BF16 = Int8(), BFloat16()
SCREENS: dict[str, Screen] = {"float32": FLOAT32, "float16": HALF, "bf16": BF16, "int8": INT8}
ROUGH = {"float32": 0.001, "float16": 0.004, "bf16": 0.012, "int8": 0.06}
"""How far a product of unit vectors may be from the exact one, for a screen to be worth its while."""


def directions(rows: int, dim: int, seed: int) -> Vectors:
    """Return vectors that nobody's rounding likes: numbers of all sizes, zeros, and nearly equal ones."""
    draw = np.random.default_rng(seed)
    found = draw.standard_normal((rows, dim)) * 10.0 ** draw.integers(-6, 1, (rows, dim))
    found[::7] = found[0] * (1 + 1e-4 * draw.standard_normal((len(found[::7]), dim)))
    found[3] = 0
    return unit(found)


def listed(best: Iterator[Best]) -> list[tuple[list[int], list[float]]]:
    return [(rows.tolist(), scores.tolist()) for rows, scores in best]


def by_row(tiles: Iterable[Tile]) -> list[tuple[Rows, Scores]]:
    return [(columns[low:high], values[low:high]) for edges, columns, values in tiles for low, high in pairwise(edges)]


def adversarial(seed: int) -> tuple[Vectors, Vectors, list[str], int]:
    """Return queries, documents, ids and k of a small search that rounding could go wrong in.

    Equal, nearly equal and opposite vectors; negative products alone; lengths from 1e-30 to 1e9; zeros; few directions.
    """
    draw = np.random.default_rng(seed)
    dim, count, asked = int(draw.integers(1, 70)), int(draw.integers(1, 90)), int(draw.integers(1, 6))
    documents = draw.standard_normal((count, dim))
    kind = seed % 6
    if kind == 1:  # steps in the last bits of a few vectors
        documents = documents[draw.integers(0, min(3, count), count)] * (
            1 + 2.0**-22 * draw.integers(-2, 3, (count, dim))
        )
    elif kind == 2:
        documents = draw.integers(-1, 2, (count, dim)) * 2.0 ** draw.integers(-3, 4)
    elif kind == 3:
        documents *= 10.0 ** draw.integers(-30, 10, (count, 1))
    elif kind == 4:  # just above and below halves of a bfloat16's last bit
        documents = np.sign(documents) * (1 + 2.0**-8 * (0.5 + 2.0**-14 * draw.integers(-1, 2, (count, dim))))
    elif kind == 5:
        documents[draw.random(count) < 0.3] = 0
    queries = documents[draw.integers(0, count, asked)] + 0.01 * draw.standard_normal((asked, dim)) * (kind != 2)
    queries *= -1 if draw.random() < 0.4 else 1
    ids = [str(each) for each in draw.permutation(count)]
    return queries.astype(np.float32), documents.astype(np.float32), ids, int(draw.integers(1, count + 10))


def literal(queries: Vectors, documents: Vectors, ids: Sequence[str], k: int) -> list[tuple[list[int], list[float]]]:
    """Return what the rule says: all float64 products, the best first, ties by id."""
    found = []
    for query in queries:
        exact = products(query, documents, np.arange(len(ids)))
        order = sorted(range(len(ids)), key=lambda row: (-exact[row], ids[row]))[:k]
        found.append((order, exact[order].tolist()))
    return found


def searched_as_the_rule_says(seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        case = adversarial(seed)
        monkeypatch.setattr(exact_search, "DOCUMENTS", 1 + seed % 40)
        monkeypatch.setattr(exact_search, "cores", partial(int, 2 + seed % 2))  # without a thread ahead, and with one
        expected = literal(*case)
        for screen in (FLOAT32, BF16):
            assert listed(top_k(*case, screen)) == expected, seed


def test_adversarial_searches_are_as_the_rule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    searched_as_the_rule_says(range(120), monkeypatch)


@pytest.mark.accept
def test_5000_adversarial_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    searched_as_the_rule_says(range(5_000), monkeypatch)


def test_bfloat16_below_zero() -> None:
    """Floors of all signs, with products of both zeros: bits of negative numbers are in the other order."""
    values = np.array([[-2.0, -1.0, -(2.0**-120), -0.0, 0.0, 2.0**-120, 1.0, 3.0]], np.float32)
    scores = BF16.product(BF16.load(np.ones((1, 1), np.float32), 1.0), BF16.load(values.T, 3.0))
    for floor in (*values[0].tolist(), -1.5, 0.5, -math.inf, math.inf):
        ((columns, found),) = by_row(BF16.at_least(scores, np.array([floor])))
        assert columns.tolist() == np.flatnonzero(values[0] >= floor).tolist()
        assert found.tolist() == values[0, columns].tolist()
    assert [BF16.kth(scores, k).tolist() for k in (1, 3, 8)] == [[3.0], [2.0**-120], [-2.0]]


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("length", [1.0, 1e-3, 50.0])
def test_products_are_within_the_error(name: str, length: float) -> None:
    screen = SCREENS[name]
    for dim in (1, 3, 64, 768):
        left, right = np.float32(length) * directions(60, dim, 1), directions(90, dim, 2)
        sizes = [longest(vectors, "") for vectors in (left, right)]
        blocks = [screen.load(*each) for each in zip((left, right), sizes, strict=True)]
        scores = screen.product(*blocks)
        found = np.array([values for _, values in by_row(screen.at_least(scores, np.full(60, -math.inf)))])
        exact = left.astype(np.float64) @ right.astype(np.float64).T
        bound = screen.error(*blocks).of(found)
        assert (np.abs(found - exact) <= bound).all()
        assert bound.max() < ROUGH[name] * sizes[0] * sizes[1] + 1e-6, "else it would screen nothing"


@pytest.mark.parametrize("name", SCREENS)
def test_at_least_and_kth_are_those_of_a_sort(name: str) -> None:
    screen = SCREENS[name]
    scores = screen.product(screen.load(directions(20, 5, 3), 1.0), screen.load(directions(300, 5, 4), 1.0))
    plain = np.array([values for _, values in by_row(screen.at_least(scores, np.full(20, -math.inf)))])
    for k in (1, 17, 300):
        assert screen.kth(scores, k).tolist() == np.sort(plain, axis=1)[:, 300 - k].tolist()
    floors = np.linspace(-1.5, 1.5, 20)
    for row, (columns, values) in enumerate(by_row(screen.at_least(scores, floors))):
        assert set(np.flatnonzero(plain[row] >= floors[row])) <= set(columns.tolist()), "nothing is lost"
        assert values.tolist() == plain[row, columns].tolist()
        assert (values >= floors[row] - 0.005).all()


@pytest.mark.parametrize("name", SCREENS)
def test_above_is_at_least_of_one_floor(name: str) -> None:
    screen = SCREENS[name]
    scores = screen.product(screen.load(directions(20, 5, 3), 1.0), screen.load(directions(300, 5, 4), 1.0))
    for floor in (-2.0, 0.1, 0.9999, 2.0):
        expected = by_row(screen.at_least(scores, np.full(20, floor)))
        rows, columns, values = screen.above(scores, floor)
        assert rows.tolist() == [row for row, (found, _) in enumerate(expected) for _ in found]
        assert columns.tolist() == [column for found, _ in expected for column in found]
        assert values.tolist() == [value for _, found in expected for value in found]


@pytest.mark.parametrize("screen", [HALF, BF16, INT8], ids=["float16", "bf16", "int8"])
def test_rough_products_find_and_keep_the_same(screen: Screen) -> None:
    documents, queries = directions(3000, 96, 5), directions(40, 96, 6)
    ids = [f"d{row * 7919 % 3000}" for row in range(3000)]
    expected = listed(top_k(queries, documents, ids, 100))
    assert listed(top_k(queries, documents, ids, 100, screen)) == expected
    for t in (0.3, 0.9, 0.99999):
        one, other = diversify(documents, t), diversify(documents, t, screen=screen)
        assert one.kept.tolist() == other.kept.tolist()
        assert one.nearest.tolist() == other.nearest.tolist()
        assert one.similarity.tolist() == pytest.approx(other.similarity.tolist(), nan_ok=True, abs=0)


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("rows", [1, 5])
def test_vectors_in_any_order_of_memory(name: str, rows: int) -> None:
    screen, vectors = SCREENS[name], directions(5, 6, 7)[:rows]
    wide = np.zeros((2 * rows, 12), np.float32)
    wide[::2, ::2] = vectors
    plain = screen.load(vectors, 1.01)
    expected = [
        values.tolist() for _, values in by_row(screen.at_least(screen.product(plain, plain), np.full(rows, -2.0)))
    ]
    for same in (wide[::2, ::2], np.asfortranarray(vectors), vectors[::-1].copy()[::-1]):
        block = screen.load(same, 1.01)
        found = [
            values.tolist() for _, values in by_row(screen.at_least(screen.product(block, plain), np.full(rows, -2.0)))
        ]
        assert np.array(found) == pytest.approx(np.array(expected), abs=screen.error(block, plain).absolute)


class Saturating(Int8):
    """Multiplies two numbers at once and adds them in 16 bits, as older processors do."""

    def product(self, left: Whole, right: Whole) -> WholeProducts:
        shifted, other = left.numbers.numpy().astype(np.int32) + 128, right.numbers.numpy().astype(np.int32)
        pairs = shifted[:, None, ::2] * other[None, :, ::2] + shifted[:, None, 1::2] * other[None, :, 1::2]
        found = np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=2) - 128 * other.sum(axis=1)
        return WholeProducts(found.astype(np.int32), left.step * right.step)


def test_a_processor_whose_sums_are_cut_off_is_found_out() -> None:
    assert sums_exactly(INT8)
    assert not sums_exactly(Saturating())


class Forgetting(BFloat16):
    """Adds in bfloat16, some numbers at a time, as a library that cuts long vectors into pieces might."""

    width = 64

    def product(self, left: RowsBf16, right: RowsBf16) -> Bits:
        pieces = zip(left.rows.split(self.width, dim=1), right.rows.split(self.width, dim=1), strict=True)
        found: Bits = sum(one @ other.T for one, other in pieces).view(torch.int16).numpy()
        return found


@pytest.mark.parametrize("width", [16, 64, 256, 512])
def test_sums_in_bfloat16_are_found_out(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sums_in_float32(BF16)
    monkeypatch.setattr(Forgetting, "width", width)
    assert not sums_in_float32(Forgetting())


def just_below(t: float, rows: int) -> Vectors:
    """Return vectors of which any two are alike by little less than t: one direction in common, else random."""
    own = np.random.default_rng(9).standard_normal((rows, 64))
    own[:, 0] = 0
    found = np.sqrt(1 - t) * unit(own)
    found[:, 0] = np.sqrt(t)
    return unit(found)


@pytest.mark.parametrize("t", [0.8, 0.82])
def test_a_rough_screen_that_fails_too_often_is_given_up(t: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "BLOCK", 64)
    monkeypatch.setattr(near_duplicates, "CHUNK", 128)
    vectors, tried = just_below(0.8, 2000), []
    expected = diversify(vectors, t)
    product = Int8.product
    monkeypatch.setattr(Int8, "product", lambda self, *blocks: tried.append(1) or product(self, *blocks))  # type: ignore[func-returns-value]
    decided = diversify(vectors, t, screen=INT8)
    assert decided.nearest.tolist() == expected.nearest.tolist()
    assert decided.similarity.tolist() == pytest.approx(expected.similarity.tolist(), nan_ok=True, abs=0)
    assert 0 < len(tried) < 10, "of some 500 products"


def test_what_had_room_has_it_in_single_precision_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "RECENT", 8)
    rule = near_duplicates.Alike(just_below(0.8, 40), 0.8, INT8)
    for start in range(0, 40, 4):
        rule.keep(np.arange(start, start + 4))
    single = Float32()
    single.room = 20 * 64 * 4
    monkeypatch.setattr(near_duplicates, "FLOAT32", single)
    rule._settle()
    parts = [*rule._parts, *rule._recent]
    assert np.concatenate([part.items for part in parts]).tolist() == list(range(40))
    assert sum(len(part.items) for part in parts if part.loaded is not None) == 8, "of 32 and twice 4; 32 are too many"


def test_vectors_that_half_precision_cannot_hold_are_refused() -> None:
    with pytest.raises(DataError, match="longer than 100; normalise"):
        list(top_k(np.full((1, 4), 300, np.float32), np.ones((2, 4), np.float32), ["a", "b"], 1, HALF))


def test_without_torch_numpy_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    for pays in (int8_pays, bf16_pays):
        pays.cache_clear()
    monkeypatch.setattr(devices, "installed", lambda module: module != "torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    for device in ("auto", "cpu"):
        assert screen_for_pairs(device, 10**6) is screen_for_search(device, 10**9) is FLOAT32
    with pytest.raises(MissingExtra, match=r"engine.device: 'cuda:0'.*curate-ir\[dense\]"):
        screen_for_search("cuda:0", 1)
    for pays in (int8_pays, bf16_pays):
        pays.cache_clear()


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert screen_for_pairs("cpu", devices.ITEMS - 1) is screen_for_search("cpu", devices.PRODUCTS - 1) is FLOAT32
    monkeypatch.setattr(devices, "int8_pays", lambda: True)
    monkeypatch.setattr(devices, "bf16_pays", lambda: True)
    assert isinstance(screen_for_pairs("cpu", devices.ITEMS), Int8)
    assert isinstance(screen_for_search("cpu", devices.PRODUCTS), BFloat16)
    if not torch.cuda.is_available():
        assert screen_for_search("auto", 1) is FLOAT32
        with pytest.raises(ConfigError, match=r"engine\.device: 'cuda' cannot be used"):
            screen_for_search("cuda", 1)
    with pytest.raises(ConfigError, match=r"engine\.device: 'gpu'"):
        screen_for_pairs("gpu", 1)


def test_torch_is_loaded_for_large_searches_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "bf16_pays", lambda: True)
    monkeypatch.delitem(sys.modules, "torch")
    assert screen_for_search("cpu", devices.LOADING - 1) is FLOAT32
    assert isinstance(screen_for_search("cpu", devices.LOADING), BFloat16)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_finds_and_keeps_the_same() -> None:
    documents, queries = directions(30_000, 384, 7), directions(300, 384, 8)
    ids, gpu = [str(row) for row in range(30_000)], screen_for_search("cuda", 1)
    assert listed(top_k(queries, documents, ids, 500, gpu)) == listed(top_k(queries, documents, ids, 500))
    assert diversify(documents, 0.8, screen=gpu).nearest.tolist() == diversify(documents, 0.8).nearest.tolist()
