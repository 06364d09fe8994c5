"""Finished runs of version 0.2 stay as they are under this one: nothing is stale, remade or asked again."""

import csv
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curate.system.files import read_json, write_json
from tests import ROOT
from tests.support.runs import curate
from tests.vendor import Vendor, vendor

ARCHIVE = ROOT / "tests" / "data" / "v0_2" / "work.tar.xz"
PORT = 18312
"""Where the judges of the archive were asked: an address is part of a judge. Below the ports that systems hand out."""
RUNS = ("bench", "replay", "audit-data")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("v0_2")
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    return folder / "work"


@pytest.fixture
def work(archive: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(archive, tmp_path / "work"))


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(lambda _query, _passage: "D", port=PORT) as running:
        yield running


def good(work: Path, *words: str) -> str:
    done = curate(work, *words, CURATE_HOME=str(work / ".curate"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables(run: Path) -> dict[str, bytes]:
    """Return every table and done-mark of a run, by its path."""
    paths = [*run.rglob("*.parquet"), *run.rglob("stage.json"), *run.rglob("*.tsv")]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


def states(work: Path, run: str) -> list[str]:
    """Return the states of the stages, as `status` prints them."""
    rows = [line.split() for line in good(work, "status", "--run", f"runs/{run}").splitlines()]
    return [row[1] for row in rows[1:] if len(row) == 8]


@pytest.mark.parametrize("run", RUNS)
def test_a_finished_run_is_up_to_date(work: Path, run: str) -> None:
    assert "stale" not in states(work, run)
    assert states(work, run).count("done") >= 7


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("bench", ["run", "bench.yaml"]),
        ("bench", ["run", "runs/bench/pipeline.yaml", "--run", "runs/bench"]),
        ("replay", ["run", "runs/replay/pipeline.yaml", "--run", "runs/replay"]),
        ("audit-data", ["audit", "--run", "runs/audit-data"]),
    ],
)
def test_a_finished_run_that_is_run_again_asks_and_remakes_nothing(
    work: Path, server: Vendor, run: str, words: list[str]
) -> None:
    before = tables(work / "runs" / run)
    good(work, *words)
    assert server.calls == []
    assert tables(work / "runs" / run) == before


def answered(sheet: Path, grade: str) -> None:
    """Fill in a sheet: every row gets the same grade."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        head, *rows = csv.reader(stream)
    with sheet.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream).writerows([head, *([*row[:3], grade, *row[4:]] for row in rows)])


def test_a_sample_without_answers_changes_nothing_and_answers_lead_on(work: Path) -> None:
    """A report shows what is out of date and says so; both commands that follow an import run."""
    good(work, "review", "export", "--run", "runs/bench", "--size", "20", "--assessors", "wang,li", "--overlap", "0")
    assert states(work, "bench").count("stale") == 0
    sheet = work / "runs/bench/reviews/expert/sheets/wang.csv"
    answered(sheet, "A")
    said = good(work, "review", "import", str(sheet), "--run", "runs/bench")
    commands = [line.partition(": ")[2] for line in said.splitlines() if ": curate run " in line]
    assert len(commands) == 2
    assert "    8 labels become what people say" in said
    assert "stale" in states(work, "bench")
    good(work, "report", "--run", "runs/bench")
    page = (work / "runs/bench/report.html").read_text(encoding="utf-8")
    assert "Some of this is out of date" in page
    for command in commands:
        good(work, *shlex.split(command)[1:])
        assert "stale" not in states(work, "bench")
        assert "Some of this is out of date" not in (work / "runs/bench/report.html").read_text(encoding="utf-8")
    changed = pl.read_parquet(work / "runs/bench/resolve/overrides.parquet")
    assert len(changed) == 8


def test_answers_to_an_audit_lead_back_to_the_audit(work: Path) -> None:
    good(work, "review", "export", "--of", "audit", "--run", "runs/audit-data", "--size", "30", "--assessors", "wang")
    [sheet] = (work / "runs/audit-data/reviews").rglob("wang.csv")
    answered(sheet, "D")
    said = good(work, "review", "import", str(sheet), "--run", "runs/audit-data")
    assert said.splitlines()[1:3] == ["next: curate audit --run runs/audit-data", "    the audit with these answers"]
    good(work, "audit", "--run", "runs/audit-data")


def test_a_table_of_another_schema_is_made_again(work: Path) -> None:
    """A mark of before names no schemas, which is no difference; one that names another is."""
    path = work / "runs/replay/resolve/stage.json"
    mark = read_json(path)
    assert "schemas" not in mark["made_from"]
    mark["made_from"]["schemas"] = {"verdicts": "another", "overrides": "x", "qrels": "x", "dropped": "x"}
    write_json(path, mark)
    assert "stale" in states(work, "replay")
    good(work, "run", "runs/replay/pipeline.yaml", "--run", "runs/replay")
    assert read_json(path)["made_from"]["schemas"].keys() == {"verdicts", "overrides", "qrels", "dropped"}
    assert "stale" not in states(work, "replay")
