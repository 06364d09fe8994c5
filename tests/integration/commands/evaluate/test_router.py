"""A model of two sides in evaluation: stock mteb's scores, the same by the encoder of two models, and the STS route."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate.commands.evaluate import page_sections
from curate.commands.evaluate.command import EvaluateCommand, evaluate
from curate.commands.evaluate.figures import ModelScore
from curate.commands.evaluate.text_inputs import SeenTexts
from curate.retrieval.vectors.cache import PrecisionCheck
from curate.view.record_words import RecordWords
from tests.support.defined import defined
from tests.support.evaluating import benchmark, sentences, written
from tests.support.records import partly
from tests.support.written_models import transformer

pytest.importorskip("sentence_transformers")
MEASURES = ("ndcg_at_10", "map_at_10")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a Router of a table of token vectors and a small transformer, and each side beside it."""
    from curate.commands.train import sides

    document = transformer(length=16)
    query = sides.static_side(document.tokenizer, sides.token_rows(document))
    folder = tmp_path_factory.mktemp("models") / "router"
    sides.save_sides(query, document, folder)
    return folder


def asked(model: Path, folder: Path, out: Path) -> EvaluateCommand:
    """Return the order to score the Router, and its two sides as an encoder `pair`, whose query side is a name."""
    two = {role: {"kind": "dense", "model": str(model / role), "device": "cpu"} for role in ("query", "document")}
    encoders = {"asks": two["query"], "pair": {"kind": "asymmetric", **two, "query": "asks"}}
    (folder / "pipeline.yaml").write_text(json.dumps({"version": 1, "encoders": encoders}), encoding="utf-8")
    return EvaluateCommand(
        folder=folder, models=[str(model), "pair"], baselines=False, out=out, floors=False, device="cpu"
    )


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
    found: Any = evaluate(asked(model, folder, tmp_path / "out"))
    for task, name, measure in zip(found.tasks, ("retrieval", "reranking"), MEASURES, strict=True):
        expected = stock(model, folder / name)[measure]
        assert 0 < expected < 1
        assert [row.main for row in task.scores] == pytest.approx([expected] * 2, abs=1e-6)
    router, pair = ({each.role: each for each in row.inputs} for row in found.tasks[0].scores)
    assert pair == router, "sides, lengths and cut texts are those of the Router"
    assert [(pair[role].route, pair[role].max_length) for role in ("queries", "documents")] == [
        ("query", None),
        ("document", 16),
    ]
    assert defined(pair["documents"].cut) > 0
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| pair | 3 queries, side `query` | none |" in page


def test_sentences_are_encoded_by_the_route_that_is_named(model: Path, tmp_path: Path) -> None:
    folder = sentences(tmp_path / "sts")
    found: Any = evaluate(asked(model, folder, tmp_path / "out"))
    expected = stock(model, folder)["cosine_pearson"]
    assert expected == pytest.approx(stock(model / "query", folder)["cosine_pearson"], abs=1e-6)
    assert [row.main for row in found.tasks[0].scores] == pytest.approx([expected] * 2, abs=1e-6)
    for name in ("router", "pair"):
        assert [note for note in found.notes if f"{name} encodes both sentences by its query side" in note]


def test_the_page_names_what_was_not_compared_and_what_cannot_be_seen() -> None:
    unseen = SeenTexts("documents", None, None, None, known=False, texts=2, looked=0, cut=None)
    checked = PrecisionCheck(4, 1.0, 1.0)
    kinds = {
        "theirs": ("own", None),
        "half": ("bfloat16", checked),
        "half@4": ("bfloat16", None),
        "plain": ("float32", None),
    }
    row = partly(ModelScore, width=8, weights=(), inputs=(unseen,))
    scores = [replace(row, model=name, precision=kind, precision_check=check) for name, (kind, check) in kinds.items()]
    page = "\n".join(page_sections.inputs(scores, RecordWords("evaluate/evaluate")))
    assert "Not compared with float32: theirs, whose" in page
    assert "theirs: loaded by code of the model's makers" in page
    assert "not known" in page
