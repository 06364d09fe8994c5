"""A working folder of version 0.1 goes on under this one: runs, ledger, exchange, pipelines, and sheets in flight."""

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.system.files import read_json
from tests import ROOT
from tests.support.runs import Done, curate
from tests.vendor import Vendor, vendor

ARCHIVE = ROOT / "tests" / "data" / "v0_1" / "work.tar.xz"
PORT = 18311
"""Where the judges of the archive are asked: an address is part of a judge. Below the ports that systems hand out."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack what 0.1 wrote, once."""
    folder = tmp_path_factory.mktemp("v0_1")
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    return folder / "work"


@pytest.fixture
def work(archive: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(archive, tmp_path / "work"))


def at_home(work: Path, *words: str) -> Done:
    return curate(work, *words, CURATE_HOME=str(work / ".curate"))


def good(work: Path, *words: str) -> str:
    done = at_home(work, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(lambda _query, passage: "S" if "少量" in passage else "D", port=PORT) as running:
        yield running


def labels(run: Path) -> dict[str, bytes]:
    """Return the files of the export that hold labels, by name; the names hold digests."""
    folders = ("mteb", "beir", "trec")
    found = [path for folder in folders for path in (run / "export" / folder).rglob("*") if "qrels" in str(path)]
    assert len(found) == 5
    return {str(path.relative_to(run)): path.read_bytes() for path in found if path.is_file()}


def test_a_finished_run_is_read(work: Path) -> None:
    assert "export" in good(work, "status", "--run", "runs/bench")
    assert "first" in good(work, "show", "ratings", "--run", "runs/bench")
    assert "kappa" in good(work, "agree", "--run", "runs/bench").lower()
    assert "recall" in good(work, "review", "report", "--run", "runs/bench")


def test_a_finished_run_is_run_again_without_a_call(work: Path) -> None:
    """What changed is redone from the sources; every answer lies in the ledger, so the labels are the same."""
    before = labels(work / "runs/bench")
    good(work, "run", "bench.yaml")
    assert labels(work / "runs/bench") == before
    assert "stale" not in good(work, "status", "--run", "runs/bench")


def test_sources_that_are_gone_are_named(work: Path) -> None:
    (work / "answers.jsonl").unlink()
    done = at_home(work, "run", "bench.yaml", "--force")
    assert done.returncode == 2
    assert "answers.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    good(work, "status", "--run", "runs/bench")


def test_a_run_that_stopped_in_front_of_its_cap_goes_on(work: Path, server: Vendor) -> None:
    """9 of the 106 ratings were paid before the cap, and asked in English of Chinese texts."""
    done = at_home(work, "run", "half.yaml", "--max-cost", "5")
    assert done.returncode == 2
    assert "--language en" in done.stderr
    good(work, "run", "half.yaml", "--max-cost", "5", "--set", "judge.language=en")
    assert sum(len(call.passages) for call in server.calls) == 2 * 53 - 9


def test_the_ledger_is_sound(work: Path) -> None:
    good(work, "ledger", "check")
    assert good(work, "ledger", "stats").count("ratings: 53 rated") == 3


def test_an_exchange_fills_an_empty_ledger(work: Path) -> None:
    before = labels(work / "runs/bench")
    (work / ".curate/ledger.db").unlink()
    good(work, "ledger", "import", "exchange")
    good(work, "run", "bench.yaml", "--force")
    assert labels(work / "runs/bench") == before


def test_a_sheet_in_flight_comes_back(work: Path) -> None:
    """wang's answers were imported by 0.1; li's sheet was out while the program changed, and the run was redone."""
    good(work, "run", "bench.yaml")
    assert "answers" in good(work, "review", "import", "returned/li.csv", "--run", "runs/bench")
    report = good(work, "review", "report", "--run", "runs/bench")
    assert "wang" in report
    assert "li" in report
    good(work, "resolve", "--run", "runs/bench", "--set", "resolve.policy=expert-over-panel")


def test_the_sheet_of_the_privacy_check_comes_back(work: Path) -> None:
    good(work, "check", "mask", "returned/mask.csv", "--run", "runs/bench")
    assert read_json(work / "runs/bench/checks/mask.json")


def test_an_export_is_verified(work: Path) -> None:
    done = at_home(work, "verify", "runs/bench/export")
    assert (done.returncode, done.stdout.count("not checked: the READMEs, for another version")) == (3, 1), done.stdout


def test_an_audit_is_made_again_from_its_run(work: Path) -> None:
    before = (work / "runs/audit-legacy/audit/patch.tsv").read_bytes()
    good(work, "audit", "--run", "runs/audit-legacy")
    assert (work / "runs/audit-legacy/audit/patch.tsv").read_bytes() == before
