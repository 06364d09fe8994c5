"""A learned sparse encoder as a retriever: sentence-transformers' own order, in a pool and in `evaluate`."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from curate.commands.pool import stage
from curate.core.errors import ConfigError
from curate.pipeline.configs import PoolConfig
from curate.system.files import read_table
from tests.support.rankers import QUESTIONS, TEXTS, ids, search, sparse_encoder
from tests.support.runs import curate, ran
from tests.support.sized import ANSWERS, sized, topic
from tests.support.small import context


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_encoder(tmp_path_factory.mktemp("sparse") / "splade")


def own(model: Path, queries: list[str], documents: list[str], length: int | None = None) -> Any:
    """Return sentence-transformers' scores, a row per query."""
    from sentence_transformers import SparseEncoder

    loaded = SparseEncoder(str(model), device="cpu")
    if length:
        loaded.max_seq_length = length
    return loaded.similarity(loaded.encode_query(queries), loaded.encode_document(documents)).to_dense().numpy()


OPTIONS: dict[str, tuple[dict[str, Any], str, str, int | None]] = {
    "nothing else": ({}, "", "", None),
    "prompts": (
        {"batch_size": 2, "device": "cpu", "query_prompt": "child cough ", "document_prompt": "tea "},
        "child cough ",
        "tea ",
        None,
    ),
    "a length": ({"max_length": 5}, "", "", 5),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_the_order_is_that_of_sentence_transformers(case: str, model: Path, tmp_path: Path) -> None:
    """Documents come in the order of the model's own scores, with prompts and a length as they are given."""
    more, before_query, before_document, length = OPTIONS[case]
    found = search(tmp_path, {"s": {"kind": "sparse", "model": str(model), **more}}, "s")
    names = list(TEXTS)
    queries = [before_query + text for text in QUESTIONS.values()]
    scores = own(model, queries, [before_document + TEXTS[name] for name in names], length)
    for row, query in zip(scores, QUESTIONS, strict=True):
        expected = {name: float(score) for name, score in zip(names, row, strict=True)}
        assert len(set(expected.values())) == len(names)
        hits = {hit.doc_id: hit.score for hit in found[query]}
        assert hits == pytest.approx({name: expected[name] for name in hits}, rel=1e-3)
        order = ids(found)[query]
        assert all(expected[one] >= expected[next_one] - 1e-3 for one, next_one in pairwise(order))
        assert set(hits) >= {name for name in names if expected[name] > 0}


def test_another_model_or_prompt_is_another_run(model: Path, tmp_path: Path) -> None:
    """What changes a ranking changes what the pool is made from; the same settings do not."""
    other = sparse_encoder(tmp_path / "other", seed=4)

    def made(**more: Any) -> Any:
        given = {"s": {"kind": "sparse", "model": str(model), **more}}
        return stage.fingerprint(PoolConfig(retrievers=("s",)), context(tmp_path, retrievers=given))

    assert made() == made()
    assert made() != made(model=str(other))
    assert made() != made(query_prompt="tea ")


def test_a_folder_that_is_not_there_names_the_setting(tmp_path: Path) -> None:
    """A wrong path is found with the name of its setting."""
    with pytest.raises(ConfigError, match=r"retrievers\.s\.model"):
        search(tmp_path, {"s": {"kind": "sparse", "model": "./nowhere"}}, "s")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run of 50 queries that pools by a sparse encoder."""
    folder = tmp_path_factory.mktemp("pooled")
    letters = {letter for answer in ANSWERS for letter in answer.format(topic(0))}
    model = sparse_encoder(folder / "splade", sorted(letters | {f"{n:03}" for n in range(50)}))
    retrievers = {
        "ranked": {"kind": "runfile", "path": "ranked.trec"},
        "learned": {"kind": "sparse", "model": str(model), "device": "cpu"},
    }
    pool = {"retrievers": ["ranked", "learned"], "depth": 6, "size": 10}
    ran(folder, "run", sized(folder, 50, retrievers=retrievers, pool=pool))
    return folder


def test_it_is_a_source_of_a_pool(made: Path) -> None:
    """A run has the ranking of a sparse encoder beside the others', each document with its score."""
    rankings = read_table(made / "runs/bench/pool", "rankings")
    assert set(rankings["retriever"]) == {"ranked", "learned"}
    assert rankings.filter(retriever="learned").height == 50 * 6
    assert rankings.filter(retriever="learned")["score"].null_count() == 0


def test_it_is_evaluated_by_its_name_and_by_its_folder(made: Path) -> None:
    """The name in the pipeline and the folder are the same model, whose reranking score is stock mteb's."""
    import mteb
    from mteb.models import SparseEncoderWrapper

    from curate import load_task

    words = ("--no-baselines", "--no-floors", "--device", "cpu", "--json")
    done = curate(made, "evaluate", "runs/bench", "-m", f"learned,{made / 'splade' / 'model'}", *words)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    for task in data["tasks"]:
        scores = [row["main"] for row in task["scores"]]
        assert len(scores) == 2
        assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    wrapped = SparseEncoderWrapper(str(made / "splade" / "model"), device="cpu")
    stock = mteb.evaluate(
        wrapped, [load_task(made / "runs/bench/export/mteb/reranking")], cache=None, show_progress_bar=False
    )
    reranking = next(task for task in data["tasks"] if task["kind"] == "Reranking")
    expected = stock.task_results[0].scores["test"][0]["map_at_10"]
    assert reranking["scores"][0]["main"] == pytest.approx(expected, abs=1e-4)
    row = next(each for each in data["models"] if each["model"] == "learned")
    assert "retriever" in row["roles"], "it had a part in the pool"
