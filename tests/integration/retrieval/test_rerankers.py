"""A reranker over another retriever's list: from a folder and over HTTP, with a server's faults, as a pool's source."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from curate.commands.pool import stage
from curate.core.config import Settings
from curate.core.errors import ConfigError, CurateError, UserError
from curate.pipeline.configs import PoolConfig
from curate.system.files import frame, read_table, write_table
from tests.support.rankers import (
    FAULTS,
    QUESTIONS,
    TEXTS,
    RerankServer,
    by_score,
    chance,
    cross_encoder,
    ids,
    rerank_server,
    search,
)
from tests.support.runs import complaint, curate, ran
from tests.support.sized import sized
from tests.support.small import context

WORDS: Settings = {"kind": "bm25"}
APIS: dict[str, dict[str, Any]] = {"default": {}, "cohere": {"api": "cohere"}, "tei": {"api": "tei"}}


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a moment where the program waits before it asks again."""
    sleep = time.sleep
    monkeypatch.setattr("time.sleep", lambda seconds: sleep(min(seconds, 0.01)))


def over_http(server: RerankServer, **more: Any) -> dict[str, Settings]:
    """Return the definition of `rr` over `words` by a server."""
    given = {"kind": "reranker", "over": "words", "depth": 4, "url": server.url, "local": True, **more}
    return {"words": WORDS, "rr": given}


def first(folder: Path, depth: int) -> dict[str, list[str]]:
    """Return the best documents by words."""
    return {query: some[:depth] for query, some in ids(search(folder, {"words": WORDS}, "words")).items()}


def right(folder: Path, depth: int = 4, score: Callable[[str, str], float] = chance) -> dict[str, list[str]]:
    return by_score(first(folder, depth), score, TEXTS, QUESTIONS)


# Over HTTP


@pytest.mark.parametrize("api", APIS)
def test_each_protocol_is_spoken_and_its_scores_decide(api: str, tmp_path: Path) -> None:
    """Query and texts go out as the server wants them, and its scores, not their order, make the ranking."""
    with rerank_server() as server:
        found = search(tmp_path, over_http(server, model="m-1", **APIS[api]), "rr")
    assert ids(found) == right(tmp_path)
    assert server.bodies
    for body in server.bodies:
        if api == "tei":
            assert {"query", "texts"} <= set(body)
            assert "documents" not in body
        else:
            assert {"query", "documents"} <= set(body)
            assert body["model"] == "m-1"
    assert {query for query, _ in server.pairs} == set(QUESTIONS.values())
    for query, some in found.items():
        assert [hit.rank for hit in some] == list(range(1, len(some) + 1))
        scores = [chance(QUESTIONS[query], TEXTS[hit.doc_id]) for hit in some]
        assert [hit.score for hit in some] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("depth", [2, 100])
def test_as_many_are_scored_as_the_depth_says(depth: int, tmp_path: Path) -> None:
    """The best documents of the other retriever up to the depth are scored, each once, and no other is returned."""
    with rerank_server() as server:
        found = search(tmp_path, over_http(server, depth=depth), "rr")
    before = first(tmp_path, depth)
    assert {query: sorted(some) for query, some in ids(found).items()} == {
        query: sorted(some) for query, some in before.items()
    }
    expected = [(QUESTIONS[query], TEXTS[doc]) for query, some in before.items() for doc in some]
    assert sorted(server.pairs) == sorted(expected)


def test_the_best_of_all_that_were_scored_are_returned_where_fewer_are_wanted(tmp_path: Path) -> None:
    """A pool of depth 1 gets the best of the four that were scored, not the best by words."""
    with rerank_server() as server:
        found = search(tmp_path, over_http(server), "rr", depth=1)
    assert ids(found) == {query: some[:1] for query, some in right(tmp_path).items()}
    assert any(some[0] != first(tmp_path, 1)[query][0] for query, some in ids(found).items())


def test_equal_scores_are_ordered_by_id(tmp_path: Path) -> None:
    """Where a reranker sees no difference the ids decide, not the order of the server."""
    with rerank_server(score=lambda _query, _text: 0.25) as server:
        found = search(tmp_path, over_http(server), "rr")
    assert ids(found) == {query: sorted(some) for query, some in first(tmp_path, 4).items()}


def test_a_query_that_finds_nothing_asks_nothing(tmp_path: Path) -> None:
    """Where the other retriever has no document there is none to score, and the server is not asked."""
    with rerank_server() as server:
        found = search(tmp_path, over_http(server), "rr", queries={"none": "zyxw", "q3": "cough"})
    assert found["none"] == []
    assert found["q3"]
    assert {query for query, _ in server.pairs} == {"cough"}


def test_a_key_goes_out_as_others_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the variable is sent as a bearer's, and none is where none is named."""
    monkeypatch.setenv("RERANK_KEY", "sk-secret")
    for more, sent in (({"key_env": "RERANK_KEY"}, "Bearer sk-secret"), ({}, None)):
        with rerank_server() as server:
            search(tmp_path / str(sent), over_http(server, **more), "rr")
        assert {headers.get("authorization") for headers in server.headers} == {sent}


@pytest.mark.parametrize("api", ["cohere", "tei"])
def test_a_wrong_answer_is_asked_again(api: str, tmp_path: Path) -> None:
    """One answer that cannot be right costs a further request and no rank."""
    for fault in FAULTS.values():
        with rerank_server(fault) as server:
            found = search(tmp_path, over_http(server, api=api), "rr")
        assert ids(found) == right(tmp_path)
        assert len(server.pairs) > sum(map(len, found.values()))


@pytest.mark.parametrize("fault", FAULTS)
def test_answers_that_stay_wrong_end_in_an_error(fault: str, tmp_path: Path) -> None:
    """A server whose answers cannot be right gives no ranking, but an error that names the retriever."""
    api = APIS[["tei", "cohere"][len(fault) % 2]]
    with rerank_server(always=FAULTS[fault]) as server, pytest.raises(CurateError, match=r"rr|rerank"):
        search(tmp_path, over_http(server, **api), "rr")
    assert len(server.bodies) > 1, "it was asked again before"


def test_a_server_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    """Statuses that pass cost further requests and change nothing."""
    with rerank_server(503, 429) as server:
        assert ids(search(tmp_path, over_http(server), "rr")) == right(tmp_path)


# From a folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_encoder(tmp_path_factory.mktemp("cross") / "one")


def test_a_folder_ranks_as_sentence_transformers_does(model: Path, tmp_path: Path) -> None:
    """The order of a cross-encoder in a folder is that of its own scores on the pairs."""
    from sentence_transformers import CrossEncoder

    loaded = CrossEncoder(str(model), device="cpu")

    def score(query: str, text: str) -> float:
        return float(loaded.predict([(query, text)])[0])

    for depth in (2, 100):
        given: Settings = {"kind": "reranker", "over": "words", "depth": depth, "model": str(model)}
        found = ids(search(tmp_path, {"words": WORDS, "rr": given}, "rr"))
        assert found == right(tmp_path, depth, score)
        assert found != first(tmp_path, depth)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"model": "./nowhere"}, r"retrievers\.rr\.model"),
        ({"over": "nobody", "model": "MODEL"}, "nobody"),
        ({"model": "MODEL", "depth": 0}, r"retrievers\.rr\.depth"),
    ],
)
def test_wrong_settings_are_named(more: dict[str, Any], message: str, model: Path, tmp_path: Path) -> None:
    """A folder, a retriever or a protocol that there is not is found by the name of its setting."""
    given = {"kind": "reranker", "over": "words", "depth": 3, **more}
    if given.get("model") == "MODEL":
        given["model"] = str(model)
    with pytest.raises(ConfigError, match=message) as raised:
        search(tmp_path, {"words": WORDS, "rr": given}, "rr")
    assert "found 'reranker'" not in str(raised.value)


def test_another_model_depth_or_list_is_another_run(model: Path, tmp_path: Path) -> None:
    """What changes a reranker's ranking changes what the pool is made from; the same settings do not."""
    other = cross_encoder(tmp_path / "other", seed=4)

    def made(words: Settings = WORDS, **more: Any) -> Any:
        given = {"kind": "reranker", "over": "words", "depth": 4, "model": str(model), **more}
        definitions: dict[str, Settings] = {"words": words, "rr": given}
        return stage.fingerprint(PoolConfig(retrievers=("rr",)), context(tmp_path, retrievers=definitions))

    assert made() == made()
    changed = [made(depth=3), made(model=str(other)), made({"kind": "bm25", "tokens": "bigrams"})]
    changed += [made(model="m", url="http://127.0.0.1:9/rerank"), made(model="n", url="http://127.0.0.1:9/rerank")]
    assert all(each != made() for each in changed)
    assert changed[-1] != changed[-2]


# What may leave


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Return a run in which one text still holds what looks like personal data."""
    (tmp_path / "mask").mkdir()
    write_table(tmp_path / "mask", "residual", frame("residual", [{"table": "corpus", "id": "d9", "reason": "digits"}]))
    return tmp_path


def test_texts_that_were_not_masked_go_to_no_remote_server(left: Path) -> None:
    """What may still be personal is sent only where the user says that it stays: an address says nothing."""
    with rerank_server() as server:
        given = over_http(server)
        silent = {key: value for key, value in given["rr"].items() if key != "local"}
        for remote in (silent, {**silent, "local": False}):
            with pytest.raises(UserError, match=r"retrievers\.rr: 1 texts"):
                search(left, {**given, "rr": remote}, "rr")
        assert not server.bodies
        assert ids(search(left, over_http(server), "rr")) == right(left)


def test_a_folder_sends_nothing(model: Path, left: Path) -> None:
    """A cross-encoder on this machine ranks texts that were not masked."""
    given: Settings = {"kind": "reranker", "over": "words", "depth": 3, "model": str(model)}
    assert ids(search(left, {"words": WORDS, "rr": given}, "rr"))["q1"]


# In a run


def run_with(folder: Path, retrievers: dict[str, Any], names: list[str], **more: Any) -> str:
    """Write a run of twelve queries that pools by the retrievers named."""
    known = {"words": {"kind": "bm25", "tokens": "bigrams"}, **retrievers}
    return sized(folder, 12, retrievers=known, pool={"retrievers": names, "depth": 3, "size": 9}, **more)


def pool(folder: Path, *words: str) -> Any:
    for name in ("ingest", "mask", "diversify"):
        if not (folder / "runs/bench" / name).exists():
            ran(folder, name, "--pipeline", "bench.yaml")
    return curate(folder, "pool", "--pipeline", "bench.yaml", *words)


def rankings(folder: Path) -> pl.DataFrame:
    return read_table(folder / "runs/bench/pool", "rankings")


def definition(server: RerankServer, **more: Any) -> dict[str, Any]:
    return {"rr": {"kind": "reranker", "over": "words", "depth": 5, "url": server.url, "local": True, **more}}


@pytest.mark.parametrize("names", [["rr"], ["words", "rr"]])
def test_it_is_a_source_of_its_own(names: list[str], tmp_path: Path) -> None:
    """A pool by a reranker has its ranking under its name, and that of the other retriever only where it is listed."""
    with rerank_server() as server:
        run_with(tmp_path, definition(server), names)
        done = pool(tmp_path)
        assert done.returncode == 0, done.stderr
    table = rankings(tmp_path)
    assert set(table["retriever"]) == set(names)
    mine = table.filter(retriever="rr")
    assert mine.height == 12 * 3
    texts = {row["doc_id"]: row["text"] for row in read_table(tmp_path / "runs/bench/diversify", "corpus").to_dicts()}
    asked = {
        row["query_id"]: row["text"] for row in read_table(tmp_path / "runs/bench/diversify", "queries").to_dicts()
    }
    for query, some in mine.sort("rank").group_by("query_id"):
        scored = {text for sent, text in server.pairs if sent == asked[query[0]]}
        assert len(scored) == 5
        score_of = {text: chance(asked[query[0]], text) for text in scored}
        best = sorted(scored, key=score_of.__getitem__, reverse=True)[:3]
        assert [texts[doc] for doc in some["doc_id"]] == best


def test_what_was_scored_is_not_asked_again_and_another_depth_is(tmp_path: Path) -> None:
    """The same pool again sends nothing; with another depth the ranking is made anew."""
    with rerank_server() as server:
        run_with(tmp_path, definition(server), ["rr"])
        assert pool(tmp_path).returncode == 0
        before, table = len(server.bodies), rankings(tmp_path)
        assert pool(tmp_path).returncode == 0
        assert len(server.bodies) == before
        assert pool(tmp_path, "--set", "retrievers.rr.depth=1").returncode == 0
    assert table.height == 36
    assert rankings(tmp_path).height == 12


def test_a_run_stops_with_the_reason_and_goes_on_later(tmp_path: Path) -> None:
    """A server that breaks off leaves no pool; once it is well again the pool is that of a run without a fault."""
    with rerank_server(None, None, None, always=FAULTS["a score is NaN"]) as server:
        run_with(tmp_path, definition(server), ["rr"])
        broken = pool(tmp_path)
        assert broken.returncode != 0
        assert "rr" in broken.stderr
        assert "Traceback" not in broken.stderr
        assert not (tmp_path / "runs/bench/pool").exists()
        server.always = None
        assert pool(tmp_path).returncode == 0
        ranked = rankings(tmp_path)
        assert pool(tmp_path, "--force").returncode == 0
        assert rankings(tmp_path).equals(ranked)
    assert ranked.height == 36


def test_the_list_of_hosts_holds_for_it(tmp_path: Path) -> None:
    """A server that is none of egress.allow is not reached, and one that is there is."""
    for allowed in (False, True):
        folder = tmp_path / str(allowed)
        folder.mkdir()
        with rerank_server() as server:
            host = server.url.split("/")[2] if allowed else "api.example.org"
            run_with(folder, definition(server, local=False), ["rr"], egress={"allow": [host]})
            done = pool(folder)
            assert (done.returncode, bool(server.bodies)) == ((0, True) if allowed else (2, False)), done.stderr
        if not allowed:
            assert "egress.allow" in done.stderr
            assert "retrievers.rr" in done.stderr


# No judge


@pytest.mark.parametrize("where", ["retrievers", "judges"])
def test_a_reranker_is_no_judge(where: str, tmp_path: Path) -> None:
    """A user who names a reranker as a judge is told that it ranks and does not judge."""
    with rerank_server() as server:
        mine = definition(server)
        name = run_with(tmp_path, mine, ["words"])
        path = tmp_path / name
        settings = yaml.safe_load(path.read_text("utf-8"))
        if where == "judges":
            settings["judges"] |= mine
        settings["judge"] = {"models": ["one", "rr"]}
        path.write_text(yaml.safe_dump(settings, allow_unicode=True), "utf-8")
        said = complaint(tmp_path, "run", name)
        assert "ranks, does not judge" in " ".join(said.split())
        assert not server.bodies
