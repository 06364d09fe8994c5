"""Rerankers in `evaluate`: by a name of the pipeline and from a folder, on what they can do, and named where not."""

import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.ask import build
from curate.testing import ListCorpus, listed
from tests.support.rankers import RerankServer, chance, cross_encoder, rerank_server
from tests.support.runs import Done, curate, ran
from tests.support.sentence_task import sentence_task
from tests.support.sized import ANSWERS, sized, topic
from tests.support.small import context

QUERIES = 50
OPTIONS = ("--no-baselines", "--no-floors", "--device", "cpu")


def letters() -> list[str]:
    """Return the words that a tokenizer makes of the texts: signs, and numbers of three digits."""
    signs = {letter for answer in ANSWERS for letter in answer.format(topic(0))}
    return sorted(signs | {f"{n:03}" for n in range(QUERIES)})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_encoder(tmp_path_factory.mktemp("cross") / "one", letters())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """Return a folder with a finished run that pools by a reranker over words, beside a list of its own."""
    folder = tmp_path_factory.mktemp("evaluated")
    retrievers = {
        "ranked": {"kind": "runfile", "path": "ranked.trec"},
        "words": {"kind": "bm25"},
        "cross": {"kind": "reranker", "over": "words", "depth": 100, "model": str(model)},
    }
    pool = {"retrievers": ["ranked", "cross"], "depth": 6, "size": 10}
    ran(folder, "run", sized(folder, QUERIES, retrievers=retrievers, pool=pool))
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder `mteb` of an export that knows of no reranker."""
    folder = tmp_path_factory.mktemp("plain")
    ran(folder, "run", sized(folder, QUERIES))
    return Path(shutil.copytree(folder / "runs/bench/export/mteb", folder / "alone"))


def evaluated(folder: Path, what: Path | str, models: str, *words: str) -> tuple[dict[str, Any], Done]:
    done = curate(folder, "evaluate", str(what), "-m", models, *OPTIONS, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["data"], done


def main(data: dict[str, Any], kind: str, model: str) -> float:
    task = next(each for each in data["tasks"] if each["kind"] == kind)
    return next(float(each["main"]) for each in task["scores"] if each["model"] == model)


def ndcg(ranked: Sequence[str], relevant: set[str]) -> float:
    gain = sum(1 / math.log2(at + 2) for at, doc in enumerate(ranked[:10]) if doc in relevant)
    return gain / sum(1 / math.log2(at + 2) for at in range(min(10, len(relevant))))


def table(folder: Path, name: str) -> pl.DataFrame:
    (path,) = (folder / "retrieval").glob(f"{name}-*.parquet")
    return pl.read_parquet(path)


def expected(export: Path, model: Path, home: Path) -> float:
    """Return nDCG@10 of BM25's best hundred in the order of the cross-encoder."""
    from sentence_transformers import CrossEncoder

    loaded = CrossEncoder(str(model), device="cpu")
    texts = dict(table(export, "corpus").select("id", "text").iter_rows())
    queries = dict(table(export, "queries").select("id", "text").iter_rows())
    relevant: dict[str, set[str]] = {}
    for query, doc, score in table(export, "qrels").select("query-id", "corpus-id", "score").iter_rows():
        if score > 0:
            relevant.setdefault(query, set()).add(doc)
    found = listed(build.retriever(context(home), "bm25"), ListCorpus(texts), queries, 100)
    total = 0.0
    for query, hits in zip(queries, found, strict=True):
        pairs = [(queries[query], texts[hit.doc_id]) for hit in hits]
        scores = dict(zip((hit.doc_id for hit in hits), map(float, loaded.predict(pairs)), strict=True))
        order = [doc for _, doc in sorted((-score, doc) for doc, score in scores.items())]
        total += ndcg(order, relevant[query])
    return total / len(queries)


def test_a_folder_reranks_the_best_hundred_of_bm25(plain: Path, model: Path, tmp_path: Path) -> None:
    """In retrieval a cross-encoder from a folder orders BM25's best 100, and nDCG@10 is that of this order."""
    data, _ = evaluated(tmp_path, plain / "retrieval", f"bm25,{model}")
    found = main(data, "Retrieval", "model")
    assert found == pytest.approx(expected(plain, model, tmp_path), abs=1e-3)
    assert found != main(data, "Retrieval", "bm25")


def test_a_folder_reranks_candidates_as_stock_mteb_does(plain: Path, model: Path, tmp_path: Path) -> None:
    """In reranking its MAP@10 is that of stock mteb with the same cross-encoder."""
    import mteb
    from mteb.models import CrossEncoderWrapper

    from curate import load_task

    data, _ = evaluated(tmp_path, plain / "reranking", str(model))
    wrapped = CrossEncoderWrapper(str(model), device="cpu")
    stock = mteb.evaluate(wrapped, [load_task(plain / "reranking")], cache=None, show_progress_bar=False)
    theirs = stock.task_results[0].scores["test"][0]["map_at_10"]
    assert main(data, "Reranking", "model") == pytest.approx(theirs, abs=1e-6)


def test_another_model_in_the_same_folder_is_scored_anew(plain: Path, model: Path, tmp_path: Path) -> None:
    """Scores that are kept belong to the weights, not to the name of their folder (today too)."""
    place = shutil.copytree(model, tmp_path / "mine" / "model")
    one, _ = evaluated(tmp_path, plain / "reranking", str(place))
    shutil.rmtree(place)
    shutil.copytree(cross_encoder(tmp_path / "other", letters(), seed=9), place)
    two, _ = evaluated(tmp_path, plain / "reranking", str(place))
    assert main(one, "Reranking", "model") != main(two, "Reranking", "model")


def test_a_name_of_the_pipeline_is_a_model_that_had_a_part_in_the_pool(made: Path) -> None:
    """A reranker that the run defines is scored on both tasks, and is circular, as it filled the pool."""
    data, _ = evaluated(made, "runs/bench", "bm25,cross")
    for task in data["tasks"]:
        assert {each["model"] for each in task["scores"]} == {"bm25", "cross"}
    row = next(each for each in data["models"] if each["model"] == "cross")
    assert row["circular"]
    assert "retriever" in row["roles"]


def test_a_server_is_evaluated_by_its_name(made: Path, tmp_path: Path) -> None:
    """A reranker over HTTP is scored by what the server says, in retrieval and in reranking."""
    folder = tmp_path / "bench"
    server: RerankServer
    with rerank_server() as server:
        retrievers = {
            "ranked": {"kind": "runfile", "path": "ranked.trec"},
            "words": {"kind": "bm25"},
            "far": {"kind": "reranker", "over": "words", "depth": 100, "url": server.url, "local": True},
        }
        folder.mkdir()
        ran(folder, "run", sized(folder, QUERIES, retrievers=retrievers))
        assert not server.bodies, "it is in no pool"
        data, _ = evaluated(folder, "runs/bench", "far")
        export = folder / "runs/bench/export/mteb/reranking"
        (top,) = export.glob("top_ranked-*.parquet")
        asked = dict(pl.read_parquet(next(export.glob("queries-*.parquet"))).select("id", "text").iter_rows())
        texts = dict(pl.read_parquet(next(export.glob("corpus-*.parquet"))).select("id", "text").iter_rows())
        qrels = pl.read_parquet(next(export.glob("qrels-*.parquet"))).filter(pl.col("score") > 0)
        good = set(qrels.select("query-id", "corpus-id").iter_rows())
        precision = []
        for query, docs in pl.read_parquet(top).select("query-id", "corpus-ids").iter_rows():
            score_of = {doc: chance(asked[query], texts[doc]) for doc in docs}
            order = sorted(docs, key=score_of.__getitem__, reverse=True)
            ranks = [at for at, doc in enumerate(order, 1) if (query, doc) in good]
            precision.append(sum(n / at for n, at in enumerate(ranks, 1)) / len(ranks))
        assert main(data, "Reranking", "far") == pytest.approx(sum(precision) / len(precision), abs=1e-4)
        assert 0 <= main(data, "Retrieval", "far") <= 1
        before = len(server.bodies)
        evaluated(folder, "runs/bench", "far")
        assert len(server.bodies) == before, "what was scored is kept"


def test_sentence_pairs_are_left_out_by_a_line(model: Path, tmp_path: Path) -> None:
    """A cross-encoder has no score on pairs of sentences, and the evaluation says so by its name."""
    made = sentence_task(tmp_path / "sts", "cosine_pearson")
    place = shutil.copytree(model, tmp_path / "crosser")
    data, done = evaluated(tmp_path, made, f"use,{place}")
    assert [each["model"] for each in data["tasks"][0]["scores"]] == ["use"]
    page = next(tmp_path.glob("evaluation/**/README.md")).read_text("utf-8")
    lines = [*data["notes"], *done.stderr.splitlines(), *page.splitlines()]
    assert [line for line in lines if re.search(r"crosser.*(own-sts|STS|pairs|sentence)", line, re.IGNORECASE)]
