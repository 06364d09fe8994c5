"""Evaluation of a run that was really made: who had a part in it, what people and the pool's check say is missed."""

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from curate.commands.evaluate import provenance, tasks
from curate.review.desk import Answer, Desk
from curate.review.sample import Sample
from curate.tables.exporters.labels import parts
from tests.support import machine
from tests.support.runs import complaint, curate, ran, tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of which every pair was read by a person who finds everything relevant."""
    folder = tmp_path_factory.mktemp("evaluated")
    tiny(folder)
    for words in (
        ("run", "tiny.yaml", "--set", "export.formats=[mteb]"),
        ("review", "export", "--size", "40", "--assessors", "wang"),
        ("check", "pool"),
    ):
        ran(folder, *words)
    made = folder / "runs" / "tiny"
    desk = Desk(Sample.load(next((made / "reviews").glob("*/design.json")).parent))
    desk.record("wang", [Answer(row.row_id, "S") for row in desk.rows("wang")])
    return made


def test_the_command_finds_the_run_and_prints_what_is_missed(run: Path) -> None:
    done = ran(run.parents[1], "evaluate", str(run), "--models", "bm25", "--no-baselines", "--json")
    found: dict[str, Any] = machine.data(done.stdout)
    assert found["folder"] == str(run / "evaluation")
    sample = found["missed"]["samples"][0]
    assert sample["negatives"]["value"] == 1, "everything was found relevant"
    assert sample["negatives"]["low"] > 0.5
    assert found["missed"]["capture"]["missed"]["value"] >= 0
    page = (run / "evaluation" / "README.md").read_text(encoding="utf-8")
    assert "of the negatives 100.00" in page
    assert "Outside the pool: at least" in page
    assert curate(run.parents[1], "status").returncode == 0, "a run folder with an evaluation is still a run folder"


def test_people_read_the_top_tens_and_the_next_evaluation_corrects_the_scores(run: Path) -> None:
    folder, evaluate = run.parents[1], ("evaluate", str(run), "--models", "bm25", "--no-baselines", "--no-floors")
    assert "no level: nobody read the top tens" in ran(folder, *evaluate).stdout
    drawing = ("review", "export", "--run", str(run), "--for-scores", str(run), "--assessors", "wang")
    planned = ran(folder, *drawing, "--margin", "0.1", "--plan").stdout
    assert "precision at 10 of a model, for new queries, every pair read" in planned
    assert "beyond that only more queries help" in planned
    assert "leave out --of" in complaint(folder, *drawing, "--size", "30", "--of", "sts")
    ran(folder, *drawing, "--size", "30")
    desk = Desk(Sample.load(run / "reviews" / "scores"))
    named = cast("dict[str, Any]", desk.sample.design.facts["frame"])
    assert (named["models"], named["tasks"]) == (["bm25"], ["tiny-retrieval-small"])
    strata = dict(desk.sample.survey.select("row_id", "stratum").iter_rows())
    rows = [row.row_id for row in desk.rows("wang")]
    desk.record("wang", [Answer(row, "S" if strata[row] == "2 of 2 votes" else "D") for row in rows])
    assert f"{len(rows) - 1} of {len(rows) - 1} rows read" in ran(folder, "review", "report", "--run", str(run)).stdout
    found: dict[str, Any] = machine.data(ran(folder, *evaluate, "--json").stdout)
    levels, sizes = found["tasks"][0]["levels"], {each.name: each.size for each in desk.sample.design.strata}
    (model,) = levels["models"]
    queries = found["tasks"][0]["queries"]
    assert model["precision_at_10"]["value"] == pytest.approx(sizes["2 of 2 votes"] / (10 * queries), abs=1e-6)
    assert model["unanswered"] is None, "everything was answered"
    assert [each["sample"] for each in found["missed"]["samples"]] == ["expert"], "top tens are no sample of the pool"
    elsewhere = shutil.copytree(run / "export" / "mteb", folder / "elsewhere")
    reviewed = ("evaluate", str(elsewhere), *evaluate[2:], "--set", f"reviews={run}", "--json")
    assert machine.data(ran(folder, *reviewed).stdout)["tasks"][0]["levels"] == levels
    assert "found no run there" in complaint(folder, *reviewed[:-2], f"reviews={elsewhere}")
    (run / "reviews" / "scores" / "design.json").unlink()


def test_the_run_is_found_from_inside_its_export(run: Path) -> None:
    task = run / "export" / "mteb" / "retrieval"
    assert {provenance.run_of(each) for each in (run, run / "export", task.parent, task)} == {run.resolve()}


def test_parts_are_those_of_the_pipeline_and_the_panel_wherever_the_export_lies(run: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(run / "export" / "mteb", tmp_path / "alone")
    assert provenance.run_of(alone) is None
    for folder in (run, alone):
        assert provenance.roles(["words", "bm25", "use", "lexical"], tasks.in_folder(folder)) == {
            "words": ["retriever"],
            "bm25": ["retriever"],
            "use": [],
            "lexical": ["judge"],
        }
    lines = (alone / "README.md").read_text(encoding="utf-8").splitlines()
    (said,) = [line for line in lines if line.startswith("- Circular: as judge ")]
    assert "lexical" in said


def test_a_part_is_known_by_every_name_of_its_model() -> None:
    model = "Alibaba-NLP/gte-multilingual-base"
    definitions: dict[str, Any] = {
        "encoders": {
            "gte": {"kind": "dense", "model": model},
            "own": {"kind": "dense", "model": "/home/me/models/tuned/"},
        },
        "retrievers": {"near": {"kind": "dense", "encoder": "gte"}, "words": {"kind": "bm25"}},
    }
    panel: dict[str, Any] = {"close": {"heuristic": "similarity 1", "encoder": "gte"}, "lexical": {}}
    assert parts(["near", "words", "own"], panel, definitions) == {
        "retriever": [model, "bm25", "gte", "near", "own", "tuned", "words"],
        "judge": [model, "close", "gte", "lexical"],
    }


def test_an_export_by_itself_knows_of_nothing_missed(tmp_path: Path) -> None:
    assert provenance.run_of(tmp_path) is None
    assert provenance.missed(None).to_json() == {}
    assert provenance.definitions(None) == {}
