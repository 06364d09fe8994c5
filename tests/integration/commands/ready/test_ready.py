"""`curate ready` on a finished run: what is open, why, and what to type."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.ready.points import TextTable
from curate.runs import leaks as splits
from curate.system.files import read_json, sha256, write_json
from tests.support import machine
from tests.support.runs import complaint, curate, ran


@pytest.fixture(scope="module")
def run(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run with all metadata, scored by BM25 and the random encoder."""
    folder = tmp_path_factory.mktemp("ready")
    made = shutil.copytree(published.parents[1], folder, dirs_exist_ok=True) / "runs" / "full"
    models = "bm25,mteb/baseline-random-encoder"
    ran(made.parents[1], "evaluate", str(made), "--models", models, "--no-baselines", "--no-floors")
    return made


def _points(run: Path) -> dict[str, Any]:
    done = curate(run.parents[1], "ready", str(run), "--json")
    assert done.returncode == 1
    data: dict[str, Any] = machine.data(done.stdout)
    assert not data["ready"]
    assert data["ok"] + data["not_ok"] + data["not_measured"] == len(data["points"])
    return {each["name"]: each for each in data["points"]}


def test_what_settings_give_is_ok_and_what_nobody_did_is_not(run: Path) -> None:
    found = _points(run)
    states = {name: each["state"] for name, each in found.items()}
    assert [states[name] for name in ("licence", "metadata", "texts", "lengths", "privacy")] == ["ok"] * 5
    assert "retrieval queries 9 to 11 (mean 10)" in found["lengths"]["found"]
    assert states["judge gate"] == states["families"] == "not ok", "heuristics alone judged"
    assert [states[name] for name in ("people", "leaks", "circularity")] == ["not measured"] * 3
    difficulty = found["neither trivial nor random: full-retrieval-small"]
    assert difficulty["state"] in ("not ok", "not measured")
    assert "floors were not scored" in found["floors: full-retrieval-small"]["found"]
    assert all((each["next"] is None) == (each["state"] == "ok") for each in found.values())
    done = curate(run.parents[1], "ready", str(run))
    assert f"next: curate review export --run {run} --size 200 --assessors first,second\n" in done.stdout
    assert "write what --set changes into the pipeline file too" in done.stdout
    assert "is not ready" in done.stderr


def test_self_preference_is_measured_by_the_commands_that_are_printed(run: Path, tmp_path: Path) -> None:
    work = Path(shutil.copytree(run.parents[1], tmp_path / "work"))
    definition = "judges.outsider={kind: lexical, thresholds: {S: 0.8, A: 0.5, B: 0.3, C: 0.1}}"
    ran(work, "judge", "--run", "runs/full", "--set", definition)
    ran(work, "run", "runs/full/pipeline.yaml", "--run", "runs/full")
    first = _points(work / "runs" / "full")["circularity"]
    ran(work, *shlex.split(first["next"].replace("NAME", "outsider"))[1:])
    second = _points(work / "runs" / "full")["circularity"]
    assert second["next"] == f"curate check circular --run {work / 'runs' / 'full'} --fourth outsider"
    ran(work, *shlex.split(second["next"])[1:])
    ran(work, "export", "--run", "runs/full")
    third = _points(work / "runs" / "full")["circularity"]
    assert third["next"] not in (first["next"], second["next"])


def test_missing_metadata_are_filled_by_the_command_as_printed(run: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(run.parents[1], tmp_path / "work")) / "runs" / "full"
    fields = ("reference", "date", "domains", "task_subtypes", "annotations_creators", "dialect", "sample_creation")
    cleared = [word for name in (*fields, "bibtex_citation") for word in ("--set", f"export.mteb.{name}=null")]
    ran(copied.parents[1], "export", "--run", str(copied), *cleared)
    point = _points(copied)["metadata"]
    assert point["state"] == "not ok"
    ran(copied.parents[1], *shlex.split(point["next"])[1:])
    assert _points(copied)["metadata"]["state"] == "ok"
    wrong = complaint(copied.parents[1], "export", "--run", str(copied), "--set", "export.mteb.date=2020")
    assert "--set export.mteb.date: expected a list" in wrong
    assert "pipeline.yaml" not in wrong


def test_mteb_reads_the_results_of_every_model(run: Path) -> None:
    from mteb.cache import ResultCache

    evaluated = read_json(run / "evaluation" / "evaluation.json")
    scores = {(row["model"], task["name"]): row["stock"] for task in evaluated["tasks"] for row in task["scores"]}
    read = ResultCache(run / "evaluation").load_results().model_results
    names = {"curate/bm25": "bm25"}
    found = {
        (names.get(model.model_name, model.model_name), each.task_name): each
        for model in read
        for each in model.task_results
    }
    assert found.keys() == scores.keys()
    assert all(abs(each.get_score() - scores[key]["value"]) < 1e-5 for key, each in found.items())
    cards = {sha256(path) for path in (run / "export" / "mteb").glob("*/README.md")}
    assert {each.dataset_revision for each in found.values()} == cards
    assert all("ndcg_at_1000" in each.scores["test"][0] for each in found.values()), "all that mteb wrote"


def test_scores_that_were_kept_without_a_result_stay_and_say_so(run: Path) -> None:
    kept = sorted((run.parents[1] / "home" / "evaluations").glob("*.mteb.json"))
    assert len(kept) == 4
    aside = [(path, path.read_bytes()) for path in kept]
    for path in kept:
        path.unlink()
    done = ran(run.parents[1], "evaluate", str(run), "--models", "bm25", "--no-baselines", "--no-floors", "--json")
    for path, content in aside:
        path.write_bytes(content)
    notes = [note for note in json.loads(done.stdout)["warnings"] if "no results file for mteb" in note]
    assert len(notes) == 1
    assert "bm25 on full-retrieval-small" in notes[0]
    assert "delete" in notes[0]


def test_a_comparison_with_other_labels_is_stale(run: Path) -> None:
    leaks = ("check", "leaks", "data", str(run), "--out", str(run / "checks" / "leaks"))
    assert curate(run.parents[1], *leaks).returncode == 1, "the run is made of these texts"
    found = _points(run)["leaks"]
    assert (found["state"], "leaks into a training set" in found["found"]) == ("not ok", True)
    compared = run / "checks" / "leaks" / "leaks.json"
    before = read_json(compared)
    assert before["test"] == splits.digests(run)
    write_json(compared, {**before, "leaking_queries": 0, "leaking_pairs": 0, "shared_pairs": 3})
    assert _points(run)["leaks"]["state"] == "ok", "documents may be shared"
    for other in ({**before, "test": {**before["test"], "consensus/qrels": "0" * 64}}, {}):
        write_json(compared, other)
        found = _points(run)["leaks"]
        assert (found["state"], "other ones than when" in found["found"]) == ("not measured", True)
    write_json(compared, before)


@given(st.lists(st.sampled_from(["", " ", "痛", "腹痛", "a b", None]), min_size=1, max_size=6))
def test_empty_and_short_texts_are_counted_by_hand(said: list[str | None]) -> None:
    table = TextTable("x", [pl.DataFrame({"title": "", "text": said}, {"title": pl.String, "text": pl.String})])
    assert table.empty == sum(not (text or "").strip() for text in said)
    assert table.lengths.to_list() == [len(text.strip()) for text in said if text is not None]


def test_scores_of_another_export_do_not_count(run: Path) -> None:
    assert _points(run)["neither trivial nor random: full-retrieval-small"]["found"] != "no evaluation of this export"
    ran(run.parents[1], "export", "--run", str(run), "--set", "export.mteb.contributed_by=Others")
    assert _points(run)["neither trivial nor random: full-retrieval-small"]["found"] == "no evaluation of this export"
    ran(run.parents[1], "export", "--run", str(run), "--set", "export.formats=[beir]")
    assert "has the format mteb" in complaint(run.parents[1], "ready", str(run))
