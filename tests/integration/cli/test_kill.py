"""Kill -9 around every step on disk and at random times: the same command finishes; nothing is lost or done twice."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curate.system.files import digests
from tests import ROOT
from tests.support.runs import started, tiny

KILLER = ROOT / "tests/support/killer.py"
RUN = ("run", "tiny.yaml", "--run", "runs/t")
UNIQUE = "SELECT count(*), count(DISTINCT query_digest || passage_digest || judge_digest || rubric_digest) FROM ratings"


def killed(folder: Path, when: str, step: int) -> int:
    environment = {**os.environ, "CURATE_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(KILLER), when, str(step), *RUN]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


def exported(folder: Path) -> dict[str, str]:
    found = digests(folder / "runs" / "t" / "export")
    return {path: digest for path, digest in found.items() if path != "stage.json"}


def check_ledger(folder: Path) -> None:
    with sqlite3.connect(folder / "home" / "ledger.db") as ledger:
        rows, different = ledger.execute(UNIQUE).fetchone()
    ledger.close()
    assert rows == different > 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    folder = tmp_path_factory.mktemp("undisturbed")
    tiny(folder)
    assert killed(folder, "before", 0) == 0
    return exported(folder), int((folder / "steps.txt").read_text())


def points() -> Iterator[Any]:
    """Every part of the run, before and after a step, as shares of the number of steps: `make accept` has all ten."""
    for fifth in range(5):
        rare = () if fifth == 2 else (pytest.mark.accept,)
        yield pytest.param("before", (fifth + 0.25) / 5, marks=rare)
        yield pytest.param("after", (fifth + 0.75) / 5, marks=rare)


@pytest.mark.parametrize(("when", "share"), list(points()))
def test_killed_around_a_step(tmp_path: Path, undisturbed: tuple[dict[str, str], int], when: str, share: float) -> None:
    expected, steps = undisturbed
    tiny(tmp_path)
    assert killed(tmp_path, when, 1 + int(share * steps)) == -signal.SIGKILL
    again = started(tmp_path, *RUN)
    assert again.returncode == 0, again.stderr
    assert exported(tmp_path) == expected
    check_ledger(tmp_path)


@pytest.mark.accept
def test_killed_at_random_times_again_and_again(tmp_path: Path, undisturbed: tuple[dict[str, str], int]) -> None:
    expected, _ = undisturbed
    tiny(tmp_path)
    chance = random.Random(11)
    environment = {**os.environ, "CURATE_HOME": str(tmp_path / "home")}
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-m", "curate", *RUN], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(0.5, 4.0))
        process.kill()
        process.wait()
    again = started(tmp_path, *RUN)
    assert again.returncode == 0, again.stderr
    assert exported(tmp_path) == expected
    check_ledger(tmp_path)


def test_two_runs_of_one_pipeline_are_byte_identical(tmp_path: Path, undisturbed: tuple[dict[str, str], int]) -> None:
    tiny(tmp_path)
    started(tmp_path, *RUN)
    assert exported(tmp_path) == undisturbed[0]


def test_raw_text_is_deleted_after_mask_even_if_the_run_was_killed_in_between(tmp_path: Path) -> None:
    tiny(tmp_path)
    started(tmp_path, "ingest", "--pipeline", "tiny.yaml", "--run", "runs/t")
    raw = tmp_path / "runs/t/ingest/corpus.parquet"
    assert raw.exists()
    assert raw.parent.stat().st_mode & 0o077 == 0
    started(tmp_path, "mask", "--run", "runs/t")
    assert not raw.exists()
    forced = started(tmp_path, "mask", "--run", "runs/t", "--force")
    assert forced.returncode == 0, forced.stderr
    assert not raw.exists()
