"""Two models in a whole run: diversify, forecast, embed and pool ask each for its own texts, and keep their vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.retrieval.similarity.exact_search import unit
from tests.support.runs import complaint, ran, tiny
from tests.support.written_models import saved

pytest.importorskip("sentence_transformers")
STAGES = ("ingest", "mask", "diversify")
SETTINGS = """
diversify: {enabled: true, encoder: pair, max_drop: 1, queries: {t: auto}, corpus: {t: auto}}
encoders:
  asked: {kind: dense, model: models/QUERY}
  told: {kind: dense, model: models/document}
  pair: {kind: asymmetric, query: asked, document: told}
"""
Asked = list[tuple[str, list[str]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, name in enumerate(("query", "other", "document")):
        saved(tmp_path / "models" / name, width=16, seed=seed)
    saved(tmp_path / "models" / "wide", width=32)
    (tmp_path / tiny(tmp_path)).write_text(pipeline(tmp_path), encoding="utf-8")
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return role and texts of every batch that went through a sentence-transformers model."""
    from sentence_transformers import SentenceTransformer

    found: Asked = []
    real = SentenceTransformer._inference

    def noted(self: Any, inputs: list[str], **named: Any) -> Any:
        found.append((str(named.get("task")), list(inputs)))
        return real(self, inputs, **named)

    monkeypatch.setattr(SentenceTransformer, "_inference", noted)
    return found


def pipeline(folder: Path, query: str = "query") -> str:
    """Return the small pipeline with dense retrieval by two models, of which one is named."""
    tiny(folder)
    plain = (folder / "tiny.yaml").read_text(encoding="utf-8").replace("diversify: {enabled: false}\n", "")
    return plain.replace("[words, pairs]", "[words, pair]") + SETTINGS.replace("QUERY", query)


def stage(folder: Path, *names: str) -> None:
    for name in names:
        ran(folder, name, "--pipeline", "tiny.yaml", "--run", "run")


def by_hand(folder: Path, queries: pl.DataFrame, corpus: pl.DataFrame) -> dict[str, list[str]]:
    """Return each query's documents in order, out of the two models themselves."""
    from sentence_transformers import SentenceTransformer

    texts: Sequence[tuple[str, pl.DataFrame]] = (("other", queries), ("document", corpus))
    models = ((SentenceTransformer(str(folder / "models" / name), device="cpu"), table) for name, table in texts)
    one, two = (unit(model.encode(table["text"].to_list())) for model, table in models)
    order = np.argsort(-(one @ two.T), axis=1, kind="stable")
    return {
        query: [corpus["doc_id"][int(place)] for place in row]
        for query, row in zip(queries["query_id"], order, strict=True)
    }


def test_a_run_with_two_models_asks_each_for_its_own_texts_and_keeps_both(folder: Path, asked: Asked) -> None:
    stage(folder, *STAGES)
    queries, corpus = (pl.read_parquet(folder / "run" / "mask" / f"{name}.parquet") for name in ("queries", "corpus"))
    texts = {role: {text for each, some in asked if each == role for text in some} for role in ("query", "document")}
    assert texts == {"query": set(queries["text"]), "document": set(corpus["text"])}
    asked.clear()
    stage(folder, "pool")
    assert asked == [], "diversify has encoded all that pool needs"
    (folder / "tiny.yaml").write_text(pipeline(folder, "other"), encoding="utf-8")
    stage(folder, "diversify", "pool")
    assert {role for role, _ in asked} == {"query"}, "another query model leaves the documents' vectors alone"
    kept = [pl.read_parquet(folder / "run" / "diversify" / f"{name}.parquet") for name in ("queries", "corpus")]
    expected = by_hand(folder, *kept)
    ranked = pl.read_parquet(folder / "run" / "pool" / "rankings.parquet").filter(retriever="pair").sort("rank")
    assert ranked.height
    for (query,), rows in ranked.group_by("query_id", maintain_order=True):
        assert rows["doc_id"].to_list()[:5] == expected[str(query)][:5]


def test_two_widths_stop_a_run_before_a_text_is_encoded(folder: Path, asked: Asked) -> None:
    (folder / "tiny.yaml").write_text(pipeline(folder, "wide"), encoding="utf-8")
    stage(folder, "ingest", "mask")
    told = complaint(folder, "diversify", "--pipeline", "tiny.yaml", "--run", "run")
    assert "encoders.pair: found query vectors of length 32 and document vectors of length 16" in told
    assert asked == []
