"""The retriever that asks a collection of Qdrant: embedded, and over HTTP with all that can go wrong there."""

import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.ask import build
from curate.core.config import Json, Settings
from curate.core.errors import AccessError, ConfigError, DataError, MissingExtra, ProviderError, UserError
from curate.core.protocols import Retriever
from curate.core.records import Hit
from curate.system.files import frame, write_table
from curate.testing import CORPUS, QUERIES, ListCorpus, check_retriever, listed
from tests.integration.commands.pool.test_pool import diversified, pooled, table
from tests.support import qdrant
from tests.support.qdrant import Server, fill, one_more
from tests.support.runs import Done, curate, tiny
from tests.support.small import DIM, context, embedding_server, letters

KEY = "qd-not-to-be-shown"
ALIKE = {f"d{number:02}": "咖啡" for number in range(60)}

Made = Callable[..., Retriever]


@pytest.fixture(scope="module")
def encoders() -> Iterator[dict[str, Settings]]:
    with embedding_server() as running:
        yield {"letters": {"kind": "api", "base_url": running.url, "model": "m", "dim": DIM, "local": True}}


@pytest.fixture
def server() -> Iterator[Server]:
    with qdrant.server() as running:
        fill(running.client, list(CORPUS.items()))
        yield running


def settings(server: Server, **more: Json) -> Settings:
    mine: Settings = {"kind": "qdrant", "collection": "texts", "encoder": "letters", "id_field": "doc_id"}
    return {**mine, "url": server.url, "attempts": 1, **more}


@pytest.fixture
def made(server: Server, tmp_path: Path, encoders: dict[str, Settings]) -> Made:
    """Return a function that builds the retriever `mine` as the stage does."""

    def make(**more: Json) -> Retriever:
        given = context(tmp_path, encoders=encoders, retrievers={"mine": settings(server, **more)})
        return build.retriever(given, "mine")

    return make


def ids(retriever: Retriever, corpus: Mapping[str, str], query: str, depth: int) -> list[str]:
    (hits,) = listed(retriever, ListCorpus(corpus), {"q": query}, depth)
    return [hit.doc_id for hit in hits]


def facts(retriever: Any) -> tuple[int, int, int]:
    names = ("hits_outside_the_corpus", "queries_with_fewer", "queries_cut")
    outside, fewer, cut = (retriever.facts[name] for name in names)
    return outside, fewer, cut


# What is found


def test_the_contract_over_http(made: Made) -> None:
    check_retriever(made)


def test_it_finds_what_our_own_search_finds(made: Made, tmp_path: Path, encoders: dict[str, Settings]) -> None:
    dense = build.retriever(context(tmp_path, encoders=encoders), "letters")
    for depth in (1, 3, 100):
        ours = listed(dense, ListCorpus(CORPUS), QUERIES, depth)
        theirs = listed(made(), ListCorpus(CORPUS), QUERIES, depth)
        assert [[hit.doc_id for hit in hits] for hits in theirs] == [[hit.doc_id for hit in hits] for hits in ours]
        scores = [[hit.score for hits in each for hit in hits] for each in (theirs, ours)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6)


@pytest.mark.parametrize("order", [1, -1])
def test_ties_at_the_end_are_read_to_their_end(order: int, made: Made, server: Server) -> None:
    fill(server.client, list(ALIKE.items())[::order], "alike")
    asked = made(collection="alike")
    for depth in (1, 2, 30):
        assert ids(asked, ALIKE, "咖啡", depth) == sorted(ALIKE)[:depth]
        assert facts(asked) == (0, 0, 0)
    assert [search[0]["limit"] for search in server.searches[:3]] == [21, 42, 60]


@pytest.mark.parametrize("seed", range(12))
def test_the_rule_on_small_collections(seed: int, made: Made, server: Server) -> None:
    """Points that tie, documents in several points, and others' documents: every list is the rule's, whole or cut."""
    draw = np.random.default_rng(seed)
    texts = ["咖", "啡", "咖啡", "茶咖", "茶"]
    points = [(f"d{draw.integers(40)}", texts[draw.integers(5)]) for _ in range(draw.integers(1, 80))]
    corpus = {f"d{number}": "" for number in range(40) if draw.random() < 0.6} | {"d0": ""}
    fill(server.client, [*points, ("d0", "茶")], "drawn")
    asked = made(collection="drawn")
    everything = server.client.query_points("drawn", letters(["咖啡"])[0].tolist(), limit=100, with_payload=True).points
    best: dict[str, float] = {}
    for point in everything:
        doc_id, score = point.payload["doc_id"], round(point.score, 6)
        if doc_id in corpus:
            best[doc_id] = max(score, best.get(doc_id, score))
    literal = sorted(best, key=lambda doc_id: (-best[doc_id], doc_id))
    for depth in (1, 2, 5, 100):
        (hits,) = listed(asked, ListCorpus(corpus), {"q": "咖啡"}, depth)
        assert [(hit.doc_id, hit.score) for hit in hits] == [(each, best[each]) for each in literal[:depth]]


def test_documents_of_others_take_nobodys_place(made: Made) -> None:
    corpus = {doc_id: CORPUS[doc_id] for doc_id in ("d2", "d3", "d6")}
    asked = made()
    whole = ids(asked, CORPUS, QUERIES["zh"], 100)
    assert ids(asked, corpus, QUERIES["zh"], 2) == [doc_id for doc_id in whole if doc_id in corpus][:2]
    assert whole[:2] == ["d10", "d2"]
    ahead = whole.index("d3" if whole.index("d3") < whole.index("d6") else "d6") - 1
    assert facts(asked) == (ahead, 0, 0)
    assert asked.notes == [  # type: ignore[attr-defined]
        f"retrievers.mine: hits that are no documents of the corpus, left out: {ahead}"
    ]


def test_the_best_of_a_documents_points_counts(made: Made, server: Server) -> None:
    parts = [("a", "茶"), ("b", "咖啡茶"), ("a", "咖啡"), ("b", "茶"), ("a", "酒")]
    fill(server.client, parts, "parts")
    (hits,) = listed(made(collection="parts"), ListCorpus({"a": "", "b": ""}), {"q": "咖啡"}, 5)
    assert [hit.doc_id for hit in hits] == ["a", "b"]
    assert hits[0] == Hit("a", 1, 1.0)
    assert hits[1].score == pytest.approx(2 / 6**0.5, abs=1e-6)


def test_replies_are_of_bounded_size(made: Made, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curate.retrieval.retrievers.qdrant.POINTS", 15)
    bounded = listed(made(), ListCorpus(CORPUS), QUERIES, 3)
    assert [(len(search), search[0]["limit"]) for search in server.searches] == [(2, 7), (2, 7)]
    monkeypatch.undo()
    assert listed(made(), ListCorpus(CORPUS), QUERIES, 3) == bounded


def test_reading_ends_at_most(made: Made, server: Server) -> None:
    fill(server.client, list(ALIKE.items()), "alike")
    asked = made(collection="alike", most=25)
    assert len(ids(asked, ALIKE, "咖啡", 3)) == 3
    assert facts(asked) == (0, 0, 1)
    assert asked.notes == [  # type: ignore[attr-defined]
        "retrievers.mine: queries with more to read after 25 points: 1; raise `most`"
    ]


def test_a_collection_that_lacks_documents(made: Made) -> None:
    more = {**CORPUS, "d7": "咖啡", "d8": "茶"}
    asked = made()
    assert len(ids(asked, more, "咖啡", 8)) == 7
    assert facts(asked) == (0, 1, 0)
    assert asked.notes == ["retrievers.mine: queries with fewer than 8 documents: 1"]  # type: ignore[attr-defined]


def test_an_empty_collection_finds_nothing(made: Made, server: Server) -> None:
    fill(server.client, [], "empty")
    asked = made(collection="empty")
    assert ids(asked, CORPUS, "咖啡", 3) == []
    assert facts(asked) == (0, 1, 0)


def test_a_collection_of_another_corpus_is_refused(made: Made) -> None:
    with pytest.raises(DataError, match=r"retrievers\.mine: found 7 documents in texts, none of them of the corpus"):
        ids(made(), {"x1": "咖啡"}, "咖啡", 3)


@pytest.mark.parametrize(
    ("more", "corpus"),
    [({"id_field": "meta.id"}, CORPUS), ({"id_field": None}, {str(number): "" for number in range(len(CORPUS))})],
)
def test_where_the_id_of_a_document_stands(more: dict[str, Json], corpus: Mapping[str, str], made: Made) -> None:
    assert sorted(ids(made(**more), corpus, "咖啡", 100)) == sorted(corpus)


@pytest.mark.parametrize(("field", "found"), [("nothing", "nothing"), ("meta", "a mapping"), ("doc_id.x", "nothing")])
def test_a_field_without_an_id(field: str, found: str, made: Made) -> None:
    with pytest.raises(DataError, match=rf"mine\.id_field: point \d of texts holds {found} in '{field}', expected"):
        ids(made(id_field=field), CORPUS, "咖啡", 3)


def test_named_vectors_and_aliases(made: Made, server: Server) -> None:
    from qdrant_client.models import CreateAlias, CreateAliasOperation

    fill(server.client, list(CORPUS.items()), "two", vector="text")
    alias = CreateAliasOperation(create_alias=CreateAlias(collection_name="two", alias_name="today"))
    server.client.update_collection_aliases([alias])
    assert ids(made(collection="today", vector="text"), CORPUS, QUERIES["zh"], 2) == ["d10", "d2"]
    with pytest.raises(ConfigError, match=r"retrievers\.mine\.vector: found None; known: text"):
        made(collection="two")
    with pytest.raises(ConfigError, match=r"found 'text'; leave it out: points have one vector, unnamed"):
        made(vector="text")


def test_what_cannot_be_compared_is_refused(made: Made, server: Server) -> None:
    fill(server.client, list(CORPUS.items()), "far", distance="Euclid")
    with pytest.raises(ConfigError, match=r"compares by Euclid, expected one vector by Cosine or Dot"):
        made(collection="far")
    short = np.ones((1, 3), dtype=np.float32)
    fill(server.client, [("d1", "")], "short", vectors=short)
    with pytest.raises(
        ConfigError,
        match=r"mine\.encoder: letters gives vectors of length 64, expected 3; name the encoder that short",
    ):
        ids(made(collection="short"), {"d1": ""}, "咖啡", 3)
    assert server.searches == []


# What is sent


def test_only_vectors_are_sent(made: Made, server: Server) -> None:
    listed(made(batch_size=3), ListCorpus(CORPUS), QUERIES, 2)
    assert [len(search) for search in server.searches] == [3, 1]
    for search in server.searches:
        for each in search:
            assert {name for name, value in each.items() if value is not None} == {
                *("query", "params", "limit", "with_payload")
            }
            assert [len(vector) for vector in each["query"].values()] == [DIM]
            assert each["params"] == {"exact": True, "quantization": {"ignore": True}}
    sent = json.dumps(server.asked, ensure_ascii=False)
    assert not [text for text in (*CORPUS.values(), *QUERIES.values()) if text in sent]


def test_an_approximate_search_is_named_so(made: Made, server: Server) -> None:
    asked: Any = made(exact=False)
    ids(asked, CORPUS, "咖啡", 3)
    assert asked.facts["search"] == "approximate (HNSW)"
    assert "`exact: true` compares every point" in asked.notes[0]
    assert "params" not in server.searches[0][0]
    exact: Any = made()
    ids(exact, CORPUS, "咖啡", 3)
    assert (exact.facts["search"], exact.notes) == ("exact", [])


def test_nothing_is_sent_of_texts_that_must_not_leave(
    made: Made, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mask").mkdir()
    write_table(tmp_path / "mask", "residual", frame("residual", [{"table": "corpus", "id": "d9", "reason": "digits"}]))
    asked = made()
    server.asked.clear()
    with pytest.raises(UserError, match=r"retrievers\.mine: 1 texts .* retrievers\.mine\.local: true"):
        ids(asked, CORPUS, "咖啡", 1)
    assert server.asked == []
    asked = made(local=True)
    assert ids(asked, CORPUS, "咖啡", 1) == ["d9"], "the user says that it stays there"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.asked.clear()
    with pytest.raises(UserError, match=r"retrievers\.mine: 1 texts .* through a proxy"):
        ids(asked, CORPUS, "咖啡", 1)
    assert server.asked == []


# What goes wrong


def test_a_key_is_sent_and_never_shown(
    tmp_path: Path, encoders: dict[str, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with qdrant.server(KEY) as server:
        fill(server.client, list(CORPUS.items()))

        def make(**more: Json) -> Any:
            given = context(tmp_path, encoders=encoders, retrievers={"mine": settings(server, **more)})
            return build.retriever(given, "mine")

        with pytest.raises(AccessError, match="HTTP 401; it wants a key: name its environment variable with key_env"):
            make()
        with pytest.raises(ConfigError, match=r"retrievers\.mine\.key_env: no key in \$MINE; set it with: export MINE"):
            make(key_env="MINE")
        monkeypatch.setenv("MINE", "qd-wrong-one")
        with pytest.raises(AccessError, match=r"answered HTTP 401; check the key in \$MINE") as failed:
            make(key_env="MINE")
        assert "qd-wrong" not in str(failed.value)
        assert failed.value.__suppress_context__
        monkeypatch.setenv("MINE", KEY)
        asked = make(key_env="MINE")
        assert ids(asked, CORPUS, "咖啡", 1)
        assert KEY not in json.dumps([asked.identity, asked.facts, asked.notes])


def test_a_collection_that_is_not_there(made: Made) -> None:
    with pytest.raises(
        ConfigError, match=r"mine\.collection: no 'text' at http.*; did you mean 'texts'\? known: texts"
    ):
        made(collection="text")


def test_a_server_that_is_not_there(tmp_path: Path, encoders: dict[str, Settings]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    mine: Settings = {"kind": "qdrant", "url": url, "collection": "c", "encoder": "letters", "attempts": 2}
    with pytest.raises(DataError, match=rf"mine: no answer from {url} \(ConnectError\); start the server, or mend url"):
        build.retriever(context(tmp_path, encoders=encoders, retrievers={"mine": mine}), "mine")


def test_another_server(tmp_path: Path, encoders: dict[str, Settings]) -> None:
    """An address of something else is a mistake in the pipeline file."""
    with embedding_server() as other:
        mine: Settings = {"kind": "qdrant", "url": other.url, "collection": "c", "encoder": "letters", "attempts": 1}
        with pytest.raises(DataError, match=r"mine: http.*/v1 answered HTTP 501; check url and key$"):
            build.retriever(context(tmp_path, encoders=encoders, retrievers={"mine": mine}), "mine")


STRANGE = "is none of a Qdrant server's; check url"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ((500, {}, b"no"), "answered HTTP 500$"),
        ((429, {"retry-after": "0"}, b"{}"), "answered HTTP 429$"),
        ((429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"{}"), "answered HTTP 429$"),
        ((429, {}, b"{}"), "answered HTTP 429$"),
        ((404, {}, b"{}"), "answered HTTP 404; check url and key$"),
        ((302, {"location": "http://127.0.0.1:9/"}, b""), "answered HTTP 302; check url and key$"),
        ((200, {}, b"<html>"), STRANGE),
        ((200, {}, b"\xff{"), STRANGE),
        ((200, {}, b'{"result": null}'), STRANGE),
        ((200, {}, b'{"result": []}'), STRANGE),
        ((200, {}, b'{"result": [{"points": [{"id": 1, "version": 0, "score": null}]}]}'), STRANGE),
        ((200, {}, b'{"result": [{"points": [{"id": 1, "version": 0, "score": 1e999, "payload": {"doc_id": "d1"}}]}]}'),
         STRANGE),
        ((0, {}, b""), r"no answer from http.* \(ReadTimeout\)$"),
    ],
)  # fmt: skip
def test_faults_of_a_server(fault: qdrant.Fault, message: str, made: Made, server: Server) -> None:
    asked = made(timeout_s=1)
    server.faults.append(fault)
    with pytest.raises(ProviderError, match=message) as failed:
        ids(asked, CORPUS, "咖啡", 1)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__ or failed.value.__context__ is None


def test_a_fault_that_passes_is_asked_again(made: Made, server: Server) -> None:
    asked = made(attempts=3)
    server.faults += [(503, {}, b""), (429, {"retry-after": "0"}, b"{}")]
    assert ids(asked, CORPUS, "咖啡", 1) == ["d9"]
    assert len(server.searches) == 3


def test_a_fault_that_stays_is_not(made: Made, server: Server) -> None:
    asked = made(attempts=3)
    server.faults.append((400, {}, b"{}"))
    with pytest.raises(ProviderError, match="HTTP 400"):
        ids(asked, CORPUS, "咖啡", 1)
    assert len(server.searches) == 1


def test_the_client_is_an_extra(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtra, match=r"pip install 'curate-ir\[qdrant\]'"):
        made()


@pytest.mark.parametrize("more", [{"path": "x"}, {"url": None}])
def test_one_place_is_named(more: dict[str, Json], made: Made) -> None:
    with pytest.raises(ConfigError, match=r"retrievers\.mine: expected either url or path"):
        made(**more)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the client leaves its lock open
def test_folders_that_cannot_be_opened(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with pytest.raises(DataError, match=r"mine\.path: .*index is no folder of Qdrant's embedded mode"):
        made(url=None, path=str(path))
    assert not path.exists()
    with qdrant.folder(path) as client:
        fill(client, list(CORPUS.items()))
        with pytest.raises(DataError, match=r"index cannot be opened \(.*already accessed.*\); close it elsewhere"):
            made(url=None, path=str(path))
    asked: Any = made(url=None, path=str(path), exact=False)
    assert ids(asked, CORPUS, QUERIES["zh"], 2) == ["d10", "d2"]
    assert asked.facts["search"] == "exact", "the embedded mode has no other"
    with pytest.raises(ConfigError, match=r"no 'text' at .*index; did you mean 'texts'"):
        made(url=None, path=str(path), collection="text")


# In a run


def said(done: Done) -> str:
    return done.stdout + done.stderr


def test_what_a_stage_is_made_from(made: Made, server: Server) -> None:
    before = made().identity
    assert made(batch_size=1, timeout_s=3, attempts=2).identity == before
    assert "127.0.0.1" not in json.dumps(before)
    assert made(exact=False).identity != before
    fill(server.client, list(CORPUS.items()), "again", distance="Dot")
    assert made(collection="again").identity != before
    one_more(server.client)
    assert made().identity != before


def test_the_pool_says_how_it_was_searched(tmp_path: Path, server: Server, encoders: dict[str, Settings]) -> None:
    corpus = {doc_id: text for doc_id, text in CORPUS.items() if doc_id != "d10"}
    diversified(tmp_path, {"q1": QUERIES["zh"]}, corpus, merged={"d10": "d2"})
    asked: Settings = {"retrievers": ["mine", "bm25"], "depth": 3, "size": 3}
    report = pooled(tmp_path, asked, encoders=encoders, retrievers={"mine": settings(server)})
    assert report.facts["indexes"] == {
        "mine": {
            "collection": "texts",
            "points": 7,
            "search": "exact",
            "hits_outside_the_corpus": 1,
            "queries_with_fewer": 0,
            "queries_cut": 0,
        }
    }
    assert report.notes == ["retrievers.mine: hits that are no documents of the corpus, left out: 1"]
    assert next(row["doc_id"] for row in table(tmp_path, "rankings") if row["retriever"] == "mine") == "d2"


def test_a_run_sees_a_changed_collection_and_outlives_its_server(tmp_path: Path, encoders: dict[str, Settings]) -> None:
    pipeline = tmp_path / tiny(tmp_path)
    with qdrant.server() as server:
        rows = (json.loads(line) for line in (tmp_path / "data" / "corpus.jsonl").read_text("utf-8").splitlines())
        fill(server.client, [(row["_id"], row["text"]) for row in rows])
        text = pipeline.read_text("utf-8").replace("[words, pairs]", "[words, mine]")
        definitions = json.dumps(settings(server))
        text = text.replace(
            "retrievers:\n  words", f"encoders: {json.dumps(encoders)}\nretrievers:\n  mine: {definitions}\n  words"
        )
        pipeline.write_text(text, "utf-8")
        command = ("run", "tiny.yaml", "--run", "runs/t")
        done = curate(tmp_path, *command)
        assert done.returncode == 0, done.stderr
        found = pl.read_parquet(tmp_path / "runs/t/pool/rankings.parquet")
        assert set(found["retriever"]) == {"words", "mine"}
        assert "pool: up to date" in said(curate(tmp_path, *command))
        one_more(server.client)
        again = curate(tmp_path, *command)
        assert "pool: started again, changed: files, models or answers" in said(again)
    shown = curate(tmp_path, "status", "--run", "runs/t")
    assert shown.returncode == 0, shown.stderr
    assert "unchecked" in shown.stdout
    assert curate(tmp_path, "judge", "--run", "runs/t").returncode == 0, "what was pooled before stands"
    late = curate(tmp_path, *command)
    assert late.returncode == 2
    assert "start the server, or mend url" in late.stderr
