"""The greedy rule against a literal reading of it, and the stage around it on small folders."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate import config, diversity, resources
from curate.config import Settings
from curate.context import Report
from curate.diversity import diversify, threshold, twins
from curate.errors import ConfigError, UserError
from curate.files import BATCH, frame, read_table, write_table
from curate.protocols import Vectors
from curate.search import products, unit
from curate.stages import diversify as stage
from curate.stages.diversify import Config, Side, decide
from tests.small import context, embedding_server, letters

HALVES = unit(list(product((1.0, -1.0), repeat=4)))
"""Sixteen unit vectors whose products are -1, -0.5, 0, 0.5 or 1, exactly."""


def literal(vectors: Vectors, t: float, k: int, n: int, seed_size: int) -> list[int]:
    """Return what is kept when each item's top k neighbours are looked up in the growing index, one item at a time."""
    index: list[int] = []
    for item in range(len(vectors)):
        neighbours = sorted((float(vectors[item] @ vectors[other]) for other in index), reverse=True)[:k]
        if item < seed_size or sum(similarity > t for similarity in neighbours) <= n:
            index.append(item)
    return index


@given(
    st.lists(st.integers(0, 15), max_size=60),
    st.sampled_from([-0.7, -0.5, 0.0, 0.4, 0.5, 0.9, 1.0]),
    st.integers(1, 6).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k - 1))),
    st.integers(0, 20),
    st.sampled_from([1, 3, 8, 256]),
)
def test_decisions_are_those_of_the_literal_rule(
    picks: list[int], t: float, kn: tuple[int, int], seed_size: int, block: int
) -> None:
    vectors, (k, n) = HALVES[picks], kn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diversity, "BLOCK", block)
        decided = diversify(vectors, t, n, seed_size)
    assert np.flatnonzero(decided.kept).tolist() == literal(vectors, t, k, n, seed_size)
    for item in range(len(picks)):
        before = [other for other in range(item) if decided.kept[other]]
        if decided.kept[item]:
            assert (decided.nearest[item], np.isnan(decided.similarity[item])) == (-1, True)
        else:
            nearest = max(before, key=lambda other: (float(vectors[item] @ vectors[other]), -other))
            assert decided.nearest[item] == nearest
            assert decided.similarity[item] == float(vectors[item] @ vectors[nearest])


def test_real_vectors_over_several_blocks() -> None:
    rng = np.random.default_rng(3)
    vectors = unit(np.repeat(rng.standard_normal((150, 24)), 5, axis=0) + 0.3 * rng.standard_normal((750, 24)))
    vectors = vectors[rng.permutation(750)]
    for t in (0.85, 0.9, 0.95):
        kept = np.flatnonzero(diversify(vectors, t).kept).tolist()
        assert kept == literal(vectors, t, k=5, n=1, seed_size=0)
        assert 150 < len(kept) < 750


def test_order_decides_and_seeds_are_not_tested() -> None:
    a, b = [1.0, 0.0], [0.8, 0.6]
    vectors = np.array([a, a, b, a], dtype=np.float32)
    assert diversify(vectors, t=0.9, n=0).kept.tolist() == [True, False, True, False]
    assert diversify(vectors, t=0.9, n=1).kept.tolist() == [True, True, True, False]
    assert diversify(vectors, t=0.7, n=1).kept.tolist() == [True, True, False, False]
    assert diversify(vectors[[2, 0, 1, 3]], t=0.7, n=1).kept.tolist() == [True, True, False, False]
    assert diversify(vectors, t=0.7, n=0, seed_size=3).kept.tolist() == [True, True, True, False]


def test_similarities_meet_the_threshold_rounded_to_five_digits() -> None:
    def pair(cosine: float) -> Vectors:
        return np.array([[1, 0], [cosine, (1 - cosine**2) ** 0.5]], dtype=np.float32)

    assert diversify(pair(0.900004), t=0.9, n=0).kept.all()
    assert not diversify(pair(0.900006), t=0.9, n=0).kept.all()
    assert diversify(pair(0.900006), t=0.9, n=0).similarity[1] == 0.90001


def test_a_float32_product_on_the_wrong_side_of_the_threshold_decides_nothing() -> None:
    rng, tricky = np.random.default_rng(11), 0
    for _ in range(4000):
        pair = unit(rng.standard_normal((1, 512)) + rng.standard_normal((2, 512)))
        exact = round(float(products(pair[0], pair, np.array([1]))[0]), 5)
        if round(float((pair @ pair.T)[1, 0]), 5) != exact:
            tricky += 1
            assert diversify(pair, t=exact, n=0).kept.all(), "not above itself"
            assert diversify(pair, t=exact - 1e-5, n=0).kept.tolist() == [True, False]
            assert diversify(pair, t=exact - 1e-5, n=0).similarity[1] == exact
    assert tricky > 3


def test_of_several_equally_near_the_first_is_named() -> None:
    angles = np.array([2.0, 1.0, 1.003, 1.003])  # the cosine of 0.003 is 0.9999955: no difference at five digits
    vectors = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    assert diversify(vectors, t=0.9, n=1).nearest.tolist() == [-1, -1, -1, 1]


def test_nothing_and_one_thing() -> None:
    assert diversify(np.empty((0, 3), np.float32), 0.5).kept.tolist() == []
    assert diversify(np.ones((1, 3), np.float32), 0.5, n=0).kept.tolist() == [True]


def test_the_number_of_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (stage.SEED_FROM, stage.SEED_SIZE) == (50_000, 5_000)
    monkeypatch.setattr(stage, "SEED_FROM", 500)
    monkeypatch.setattr(stage, "SEED_SIZE", 50)

    def kept(size: int, seed_size: int | str) -> int:
        side = config.check(Side, {"t": 0.9, "seed_size": seed_size}, "side")
        return int(decide(side, size, lambda: np.ones((size, 1), dtype=np.float32)).kept.sum())

    assert kept(499, "auto") == 2
    assert kept(500, "auto") == 50
    assert kept(500, 300) == 300


@given(st.lists(st.integers(0, 15), min_size=1, max_size=50), st.integers(0, 2), st.sampled_from([0.05, 0.2, 0.5]))
def test_auto_finds_a_threshold_that_meets_the_target(picks: list[int], n: int, target: float) -> None:
    vectors = HALVES[picks]
    t = threshold(vectors, n, target)

    def dropped(at: float) -> int:
        return int((~diversify(vectors, at, n).kept).sum())

    assert dropped(t) <= target * len(picks)
    assert t == -1 or dropped(t - 0.001) > target * len(picks)


def test_auto_drops_no_less_than_it_may() -> None:
    assert threshold(HALVES[[0, 0, 1, 1]], n=0, target_drop=0.5) == 0.5, "below 0.5 the second pair would go too"


def test_twins_are_equal_texts_of_which_one_is_kept() -> None:
    items = [("d1", "咳嗽"), ("d2", "发热"), ("d3", "咳嗽 "), ("d4", "咳"), ("d5", "发热")]
    assert twins(items, np.array([True, False, False, False, False])) == {"d3": "d1"}
    assert twins(items, np.array([True, True, True, True, False])) == {"d5": "d2"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"corpus": {"k": 3, "n": 3}}, "diversify.corpus: n must be smaller than k"),
        ({"queries": {"t": 85}}, r"diversify\.queries\.t"),
        ({"queries": {"seed_size": -1}}, r"diversify\.queries\.seed_size"),
        ({"corpus": {"target_drop": 1}}, r"diversify\.corpus\.target_drop"),
        ({"corpus": {"threshold": 0.9}}, "did you mean|known: enabled, k, n"),
    ],
)
def test_settings_that_make_no_sense(settings: Settings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.check(Config, settings, "diversify")


QUERIES = {"q1": "高血压能吃鸡蛋吗", "q2": "吃鸡蛋高血压能吗", "q3": "小儿发热"}
CORPUS = {
    "d1": "少量食用鸡蛋没有问题",
    "d2": "物理降温，多喝水",
    "d3": "少量食用鸡蛋没有问题",
    "d4": "鸡蛋食用少量没有问题",
    "d5": "头痛的原因很多",
}
QRELS = [("q1", "d1"), ("q1", "d4"), ("q2", "d1"), ("q3", "d2"), ("q3", "d3"), ("q3", "d5")]


def masked(
    run: Path, queries: Mapping[str, str], corpus: Mapping[str, str], qrels: Sequence[tuple[str, str]] = ()
) -> Path:
    """Write what `mask` would write."""
    folder = run / "mask"
    folder.mkdir(parents=True)
    write_table(folder, "queries", frame("queries", [{"query_id": key, "text": queries[key]} for key in queries]))
    documents = [{"doc_id": key, "title": "", "text": corpus[key]} for key in corpus]
    write_table(folder, "corpus", frame("corpus", documents))
    pairs = [{"query_id": query_id, "doc_id": doc_id, "score": 1} for query_id, doc_id in qrels]
    write_table(folder, "qrels", frame("qrels", pairs))
    return run


def run_stage(run: Path, settings: Settings, encoders: Any) -> Report:
    """Run the stage with encoders of these definitions."""
    found = config.check(Config, settings, "diversify")
    given = context(run, encoders=encoders)
    given.out.mkdir(exist_ok=True)
    stage.fingerprint(found, given)
    return stage.run(found, given)


Run = Callable[..., Report]


@pytest.fixture
def small(tmp_path: Path) -> Any:
    """Return a function that runs the stage on the texts above, over an encoder that compares letters."""
    with embedding_server() as server:
        letters = {"toy": {"kind": "api", "base_url": server.url, "model": "m", "dim": 64}}
        masked(tmp_path, QUERIES, CORPUS, QRELS)
        yield lambda **settings: run_stage(tmp_path, {"encoder": "toy", **settings}, letters)


ONE = {"t": 0.95, "n": 0}


def test_what_is_dropped_and_what_it_resembles(small: Run, tmp_path: Path) -> None:
    report = small(queries=ONE, corpus=ONE)
    out = tmp_path / "out"
    dropped = read_table(out, "dropped").rows(named=True)
    assert [(row["table"], row["id"], row["nearest_id"], row["similarity"]) for row in dropped] == [
        ("corpus", "d3", "d1", 1.0),
        ("corpus", "d4", "d1", 1.0),
        ("qrels", "q1 d4", None, None),
        ("qrels", "q2 d1", None, None),
        ("queries", "q2", "q1", 1.0),
    ]
    assert {(row["table"], row["stage"], row["reason"]) for row in dropped} == {
        ("corpus", "diversify", "redundant"),
        ("queries", "diversify", "redundant"),
        ("qrels", "diversify", "its query or document is redundant"),
    }
    assert read_table(out, "queries")["query_id"].to_list() == ["q1", "q3"]
    assert read_table(out, "corpus")["doc_id"].to_list() == ["d1", "d2", "d5"]
    assert (report.rows_in, report.rows_out, report.dropped) == (8, 5, 3)
    assert report.facts["qrels_lost"] == 2
    assert report.facts["corpus"] == {"items": 5, "kept": 3, "t": 0.95}


def test_a_qrel_follows_an_equal_text_and_never_a_similar_one(small: Run, tmp_path: Path) -> None:
    small(queries={"enabled": False}, corpus=ONE)
    qrels = read_table(tmp_path / "out", "qrels").select("query_id", "doc_id").rows()
    # d3 has the text of d1, so q3's label moves there; d4 has its letters in another order, so q1's label is lost
    assert qrels == [("q1", "d1"), ("q2", "d1"), ("q3", "d1"), ("q3", "d2"), ("q3", "d5")]


def test_a_table_is_copied_over_all_its_batches(tmp_path: Path) -> None:
    texts = [f"{number}" for number in range(BATCH + 200)]
    masked(tmp_path, {f"q{number:04}": text for number, text in enumerate(texts)}, {"d1": "咳嗽"})
    with embedding_server() as server:
        toy = {"toy": {"kind": "api", "base_url": server.url, "model": "m", "dim": 64}}
        settings: Settings = {
            "encoder": "toy",
            "queries": {"t": 0.999, "n": 0},
            "corpus": {"enabled": False},
            "max_drop": 1,
        }
        run_stage(tmp_path, settings, toy)
    expected = np.flatnonzero(diversify(letters(texts), t=0.999, n=0).kept)
    assert read_table(tmp_path / "out", "queries")["query_id"].to_list() == [f"q{number:04}" for number in expected]
    assert expected[-1] >= BATCH, "something of the last batch is kept"


def test_off_keeps_everything_and_needs_no_encoder(tmp_path: Path) -> None:
    masked(tmp_path, QUERIES, CORPUS, QRELS)
    report = run_stage(tmp_path, {"enabled": False, "encoder": "nobody"}, {})
    for table in ("queries", "corpus", "qrels"):
        assert read_table(tmp_path / "out", table).equals(read_table(tmp_path / "mask", table))
    assert len(read_table(tmp_path / "out", "dropped")) == 0
    assert (report.rows_out, report.dropped) == (8, 0)


def test_an_unknown_encoder_is_found_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown encoder 'usee': did you mean 'use'"):
        run_stage(masked(tmp_path, QUERIES, CORPUS), {"encoder": "usee"}, {})


def test_dropping_too_much_stops_unless_told_to_go_on(small: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"diversify\.corpus: 80% of 5 texts would be dropped at t = -1; .*max_drop=1"):
        small(queries=ONE, corpus={"t": -1, "n": 0})
    assert list((tmp_path / "out").iterdir()) == [], "nothing is written"
    assert small(queries=ONE, corpus={"t": -1, "n": 0}, max_drop=1).rows_out == 3


def test_the_same_again_gives_the_same_bytes(small: Run, tmp_path: Path) -> None:
    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    small(queries=ONE, corpus=ONE)
    first = files()
    small(queries=ONE, corpus=ONE)
    assert files() == first
    assert set(first) == {"queries.parquet", "corpus.parquet", "qrels.parquet", "dropped.parquet"}


@pytest.mark.slow
def test_auto_meets_its_target_on_real_texts(tmp_path: Path) -> None:
    texts = pl.read_ndjson(resources.demo() / "queries.jsonl")
    queries = dict(zip(texts["_id"].to_list(), texts["text"].to_list(), strict=True))
    masked(tmp_path, queries, {"d1": "高血压"})
    settings: Settings = {"encoder": "use", "queries": {"n": 0, "target_drop": 0.1}, "corpus": {"enabled": False}}
    report = run_stage(tmp_path, settings, {})
    found = report.facts["queries"]
    assert isinstance(found, dict)
    assert found["items"] == 64
    assert 57 < found["kept"] < 62, "a tenth of 64 is 6"
    assert 0.6 < found["t"] < 0.9
