"""Search by an approximate engine, held against exact search: order, ties, recall, and what is refused."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from curate.core.errors import CheckFailed, ConfigError, DataError, MissingExtra
from curate.core.protocols import Vectors, quiet
from curate.retrieval.engines.faiss import Config, Faiss, default_lists, default_probes
from curate.retrieval.similarity.exact_search import Best, top_k, unit
from curate.retrieval.similarity.faiss_search import ApproximateEngine, Asked, search
from curate.system.faiss_library import library

DIM, DOCUMENTS = 16, 2_000
WHOLE: dict[str, dict[str, Any]] = {
    "ivf": {"lists": 20, "probes": 20},
    "ivf float16": {"lists": 20, "probes": 20, "storage": "float16"},
    "ivf int8": {"lists": 20, "probes": 20, "storage": "int8"},
    "hnsw": {"index": "hnsw", "ef_search": DOCUMENTS, "threads": 1},
    "hnsw float16": {"index": "hnsw", "ef_search": DOCUMENTS, "storage": "float16", "threads": 1},
    "hnsw int8": {"index": "hnsw", "ef_search": DOCUMENTS, "storage": "int8", "threads": 1},
}
"""Settings with which an index looks at every document, or nearly so."""


def drawn(count: int, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((count, DIM)))


@pytest.fixture
def documents() -> Vectors:
    """Return unit vectors, some of them equal to others, and some of zeros."""
    found = drawn(DOCUMENTS, 1)
    found[100:110], found[200:205] = found[90], 0
    return found


def asked(queries: Vectors, documents: Vectors, depth: int) -> Asked:
    return Asked("retrievers.r", queries, documents, ids(documents), depth, "cpu")


def ids(documents: Vectors) -> list[str]:
    """Return ids whose order is not that of the rows."""
    return [f"d{row * 7919 % 3001}" for row in range(len(documents))]


Hits = list[tuple[int, float]]


def found(what: Asked, folder: Path, **settings: Any) -> list[Hits]:
    engine = Faiss(Config(**{"exact_below": 0, "min_recall": 0, **settings}))
    assert isinstance(engine, ApproximateEngine)
    return listed(search(what, engine, folder, "k", quiet, lambda _: None))


def listed(hits: Iterable[Best]) -> list[Hits]:
    """Return rows and scores of each query, best first."""
    return [list(zip(rows.tolist(), scores.tolist(), strict=True)) for rows, scores in hits]


@pytest.mark.slow
@pytest.mark.parametrize("kind", WHOLE)
def test_an_index_that_looks_at_all_gives_the_hits_and_scores_of_exact_search(
    kind: str, documents: Vectors, tmp_path: Path
) -> None:
    queries = np.concatenate([drawn(20, 2), documents[90:91]])
    what = asked(queries, documents, 50)
    assert found(what, tmp_path, **WHOLE[kind]) == listed(top_k(queries, documents, ids(documents), 50))
    assert (what.facts["recall"], what.facts["lowest_recall"]) == (1.0, 1.0)


def test_ties_are_in_the_order_of_ids(documents: Vectors, tmp_path: Path) -> None:
    (best,) = found(asked(documents[90:91], documents, 11), tmp_path, **WHOLE["ivf"])
    names = ids(documents)
    assert [names[row] for row, _ in best] == sorted(names[row] for row in (90, *range(100, 110)))


def test_recall_is_the_share_of_the_exact_answer_and_is_told(documents: Vectors, tmp_path: Path) -> None:
    queries, depth = drawn(40, 3), 30
    what = asked(queries, documents, depth)
    hits = found(what, tmp_path, lists=20, probes=4, sample=40)
    exact = listed(top_k(queries, documents, ids(documents), depth))
    shares = [
        len({row for row, _ in one} & {row for row, _ in other}) / depth for one, other in zip(hits, exact, strict=True)
    ]
    assert 0.2 < np.mean(shares) < 0.9
    assert what.facts["recall"] == pytest.approx(np.mean(shares), abs=1e-4)
    assert what.facts["lowest_recall"] == pytest.approx(min(shares), abs=1e-4)
    assert what.facts["parameters"] == {"storage": "float32", "lists": 20, "probes": 4}
    assert what.notes[0] == (
        "retrievers.r: documents were looked up in an approximate index (faiss ivf: storage float32, lists 20, "
        f"probes 4); recall@30 against exact search is {what.facts['recall']} on 40 queries, "
        f"{what.facts['lowest_recall']} on the worst of them"
    )


def test_recall_of_equal_documents_counts_any_of_them(tmp_path: Path) -> None:
    documents = np.repeat(drawn(4, 4), 300, axis=0)
    what = asked(drawn(10, 5), documents, 20)
    hits = found(what, tmp_path, lists=1)
    assert hits != listed(top_k(what.queries, documents, what.ids, 20)), "there are others with the same products"
    assert what.facts["recall"] == 1.0


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"lists": 20, "probes": 2}, r"set engine\.probes=4 \(now 2\)"),
        ({"index": "hnsw", "ef_search": 30, "links": 4, "ef_construction": 8}, r"set engine\.ef_search=60 \(now 30\)"),
    ],
)
def test_too_low_a_recall_is_refused_before_the_first_hit(
    settings: dict[str, Any], remedy: str, documents: Vectors, tmp_path: Path
) -> None:
    hits = search(
        asked(drawn(20, 6), documents, 30),
        Faiss(Config(exact_below=0, min_recall=0.99, **settings)),
        tmp_path,
        "k",
        quiet,
        lambda _: None,
    )
    with pytest.raises(CheckFailed, match=rf"retrievers\.r: recall@30 .* expected engine\.min_recall=0\.99 .*{remedy}"):
        next(hits)


@pytest.mark.parametrize(
    ("depth", "below", "why"),
    [
        (5, 2_001, "its 2,000 documents are fewer than engine.exact_below (2,001)"),
        (2_000, 0, "a depth of 2,000 is all of its 2,000 documents"),
        (9_999, 0, "a depth of 9,999 is all of its 2,000 documents"),
    ],
)
def test_few_documents_are_all_compared(depth: int, below: int, why: str, documents: Vectors, tmp_path: Path) -> None:
    what = asked(drawn(3, 7), documents, depth)
    assert found(what, tmp_path, exact_below=below) == listed(top_k(what.queries, documents, what.ids, depth))
    assert what.facts == {"search": "exact"}
    assert what.notes == [f"retrievers.r: every document was compared, for {why}"]
    assert not list(tmp_path.iterdir())


def test_queries_with_short_lists_are_counted(documents: Vectors, tmp_path: Path) -> None:
    what = asked(drawn(9, 8), documents, 500)
    assert all(0 < len(best) < 500 for best in found(what, tmp_path, lists=20, probes=1))
    assert what.facts["queries_with_fewer"] == 9
    assert what.notes[1] == "retrievers.r: 9 queries found fewer than 500 documents; set engine.probes=2 (now 1)"


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20])
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_vectors_that_exact_search_refuses_are_refused(
    kind: str, value: float, documents: Vectors, tmp_path: Path
) -> None:
    queries = drawn(3, 9)
    queries[1, 2] = value
    with pytest.raises(DataError, match=r"1 query vectors .* the first in row 1"):
        found(asked(queries, documents, 5), tmp_path, **WHOLE[kind])
    documents[1_700, 3] = value
    with pytest.raises(DataError, match=r"1 document vectors .* the first in row 1700"):
        found(asked(drawn(3, 9), documents, 5), tmp_path, **WHOLE[kind])


def test_vectors_too_long_for_half_precision_are_refused(documents: Vectors, tmp_path: Path) -> None:
    long = documents * np.float32(1e5)
    with pytest.raises(DataError, match=r"too long for float16; .* engine\.storage=float32"):
        found(asked(long[:3], long, 5), tmp_path, **WHOLE["ivf float16"])
    assert len(found(asked(long[:3], long, 5), tmp_path, **WHOLE["ivf"])) == 3


def test_defaults_follow_from_documents_and_depth() -> None:
    assert [default_lists(count) for count in (1, 77, 78, 1_000, 1_000_000)] == [1, 1, 2, 25, 2_000]
    assert default_probes(2_000, 1_000_000, 500) == 84 < default_probes(2_000, 1_000_000, 5_000)
    assert default_probes(2_000, 1_000_000, 100_000) == 2_000


def test_settings_that_cannot_be_meant_are_refused(documents: Vectors, tmp_path: Path) -> None:
    with pytest.raises(
        ValidationError, match="probes: no setting of hnsw, which has links, ef_construction, ef_search"
    ):
        Config(index="hnsw", probes=3)
    with pytest.raises(ValidationError, match="ef_search: no setting of ivf, which has lists, probes"):
        Config(ef_search=3)
    with pytest.raises(
        ConfigError, match=r"engine\.lists: found 100 for 2,000 documents, .* set engine\.lists=51 or less"
    ):
        found(asked(drawn(1, 1), documents, 5), tmp_path, lists=100)


def test_what_changes_hits_is_in_the_identity_and_threads_are_not() -> None:
    def identity(**settings: Any) -> Any:
        return Faiss(Config(**settings)).identity

    assert identity() == identity(threads=1) == identity(threads=2)
    assert identity(index="hnsw") == identity(index="hnsw", threads=2) != identity(index="hnsw", threads=1)
    others = [identity(**{name: value}) for name, value in {"lists": 9, "probes": 9, "storage": "int8"}.items()]
    assert identity() not in others


def test_without_faiss_the_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    library.cache_clear()
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match="pip install faiss-cpu"):
        Faiss(Config())
