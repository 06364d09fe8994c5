"""The tasks of `curate notes --export`: stock mteb scores them as we do; masked, without ids, split by group."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate import load_tasks
from curate.commands.notes import NotesCommand, evaluate, export
from curate.commands.notes.measuring import feasible
from curate.commands.notes.table import NotesLayout, read
from curate.core.errors import DataError
from tests.support import machine, scoring
from tests.support.noting import rows, written
from tests.support.runs import curate


def exported(folder: Path, notes: Any = None, **changes: Any) -> dict[str, Any]:
    """Return what the command does with two labellings and the least work."""
    given = {"seeds": 1, **changes}
    return evaluate(
        NotesCommand(table=written(folder / "notes.csv", notes), export=folder / "tasks", **given)
    ).to_json()


def table(folder: Path, task: str, name: str) -> pl.DataFrame:
    (path,) = (folder / "tasks" / task).glob(f"{name}-[0-9a-f]*.parquet")
    return pl.read_parquet(path)


def test_stock_mteb_gives_the_same_recall_and_classifies_what_lies_on_two_sides(tmp_path: Path) -> None:
    found = exported(tmp_path, models=["use"], floors=False)
    theirs = scoring.scores(tmp_path / "tasks" / "retrieval")
    for row in found["figures"]:
        if row["figure"] == "group":
            assert row["by_chance"] == pytest.approx(theirs[f"hit_rate_at_{row['at']}"], abs=1e-5)
    assert 0 < theirs["hit_rate_at_1"] == theirs["main_score"]
    assert {each.metadata.type for each in load_tasks(tmp_path / "tasks")} == {"Retrieval", "Classification"}
    assert scoring.scores(tmp_path / "tasks" / "classification")["f1"] > 0.9


def test_a_patient_lies_on_one_side(tmp_path: Path) -> None:
    exported(tmp_path)
    sides = [
        {re.findall(r"mill (\d+)", text)[0] for text in table(tmp_path, "classification", name)["text"]}
        for name in ("default-train", "default")
    ]
    assert sides[0]
    assert sides[1]
    assert not sides[0] & sides[1]


def test_texts_are_masked_and_counted_and_no_id_is_written(tmp_path: Path) -> None:
    notes = [row | {"text": f"{row['text']} Call 13912345678 or a.b@example.org."} for row in rows()]
    written(tmp_path / "notes.csv", notes)
    done = curate(tmp_path, "notes", "notes.csv", "--export", "tasks", "--json")
    made = machine.data(done.stdout)["export"]
    assert sum(made["masked"].values()) == 2 * len(notes)
    everything = b"".join(path.read_bytes() for path in (tmp_path / "tasks").rglob("*") if path.is_file())
    texts = " ".join(table(tmp_path, "retrieval", "corpus")["text"])
    for secret in ("13912345678", "a.b@example.org", "p03", "n3-1", "2024-01"):
        assert secret not in texts
        assert secret.encode() not in everything
    assert table(tmp_path, "retrieval", "corpus")["id"].to_list()[:2] == ["t0", "t1"]
    assert "masked before the export: " in curate(tmp_path, "notes", "notes.csv", "--export", "tasks").stdout


def test_an_edited_table_is_refused_and_an_export_is_replaced_whole(tmp_path: Path) -> None:
    exported(tmp_path)
    first = {path.name: path.read_bytes() for path in (tmp_path / "tasks").rglob("*") if path.is_file()}
    exported(tmp_path)
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "tasks").rglob("*") if path.is_file()}
    (path,) = (tmp_path / "tasks" / "retrieval").glob("corpus-*.parquet")
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DataError, match="its content is not what its name says"):
        load_tasks(tmp_path / "tasks")


def test_texts_that_would_tell_the_answer_are_left_out_of_the_classification(tmp_path: Path) -> None:
    notes = rows()
    for row in notes[:4]:
        row |= {"title": "", "text": "stable, see above"}  # of two patients, with two diagnoses
    for row in (notes[6], notes[12], notes[18], notes[24]):
        row |= {"title": "", "text": "all is as it was"}  # of patients with the same diagnosis
    notes[9] |= {"title": "", "text": "ok"}
    found = exported(tmp_path, notes)
    assert found["export"]["notes"] == [
        "classification: 4 texts left out: the same text has two labels",
        "classification: 3 texts left out: the same text is there already",
        "classification: 1 texts left out: under 5 characters",
    ]
    both = pl.concat([table(tmp_path, "classification", name) for name in ("default-train", "default")])
    assert both["text"].is_unique().all()
    assert len(both) == len(notes) - 8


@pytest.mark.parametrize(("lacking", "task"), [("patient_id", "retrieval"), ("diagnosis", "classification")])
def test_a_task_that_cannot_be_made_is_said(tmp_path: Path, lacking: str, task: str) -> None:
    notes = [{key: each for key, each in row.items() if key != lacking} for row in rows()]
    found = exported(tmp_path, notes)
    assert any(note.startswith(f"no {task} task: ") for note in found["export"]["notes"])
    assert not (tmp_path / "tasks" / task).exists()
    none = [{"text": row["text"]} for row in rows()]
    with pytest.raises(DataError, match="no task can be made"):
        evaluate(NotesCommand(table=written(tmp_path / "none.csv", none), export=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_groups_of_thousands_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST", 10)
    notes = read(written(tmp_path / "n.csv"), NotesLayout())
    with pytest.raises(DataError, match="72 pairs are relevant, expected 10 at most"):
        export.write(notes, feasible(notes, 2, [0]), tmp_path / "tasks", None, lambda *_: None)


def test_a_reader_of_the_export_finds_the_tasks_by_name(tmp_path: Path) -> None:
    found = exported(tmp_path, language="zh")
    assert [each["task"] for each in found["export"]["tasks"]] == ["tasks-retrieval", "tasks-classification"]
    readme = (tmp_path / "tasks" / "classification" / "README.md").read_text(encoding="utf-8")
    assert "cmn-Hans" in readme
    assert json.dumps("tasks-classification") in readme
