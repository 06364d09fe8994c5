"""A model of two sides in evaluation: stock mteb's scores, the same by the encoder of two models, and the STS route."""

import json
from pathlib import Path
from typing import Any

import pytest

from curate.evaluation.models.evaluate import EvaluationOptions, evaluate
from tests.support.evaluating import benchmark, sentences, written
from tests.support.small import minilm

pytest.importorskip("sentence_transformers")
MEASURES = ("ndcg_at_10", "map_at_10")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a Router of a static query side and MiniLM."""
    from sentence_transformers import SentenceTransformer

    from curate.evaluation.training import sides

    document = SentenceTransformer(minilm(), device="cpu")
    query = sides.static_side(document.tokenizer, sides.token_rows(document))
    folder = tmp_path_factory.mktemp("models") / "router"
    sides.save_sides(query, document, folder)
    return folder


def stock(model: Path, folder: Path) -> dict[str, float]:
    """Return stock mteb's scores of a folder of sentence-transformers on an exported task."""
    import mteb
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.model_meta import ModelMeta

    from curate import load_task

    wrapped = SentenceTransformerEncoderWrapper(str(model), device="cpu")
    wrapped.mteb_model_meta = ModelMeta.create_empty({"name": "test/router", "revision": "1"})
    results = mteb.evaluate(wrapped, [load_task(folder)], cache=None, show_progress_bar=False)
    found: dict[str, float] = results.task_results[0].scores["test"][0]
    return found


def test_a_router_scores_as_in_stock_mteb_and_as_its_two_sides(model: Path, tmp_path: Path) -> None:
    folder = written(benchmark(queries=3), tmp_path / "small")
    two = {role: {"kind": "dense", "model": str(model / role), "device": "cpu"} for role in ("query", "document")}
    encoders = {"pair": {"kind": "asymmetric", **two}}
    (folder / "pipeline.yaml").write_text(json.dumps({"version": 1, "encoders": encoders}), encoding="utf-8")
    order = EvaluationOptions(folder, [str(model), "pair"], baselines=False, out=tmp_path / "out", floors=False)
    for task, name, measure in zip(evaluate(order)["tasks"], ("retrieval", "reranking"), MEASURES, strict=True):
        expected = stock(model, folder / name)[measure]
        assert 0 < expected < 1
        assert [row["main"] for row in task["scores"]] == pytest.approx([expected] * 2, abs=1e-6)


def test_sentences_are_encoded_by_the_route_that_is_named(model: Path, tmp_path: Path) -> None:
    folder = sentences(tmp_path / "sts")
    order = EvaluationOptions(folder, [str(model)], baselines=False, out=tmp_path / "out", floors=False)
    found: dict[str, Any] = evaluate(order)
    assert found["tasks"][0]["scores"][0]["main"] == pytest.approx(stock(model, folder)["spearman"], abs=1e-6)
    assert found["tasks"][0]["scores"][0]["main"] == pytest.approx(stock(model / "query", folder)["spearman"], abs=1e-6)
    assert [note for note in found["notes"] if "encodes both sentences by its query side" in note]
