"""`curate paper` on a small run, scored and not."""

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need
from tests.support import machine
from tests.support.runs import complaint, ran, tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    ran(folder, "run", tiny(folder))
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_what_is_not_measured_is_no_table_and_is_said(folder: Path) -> None:
    found = machine.data(ran(folder, "paper", "runs/tiny", "--json").stdout)
    assert [each["table"] for each in found["absent"]] == ["audit", "evaluation"]
    assert found["absent"][1]["next"] == "curate evaluate runs/tiny"
    assert sorted(each.stem for each in (folder / "runs/tiny/paper/tables").glob("*.csv")) == [
        "agreement",
        "judges",
        "statistics",
    ]
    agreed = json.loads((folder / "runs/tiny/consensus/agreement.json").read_text("utf-8"))
    first = rows(folder / "runs/tiny/paper/tables/agreement.csv")[0]
    assert float(first["all grades"]) == agreed["all_grades"]["fleiss"]
    assert float(first["at the cut"]) == agreed["cut"]["fleiss"]
    counts = {
        (each["task"], each["table"]): each["rows"] for each in rows(folder / "runs/tiny/paper/tables/statistics.csv")
    }
    facts = json.loads((folder / "runs/tiny/export/stage.json").read_text("utf-8"))["report"]["facts"]
    assert int(counts["tiny-retrieval", "qrels"]) == facts["qrels"]


def test_scores_stand_in_both_readings_and_the_document_compiles(folder: Path) -> None:
    ran(folder, "evaluate", "runs/tiny", "--models", "bm25", "--no-baselines", "--no-floors")
    found = machine.data(ran(folder, "paper", "runs/tiny", "--out", "out", "--json").stdout)
    assert [each["table"] for each in found["absent"]] == ["audit"]
    evaluated: Any = json.loads((folder / "runs/tiny/evaluation/evaluation.json").read_text("utf-8"))
    task = evaluated["tasks"][0]
    head = f"{task['name']} ({task['shown']}, n = {task['queries']})"
    (row,) = rows(folder / "out/tables/evaluation.csv")
    assert float(row[head]) == task["scores"][0][task["lead"]]["value"]
    old = folder / "out/tables/old.csv"
    old.write_text("of an earlier call", encoding="utf-8")
    for language, program in (("en", "pdflatex"), ("zh", None)):
        ran(folder, "paper", "runs/tiny", "--out", "out", "--language", language)
        assert not old.exists()
        if program is not None:
            need(shutil.which(program) is not None, program)
            done = subprocess.run(
                [program, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
                cwd=folder / "out",
                check=False,
                capture_output=True,
            )
            assert done.returncode == 0, done.stdout[-800:]
    assert "等级" in (folder / "out/tables/agreement.tex").read_text(encoding="utf-8")


def test_another_language_and_a_run_without_an_export_are_errors(folder: Path) -> None:
    assert "found 'fr'" in complaint(folder, "paper", "runs/tiny", "--language", "fr")
    ran(folder, "ingest", "--pipeline", "tiny.yaml", "--run", "runs/begun")
    assert "the export is missing" in complaint(folder, "paper", "runs/begun")
