"""`curate diff` on runs and exports, as a user types it."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.support import machine, versions
from tests.support.runs import complaint, ran, tiny


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run `one`, and `other` of a stricter judge and another rule."""
    folder = tmp_path_factory.mktemp("diff")
    pipeline = tiny(folder)
    ran(folder, "run", pipeline, "--run", "runs/one")
    more = ("judges.strict.thresholds={S: 0.95, A: 0.9, B: 0.5, C: 0.3}", "consensus.policy=majority")
    ran(folder, "run", pipeline, "--run", "runs/other", *(word for each in more for word in ("--set", each)))
    return folder


def test_a_run_does_not_differ_from_itself(two: Path) -> None:
    said = ran(two, "diff", "runs/one", "runs/one").stdout
    assert "no label differs" in said
    assert "tau-b is not defined" in said  # both systems tie


def test_figures_are_counted_again(two: Path) -> None:
    found = machine.data(ran(two, "diff", "runs/one", "runs/other", "--json").stdout)
    old, new = versions.labels(two / "runs/one"), versions.labels(two / "runs/other")
    assert found["changed"] == sum(old[pair] != new[pair] for pair in old) > 0
    reasons = {each["reason"] for each in found["reasons"]}
    assert reasons <= {"another model, prompt or rubric of a judge", "another rule"}
    counted = versions.effects(two / "runs/one", two / "runs/other")
    assert found["effects"]["queries"] == counted["queries"]
    for row in found["effects"]["systems"]:
        assert row["ndcg_after"]["value"] == pytest.approx(counted["systems"][row["system"]]["after"], abs=1e-6)


def test_an_export_alone_is_a_side_too(two: Path, tmp_path: Path) -> None:
    shutil.copytree(two / "runs/one/export/beir", tmp_path / "given")
    shutil.copytree(two / "runs/other/export/trec", tmp_path / "taken")
    out = tmp_path / "rows" / "changed.parquet"
    words = ("diff", str(tmp_path / "given"), str(tmp_path / "taken"))
    said = ran(two, *words, "--out", str(out)).stdout
    assert "neither version holds a ranking" in said
    old, new = (pl.read_parquet(tmp_path / name / "verdicts.parquet") for name in ("given", "taken"))
    both = old.join(new, on=["query_id", "doc_id"], suffix="_now")
    changed = pl.read_parquet(out).drop_nulls(["before", "after"])
    assert len(changed) == both.filter(pl.col("verdict") != pl.col("verdict_now")).height
    assert "neither side is a run" in complaint(two, *words, "--run-file", "x.trec")


def test_a_run_file_is_scored_under_both(two: Path) -> None:
    lines = [f"q{n} Q0 d{4 * n:02} 1 1.0 mine" for n in range(5)]
    (two / "mine.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = machine.data(ran(two, "diff", "runs/one", "runs/other", "--run-file", "mine.trec", "--json").stdout)
    (two / "other.trec").write_text("nothing Q0 d00 1 1.0 t\n", encoding="utf-8")
    assert "no query of the run in other.trec" in complaint(
        two, "diff", "runs/one", "runs/other", "--run-file", "other.trec"
    )
    assert "file mine" in {row["system"]: row for row in found["effects"]["systems"]}


def test_what_is_no_version_is_said(two: Path, tmp_path: Path) -> None:
    assert "no such folder" in complaint(two, "diff", "runs/one", "runs/nothing")
    assert "no run and no MANIFEST.json" in complaint(two, "diff", "runs/one", str(tmp_path))
    assert "expected a name that ends with .csv or .parquet" in complaint(
        two, "diff", "runs/one", "runs/other", "--out", "x.txt"
    )
    begun = two / "runs" / "begun"
    ran(two, "ingest", "--pipeline", "tiny.yaml", "--run", str(begun))
    assert "no labels yet" in complaint(two, "diff", "runs/one", str(begun))


@pytest.fixture(scope="module")
def colliding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run whose queries have ids of documents, one of them without an answer."""
    folder = tmp_path_factory.mktemp("colliding")
    pipeline = tiny(folder)
    queries = (folder / "data" / "queries.jsonl").read_text("utf-8").replace('"q', '"d0')
    more = json.dumps({"_id": "d19", "text": "胃溃疡的病因"}, ensure_ascii=False)
    (folder / "data" / "queries.jsonl").write_text(f"{queries}{more}\n", encoding="utf-8")
    qrels = folder / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text("utf-8").replace("\nq", "\nd0"), encoding="utf-8")
    ran(folder, "run", pipeline, "--run", "runs/one", "--set", "export.labels=both")
    return folder


@pytest.mark.parametrize("form", ["mteb", "beir", "trec"])
def test_a_run_does_not_differ_from_its_own_export(colliding: Path, form: str, tmp_path: Path) -> None:
    export = shutil.copytree(colliding / "runs/one/export" / form, tmp_path / form)
    assert json.loads((export / "MANIFEST.json").read_text("utf-8"))["labels"]["prefixed"]
    for words in (("runs/one", str(export)), (str(export), "runs/one")):
        found = machine.data(ran(colliding, "diff", *words, "--json").stdout)
        assert (found["changed"], found["other_votes"], found["moves"]) == (0, 0, [])
        assert found["gains"] == {"changed": 0, "moves": [], "reasons": []}
        assert found["pairs"]["both"] > found["pairs"]["before_only"] == found["pairs"]["after_only"] == 0
        assert not [ids for each in found["texts"].values() for ids in each.values() if ids]
        for row in found["effects"]["systems"]:
            assert (row["change"]["value"], row["holes_before"]) == (0, row["holes_after"])


def test_another_choice_of_the_gain_moves_graded_labels_alone(colliding: Path) -> None:
    shutil.copytree(colliding / "runs/one", colliding / "runs/minimum")
    ran(colliding, "export", "--run", "runs/minimum", "--set", "export.gain_below_cut=false")
    found = machine.data(ran(colliding, "diff", "runs/one", "runs/minimum", "--json").stdout)
    assert found["changed"] == 0 < found["gains"]["changed"]
    assert [each["reason"] for each in found["gains"]["reasons"]] == ["another choice of the gain"]
    assert {each["gain_after"] for each in found["gains"]["moves"]} == {0}
    beside = (f"runs/{name}/export/beir" for name in ("one", "minimum"))
    assert machine.data(ran(colliding, "diff", *beside, "--json").stdout)["gains"] == found["gains"]
    assert "graded labels that differ" in ran(colliding, "diff", "runs/one", "runs/minimum").stdout
