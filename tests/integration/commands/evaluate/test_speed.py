"""`curate evaluate --speed`: real models on an exported task, figures kept by machine, the page."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curate.cli.app import app
from curate.commands.evaluate import tasks, timing
from curate.commands.evaluate.command import EvaluateCommand, evaluate
from curate.commands.evaluate.mteb_models import named
from curate.commands.evaluate.speed import of_model
from tests.support import machine as schemas
from tests.support.evaluating import benchmark, sentences, written
from tests.support.written_models import saved


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(benchmark(), tmp_path_factory.mktemp("exports") / "small")


def evaluated(folder: Path, out: Path, **changes: Any) -> Any:
    given: dict[str, Any] = {"models": ["bm25", "use"], "baselines": False, "floors": False, "out": out}
    return evaluate(EvaluateCommand(folder=folder, **{**given, **changes}))


def test_models_are_timed_and_kept_for_this_machine_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = evaluated(folder, tmp_path / "out", speed=True)
    retrieval, reranking = found.tasks
    speed = retrieval.speed
    assert reranking.speed is None, "it has the same queries"
    bm25, use = speed.models
    assert (bm25.encoding, bm25.search_rows, bm25.index_bytes > 0) == (None, speed.documents, True)
    assert (use.dim, use.index_bytes) == (512, 4 * 512 * speed.documents)
    assert use.qps < use.encoding.qps, "it has to search too"
    assert "small-retrieval-small: speed of 10 queries, all that the task has, not of 1,000" in found.notes
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "### Speed" in text
    assert (tmp_path / "out" / "small-retrieval-small-speed.svg").is_file()
    again = evaluated(folder, tmp_path / "out", models=["use"]).tasks[0].speed
    assert (again.measured, [row.model for row in again.models]) == (speed.measured, ["use"])
    (tmp_path / "cpuinfo").write_text("model name\t: Other 9000\n", encoding="utf-8")
    monkeypatch.setattr(timing, "CPU", tmp_path / "cpuinfo")
    assert all(row.queries_a_second for row in retrieval.scores)
    other = evaluated(folder, tmp_path / "out")
    assert other.tasks[0].speed is None, "those of another machine are not shown"
    assert [row.queries_a_second for row in other.tasks[0].scores] == [None, None]
    assert any(note.startswith("queries per second are not shown of bm25, use: scored on") for note in other.notes)
    assert "### Speed" not in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_sentences_are_timed_where_nothing_is_searched(tmp_path: Path) -> None:
    found = evaluated(sentences(tmp_path / "sts"), tmp_path / "out", speed=True, speed_queries=3)
    (speed,) = [task.speed for task in found.tasks]
    assert (speed.queries, [row.model for row in speed.models], speed.searched) == (3, ["use"], None)
    assert speed.models[0].search is None


@pytest.mark.parametrize("pair", [False, True], ids=["dense", "asymmetric"])
def test_a_dense_encoder_is_timed_under_its_own_precision(folder: Path, tmp_path: Path, pair: bool) -> None:
    [retrieval, *_], texts = tasks.in_folder(folder), ["What is it?"]
    model = saved(tmp_path / "tiny")
    half: dict[str, Any] = {"kind": "dense", "model": str(model), "dtype": "bfloat16", "max_length": 16}
    sides: dict[str, Any] = {"kind": "asymmetric", "query": half, "document": {**half, "dtype": "float32"}}
    [made] = named(["mine"], {"mine": sides if pair else half}, "cpu")
    timed = of_model(made, retrieval, texts)
    assert (timed.device, timed.dtypes, timed.max_length) == ("cpu", ["bfloat16"], 16)


def test_the_command_answers_as_its_schema_says(folder: Path, tmp_path: Path) -> None:
    options = (
        "-m",
        "bm25",
        "--no-baselines",
        "--no-floors",
        "--speed",
        "--set",
        "speed_queries=5",
        "--out",
        str(tmp_path),
    )
    done = CliRunner().invoke(app, ["evaluate", str(folder / "retrieval"), *options, "--json"])
    assert done.exit_code == 0, done.output
    (task,) = schemas.data(json.dumps(_envelope(done.stdout)))["tasks"]
    assert (task["speed"]["queries"], task["speed"]["models"][0]["model"]) == (5, "bm25")


def _envelope(text: str) -> Any:
    return json.loads(text[text.index("{") :])
