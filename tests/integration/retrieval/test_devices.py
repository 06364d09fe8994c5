"""Rough products: wherever they are computed, they are as near as they say, and decide nothing that is in doubt."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from curate.core.errors import ConfigError, MissingExtra
from curate.core.protocols import Vectors
from curate.retrieval.similarity import devices, diversity, exact_search, near_duplicates
from curate.retrieval.similarity.devices import int8_pays, nearest_on, screen_for_pairs
from curate.retrieval.similarity.diversity import diversify
from curate.retrieval.similarity.exact_search import Best, Nearest, longest, nearest_by_faiss, products, top_k, unit
from curate.retrieval.similarity.int8 import Int8, Whole, WholeProducts, sums_exactly
from curate.retrieval.similarity.screening import FLOAT32, Float32, Screen
from curate.retrieval.similarity.torch_products import TorchFloat32
from curate.system import faiss_library

torch = pytest.importorskip("torch")
TORCH, INT8 = TorchFloat32(torch.device("cpu")), Int8()
SCREENS: dict[str, Screen] = {"float32": FLOAT32, "torch": TORCH, "int8": INT8}
ROUGH = {"float32": 0.001, "torch": 0.001, "int8": 0.06}
"""How far a product of unit vectors may be from the exact one, for a screen to be worth its while."""
SEARCHES: dict[str, Nearest] = {"faiss": nearest_by_faiss, "torch": TORCH.nearest}


def directions(rows: int, dim: int, seed: int) -> Vectors:
    """Return vectors that nobody's rounding likes: numbers of all sizes, zeros, and nearly equal ones."""
    draw = np.random.default_rng(seed)
    found = draw.standard_normal((rows, dim)) * 10.0 ** draw.integers(-6, 1, (rows, dim))
    found[::7] = found[0] * (1 + 1e-4 * draw.standard_normal((len(found[::7]), dim)))
    found[3] = 0
    return unit(found)


def listed(best: Iterator[Best]) -> list[tuple[list[int], list[float]]]:
    return [(rows.tolist(), scores.tolist()) for rows, scores in best]


def whole(screen: Screen, left: Any, right: Any) -> Vectors:
    """Return all products of two loaded blocks."""
    rows, columns, values = screen.above(screen.product(left, right), -1e6)
    found = np.zeros((rows.max() + 1, columns.max() + 1))
    found[rows, columns] = values
    return found


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
    elif kind == 4:  # many of the same direction, so that a margin is full of ties
        documents[draw.random(count) < 0.8] = documents[0]
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
        for name in ("DOCUMENTS", "CONVERTED"):
            monkeypatch.setattr(exact_search, name, 1 + seed % 40)
        monkeypatch.setattr(exact_search, "MARGIN", seed % 5)
        expected = literal(*case)
        for name, nearest in SEARCHES.items():
            assert listed(top_k(*case, nearest)) == expected, (seed, name)


def test_adversarial_searches_are_as_the_rule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    searched_as_the_rule_says(range(120), monkeypatch)


@pytest.mark.accept
def test_5000_adversarial_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    searched_as_the_rule_says(range(5_000), monkeypatch)


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("length", [1.0, 1e-3, 50.0])
def test_products_are_within_the_error(name: str, length: float) -> None:
    screen = SCREENS[name]
    for dim in (1, 3, 64, 768):
        left, right = np.float32(length) * directions(60, dim, 1), directions(90, dim, 2)
        sizes = [longest(vectors, "") for vectors in (left, right)]
        blocks = [screen.load(*each) for each in zip((left, right), sizes, strict=True)]
        found = whole(screen, *blocks)
        exact = left.astype(np.float64) @ right.astype(np.float64).T
        bound = screen.error(*blocks)
        assert (np.abs(found - exact) <= bound).all()
        assert bound < ROUGH[name] * sizes[0] * sizes[1] + 1e-6, "else it would screen nothing"


@pytest.mark.parametrize("name", SCREENS)
def test_above_is_what_a_comparison_selects(name: str) -> None:
    screen = SCREENS[name]
    blocks = screen.load(directions(20, 5, 3), 1.0), screen.load(directions(300, 5, 4), 1.0)
    plain = whole(screen, *blocks)
    for floor in (-2.0, 0.1, 0.9999, 2.0):
        rows, columns, values = screen.above(screen.product(*blocks), floor)
        assert values.tolist() == plain[rows, columns].tolist()
        assert set(zip(*np.nonzero(plain >= floor), strict=True)) <= set(zip(rows, columns, strict=True))
        assert (np.diff(rows) >= 0).all()
        assert (values >= floor - 0.005).all()


@pytest.mark.parametrize("screen", [TORCH, INT8], ids=["torch", "int8"])
def test_rough_products_keep_the_same(screen: Screen) -> None:
    documents = directions(3000, 96, 5)
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
    expected = whole(screen, plain, plain)
    for same in (wide[::2, ::2], np.asfortranarray(vectors), vectors[::-1].copy()[::-1]):
        block = screen.load(same, 1.01)
        assert whole(screen, block, plain) == pytest.approx(expected, abs=screen.error(block, plain))


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


def test_torch_multiplies_in_single_precision_where_less_is_permitted() -> None:
    torch.set_float32_matmul_precision("medium")
    try:
        products = TORCH.product(TORCH.load(directions(5, 8, 1), 1.0), TORCH.load(directions(5, 8, 2), 1.0))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert products.dtype == torch.float32


def test_without_torch_the_processor_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    int8_pays.cache_clear()
    monkeypatch.setattr(devices, "installed", lambda module: module != "torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    for device in ("auto", "cpu"):
        assert screen_for_pairs(device, 10**6) is FLOAT32
        assert nearest_on(device) is nearest_by_faiss
    with pytest.raises(MissingExtra, match=r"engine.device: 'cuda:0'.*curate-ir\[dense\]"):
        nearest_on("cuda:0")
    int8_pays.cache_clear()


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert screen_for_pairs("cpu", devices.ITEMS - 1) is FLOAT32
    monkeypatch.setattr(devices, "int8_pays", lambda: True)
    assert isinstance(screen_for_pairs("cpu", devices.ITEMS), Int8)
    if not torch.cuda.is_available():
        assert nearest_on("auto") is nearest_by_faiss
        with pytest.raises(ConfigError, match=r"engine\.device: 'cuda' cannot be used"):
            nearest_on("cuda")
    with pytest.raises(ConfigError, match=r"engine\.device: 'gpu'"):
        screen_for_pairs("gpu", 1)


KERNELS = """
import os
from curate.system.faiss_library import library
library()
assert os.environ.get("OPENBLAS_CORETYPE") == {kept!r}
from threadpoolctl import threadpool_info
libraries = [each for each in threadpool_info() if "faiss" in each["filepath"]]
print([each["architecture"] for each in libraries if "architecture" in each])
"""


@pytest.mark.skipif(not faiss_library.has_avx2(), reason="the processor has no AVX2")
@pytest.mark.parametrize("kept", [None, "Sandybridge"])
def test_faiss_multiplies_by_the_instructions_of_this_processor(kept: str | None) -> None:
    """Kernels that the user has named are not changed, and nothing is left in the environment."""
    environment = {name: text for name, text in os.environ.items() if name != faiss_library.CORE}
    environment |= {faiss_library.CORE: kept} if kept else {}
    command = [sys.executable, "-c", KERNELS.format(kept=kept)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([kept or "Haswell"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_finds_and_keeps_the_same() -> None:
    documents, queries = directions(30_000, 384, 7), directions(300, 384, 8)
    ids = [str(row) for row in range(30_000)]
    found = listed(top_k(queries, documents, ids, 500, nearest_on("cuda")))
    assert found == listed(top_k(queries, documents, ids, 500))
    assert (
        diversify(documents, 0.8, screen=screen_for_pairs("cuda", 30_000)).nearest.tolist()
        == diversify(documents, 0.8).nearest.tolist()
    )
