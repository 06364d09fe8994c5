"""`curate paper`: the kit of a run compiles, holds the run's figures, and names what was not done."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from curate.commands.paper.latex import escaped
from curate.system.files import sha256, write_json
from tests.conftest import need
from tests.support import machine
from tests.support.paper_scores import HOSTILE, evaluation, task
from tests.support.paper_tables import compiled, recomputed, rows
from tests.support.runs import curate, ran

NOT_SCORED = ["review", "audit", "scores"]
TASK = "tiny-retrieval-small"


@pytest.fixture
def work(tiny_run: Path) -> Path:
    """Return the folder in which a run of the tiny pipeline is finished."""
    return tiny_run.parents[1]


def kit(folder: Path, *words: str) -> dict[str, Any]:
    done = curate(folder, "paper", "runs/tiny", "--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = machine.data(done.stdout)
    return found


def scored(run: Path, card: str | None = None) -> None:
    """Write an evaluation of the run's retrieval, as if models had been scored."""
    card = card or sha256(run / "export" / "mteb" / "retrieval" / "README.md")
    (run / "evaluation").mkdir(exist_ok=True)
    made = evaluation(task(TASK, [0.5, 0.6, 0.4, 0.3], card, speed=True))
    write_json(run / "evaluation" / "evaluation.json", made)


def test_a_run_without_evaluation_names_what_was_not_done(work: Path) -> None:
    found = kit(work)
    assert [each["name"] for each in found["not_done"]] == NOT_SCORED
    assert all(each["next"] for each in found["not_done"])
    folder = work / found["folder"]
    assert sorted(found["files"]) == sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert "scores" not in (folder / "paper.tex").read_text("utf-8").replace("没有模型在本导出上评测", "")


def test_every_figure_is_that_of_the_runs_own_tables(work: Path) -> None:
    ran(work, "evaluate", "runs/tiny", "--models", "bm25,use", "--no-baselines", "--no-floors", "--speed")
    found = kit(work, "--language", "en")
    recomputed(work / "runs" / "tiny", work / found["folder"] / "csv")
    absent = {each["name"]: each["next"] for each in found["not_done"]}
    assert absent["legacy"] == "curate evaluate runs/tiny --legacy TASK"
    document = (work / found["document"]).read_text("utf-8")
    assert all(escaped(command, "en") in document for command in absent.values())


def test_an_audit_of_old_labels_is_a_table_whose_rows_add_up(work: Path) -> None:
    ran(work, "audit", "data", "--models", "lexical", "--run", "runs/audit")
    made = machine.data(ran(work, "paper", "runs/audit", "--language", "en", "--json").stdout)
    assert [each["name"] for each in made["not_done"]] == ["statistics", "lengths", "agreement", "review", "scores"]
    table = {row["figure"]: int(row["total"]) for row in rows(work / "runs/audit/paper/csv/audit.csv")}
    patch = (work / "runs/audit/audit/patch.tsv").read_text("utf-8").splitlines()
    assert table["judged positive"] == table["confirmed"] + table["false negative"]
    assert len(patch) - 1 == table["false negative"] + table["false positive"] > 0


def test_the_english_document_compiles_with_hostile_names(work: Path) -> None:
    need(shutil.which("pdflatex") is not None, "pdflatex")
    scored(work / "runs" / "tiny")
    found = kit(work, "--language", "en")
    assert [each["name"] for each in found["figures"]] == ["difficulty", "quality-speed", "scores"]
    folder = work / found["folder"]
    assert HOSTILE in (folder / "csv" / "scores.csv").read_text("utf-8")
    compiled(folder, "pdflatex")


def test_the_same_run_gives_the_same_bytes_and_old_files_go(work: Path) -> None:
    run = work / "runs" / "tiny"
    scored(run)
    first = kit(work)
    before = {name: (work / first["folder"] / name).read_bytes() for name in first["files"]}
    other = kit(work, "--out", "elsewhere")
    assert {name: (work / "elsewhere" / name).read_bytes() for name in other["files"]} == before
    shutil.rmtree(run / "evaluation")
    assert not {"csv/scores.csv", "figures/scores.pdf"} & set(kit(work)["files"])
    assert not (run / "paper" / "csv" / "scores.csv").exists()


def test_scores_of_an_older_export_are_left_out_and_named(work: Path) -> None:
    scored(work / "runs" / "tiny", card="0" * 64)
    absent = {each["name"]: each for each in kit(work, "--language", "en")["not_done"]}
    assert TASK in absent["old_scores"]["found"]
    assert absent["old_scores"]["next"] == "curate evaluate runs/tiny"


def test_an_export_that_is_missing_or_edited(work: Path) -> None:
    run = work / "runs" / "tiny"
    data = next((run / "export" / "mteb" / "retrieval").glob("qrels-*.parquet"))
    data.unlink()
    absent = {each["name"]: each["next"] for each in kit(work)["not_done"]}
    assert absent["statistics"] == "curate export --run runs/tiny"
    shutil.rmtree(run / "export")
    assert {"statistics", "lengths"} <= {each["name"] for each in kit(work)["not_done"]}


def test_wrong_words_are_sentences(work: Path) -> None:
    wrong = curate(work, "paper", "runs/tiny", "--language", "fr")
    assert (wrong.returncode != 0, "expected en or zh" in wrong.stderr) == (True, True)
    shutil.rmtree(work / "runs" / "tiny" / "consensus")
    missing = curate(work, "paper", "runs/tiny")
    assert missing.returncode != 0
    assert "curate consensus" in missing.stderr


def test_without_matplotlib_there_are_tables(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    scored(work / "runs" / "tiny")
    found = kit(work)
    assert "csv/scores.csv" in found["files"]
    assert "curate-ir[paper]" in next(each["found"] for each in found["not_done"] if each["name"] == "matplotlib")
