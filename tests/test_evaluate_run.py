"""Evaluation of a run that was really made: who had a part in it, what people and the pool's check say is missed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from curate.evaluating import origin
from curate.review.answers import Answer
from curate.review.desk import Desk
from curate.review.sample import Sample
from tests.runs import curate, tiny


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
        done = curate(folder, *words)
        assert done.returncode == 0, done.stderr
    made = folder / "runs" / "tiny"
    desk = Desk(Sample.load(next((made / "reviews").glob("*/design.json")).parent))
    desk.record("wang", [Answer(row.row_id, "S") for row in desk.rows("wang")])
    return made


def test_the_command_finds_the_run_and_prints_what_is_missed(run: Path) -> None:
    done = curate(run.parents[1], "evaluate", str(run), "--models", "bm25", "--no-baselines", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["folder"] == str(run / "evaluation")
    sample = found["missed"]["samples"][0]
    assert sample["negatives"]["value"] == 1, "everything was found relevant"
    assert sample["negatives"]["low"] > 0.5
    assert found["missed"]["capture"]["missed"]["value"] >= 0
    page = (run / "evaluation" / "README.md").read_text(encoding="utf-8")
    assert "of the negatives 100.00" in page
    assert "Outside the pool: at least" in page
    assert curate(run.parents[1], "status").returncode == 0, "a run folder with an evaluation is still a run folder"


def test_the_run_is_found_from_inside_its_export(run: Path) -> None:
    task = run / "export" / "mteb" / "retrieval"
    assert {origin.run_of(each) for each in (run, run / "export", task.parent, task)} == {run.resolve()}


def test_parts_are_those_of_the_pipeline_and_the_panel(run: Path, tmp_path: Path) -> None:
    assert origin.roles(["words", "bm25", "use", "lexical"], ["lexical"], run) == {
        "words": ["retriever"],
        "bm25": ["retriever"],
        "use": [],
        "lexical": ["judge"],
    }
    assert origin.roles(["use"], ["use"], None) == {"use": ["judge"]}
    settings = {
        "version": 1,
        "encoders": {"gte": {"kind": "dense", "model": "Alibaba-NLP/gte-multilingual-base"}},
        "retrievers": {"near": {"kind": "dense", "encoder": "gte"}},
        "pool": {"retrievers": ["near"]},
        "judge": {"models": ["lexical"]},
    }
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (tmp_path / "judge").mkdir()
    panel = {"close": {"kind": "similarity", "encoder": "gte"}}
    (tmp_path / "judge" / "panel.json").write_text(json.dumps(panel), encoding="utf-8")
    parts = origin.roles(["Alibaba-NLP/gte-multilingual-base", "BAAI/bge-m3"], ["close"], tmp_path)
    assert parts == {"Alibaba-NLP/gte-multilingual-base": ["retriever", "judge"], "BAAI/bge-m3": []}


def test_an_export_by_itself_knows_of_nothing_missed(tmp_path: Path) -> None:
    assert origin.run_of(tmp_path) is None
    assert origin.missed(None) == {}
    assert origin.definitions(None) == {}
