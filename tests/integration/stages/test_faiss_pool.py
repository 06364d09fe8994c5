"""A run whose pool comes from an approximate index names it and its recall, and is refused where recall is too low."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from curate.core.config import Settings
from curate.system.files import digests, read_json
from tests.support.runs import curate, ran, tiny
from tests.support.small import embedding_server, toy

PIPELINE: Settings = {
    "pool": {"retrievers": ["toy", "words"], "depth": 3, "size": 10},
    "engine": {"kind": "faiss", "exact_below": 0, "lists": 1, "sample": 4},
}


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Return a function that writes a pipeline with this engine, whose encoder is a server on loopback."""
    path = tmp_path / tiny(tmp_path)
    with embedding_server() as server:

        def write(**engine: Any) -> None:
            settings = yaml.safe_load(path.read_text(encoding="utf-8")) | PIPELINE
            settings["engine"] = {**PIPELINE["engine"], **engine}  # type: ignore[dict-item]
            path.write_text(yaml.safe_dump(settings | {"encoders": toy(server)}, allow_unicode=True), encoding="utf-8")

        yield write


def test_run_manifest_page_and_card_name_index_and_recall(piped: Callable[..., None], tmp_path: Path) -> None:
    piped()
    done, run = ran(tmp_path, "run", "tiny.yaml"), tmp_path / "runs/tiny"
    sentence = "index (faiss ivf: storage float32, lists 1, probes 1); recall@3 against exact search is 1.0"
    assert sentence in " ".join((done.stdout + done.stderr).split())
    index = read_json(run / "pool/stage.json")["report"]["facts"]["indexes"]["toy"]
    assert index == {
        "search": "approximate",
        "engine": "faiss",
        "index": "ivf",
        "parameters": {"storage": "float32", "lists": 1, "probes": 1},
        "recall": 1.0,
        "recall_at": 3,
        "lowest_recall": 1.0,
        "recall_queries": 4,
        "queries_with_fewer": 0,
    }
    assert read_json(run / "manifest.json")["stages"]["pool"]["report"]["facts"]["indexes"]["toy"] == index
    assert "相对精确检索的 recall@3 为 1.0" in (run / "report/report.html").read_text(encoding="utf-8")
    for task in ("retrieval", "reranking"):
        card = (run / f"export/mteb/{task}/README.md").read_text(encoding="utf-8")
        assert "recall@3 against exact search is 1.0 on 4 queries" in card


def test_a_second_run_has_the_same_bytes(piped: Callable[..., None], tmp_path: Path) -> None:
    piped()
    for name in ("one", "two"):
        ran(tmp_path, "run", "tiny.yaml", "--run", name)
    for stage in ("pool", "export", "report"):
        one, two = (digests(tmp_path / name / stage) for name in ("one", "two"))
        assert one.pop("stage.json") != two.pop("stage.json"), "it holds how long the stage took"
        assert one == two


def test_too_low_a_recall_stops_the_run_and_another_setting_goes_on(
    piped: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped()
    monkeypatch.setattr(
        "curate.retrieval.engines.faiss.Index.nearest", lambda _, queries: np.array([[0, -1, -1]] * len(queries))
    )
    stopped = curate(tmp_path, "run", "tiny.yaml")
    assert stopped.returncode == 1
    assert "retrievers.toy: recall@3 of the ivf index is" in stopped.stderr
    assert "expected engine.min_recall=0.95 or more; set engine.probes=2" in " ".join(stopped.stderr.split())
    assert not (tmp_path / "runs/tiny/pool").exists()
    monkeypatch.undo()
    ran(tmp_path, "run", "tiny.yaml")
