"""The greedy rule against a literal reading of it, and the stage around it on small folders."""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.diversify import Config, DiversityRule, stage
from curate.commands.diversify.forecast import forecast
from curate.commands.diversify.journal import JournalFile
from curate.commands.diversify.stage import decide
from curate.core import config
from curate.core.config import Settings
from curate.core.errors import ConfigError, DataError, UserError
from curate.core.protocols import Vectors
from curate.pipeline.stage import Report
from curate.retrieval.similarity import diversity, near_duplicates
from curate.retrieval.similarity.diversity import diversify, threshold, twins
from curate.retrieval.similarity.exact_search import products, unit
from curate.retrieval.similarity.near_duplicates import Alike
from curate.retrieval.similarity.screening import Float32
from curate.system import resources
from curate.system.files import BATCH, frame, read_table, write_table
from tests.support.small import context, embedding_server, full_disk, letters, toy

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


@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=40).flatmap(
        lambda picks: st.tuples(st.just(picks), st.lists(st.integers(0, len(picks) - 1), unique=True))
    ),
    st.sampled_from([-0.5, 0.0, 0.5, 0.9]),
    st.sampled_from([1, 3, 256]),
)
def test_seeds_that_are_named_come_first(case: tuple[list[int], list[int]], t: float, block: int) -> None:
    picks, seeds = case
    order = [*seeds, *[item for item in range(len(picks)) if item not in seeds]]
    vectors = HALVES[picks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diversity, "BLOCK", block)
        decided = diversify(vectors, t, 1, np.array(seeds, dtype=np.int64))
    expected = literal(vectors[order], t, k=5, n=1, seed_size=len(seeds))
    assert np.flatnonzero(decided.kept).tolist() == sorted(order[place] for place in expected)
    assert (decided.nearest[decided.kept] == -1).all()
    assert decided.kept[decided.nearest[~decided.kept]].all()


def clustered(rows: int) -> Vectors:
    rng = np.random.default_rng(9)
    return unit(rng.standard_normal((40, 24))[rng.integers(0, 40, rows)] + 0.25 * rng.standard_normal((rows, 24)))


def same(one: diversity.Diversity, other: diversity.Diversity) -> bool:
    columns = ("kept", "nearest", "similarity")
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in columns)


def test_vectors_that_are_not_held_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(900)
    expected = diversify(vectors, 0.9)
    monkeypatch.setattr(diversity, "BLOCK", 64)
    monkeypatch.setattr(near_duplicates, "CHUNK", 100)
    for room in (0, 100 * 24 * 4, 250 * 24 * 4):
        screen = Float32()
        screen.room = room
        assert same(diversify(vectors, 0.9, screen=screen), expected)
    assert 100 < expected.kept.sum() < 900, "more than one chunk is kept, and something is dropped"


class Killed(JournalFile):
    """One that is killed in the middle of a block."""

    def __init__(self, path: Path, after: int) -> None:
        super().__init__(path)
        self.left = after

    def add(self, decisions: diversity.Decisions) -> None:
        if self.left == 0:
            with self.path.open("ab") as stream:
                stream.write(decisions.tobytes()[:200])
            raise KeyboardInterrupt
        self.left -= 1
        super().add(decisions)


@pytest.mark.parametrize("after", [1, 4, 14])
def test_a_work_that_was_killed_goes_on_where_it_was(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, path = clustered(900), tmp_path / "memory"
    monkeypatch.setattr(diversity, "BLOCK", 64)
    expected = diversify(vectors, 0.9)
    with pytest.raises(KeyboardInterrupt):
        diversify(vectors, 0.9, journal=Killed(path, after))
    decided: list[int] = []
    before = Alike.before
    monkeypatch.setattr(Alike, "before", lambda self, items: decided.extend(items) or before(self, items))  # type: ignore[func-returns-value]
    assert same(diversify(vectors, 0.9, journal=JournalFile(path)), expected)
    assert decided == list(range(64 * after, 900))
    assert same(diversify(vectors, 0.9, journal=JournalFile(path)), expected)
    assert len(decided) == 900 - 64 * after + 900 % 64, "of a work that is done only the last block, which is not whole"


def test_a_work_that_a_full_disk_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, journal = clustered(900), JournalFile(tmp_path / "memory")
    monkeypatch.setattr(diversity, "BLOCK", 64)
    for size in (0, 100, 5000):
        with full_disk(size), pytest.raises(OSError, match="File too large"):
            diversify(vectors, 0.9, journal=journal)
        assert journal.path.stat().st_size == size
    assert same(diversify(vectors, 0.9, journal=journal), diversify(vectors, 0.9))


def test_the_error_bound_holds_for_what_a_journal_knew() -> None:
    """Items that were decided before a kill are kept without being compared: they count all the same."""
    rule = Alike(np.array([[3.0, 4.0], [1.0, 0.0]], np.float32), 0.9, Float32())
    rule.keep(np.array([0]))
    rule.keep(np.array([], dtype=np.int64))
    assert [part.longest for part in rule._recent] == pytest.approx([5.0], rel=1e-6)


def test_a_damaged_block_and_what_follows_is_decided_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, journal = clustered(900), JournalFile(tmp_path / "memory")
    monkeypatch.setattr(diversity, "BLOCK", 64)
    expected = diversify(vectors, 0.9, journal=journal)
    data = bytearray(journal.path.read_bytes())
    data[3 * len(data) // 4] ^= 1
    journal.path.write_bytes(data)
    assert len(journal.known(64)) == 10 * 64
    assert same(diversify(vectors, 0.9, journal=journal), expected)


BEYOND = """
import resource, sys
import numpy as np
from curate.retrieval.similarity.diversity import diversify
from curate.retrieval.similarity.exact_search import top_k
square = np.ones((1024, 1024), np.float32)
square @ square  # OpenBLAS takes its buffers now
vectors = np.memmap(sys.argv[1], np.float32, "r", shape=(ROWS, 768))
search = lambda: next(top_k(np.ones((1, 768), np.float32), vectors, [str(row) for row in range(ROWS)], 5))
search()  # and so does that of FAISS
status = open("/proc/self/status").read()
limit = int(status.split("VmData:")[1].split()[0]) * 1024 + BYTES
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
kept = diversify(vectors, 0.5, 0).kept
print(kept.sum(), len(search()[0]))
try:
    vectors.copy()
except MemoryError:
    print("too large for memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
def test_a_corpus_of_four_times_the_memory(tmp_path: Path) -> None:
    limit = 40 * 2**20  # beyond what the imports and OpenBLAS take
    repeats = 4 * limit // (768 * 768 * 4)
    with (tmp_path / "vectors").open("wb") as stream:
        for _ in range(repeats):
            stream.write(np.eye(768, dtype=np.float32).tobytes())
    code = BEYOND.replace("BYTES", str(limit)).replace("ROWS", str(repeats * 768))
    command = [sys.executable, "-c", code, str(tmp_path / "vectors")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("768 5\ntoo large for memory\n", "")


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
    assert diversify(vectors, t=0.7, n=0, seeds=3).kept.tolist() == [True, True, True, False]


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
        side = config.check(DiversityRule, {"t": 0.9, "seed_size": seed_size}, "side")
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
    items = pl.DataFrame({"id": ["d1", "d2", "d3", "d4", "d5"], "class": [0, 1, 0, 2, 1]})
    assert twins(items, np.array([True, False, False, False, False])) == {"d3": "d1"}
    assert twins(items, np.array([True, True, True, True, False])) == {"d5": "d2"}
    assert twins(items, np.array([False, True, True, True, True])) == {"d1": "d3"}, "which is a seed"


def test_a_broken_vector_is_named_in_whatever_order_it_is_looked_at() -> None:
    vectors = np.ones((5, 2), np.float32)
    vectors[1] = np.nan
    with pytest.raises(DataError, match="1 item vectors hold NaN or infinity, the first in row 1"):
        diversify(vectors, 0.5, seeds=np.array([4, 3]))


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
    run: Path,
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    qrels: Sequence[tuple[str, str]] = (),
    score: int = 0,
) -> Path:
    """Write what `mask` would write; labels of score 0 protect no text."""
    folder = run / "mask"
    folder.mkdir(parents=True)
    write_table(folder, "queries", frame("queries", [{"query_id": key, "text": queries[key]} for key in queries]))
    documents = [{"doc_id": key, "title": "", "text": corpus[key]} for key in corpus]
    write_table(folder, "corpus", frame("corpus", documents))
    pairs = [{"query_id": query_id, "doc_id": doc_id, "score": score} for query_id, doc_id in qrels]
    write_table(folder, "qrels", frame("qrels", pairs))
    write_table(folder, "classes", classes(queries, corpus))
    return run


def classes(queries: Mapping[str, str], corpus: Mapping[str, str]) -> pl.DataFrame:
    """Return the classes of texts that masking left as they were."""
    rows = [
        {"table": table, "id": key, "class": [*texts.values()].index(text)}
        for table, texts in (("queries", queries), ("corpus", corpus))
        for key, text in texts.items()
    ]
    return frame("classes", rows)


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
        masked(tmp_path, QUERIES, CORPUS, QRELS)
        yield lambda **settings: run_stage(tmp_path, {"encoder": "toy", **settings}, toy(server))


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


def test_a_labelled_text_is_never_dropped_but_for_its_exact_twin(tmp_path: Path) -> None:
    masked(tmp_path, QUERIES, CORPUS, QRELS, score=1)
    with embedding_server() as server:
        report = run_stage(tmp_path, {"encoder": "toy", "queries": ONE, "corpus": ONE}, toy(server))
    assert read_table(tmp_path / "out", "queries")["query_id"].to_list() == ["q1", "q2", "q3"]
    # d3 has the text of d1, which is protected: it may fall, and its label would move
    assert {"d1", "d2", "d4", "d5"} <= {*read_table(tmp_path / "out", "corpus")["doc_id"]}
    assert len(read_table(tmp_path / "out", "qrels")) == len(QRELS)
    assert report.facts["qrels_lost"] == 0


def test_copies_need_no_encoder_and_labels_follow_equal_texts(tmp_path: Path) -> None:
    """The default: texts whose sentences are all in another one fall and are listed, and no label is lost."""
    corpus = CORPUS | {"d6": "物理降温、多喝水！", "d7": "头痛的原因很多。去看医生。", "d8": "头痛的原因很多，去看医生"}
    masked(tmp_path, QUERIES, corpus, QRELS, score=1)
    report = run_stage(tmp_path, {"encoder": "toy"}, {"toy": {"kind": "nowhere"}})
    dropped = read_table(tmp_path / "out", "dropped").select("table", "id", "nearest_id", "similarity", "reason").rows()
    assert dropped == [("corpus", "d3", "d1", 1.0, "copy"), ("corpus", "d6", "d2", 1.0, "copy")]
    qrels = read_table(tmp_path / "out", "qrels").select("query_id", "doc_id").rows()
    assert qrels == [("q1", "d1"), ("q1", "d4"), ("q2", "d1"), ("q3", "d1"), ("q3", "d2"), ("q3", "d5")]
    assert report.notes == [
        "dropped: 2 of the corpus; `curate show diversify/dropped` lists each with the one that is kept"
    ]


def test_texts_that_contradict_are_not_alike_by_a_cosine(small: Run, tmp_path: Path) -> None:
    write_table(
        tmp_path / "mask",
        "queries",
        frame(
            "queries",
            [
                {"query_id": "q1", "text": "左肾结石吃什么药"},
                {"query_id": "q2", "text": "右肾结石吃什么药"},
                {"query_id": "q3", "text": "药么什吃石结肾右"},
            ],
        ),
    )
    write_table(tmp_path / "mask", "classes", classes({"q1": "a", "q2": "b", "q3": "c"}, CORPUS))
    small(queries={"t": 0.5, "n": 0}, corpus={"enabled": False}, max_drop=1)
    assert read_table(tmp_path / "out", "queries")["query_id"].to_list() == ["q1", "q2"]
    small(queries={"t": 0.5, "n": 0, "veto": False}, corpus={"enabled": False}, max_drop=1)
    assert read_table(tmp_path / "out", "queries")["query_id"].to_list() == ["q1"]


def test_a_qrel_does_not_follow_a_text_that_masking_made_equal(small: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "mask", "classes", classes(QUERIES, {**CORPUS, "d3": "not the text of d1"}))
    small(queries={"enabled": False}, corpus=ONE)
    qrels = read_table(tmp_path / "out", "qrels").select("query_id", "doc_id").rows()
    assert ("q3", "d1") not in qrels
    assert len(qrels) == 4


def test_a_table_is_copied_over_all_its_batches(tmp_path: Path) -> None:
    texts = [f"{number}" for number in range(BATCH + 200)]
    masked(tmp_path, {f"q{number:04}": text for number, text in enumerate(texts)}, {"d1": "咳嗽"})
    settings: Settings = {"queries": {"t": 0.999, "n": 0, "veto": False}, "corpus": {"enabled": False}, "max_drop": 1}
    with embedding_server() as server:
        run_stage(tmp_path, {"encoder": "toy", **settings}, toy(server))
    expected = np.flatnonzero(diversify(letters(texts), t=0.999, n=0).kept)
    assert read_table(tmp_path / "out", "queries")["query_id"].to_list() == [f"q{number:04}" for number in expected]
    assert expected[-1] >= BATCH, "something of the last batch is kept"


def test_random_seeds_and_seeds_of_a_file(small: Run, tmp_path: Path) -> None:
    def kept() -> list[str]:
        return read_table(tmp_path / "out", "corpus")["doc_id"].to_list()

    named = tmp_path / "seeds.txt"
    named.write_text("d4\nd2\n", encoding="utf-8-sig")
    small(queries=ONE, corpus={**ONE, "seeds": str(named)})
    assert kept() == ["d2", "d4", "d5"], "d4 comes before d1 and d3, which resemble it"
    drawn = set()
    for count in (1, 1, 4, 5):
        small(queries=ONE, corpus={**ONE, "seeds": "random", "seed_size": count}, max_drop=1)
        drawn.add((count, *kept()))
    assert len(drawn) == 3, "the same seed draws the same"
    assert (5, *CORPUS) in drawn, "seeds are not tested"
    named.write_text("d4\nd9\n")
    with pytest.raises(DataError, match=r"seeds\.txt: 1 ids are not in the corpus, the first is 'd9'"):
        small(queries=ONE, corpus={**ONE, "seeds": str(named)})
    with pytest.raises(ConfigError, match=r"found 'nowhere\.txt', expected first, random, or a file of ids"):
        small(queries=ONE, corpus={**ONE, "seeds": "nowhere.txt"})


def test_decisions_are_remembered_until_they_are_written(
    small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = stage._refuse_too_many

    def killed(*_: Any) -> None:
        assert len(list((tmp_path / ".diversify").iterdir())) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, "_refuse_too_many", killed)
    with pytest.raises(KeyboardInterrupt):
        small(queries=ONE, corpus=ONE)
    monkeypatch.setattr(stage, "_refuse_too_many", refuse)
    small(queries=ONE, corpus=ONE)
    assert not (tmp_path / ".diversify").exists()


def test_a_forecast_counts_what_is_to_be_encoded(small: Run, tmp_path: Path) -> None:
    small(queries=ONE, corpus={"enabled": False})
    settings = config.check(Config, {"encoder": "use", "queries": ONE, "corpus": ONE}, "diversify")
    before, both = forecast(settings, context(tmp_path, encoders={})), [("queries", 3, 3), ("corpus", 5, 4)]
    assert [(row.table, row.texts, row.to_encode) for row in before] == both
    assert all(isinstance(row.encode_minutes, float) and row.compare_minutes == 0 for row in before)
    for nothing in ({"enabled": False}, {}):
        assert forecast(config.check(Config, nothing, "diversify"), context(tmp_path)) == []


def test_off_keeps_everything_and_needs_no_encoder(tmp_path: Path) -> None:
    masked(tmp_path, QUERIES, CORPUS, QRELS)
    report = run_stage(tmp_path, {"enabled": False, "encoder": "nobody"}, {})
    for table in ("queries", "corpus", "qrels"):
        assert read_table(tmp_path / "out", table).equals(read_table(tmp_path / "mask", table))
    assert len(read_table(tmp_path / "out", "dropped")) == 0
    assert (report.rows_out, report.dropped) == (8, 0)


def test_an_unknown_encoder_is_found_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown encoder 'usee': did you mean 'use'"):
        run_stage(masked(tmp_path, QUERIES, CORPUS), {"encoder": "usee", "queries": ONE}, {})


def test_dropping_too_much_stops_unless_told_to_go_on(small: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"diversify\.corpus: 80% of 5 texts would be dropped at t = -1; .*max_drop=1"):
        small(queries=ONE, corpus={"t": -1, "n": 0, "veto": False})
    assert list((tmp_path / "out").iterdir()) == [], "nothing is written"
    assert small(queries=ONE, corpus={"t": -1, "n": 0, "veto": False}, max_drop=1).rows_out == 3


def test_the_same_again_gives_the_same_bytes(small: Run, tmp_path: Path) -> None:
    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    small(queries=ONE, corpus=ONE)
    first = files()
    small(queries=ONE, corpus=ONE)
    assert files() == first
    assert set(first) == {"queries.parquet", "corpus.parquet", "qrels.parquet", "dropped.parquet"}


def test_auto_meets_its_target_on_real_texts(tmp_path: Path) -> None:
    texts = pl.read_ndjson(resources.demo() / "queries.jsonl")
    queries = dict(zip(texts["_id"].to_list(), texts["text"].to_list(), strict=True))
    masked(tmp_path, queries, {"d1": "高血压"})
    settings: Settings = {
        "encoder": "use",
        "queries": {"t": "auto", "n": 0, "target_drop": 0.1},
        "corpus": {"enabled": False},
    }
    report = run_stage(tmp_path, settings, {})
    found = report.facts["queries"]
    assert isinstance(found, dict)
    assert found["items"] == 64
    assert 57 < found["kept"] < 62, "a tenth of 64 is 6"
    assert 0.6 < found["t"] < 0.9
