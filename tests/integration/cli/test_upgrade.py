"""The ledger of version 0.1 goes on under this one: what it paid for is never paid again. Its runs are made anew."""

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.runs import Done, curate
from tests.vendor import Vendor, vendor

ARCHIVE = ROOT / "tests" / "data" / "v0_1" / "work.tar.xz"
SMALL = ("--set", "export.small=true")
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
    """Return a working folder with sources, pipelines, ledger and exchange of 0.1, and its runs in `runs-of-0.1`."""
    folder = Path(shutil.copytree(archive, tmp_path / "work"))
    (folder / "runs").rename(folder / "runs-of-0.1")
    return folder


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
    paths = [path for folder in folders for path in (run / "export" / folder).rglob("*") if "qrels" in str(path)]
    assert len(paths) == 5
    return {str(path.relative_to(run)): path.read_bytes() for path in paths if path.is_file()}


def test_a_new_run_needs_no_call(work: Path) -> None:
    """No judge answers: every rating lies in the ledger, so the labels are those of 0.1."""
    good(work, "run", "bench.yaml", "--run", "runs/bench", *SMALL)
    assert labels(work / "runs/bench") == labels(work / "runs-of-0.1/bench")


def test_what_was_paid_in_front_of_a_cap_is_not_paid_again(work: Path, server: Vendor) -> None:
    """9 of the 106 ratings were paid before the cap, and asked in English of Chinese texts."""
    good(work, "run", "half.yaml", "--run", "runs/half", "--max-cost", "5", "--set", "judge.language=en", *SMALL)
    assert sum(len(call.passages) for call in server.calls) == 2 * 53 - 9


def test_the_ledger_is_sound(work: Path) -> None:
    good(work, "ledger", "check")
    assert good(work, "ledger", "stats").count("ratings: 53 rated") == 3


def test_an_exchange_fills_an_empty_ledger(work: Path) -> None:
    (work / ".curate/ledger.db").unlink()
    good(work, "ledger", "import", "exchange")
    good(work, "run", "bench.yaml", "--run", "runs/bench", *SMALL)
    assert labels(work / "runs/bench") == labels(work / "runs-of-0.1/bench")
