"""The benchmark of the judge engine still runs: its figures are not looked at here."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sockets", "curate", "aiohttp"])
def test_a_contender_ends_with_its_row_in_the_table(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks.judge_engine", "--calls=20", "--latency=0.01", "--repeats=1"]
    done = subprocess.run([*command, "--only", name], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert rows
    assert all(float(row.split("|")[3].replace(",", "")) > 0 for row in rows)
