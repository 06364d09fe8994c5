"""Averages, result folders and one model against all, through the command."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from curate.cli.app import app
from curate.commands.evaluate import tasks
from curate.core.errors import UserError
from tests.support import machine
from tests.support.evaluating import benchmark, written


def results(folder: Path, task: Any, scores: dict[str, float]) -> Path:
    """Write an mteb result per model for one task, and one broken file."""
    for model, score in scores.items():
        row = {"hf_subset": task.subset, "languages": [], "main_score": score, task.measure: score}
        whole = {
            "task_name": task.name,
            "dataset_revision": task.made.metadata.revision,
            "mteb_version": "2.26.0",
            "evaluation_time": 1.0,
            "scores": {task.made.metadata.eval_splits[0]: [row]},
        }
        path = folder / f"maker__{model}" / "r1" / f"{task.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(whole), encoding="utf-8")
    broken = folder / "broken" / "r1" / f"{task.name}.json"
    broken.parent.mkdir(parents=True, exist_ok=True)
    broken.write_text("{", encoding="utf-8")
    return folder


def test_averages_and_further_models_come_out_of_the_command(tmp_path: Path) -> None:
    folder = written(benchmark(), tmp_path / "small")
    one, other = tasks.in_folder(folder)
    scores = {f"m{place}": 0.1 + place / 20 for place in range(7)}
    results(tmp_path / "results", one, scores)
    results(tmp_path / "results", other, {name: score for name, score in scores.items() if name != "m0"})
    words = ["evaluate", str(folder), "-m", "bm25,use", "--no-baselines", "--no-floors", "--out", str(tmp_path / "out")]
    words += ["--results", str(tmp_path / "results"), "--against", "bm25"]
    words += [
        "--average",
        f"both={one.name},{other.name}",
        "--average",
        f"A={one.name}",
        "--average",
        f"B={other.name}",
    ]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found = machine.data(done.stdout[done.stdout.index("{") :])
    both = found["averages"][0]
    assert {each["model"] for each in both["models"] if each["paired"]} == {"bm25", "use"}
    assert len(both["models"]) == 2 + 6
    assert both["missing"] == [{"model": "maker/m0", "tasks": [other.name]}]
    assert [(each["one"], each["other"], each["models"]) for each in found["orders"]] == [("A", "B", 8)]
    assert 0 < found["orders"][0]["with_queries"] < 1
    assert len(found["tasks"][0]["against_model"]) == 1
    assert any("broken" in note for note in found["notes"])
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for said in (
        "## mteb's mean (mixes measures) both",
        "## A against B, averages",
        "maker/m0 has no average",
        "## Further models",
    ):
        assert said in page
    assert "Smallest difference that 10 queries show" in page


def test_what_cannot_be_compared_is_refused_before_anything_is_scored(tmp_path: Path) -> None:
    folder = written(benchmark(), tmp_path / "small")
    for words, why in (
        (["--average", "a=nothing"], "no scores of the task nothing"),
        (["--against", "e5"], "not among the models"),
        (["--set", "dims=256", "--against", "bm25@256"], "not among the models"),
        (["-m", "use", "--set", "dims=256", "--against", "use@128"], "not among the models"),
        (["--results", str(tmp_path)], "found no results"),
    ):
        done = CliRunner().invoke(app, ["evaluate", str(folder), "-m", "bm25", "--no-baselines", *words])
        assert isinstance(done.exception, UserError)
        assert why in str(done.exception)


def test_a_model_at_a_width_can_be_the_one_that_others_are_tested_against(tmp_path: Path) -> None:
    folder = written(benchmark(), tmp_path / "small")
    words = ["evaluate", str(folder), "-m", "bm25,use", "--no-baselines", "--no-floors", "--set", "dims=256,512"]
    words += ["--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, [*words, "--against", "use@256"])
    assert done.exit_code == 0, done.output
    found = machine.data(done.stdout[done.stdout.index("{") :])
    for task in found["tasks"]:
        pairs = [{each["one"], each["other"]} for each in task["against_model"]]
        assert sorted(map(sorted, pairs)) == [["bm25", "use@256"], ["use", "use@256"]]
    whole = CliRunner().invoke(app, [*words, "--against", "use@512"])
    notes = machine.data(whole.stdout[whole.stdout.index("{") :])["notes"]
    assert any("--against use@512: no model was tested against it" in note for note in notes)
