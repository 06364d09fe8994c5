"""`curate notes`: any table, what is not defined and why, floors, plans, and figures that cannot leak a group."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.commands.notes import NotesCommand, encoders, evaluate, figures, measuring
from curate.commands.notes.measuring import Measure, feasible, measured
from curate.commands.notes.table import NotesLayout, named, read
from curate.core.errors import ConfigError, DataError, MissingExtra
from curate.core.protocols import Vectors, quiet
from curate.retrieval.encoders.packaged import PACKAGED
from tests.support import machine
from tests.support.noting import Rows, rows, written
from tests.support.runs import curate

ALL = {
    *("card", "card_own_out", "next", "group", "auroc_disjoint", "auroc_random", "auroc_leak"),
    *("silhouette_label", "silhouette_style", "silhouette_delta"),
}


def found(folder: Path, notes: Rows, **changes: Any) -> dict[str, Any]:
    """Return the figures of notes without a model: floors alone."""
    return evaluate(NotesCommand(table=written(folder / "notes.csv", notes), **changes)).to_json()


def value(figures_: dict[str, Any], name: str, model: str, at: int | None = None) -> Any:
    return next(
        row["value"] for row in figures_["figures"] if (row["figure"], row["model"], row["at"]) == (name, model, at)
    )


def without(notes: Rows, *names: str) -> Rows:
    return [{key: each for key, each in row.items() if key not in names} for row in notes]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx", "parquet"])
def test_every_kind_of_table_is_read_alike_without_options(tmp_path: Path, ending: str) -> None:
    table = read(written(tmp_path / f"notes.{ending}"), NotesLayout())
    assert (len(table.texts), table.groups, len(table.chains.query), table.chains.chains) == (36, 12, 24, 12)
    assert table.texts[0].startswith("Visit 1\nadmission note: wheezing")
    assert table.columns["group"] == "patient_id"
    assert table.columns["style"] == "note_type"


def test_groups_come_together_in_their_order_wherever_they_stand(tmp_path: Path) -> None:
    straight = read(written(tmp_path / "a.csv"), NotesLayout())
    mixed = rows()
    np.random.default_rng(1).shuffle(mixed)
    other = read(written(tmp_path / "b.csv", mixed), NotesLayout())

    def pairs(table: Any) -> set[tuple[str, str]]:
        return {(table.ids[at], table.ids[at + 1]) for at in table.chains.query}

    assert pairs(straight) == pairs(other)
    assert ("n3-0", "n3-1") in pairs(other)


def test_numbers_are_ordered_as_numbers_and_dates_as_dates(tmp_path: Path) -> None:
    notes = [{"text": f"t{at}", "group": "a", "order": order} for at, order in enumerate(("10", "9", "", "9.5"))]
    table = read(written(tmp_path / "n.csv", notes), NotesLayout())
    assert table.texts == ["t1", "t3", "t0", "t2"]
    assert table.chains.query.tolist() == [0, 1]
    assert table.notes == ["1 texts have no order: they are in no chain"]
    days = ("2024/3/10", "2024年3月9日", "2024-03-09 08:30", "2023-12-31T23:59:59")
    notes = [{"text": f"t{at}", "group": "a", "order": day} for at, day in enumerate(days)]
    assert read(written(tmp_path / "d.csv", notes), NotesLayout()).texts == ["t3", "t1", "t2", "t0"]


def test_groups_of_one_text_and_copied_texts_are_counted(tmp_path: Path) -> None:
    notes = [{"text": f"t{at}", "group": group} for at, group in enumerate("aabcd")]
    assert read(written(tmp_path / "n.csv", without(notes, "group")), NotesLayout()).notes == []
    copied = [*notes, {"text": "t0", "group": "a"}]
    assert read(written(tmp_path / "c.csv", copied), NotesLayout()).notes == [
        "3 groups have one text alone: nothing is to be found for it, so it is a candidate and no query",
        "2 texts are equal to another: all stay, and each finds its copy first",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"order": "march"},
            "n.csv:3, column order: found an order that is not like that of the rows before it, expected a number",
        ),
        ({"order": "2024-01-01"}, "expected a number; correct the cell, or give --column order=NAME"),
        ({"id": "0"}, "n.csv:3, column id: found the id of line 2 again, expected one per row"),
    ],
)
def test_a_row_that_cannot_be_is_named(tmp_path: Path, change: dict[str, str], said: str) -> None:
    notes = [{"id": str(at), "text": "t", "group": "a", "order": str(at)} for at in range(3)]
    notes[1] |= change
    with pytest.raises(DataError, match=said.replace(".", r"\.")):
        read(written(tmp_path / "n.csv", notes), NotesLayout())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["notes.csv", "--column", "groups=patient_id"],
            "--column: found the field 'groups', expected another; did you",
        ),
        (["notes.csv", "--column", "group"], "--column: found 'group', expected FIELD=NAME"),
        (["notes.csv", "--column", "text=a", "--column", "text=b"], "found text twice, expected one column"),
        (
            ["notes.csv", "--column", "group=patient"],
            "expected a column of this name, got no column 'patient'\ntry: did",
        ),
        (["notes.csv", "--models", "minilmm"], "neither a folder nor one of e5, use, minilm"),
        (["notes.csv", "--models", "random"], "--models random: is the name of a floor, expected another"),
        (["notes.csv", "--no-floors"], "notes: found no model, expected one; name some with --models"),
        (["notes.csv", "--set", "folds=1"], "folds: found 1, expected 2 or more"),
        (["notes.csv", "--models", "use", "--set", "max_length=9"], "max_length: found no model that takes it"),
        (["gone.csv"], "gone.csv: no such file, expected a table of texts"),
        (
            ["bare.csv"],
            "expected a column 'text', got no column 'text' among a, b\ntry: name another with --column text=",
        ),
        (["one.csv"], "at: one.csv\nexpected two at least, got 1 rows with a text"),
        (["notes.csv", "--export", "full"], "--export full: found something else there, expected a new folder"),
    ],
)
def test_a_wrong_option_is_answered_in_a_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    written(tmp_path / "notes.csv")
    (tmp_path / "bare.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "one.csv").write_text("text,group\nsome,1\n,2\n", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "random").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    done = curate(tmp_path, "notes", *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGED, "minilm", ("no_such_module", "no-such-package"))
    with pytest.raises(MissingExtra, match="pip install no-such-package"):
        encoders.named(["minilm"])


@pytest.mark.parametrize(
    ("lacking", "undefined"),
    [
        (("patient_id",), {"card", "card_own_out", "next", "group"}),
        (("date",), {"card", "card_own_out", "next"}),
        (("diagnosis",), {"auroc_disjoint", "auroc_random", "auroc_leak", "silhouette_label", "silhouette_delta"}),
        (("note_type",), {"silhouette_style", "silhouette_delta"}),
    ],
)
def test_what_a_missing_column_leaves_open_has_a_reason(
    tmp_path: Path, lacking: tuple[str, ...], undefined: set[str]
) -> None:
    asked = feasible(read(written(tmp_path / "n.csv", without(rows(), *lacking)), NotesLayout()), 2, [0])
    assert set(asked.undefined) == undefined
    assert all("no column holds the" in why for why in asked.undefined.values())
    assert {each.name for each in asked.measures} == ALL - undefined


@pytest.mark.parametrize(
    ("change", "name", "why"),
    [
        (lambda row: {"patient_id": row["note_id"]}, "group", "every group has one text"),
        (lambda row: {"patient_id": "p"}, "next", "found one group"),
        (lambda row: {"diagnosis": "gout"}, "auroc_disjoint", "found one label, expected two"),
        (lambda row: {"diagnosis": "gout"}, "silhouette_label", "found 1 label, expected two"),
        (lambda row: {"diagnosis": row["patient_id"]}, "auroc_disjoint", "12 labels, 0 of them in 2 groups"),
        (lambda row: {"note_type": row["note_id"]}, "silhouette_style", "every text has a style of its own"),
        (lambda row: {"date": ""}, "next", "no group has two texts with a place"),
    ],
)
def test_what_the_values_leave_open_has_a_reason(tmp_path: Path, change: Any, name: str, why: str) -> None:
    notes = [row | change(row) for row in rows()]
    asked = feasible(read(written(tmp_path / "n.csv", notes), NotesLayout()), 2, [0])
    assert why in asked.undefined[name]
    assert {each.name for each in asked.measures} == ALL - set(asked.undefined)
    if name in ("next", "auroc_disjoint"):  # the rest is measured
        figures_ = found(tmp_path, notes, seeds=1)
        assert {row["figure"] for row in figures_["figures"]} == ALL - set(asked.undefined)
        assert all(row["value"] is not None for row in figures_["figures"])


def test_a_single_group_has_no_interval(tmp_path: Path) -> None:
    figures_ = found(tmp_path, [row | {"patient_id": "p"} for row in rows()])
    assert {(row["low"], row["high"]) for row in figures_["figures"]} == {(None, None)}
    assert all(row["value"] is not None for row in figures_["figures"])


def test_a_rare_label_is_left_out_and_named(tmp_path: Path) -> None:
    notes = rows()
    notes[0]["diagnosis"] = "rare"
    asked = feasible(read(written(tmp_path / "n.csv", notes), NotesLayout()), 2, [0])
    assert asked.notes == ["labels in fewer than 2 groups, left out of the AUROC: rare"]


def test_no_group_lies_on_both_sides_of_a_fold(tmp_path: Path) -> None:
    """Each patient's diagnosis is drawn by lot: what a probe knows of it, it knows from the patient's other notes."""
    random = np.random.default_rng(3)
    lots = {f"p{at:02}": str(random.integers(2)) for at in range(40)}
    notes = [row | {"diagnosis": lots[row["patient_id"]]} for row in rows(40)]
    table = read(written(tmp_path / "n.csv", notes), NotesLayout())
    asked = feasible(table, 2, range(3))
    own = np.eye(40, dtype=np.float32)[table.chains.group]
    results = {"own": measured(asked, own, "own", quiet)}
    strict, _ = figures.drawn(asked, results, 0)
    mine = {each.name: drawn.value for each, drawn in strict["own"].items() if each.at is None}
    assert mine["auroc_random"] > 0.9, "the patient was seen"
    assert mine["auroc_disjoint"] == pytest.approx(0.5), "a vector of the patient alone says nothing of others"
    assert mine["auroc_leak"] == pytest.approx(mine["auroc_random"] - mine["auroc_disjoint"])
    assert asked.probe is not None
    for folding in results["own"].probes["disjoint"]:
        groups = [set(table.chains.group[fold.texts]) for fold in folding]
        assert not groups[0] & groups[1]


def test_a_model_is_held_against_the_best_floor_on_the_same_resamples(tmp_path: Path) -> None:
    table = read(written(tmp_path / "n.csv", rows(60)), NotesLayout())
    asked = feasible(table, 2, [0])
    noise = np.random.default_rng(0).standard_normal((len(table.texts), 8)).astype(np.float32)
    good = np.eye(60, dtype=np.float32)[table.chains.group]
    board = {
        name: measured(asked, _unit(vectors), name, quiet)
        for name, vectors in {"good": good, "same": noise, "noise": noise}.items()
    }
    strict, chance = figures.drawn(asked, board, 0)
    rows_ = {
        (row.model, row.measure, row.at): row
        for row in figures.against_floors(asked, chance, ["good", "same"], ["noise"])
    }
    assert rows_["good", "group", 1].beaten
    assert not rows_["same", "group", 1].beaten
    assert (rows_["same", "group", 1].low, rows_["same", "group", 1].high) == (0, 0), "the same resamples"
    assert ("good", "auroc_random", None) not in rows_, "no quality"
    apart = figures.differences(asked, chance, ["same", "good"])
    assert next(row for row in apart if (row.measure, row.at) == ("group", 1)).one == "good"
    assert strict["good"][Measure("group", 1)].value == 1.0


def _unit(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def test_the_command_says_and_writes_all_of_it(tmp_path: Path) -> None:
    written(tmp_path / "notes.csv")
    done = curate(tmp_path, "notes", "notes.csv", "--models", "use", "--out", "out", "--json")
    data = machine.data(done.stdout)
    assert data["columns"]["group"] == "patient_id"
    assert [each["model"] for each in data["models"] if each["floor"]] == ["length", "overlap", "random"]
    assert value(data, "next", "use", 1) > value(data, "next", "random", 1)
    kept = json.loads((tmp_path / "out" / "figures.json").read_text(encoding="utf-8"))
    assert data == {**kept, "folder": "out"}
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| next @1 |" in page
    assert "under 50 groups: these intervals are too narrow" in page
    shown = curate(tmp_path, "notes", "notes.csv", "--models", "use").stdout
    assert "card @1" in shown
    assert "random (floor)" in shown


def test_a_plan_counts_texts_that_the_cache_lacks_and_keeps_nothing(tmp_path: Path) -> None:
    written(tmp_path / "notes.csv", [*rows(), rows()[0] | {"note_id": "again"}])
    words = ("notes", "notes.csv", "--models", "use", "--plan", "--json")
    for _ in range(2):
        plan = machine.data(curate(tmp_path, *words).stdout)["plan"]
        assert [(row["model"], row["texts"], row["to_encode"]) for row in plan] == [("use", 36, 36)]
        assert plan[0]["seconds"] > 0
    assert curate(tmp_path, "notes", "notes.csv", "--models", "use").returncode == 0
    again = machine.data(curate(tmp_path, *words).stdout)["plan"]
    assert again == [{"model": "use", "texts": 36, "to_encode": 0, "seconds": 0.0}]


def test_the_options_of_columns_are_taken(tmp_path: Path) -> None:
    notes = [{"when": row["date"], "who": row["patient_id"], "what": row["text"], "date": ""} for row in rows()]
    path = written(tmp_path / "n.csv", notes)
    table = read(path, NotesLayout(named(["order=when", "group=WHO", "text=what"])))
    assert table.columns == {"text": "what", "group": "who", "order": "when"}
    assert len(table.chains.query) == 24
    with pytest.raises(ConfigError, match="nothing can be measured"):
        evaluate(NotesCommand(table=path, column=("text=what",)))


def test_the_same_request_gives_the_same_figures(tmp_path: Path) -> None:
    command = NotesCommand(table=written(tmp_path / "n.csv"))
    assert evaluate(command) == evaluate(command.model_copy())


def test_parts_of_the_probe_hold_every_label(tmp_path: Path) -> None:
    table = read(written(tmp_path / "n.csv"), NotesLayout())
    probe, _, _ = measuring.chosen(*table.codes("label"), table.chains.group, 2)
    assert probe is not None
    train, test = measuring.halves(probe, 5)
    assert not set(probe.group[train]) & set(probe.group[test])
    assert set(probe.labels[train]) == set(probe.labels[test]) == {0, 1}
