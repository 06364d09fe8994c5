"""One contract for every kind of retriever, on texts whose right answers a reader sees; BM25 and run files apart."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from curate.ask import build
from curate.core.config import Settings
from curate.core.errors import ConfigError, DataError
from curate.core.protocols import Kit, Retriever
from curate.core.records import Hit
from curate.retrieval.retrievers import RETRIEVERS
from curate.retrieval.retrievers.bm25 import Bm25, _tokenizer, bigrams, words
from curate.retrieval.retrievers.bm25 import Config as Bm25Config
from curate.testing import CORPUS, QUERIES, ListCorpus, check_retriever, listed
from tests.support import qdrant
from tests.support.rankers import cross_encoder, sparse_encoder
from tests.support.small import asked, context, embedding_server, letters, minilm

BEST = {"zh": ["d10", "d2"], "en": ["d5"]}
"""What everybody should find first; d10 stands before d2, which has the same text, because ids are texts."""
SCORES = {
    "zh": {"d2": 2.5, "d10": 2.5, "d6": -1.0},
    "en": {"d5": 7, "d4": 1e-3},
    "mixed": {"d3": 0.5, "d5": 0.5, "d9": 0.5},
    "other": {"d1": 1.0},
}
TREC = "\ufeff" + "".join(f"{q} Q0 {d} 1 {SCORES[q][d]} tag\n" for q in SCORES for d in SCORES[q]) + "\n"
MTEB = {"mteb_model_meta": {"model_name": "m", "revision": "1"}, "default": {"test": SCORES}}

DEFINED: dict[str, Settings] = {
    "words": {"kind": "bm25"},
    "bigrams": {"kind": "bm25", "tokens": "bigrams"},
    "english": {"kind": "bm25", "tokens": "english"},
    "trec": {"kind": "runfile", "path": "run.trec"},
    "mteb": {"kind": "runfile", "path": "Task_predictions.json"},
    "dense": {"kind": "dense", "encoder": "letters"},
    "index": {
        "kind": "qdrant",
        "path": "index",
        "collection": "texts",
        "encoder": "letters",
        "id_field": "doc_id",
    },
}
ENCODED = {"e5", "use", "minilm"}
KINDS = [*DEFINED, *sorted(ENCODED)]
LEXICAL = {"words", "bigrams", "english", "trec", "mteb"}
"""Retrievers that may find nothing."""
FILES = {"trec", "mteb"}
"""Their ids may be out of date, so the pool cuts."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with embedding_server() as server:
        yield server.url


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home for all tests of this file: texts are encoded once."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def make(tmp_path: Path, shared: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Retriever]:
    """Return a function that builds a retriever by name, as the stage does."""
    monkeypatch.chdir(tmp_path)
    Path("run.trec").write_text(TREC, encoding="utf-8")
    Path("Task_predictions.json").write_text(json.dumps(MTEB))
    encoders: dict[str, Settings] = {"letters": {"kind": "api", "base_url": url, "model": "m", "dim": 64}}

    def made(name: str) -> Retriever:
        if name == "index" and not Path("index").exists():
            with qdrant.folder(Path("index")) as client:
                qdrant.fill(client, list(CORPUS.items()))
        if name == "minilm":
            encoders["minilm"] = {"kind": "dense", "model": minilm(), "device": "cpu"}
        return build.retriever(context(shared, encoders=encoders, retrievers=DEFINED), name)

    return made


def found(retriever: Retriever, depth: int, queries: Mapping[str, str] = QUERIES) -> dict[str, list[Hit]]:
    return dict(zip(queries, listed(retriever, ListCorpus(CORPUS), queries, depth), strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_the_contract(name: str, make: Callable[[str], Retriever], capfd: pytest.CaptureFixture[str]) -> None:
    check_retriever(lambda: make(name), cuts=name not in FILES)
    assert make(name).name == name
    assert len(found(make(name), 1000)["none"]) == (0 if name in LEXICAL else len(CORPUS))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", KINDS)
def test_what_is_meant_is_found_first(name: str, make: Callable[[str], Retriever]) -> None:
    whole = found(make(name), 3)
    for query_id, best in BEST.items():
        if name != "minilm" or query_id == "en":  # MiniLM reads English only
            wanted = sorted(best, reverse=name in FILES)  # ties as trec_eval has them
            assert [hit.doc_id for hit in whole[query_id]][: len(best)] == wanted


def test_progress_says_whose_it_is(make: Callable[[str], Retriever]) -> None:
    for name in DEFINED:
        seen: set[str] = set()

        def note(label: str, _total: int, _done: int, seen: set[str] = seen) -> None:
            seen.add(label)

        list(make(name).search(ListCorpus(CORPUS), asked(QUERIES), 5, note))
        assert any(name in label for label in seen)


MODELS: dict[str, Callable[[Path], Path]] = {"reranker": cross_encoder, "sparse": sparse_encoder}
"""Kinds whose models are random here: nothing is meant by what they find."""


@pytest.mark.parametrize("kind", MODELS)
def test_the_contract_of_models(kind: str, tmp_path: Path) -> None:
    settings: Settings = {"kind": kind, "model": str(MODELS[kind](tmp_path / "made")), "device": "cpu"}
    over: Settings = {"over": "bm25", "depth": 3} if kind == "reranker" else {}
    check_retriever(lambda: build.retriever(context(tmp_path, retrievers={"mine": settings | over}), "mine"))


def test_every_kind_is_under_the_contract() -> None:
    assert {str(settings["kind"]) for settings in DEFINED.values()} | set(MODELS) == set(RETRIEVERS.builtin)


# BM25


def bm25(folder: Path, **more: Any) -> Bm25:
    def nobody(_name: str) -> Any:
        raise AssertionError("BM25 needs no encoder")

    return Bm25("bm25", Bm25Config(**more), Kit(nobody, folder))


def literal_bm25(query: Sequence[str], documents: Mapping[str, Sequence[str]], k1: float, b: float) -> dict[str, float]:
    """Return Lucene's BM25: idf ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b length / mean length))."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for token in query:
        n = sum(token in tokens for tokens in documents.values())
        idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
        for doc_id, tokens in documents.items():
            tf = Counter(tokens)[token]
            scores[doc_id] += idf * tf / (tf + k1 * (1 - b + b * len(tokens) / mean))
    return scores


@pytest.mark.parametrize(("tokens", "k1", "b"), [("words", 1.5, 0.75), ("bigrams", 0.9, 0.4), ("bigrams", 1.2, 0.0)])
def test_bm25_is_its_formula(tokens: str, k1: float, b: float, tmp_path: Path) -> None:
    retriever = bm25(tmp_path, tokens=tokens, k1=k1, b=b)
    cut = bigrams if tokens == "bigrams" else words(tmp_path)
    query = "小儿发热喝咖啡 coffee coffee"
    expected = literal_bm25(cut(query), {doc_id: cut(text) for doc_id, text in CORPUS.items()}, k1, b)
    (hits,) = listed(retriever, ListCorpus(CORPUS), {"q": query}, 100)
    assert {hit.doc_id: hit.score for hit in hits} == pytest.approx(
        {doc_id: score for doc_id, score in expected.items() if score > 0}, abs=2e-6
    )
    assert {"d2", "d9", "d10", "d4"} <= {hit.doc_id for hit in hits} < set(CORPUS)


def test_words_are_words(tmp_path: Path) -> None:
    _tokenizer.cache_clear()
    assert words(tmp_path)("高血压患者能喝咖啡吗？") == ["血压", "高血压", "患者", "能", "咖啡", "喝咖啡", "吗"]
    assert words(tmp_path)("ＣＯＶＩＤ-19 Vaccine!") == ["covid", "19", "vaccine"]
    assert words(tmp_path)("，。 ⁂") == []
    assert list(tmp_path.iterdir()) == [tmp_path / "jieba.cache"]


def test_bigrams_are_pairs_of_letters() -> None:
    assert bigrams("高血压，Ｆever") == ["高血", "血压", "fe", "ev", "ve", "er"]
    assert bigrams("痛 x") == []


def test_bigrams_find_what_words_cut_apart(tmp_path: Path) -> None:
    corpus = ListCorpus({"d1": "奥司他韦片", "d2": "阿司匹林片"})
    (hits,) = listed(bm25(tmp_path, tokens="bigrams"), corpus, {"q": "司他"}, 5)
    assert [hit.doc_id for hit in hits] == ["d1"]


def test_documents_without_a_token_are_no_obstacle(tmp_path: Path) -> None:
    for texts in ({"d1": "。", "d2": "⁂"}, {"d1": "。", "d2": "咖啡"}):
        (hits,) = listed(bm25(tmp_path), ListCorpus(texts), {"q": "咖啡"}, 5)
        assert [hit.doc_id for hit in hits] == [doc_id for doc_id, text in texts.items() if text == "咖啡"]


# Run files


def run_of(folder: Path, text: str, name: str = "x.trec", **more: Any) -> dict[str, list[Hit]]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    given = context(folder, retrievers={"mine": {"kind": "runfile", "path": str(path), **more}})
    return found(build.retriever(given, "mine"), 10)


@pytest.mark.parametrize("name", ["trec", "mteb"])
def test_a_run_comes_back_by_score_whatever_its_order(name: str, make: Callable[[str], Retriever]) -> None:
    whole = found(make(name), 10)
    assert whole["zh"] == [Hit("d2", 1, 2.5), Hit("d10", 2, 2.5), Hit("d6", 3, -1.0)]
    assert whole["en"] == [Hit("d5", 1, 7.0), Hit("d4", 2, 0.001)]
    assert [hit.doc_id for hit in whole["mixed"]] == ["d9", "d5", "d3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("zh Q0 d2 1 0.5", r"x\.trec:2: found 5 fields, expected 6 \(qid Q0 docid rank score tag\)"),
        ("zh Q0 d2 1 high tag", r"x\.trec:2: found the score 'high', expected a finite number"),
        ("zh Q0 d2 1 nan tag", r"x\.trec:2: found the score 'nan', expected a finite number"),
        ("zh Q0 d6 2 0.5 tag", r"x\.trec:2: document 'd6' stands twice in the ranking of query 'zh'"),
    ],
)
def test_what_is_wrong_in_a_trec_run(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        run_of(tmp_path, f"zh Q0 d6 1 1 tag\n{line}\n")


def test_a_trec_run_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x.trec"
    path.write_bytes("zh Q0 病 1 1 tag\n".encode("gb18030"))
    given = context(tmp_path, retrievers={"mine": {"kind": "runfile", "path": str(path)}})
    with pytest.raises(DataError, match="not UTF-8 text"):
        found(build.retriever(given, "mine"), 10)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", r"x\.json: not valid JSON \(.*\); give mteb's <task>_predictions\.json"),
        ([1], "expected subset -> split -> query -> document -> score, found a list"),
        ({"default": {"test": {"zh": 3}}}, "expected subset -> split -> query -> document -> score, found a number"),
        ({"default": {"test": {"zh": {"d2": None}}}}, r"x\.json: zh: found the score None, expected a finite number"),
        ({"default": {"test": {"zh": {"d2": math.nan}}}}, "found the score nan, expected a finite number"),
        ({"mteb_model_meta": {}}, "expected one run, found none"),
        (
            {"zh": {"dev": {}, "test": {}}, "en": {"test": {}}},
            r"expected one run, found zh/dev, zh/test, en/test; set retrievers\.mine\.subset and \.split to choose",
        ),
    ],
)
def test_what_is_wrong_in_predictions(data: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        run_of(tmp_path, data if isinstance(data, str) else json.dumps(data), "x.json")


def test_one_of_several_runs_is_chosen(tmp_path: Path) -> None:
    text = json.dumps({"zh": {"dev": {"zh": {"d2": 1}}, "test": {"zh": {"d3": 1}}}, "en": {"test": {"zh": {"d4": 1}}}})
    assert run_of(tmp_path, text, "x.json", subset="zh", split="test")["zh"] == [Hit("d3", 1, 1.0)]
    assert run_of(tmp_path, text, "x.json", split="dev")["zh"] == [Hit("d2", 1, 1.0)]
    assert run_of(tmp_path, text, "x.json", subset="en")["zh"] == [Hit("d4", 1, 1.0)]


def test_a_run_file_needs_a_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"retrievers\.runfile\.path: is missing"):
        build.retriever(context(tmp_path), "runfile")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside mteb and datasets
def test_what_mteb_writes_is_read(make: Callable[[str], Retriever], tmp_path: Path) -> None:
    """Stock mteb evaluates an encoder and saves its predictions; they are those of our search by that encoder."""
    import mteb
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta

    class Coffee(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = mteb.TaskMetadata(
            name="Coffee",
            description="d",
            type="Retrieval",
            eval_langs=["cmn-Hans"],
            main_score="ndcg_at_10",
            dataset={"path": "none/none", "revision": "1"},
        )

        def load_data(self, **_: Any) -> None:
            texts = [{"id": doc_id, "title": "", "text": text} for doc_id, text in CORPUS.items()]
            split = {
                "queries": Dataset.from_list([{"id": key, "text": text} for key, text in QUERIES.items()]),
                "corpus": Dataset.from_list(texts),
                "relevant_docs": {key: {"d2": 1} for key in QUERIES},
                "top_ranked": None,
            }
            self.dataset, self.data_loaded = {"default": {"test": split}}, True

    class Counting(AbsEncoder):  # type: ignore[misc]
        mteb_model_meta = ModelMeta.create_empty({"name": "test/letters", "revision": "1"})

        def encode(self, inputs: Any, **_: Any) -> Any:
            return letters([text for batch in inputs for text in batch["text"]])

    mteb.evaluate(Counting(), [Coffee()], cache=None, prediction_folder=tmp_path, show_progress_bar=False)
    path = tmp_path / "Coffee_predictions.json"
    assert set(json.loads(path.read_text())) == {"mteb_model_meta", "default"}
    given = context(tmp_path, retrievers={"mine": {"kind": "runfile", "path": str(path)}})
    theirs, ours = found(build.retriever(given, "mine"), 10), found(make("dense"), 10)
    for query_id, hits in ours.items():
        assert {hit.doc_id: hit.score for hit in theirs[query_id]} == pytest.approx(
            {hit.doc_id: hit.score for hit in hits}, abs=1e-6
        )
