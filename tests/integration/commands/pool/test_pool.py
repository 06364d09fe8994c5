"""Pools of small corpora, from real retrievers: what is kept of every ranking, and what must not matter."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl
import pytest

from curate.commands.pool import stage
from curate.core import config
from curate.core.config import Json, Settings
from curate.core.errors import ConfigError, DataError
from curate.core.records import TABLES
from curate.pipeline.configs import PoolConfig
from curate.pipeline.stage import Report
from curate.retrieval.retrievers.bm25 import BLOCK
from curate.system.files import digests, frame, read_table, write_table
from tests.support.small import context, embedding_server, toy

QUERIES = {"q2": "小儿发热怎么办", "q1": "高血压能喝咖啡吗", "q3": "@@@"}
CORPUS = {
    "d1": "高血压患者能喝咖啡吗？可以少量喝。",
    "d2": "小儿发热可以物理降温。",
    "d3": "咖啡含有咖啡因。",
    "d4": "今天的股市行情。",
}
TREC = """\
q1 Q0 d4 1 9.5 mine
q1 Q0 d1 2 9.25 mine
q9 Q0 d9 1 1 mine
"""

Run = Callable[..., Report]


def diversified(
    run: Path,
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    merged: Mapping[str, str] = MappingProxyType({}),
    empty: Sequence[str] = (),
    redundant: Sequence[str] = (),
) -> Path:
    """Write what `mask` and `diversify` would write; merged maps old ids of documents to kept ones."""
    for stage_name in ("mask", "diversify"):
        (run / stage_name).mkdir(parents=True)
    folder = run / "diversify"
    write_table(folder, "queries", frame("queries", [{"query_id": key, "text": queries[key]} for key in queries]))
    documents = [{"doc_id": key, "title": "", "text": corpus[key]} for key in corpus]
    write_table(folder, "corpus", frame("corpus", documents))
    write_table(folder, "qrels", frame("qrels"))
    aliases = [{"table": "corpus", "old_id": old, "kept_id": merged[old]} for old in merged]
    write_table(run / "mask", "aliases", frame("aliases", aliases))
    for stage_name, ids in (("mask", empty), ("diversify", redundant)):
        rows = [{"table": "corpus", "id": name, "stage": stage_name, "reason": "r"} for name in ids]
        write_table(run / stage_name, "dropped", frame("dropped", rows))
    return run


def pooled(run: Path, settings: Settings, **definitions: Mapping[str, Settings]) -> Report:
    """Run the stage into `run/out`."""
    found = config.check(PoolConfig, settings, "pool")
    given = context(run, **definitions)
    given.out.mkdir(exist_ok=True)
    stage.fingerprint(found, given)
    return stage.run(found, given)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Run]:
    """Return a function that pools the texts above by BM25, by an encoder of letters, and by a run file."""
    diversified(tmp_path, QUERIES, CORPUS)
    (tmp_path / "mine.trec").write_text(TREC)
    with embedding_server() as server:
        retrievers: dict[str, Settings] = {"mine": {"kind": "runfile", "path": str(tmp_path / "mine.trec")}}
        yield lambda **settings: pooled(tmp_path, settings, encoders=toy(server), retrievers=retrievers)


def table(run: Path, name: str) -> list[dict[str, Any]]:
    return read_table(run / "out", name).rows(named=True)


def test_every_rank_and_score_is_kept(small: Run, tmp_path: Path) -> None:
    report = small(retrievers=["mine", "bm25"], depth=2, size=3)
    ranked = [(row["query_id"], row["retriever"], row["rank"], row["doc_id"]) for row in table(tmp_path, "rankings")]
    assert ranked == [
        ("q1", "bm25", 1, "d1"),
        ("q1", "bm25", 2, "d3"),
        ("q1", "mine", 1, "d4"),
        ("q1", "mine", 2, "d1"),
        ("q2", "bm25", 1, "d2"),
    ]
    rows = table(tmp_path, "pool")
    assert [(row["query_id"], row["position"], row["doc_id"]) for row in rows] == [
        ("q1", 1, "d1"),
        ("q1", 2, "d4"),
        ("q1", 3, "d3"),
        ("q2", 1, "d2"),
    ]
    assert [(hit["retriever"], hit["rank"]) for hit in rows[0]["hits"]] == [("bm25", 1), ("mine", 2)]
    assert rows[1]["hits"] == [{"retriever": "mine", "rank": 1, "score": 9.5}]
    assert (report.rows_in, report.rows_out, report.dropped) == (7, 4, 0)
    counts = {"retrieved_pairs": 4, "queries_without_candidates": 1}
    assert report.facts == {**counts, "hits_merged": 0, "hits_left_out": 0}
    assert report.notes == ["1 query has no candidates: q3"]


def test_size_cuts_and_what_is_cut_is_counted(small: Run, tmp_path: Path) -> None:
    report = small(retrievers=["mine", "bm25"], depth=2, size=1)
    assert [(row["query_id"], row["doc_id"]) for row in table(tmp_path, "pool")] == [("q1", "d1"), ("q2", "d2")]
    assert (report.rows_out, report.dropped) == (2, 2)
    assert len(table(tmp_path, "rankings")) == 5, "rankings stay whole"


def test_the_order_of_the_retrievers_changes_nothing(small: Run, tmp_path: Path) -> None:
    names = ["bm25", "mine", "toy"]
    small(retrievers=names, size=2)
    first = digests(tmp_path / "out")
    for order in (names[::-1], ["mine", "toy", "bm25"]):
        small(retrievers=order, size=2)
        assert digests(tmp_path / "out") == first
    assert set(first) == {"pool.parquet", "rankings.parquet"}


def test_an_encoders_name_is_a_retriever(small: Run, tmp_path: Path) -> None:
    small(retrievers=["toy"], depth=1)
    assert {row["query_id"]: row["doc_id"] for row in table(tmp_path, "pool")} == {"q1": "d1", "q2": "d2", "q3": "d1"}
    assert {row["retriever"] for row in table(tmp_path, "rankings")} == {"toy"}


@pytest.mark.parametrize("hits", [1, 7, stage.HITS])
def test_more_queries_than_are_handled_at_once(hits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "HITS", hits)
    queries = {f"q{number:03}": f"咖啡{number}" for number in reversed(range(2 * BLOCK + 3))}
    diversified(tmp_path, queries, {"d1": "咖啡", "d2": "茶"})
    pooled(tmp_path, {"retrievers": ["bm25"]})
    for name in ("pool", "rankings"):
        assert [(row["query_id"], row["doc_id"]) for row in table(tmp_path, name)] == [
            (name, "d1") for name in sorted(queries)
        ]


@pytest.mark.parametrize(
    ("queries", "corpus"), [({}, CORPUS), (QUERIES, {}), ({}, {}), ({"q3": "@@@"}, CORPUS), (QUERIES, {"d1": "茶"})]
)
def test_nothing_to_pool(tmp_path: Path, queries: Mapping[str, str], corpus: Mapping[str, str]) -> None:
    diversified(tmp_path, queries, corpus)
    found = rf"pool\.retrievers: bm25 found none of {len(corpus)} documents for any of {len(queries)} queries; check"
    with pytest.raises(DataError, match=found if queries else "pool: found no query; have `curate queries` write some"):
        pooled(tmp_path, {"retrievers": ["bm25"]})


def test_queries_without_candidates_are_named(tmp_path: Path) -> None:
    bare = {f"x{number}": "@@@" for number in range(stage.NAMED + 1)}
    for names, end in ((list(bare)[:1], "1 query has no candidates: x0"), (list(bare), "x8, x9, ...")):
        run = diversified(tmp_path / end[:2], {**QUERIES, "q3": "咖啡", **{name: bare[name] for name in names}}, CORPUS)
        [note] = pooled(run, {"retrievers": ["bm25"]}).notes
        assert note.endswith(end)
    assert note.startswith("11 queries have no candidates: x0, x1, ")


def test_the_pure_function_gives_the_table() -> None:
    rows = [("q", name, doc_id, 1, 0.5) for name, doc_id in (("b", "d2"), ("a", "d1"))]
    rankings = pl.DataFrame(rows, schema=TABLES["rankings"], orient="row")
    found = stage.pool(rankings, 500, "equal-depth")
    assert dict(found.schema) == dict(pl.Schema(TABLES["pool"]))
    assert found["doc_id"].to_list() == ["d1", "d2"]


def identity(run: Path, name: str, family: str, definition: Settings) -> Json:
    """Return the fingerprint of the stage with one retriever of this definition."""
    return stage.fingerprint(PoolConfig(retrievers=(name,)), context(run, **{family: {name: definition}}))


def test_what_changes_a_ranking_changes_the_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "mine.trec"
    path.write_text(TREC)
    run: Settings = {"kind": "runfile", "path": str(path)}
    before = identity(tmp_path, "x", "retrievers", run)
    assert before == identity(tmp_path, "x", "retrievers", run)
    path.write_text(TREC.replace("9.5", "9.75"))
    assert before != identity(tmp_path, "x", "retrievers", run)
    cuts = [
        identity(tmp_path, "x", "retrievers", {"kind": "bm25", "tokens": tokens}) for tokens in ("words", "bigrams")
    ]
    assert cuts[0] != cuts[1]
    server: Settings = {"kind": "api", "base_url": "http://h/v1", "dim": 2}
    models = [identity(tmp_path, "x", "encoders", {**server, "model": model}) for model in ("m1", "m2")]
    assert models[0] != models[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retrievers": ["bm25", "bm25"]}, "bm25 stands there twice; name each retriever once"),
        ({"retrievers": []}, r"pool\.retrievers"),
        ({"retrievers": ["bm52"]}, "unknown retriever 'bm52': did you mean 'bm25'"),
        (
            {"retrievers": ["odd"]},
            r"retrievers\.odd\.kind: found 'bm26'; did you mean 'bm25'\? known: bm25",
        ),
        (
            {"retrievers": ["bare"]},
            r"retrievers\.bare\.kind: found nothing; .*known: bm25, dense, qdrant, reranker, runfile, sparse",
        ),
        ({"retrievers": ["typo"]}, r"retrievers\.typo\.token: unknown key; did you mean 'tokens'"),
        ({"retrievers": ["blind"]}, "unknown encoder 'nobody'"),
        ({"depth": 0}, r"pool\.depth"),
        ({"size": 0}, r"pool\.size"),
        ({"method": "best"}, r"pool\.method"),
    ],
)
def test_wrong_settings_are_found_before_anything_runs(tmp_path: Path, settings: Settings, message: str) -> None:
    retrievers: dict[str, Settings] = {
        "odd": {"kind": "bm26"},
        "bare": {"tokens": "words"},
        "typo": {"kind": "bm25", "token": "words"},
        "blind": {"kind": "dense", "encoder": "nobody"},
    }
    with pytest.raises(ConfigError, match=message):
        pooled(tmp_path, settings, retrievers=retrievers)


def test_a_missing_run_file_is_found_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"retrievers\.mine\.path: nowhere\.trec: no such file; give a TREC run"):
        pooled(tmp_path, {"retrievers": ["mine"]}, retrievers={"mine": {"kind": "runfile", "path": "nowhere.trec"}})


RAW_RUN = """\
q1 Q0 empty 1 9 mine
q1 Q0 d3copy 2 8 mine
q1 Q0 gone 3 7 mine
q1 Q0 d3 4 6 mine
q1 Q0 gonecopy 5 5 mine
q1 Q0 d1 6 4 mine
q1 Q0 d4copy 7 4 mine
q1 Q0 d2 8 3 mine
"""


def raw_run(run: Path, text: str, **settings: Any) -> Report:
    """Pool by a run file over the raw corpus, of which four documents were merged or dropped."""
    merged = {"d3copy": "d3", "d4copy": "d4", "gonecopy": "gone"}
    diversified(run, QUERIES, CORPUS, merged, empty=["empty"], redundant=["gone"])
    (run / "mine.trec").write_text(text)
    mine: Settings = {"kind": "runfile", "path": str(run / "mine.trec")}
    return pooled(run, {"retrievers": ["mine"], **settings}, retrievers={"mine": mine})


def test_a_run_over_the_raw_corpus_is_followed(tmp_path: Path) -> None:
    report = raw_run(tmp_path, RAW_RUN, depth=3)
    # empty and both copies of gone are left out; d3copy is d3, at the better of their places; d4copy is d4, and stands
    # before d1, as trec_eval orders ties by the file's ids
    assert [(row["rank"], row["doc_id"], row["score"]) for row in table(tmp_path, "rankings")] == [
        (1, "d3", 8.0),
        (2, "d4", 4.0),
        (3, "d1", 4.0),
    ]
    assert (report.facts["hits_merged"], report.facts["hits_left_out"]) == (2, 3)


def test_a_document_that_never_was_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"retrievers\.mine: found the document 'd99' in the ranking of query 'q1'"):
        raw_run(tmp_path, RAW_RUN + "q1 Q0 d99 9 1 mine\n")
