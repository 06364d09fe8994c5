"""Finished runs of version 0.2 stay as they are under this one: nothing is stale, remade or asked again."""

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("run", RUNS)
def test_a_finished_run_is_up_to_date(work: Path, run: str) -> None:
    rows = [line.split() for line in good(work, "status", "--run", f"runs/{run}").splitlines()]
    states = [row[1] for row in rows if len(row) == 8]
    assert "stale" not in states
    assert states.count("done") >= 7


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
