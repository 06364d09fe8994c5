"""Sweeps over thresholds and the approximate index, held against the exact rule."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.diversify import Config
from curate.commands.diversify.forecast import swept
from curate.commands.diversify.journal import JournalFile
from curate.core import config
from curate.core.errors import ConfigError, DataError
from curate.retrieval.similarity import diversity
from curate.retrieval.similarity import diversity as threshold_sweep
from curate.retrieval.similarity.diversity import disagreement, diversify
from curate.retrieval.similarity.exact_search import unit
from curate.retrieval.similarity.hnsw import Graph
from tests.integration.commands.diversify.test_diversify import HALVES, ONE, Killed, Run, clustered, same, small
from tests.support.small import context

__all__ = ["small"]  # a fixture

TS = [-0.7, -0.5, 0.0, 0.4, 0.5, 0.9, 1.0]


@given(st.lists(st.integers(0, 15), max_size=60), st.integers(0, 3), st.sampled_from([1, 3, 256]))
def test_a_sweep_keeps_what_the_rule_keeps_at_each_threshold(picks: list[int], n: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_sweep, "BLOCK", block)
        found = threshold_sweep.sweep(HALVES[picks], TS, n)
    assert found == [int(diversify(HALVES[picks], t, n).kept.sum()) for t in TS]


def test_a_sweep_of_vectors_whose_similarities_are_anything() -> None:
    vectors, ts = clustered(900), threshold_sweep.thresholds("t=0.5:0.95:0.05")
    found = threshold_sweep.sweep(vectors, ts)
    assert found == [int(diversify(vectors, t).kept.sum()) for t in ts]
    assert len(set(found)) == 4, "80 while the clusters stay whole"


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [
        ("t=0.7:0.9", 21, 0.9),
        ("t=.7:.9:.05", 5, 0.9),
        ("t=-1:1:0.5", 5, 1.0),
        ("t=0.8:0.8", 1, 0.8),
        ("t=0.5:1:0.3", 2, 0.8),
        ("t=0:0.3:0.1", 4, 0.3),
    ],
)
def test_thresholds(text: str, count: int, last: float) -> None:
    found = threshold_sweep.thresholds(text)
    assert (len(found), found[-1]) == (count, last)
    assert found == sorted(set(found))


NONSENSE = "t=0.7 0.7:0.9 n=0.7:0.9 t=0.9:0.7 t=0.7:1.1 t=0.7:0.9:0 t=-1:1:0.001 t=0.7:0.70001:0.000001 t=a:b t=1:2:3:4"


@pytest.mark.parametrize("text", ["", *NONSENSE.split()])
def test_thresholds_that_make_no_sense(text: str) -> None:
    with pytest.raises(ConfigError, match="expected t=LOW:HIGH"):
        threshold_sweep.thresholds(text)


@given(st.lists(st.integers(0, 15), max_size=60), st.sampled_from([-0.5, 0.4, 0.9]), st.sampled_from([1, 7, 256]))
def test_a_graph_drops_only_what_resembles_enough_that_is_kept(picks: list[int], t: float, block: int) -> None:
    vectors = HALVES[picks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diversity, "BLOCK", block)
        decided = diversify(vectors, t, 1, approximate=5)
    for item in np.flatnonzero(~decided.kept):
        alike = [other for other in range(item) if decided.kept[other] and float(vectors[item] @ vectors[other]) > t]
        assert len(alike) > 1
        assert decided.nearest[item] in alike
        assert decided.similarity[item] == float(vectors[item] @ vectors[decided.nearest[item]])


def test_a_graph_misses_little_and_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "BLOCK", 64)
    vectors = clustered(3000)
    exact, decided = diversify(vectors, 0.9), diversify(vectors, 0.9, approximate=5)
    assert disagreement(vectors, exact, 1, 0, 3000) == 0.0
    missed = disagreement(vectors, decided, 1, 0, 3000)
    assert missed is not None
    assert missed < 0.02
    assert abs(int(exact.kept.sum()) - int(decided.kept.sum())) < 60


def test_an_index_that_finds_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(900)
    exact = diversify(vectors, 0.9, seeds=100)
    monkeypatch.setattr(Graph, "before", lambda _self, _items: iter(()))
    decided = diversify(vectors, 0.9, seeds=100, approximate=5)
    assert decided.kept.all()
    found = disagreement(vectors, decided, 1, 100, 900)
    assert found is not None
    assert found >= np.mean(~exact.kept[100:]), "more is alike when nothing is dropped"
    assert disagreement(vectors[:100], diversify(vectors[:100], 0.9, seeds=100, approximate=5), 1, 100, 50) is None


def test_a_graph_goes_on_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "BLOCK", 64)
    vectors, path = clustered(900), tmp_path / "memory"
    with pytest.raises(KeyboardInterrupt):
        diversify(vectors, 0.9, journal=Killed(path, 4), approximate=5)
    decided = diversify(vectors, 0.9, journal=JournalFile(path), approximate=5)
    assert decided.kept[: 4 * 64].tolist() == diversify(vectors, 0.9).kept[: 4 * 64].tolist()
    assert same(diversify(vectors, 0.9, journal=JournalFile(path), approximate=5), decided)


def test_vectors_that_are_no_numbers_are_refused() -> None:
    vectors = unit(np.ones((4, 3)))
    vectors[2, 1] = np.nan
    with pytest.raises(DataError, match="the first in row 2"):
        diversify(vectors, 0.5, approximate=5)
    with pytest.raises(DataError, match="the first in row 2"):
        threshold_sweep.sweep(vectors, [0.5])


def test_what_thresholds_would_keep_of_a_runs_texts(small: Run, tmp_path: Path) -> None:
    small(queries=ONE, corpus=ONE)
    settings = config.check(Config, {"encoder": "use", "queries": {"n": 0}, "corpus": {"n": 0}}, "diversify")
    rows = swept(settings, context(tmp_path, encoders={}), [-1.0, 0.9999, 1.0])
    queries = {"queries_sampled": 3, "queries_kept": 1, "queries_dropped": 2 / 3}
    assert rows[0].to_json() == {"t": -1.0, **queries, "corpus_sampled": 5, "corpus_kept": 1, "corpus_dropped": 0.8}
    assert [row.corpus_kept for row in rows[1:]] == [4, 5]


def test_a_run_says_that_it_was_approximate_and_how_good(small: Run) -> None:
    exact, report = small(queries=ONE, corpus=ONE), small(queries=ONE, corpus=ONE, approximate=True)
    assert "approximate" not in exact.facts
    assert report.facts["approximate"] == {"queries": 0.0, "corpus": 0.0}
    assert report.dropped == exact.dropped
    assert report.notes[0].startswith(
        "queries: compared by an approximate index; of a sample, 1,000 texts at most, the exact rule decides 0.0%"
    )
