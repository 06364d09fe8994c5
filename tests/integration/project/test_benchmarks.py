"""The benchmarks still run: their figures are not looked at here."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests import ROOT


@pytest.mark.parametrize("name", ["sockets", "curate", "aiohttp"])
def test_a_contender_ends_with_its_row_in_the_table(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks.judge_engine", "--calls=20", "--latency=0.01", "--repeats=1"]
    done = subprocess.run([*command, "--only", name], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert rows
    assert all(float(row.split("|")[3].replace(",", "")) > 0 for row in rows)


def test_pools_and_growth_end_with_a_row_for_every_step(tmp_path: Path) -> None:
    drawing = tmp_path / "growth.svg"
    growth = ["benchmarks.growth", "--sizes", "300", "600", "--queries=5", f"--picture={drawing}"]
    for module, last in (
        (["benchmarks.pool", "--documents=300", "--queries=5"], "| together | "),
        (growth, "| searching, a dense retriever | "),
    ):
        done = subprocess.run([sys.executable, "-m", *module], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].startswith(last)
    assert ET.parse(drawing).getroot().tag.endswith("svg")
