"""Three scales that are not the five grades, from pool to report, review, audit and verify.

The judges are heuristics: this shows that every place asks the scale, and nothing of their grades.
"""

import csv
import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.core.config import read_yaml
from curate.core.scale import Scale
from curate.system.files import read_scale
from tests import ROOT
from tests.support import machine
from tests.support.auditing import RETRIEVERS, labelled
from tests.support.pools import table
from tests.support.runs import complaint, curate, ran, tiny
from tests.support.scale_runs import CASES, Case, make


@pytest.fixture(scope="module", params=CASES)
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Case]:
    """Return a folder in which the tiny pipeline has run once on a scale, to be read only."""
    case, folder = CASES[request.param], tmp_path_factory.mktemp("scale")
    make(folder, case)
    return folder, case


@pytest.fixture
def folder(finished: tuple[Path, Case], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished[0], tmp_path / "work"))


@pytest.fixture
def case(finished: tuple[Path, Case]) -> Case:
    return finished[1]


def scale(folder: Path) -> Scale:
    return read_scale(folder / "runs" / "tiny" / "judge")


def test_every_table_is_of_the_scale(finished: tuple[Path, Case]) -> None:
    folder, _ = finished
    run, known = folder / "runs" / "tiny", scale(folder)
    ratings, verdicts = table(run, "judge", "ratings"), table(run, "consensus", "verdicts")
    assert set(ratings["grade"]) <= {*known.labels}
    assert ratings["grade"].n_unique() > 1
    wide = ratings.pivot(on="judge", index=["query_id", "doc_id"], values="grade")
    both = verdicts.join(wide, on=["query_id", "doc_id"])
    for verdict, *grades in both.select("verdict", "lexical", "strict").iter_rows():
        sides = {grade in known.relevant for grade in grades}
        assert verdict == ("contested" if len(sides) > 1 else "relevant" if sides == {True} else "not relevant")
    assert table(run, "resolve", "qrels").height > 0


def test_what_is_printed_and_shown_names_the_grades(folder: Path) -> None:
    said = ran(folder, "agree").stdout
    page = (folder / "runs" / "tiny" / "report.html").read_text(encoding="utf-8")
    card = (folder / "runs" / "tiny" / "export" / "mteb" / "README.md").read_text(encoding="utf-8")
    for label in scale(folder).labels:
        assert label in said
        assert label in page
        assert label in card
    assert machine.data(ran(folder, "agree", "--json").stdout)["agreement"]["all_grades"]["items"] > 0
    ran(folder, "check", "judge")
    ran(folder, "show", "ratings")
    ran(folder, "status")


def test_a_sheet_goes_out_and_comes_back(folder: Path, case: Case) -> None:
    ran(folder, "review", "export", "--size", "24", "--assessors", "wang", "--controls", "2")
    [sheet] = folder.rglob("wang.csv")
    rows = list(csv.reader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    at = rows[0].index(f"等级 ({' / '.join(scale(folder).labels)})")

    def answered(text: str) -> Path:
        stream = io.StringIO(newline="")
        csv.writer(stream).writerows([rows[0], *([*row[:at], text, *row[at + 1 :]] for row in rows[1:])])
        back = folder / "back.csv"
        back.write_text(stream.getvalue(), encoding="utf-8-sig")
        return back

    refused = complaint(folder, "review", "import", str(answered(case.wrong)))
    assert case.wrong in refused
    assert case.meant in refused
    ran(folder, "review", "import", str(answered(case.typed)))
    ran(folder, "review", "report")
    ran(folder, "resolve", "--set", "resolve.policy=expert-over-panel")
    overrides = table(folder / "runs" / "tiny", "resolve", "overrides")
    assert {grade for grades in overrides["grades"] for grade in grades} == {case.meant}
    assert set(overrides["verdict"]) == {"relevant" if case.meant in scale(folder).relevant else "not relevant"}


def test_an_export_is_verified(folder: Path) -> None:
    done = curate(folder, "verify", "runs/tiny/export")
    assert done.returncode == 3, done.stdout  # what the cards say of the run as a whole is in no table
    assert done.stdout.count(": verified") == 3
    assert "differ" not in done.stdout


def test_a_set_is_audited(folder: Path, case: Case) -> None:
    labelled(folder)
    words = [
        "--set",
        f"judge.rubric={case.rubric}",
        "--set",
        f"judges.strict={{kind: lexical, thresholds: {json.dumps(case.strict)}}}",
    ]
    ran(
        folder,
        "audit",
        "data",
        "--models",
        "lexical,strict",
        *RETRIEVERS,
        *words,
        "--retrievers",
        "words,pairs",
        "--depth",
        "8",
    )
    page = (folder / "runs" / "audit-data" / "audit.html").read_text(encoding="utf-8")
    patch = table(folder / "runs" / "audit-data", "audit", "patch")
    assert patch.height > 0
    named = {grade for grades in patch["grades"] for grade in grades.split()}
    assert named & {*scale(folder).labels} or any(label in page for label in scale(folder).labels)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("judge.rubric=nowhere", "nowhere"),
        ("judges.strict.thresholds={S: 1, A: 0.5, B: 0.4, C: 0.1}", "expected 3, 2, 1: one per grade of the rubric"),
        ("consensus.policy={positive: {at_least: 4, of: 5}, negative: {at_least: 3}}", "found 5, but the panel has 2"),
        ("consensus.policy={positive: {at_least: 1}, negative: {at_least: 1}}", "can stand side by side"),
        ("consensus.policy=dawid-skene", "needs 3 judges"),
        ("train_set.negatives.grades=[D]", ""),
    ],
)
def test_what_does_not_fit_together_stops_before_the_first_stage(tmp_path: Path, setting: str, said: str) -> None:
    """Offline judges included: nothing was done yet."""
    tiny(tmp_path)
    words = ["--set", "judge.rubric=rubric-zh-trec", "--set", "judges.strict.thresholds={3: 0.9, 2: 0.7, 1: 0.4}"]
    done = curate(tmp_path, "run", "tiny.yaml", *words, "--set", setting)
    if said:
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
        assert not (tmp_path / "runs" / "tiny" / "ingest").exists()
    else:
        assert done.returncode == 0, done.stderr


def test_a_rubric_without_order_makes_no_benchmark(tmp_path: Path) -> None:
    tiny(tmp_path)
    (tmp_path / "prompts").mkdir()
    base = read_yaml(ROOT / "prompts" / "rubric-zh.yaml")
    named = {**base, "grades": {"心脏": "a", "肺": "b"}, "order": "nominal", "name": "classes", "translations": {}}
    (tmp_path / "prompts" / "classes.yaml").write_text(yaml.safe_dump(named, allow_unicode=True), encoding="utf-8")
    assert "classes is nominal" in complaint(tmp_path, "run", "tiny.yaml", "--set", "judge.rubric=classes")


def test_ratings_of_two_rubrics_never_meet(tmp_path: Path) -> None:
    """The same texts under another scale are judged anew, and what was there stays as it was."""
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml")
    before = table(tmp_path / "runs" / "tiny", "judge", "ratings")
    thresholds = "judges.strict.thresholds={yes: 0.7}"
    ran(
        tmp_path,
        "run",
        "tiny.yaml",
        "--run",
        "runs/other",
        "--set",
        "judge.rubric=rubric-zh-binary",
        "--set",
        thresholds,
    )
    after = table(tmp_path / "runs" / "other", "judge", "ratings")
    assert set(before["grade"]) <= set("SABCD")
    assert set(after["grade"]) <= {"yes", "no"}
    ran(tmp_path, "ledger", "check")
    ran(tmp_path, "run", "tiny.yaml")
    assert table(tmp_path / "runs" / "tiny", "judge", "ratings").equals(before)
    assert not pl.concat([before, after]).is_empty()
