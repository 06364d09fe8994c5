"""A run whose pool comes from an approximate index names it and its recall, and is refused where recall is too low."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml

from curate.core.config import Settings
from curate.retrieval.engines.faiss import FaissLookup
from curate.system.files import digests, read_json
from tests.support.runs import curate, ran, tiny
from tests.support.small import embedding_server, toy

ENGINE: Settings = {
    "pool": {"retrievers": ["toy", "words"], "depth": 3, "size": 10},
    "engine": {"kind": "faiss", "exact_below": 0, "lists": 1, "sample": 4},
}


@contextmanager
def piped(folder: Path) -> Iterator[None]:
    """Write a pipeline with this engine, whose encoder is a server on loopback."""
    path = folder / tiny(folder)
    with embedding_server() as server:
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) | ENGINE | {"encoders": toy(server)}
        path.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs of one pipeline, and what the first of them said."""
    place = tmp_path_factory.mktemp("runs")
    with piped(place):
        said = ran(place, "run", "tiny.yaml", "--run", "one")
        (place / "said.txt").write_text(" ".join((said.stdout + said.stderr).split()), encoding="utf-8")
        ran(place, "run", "tiny.yaml", "--run", "two")
    return place


def test_run_manifest_page_and_card_name_index_and_recall(folder: Path) -> None:
    sentence = "index (faiss ivf: storage float32, lists 1, probes 1); recall@3 against exact search is 1.0"
    assert sentence in (folder / "said.txt").read_text(encoding="utf-8")
    index = read_json(folder / "one/pool/stage.json")["report"]["facts"]["indexes"]["toy"]
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
    assert read_json(folder / "one/manifest.json")["stages"]["pool"]["report"]["facts"]["indexes"]["toy"] == index
    page = (folder / "one/report/report.html").read_text(encoding="utf-8")
    assert "相对精确检索的 recall@3 为 1.0" in page
    card = (folder / "one/export/mteb/README.md").read_text(encoding="utf-8")
    assert "recall@3 against exact search is 1.0 on 4 queries" in card


def test_a_second_run_has_the_same_bytes(folder: Path) -> None:
    for stage in ("pool", "export", "report"):
        one, two = (digests(folder / name / stage) for name in ("one", "two"))
        assert one.pop("stage.json") != two.pop("stage.json"), "it holds how long the stage took"
        assert one == two


def test_too_low_a_recall_stops_the_run_which_goes_on_with_another_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with piped(tmp_path):
        monkeypatch.setattr(FaissLookup, "nearest", lambda _, queries: np.array([[0, -1, -1]] * len(queries)))
        stopped = curate(tmp_path, "run", "tiny.yaml")
        assert stopped.returncode == 1
        said = " ".join(stopped.stderr.split())
        assert "retrievers.toy: recall@3 of the ivf index is" in said
        assert "expected engine.min_recall=0.95 or more; set engine.probes=2" in said
        assert not (tmp_path / "runs/tiny/pool").exists()
        monkeypatch.undo()
        ran(tmp_path, "pool", "--set", "engine.sample=5")
