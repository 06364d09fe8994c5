"""The benchmarks still run: their figures are not looked at here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import million
from benchmarks.process_tree import DataLimit, measured
from curate.system.resources import demo
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


BIG = "import time; time.sleep(1); held = bytearray(200 << 20); held[::4096] = b'x' * len(held[::4096]); time.sleep(1)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BIG!r}], check=True)"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_a_tree_is_that_of_all_its_processes_and_the_system_refuses_more(tmp_path: Path) -> None:
    cost = measured([sys.executable, "-c", PARENT], tmp_path, os.environ, DataLimit(2**30, 2**30))
    assert cost.pss > cost.private > 200
    with pytest.raises(RuntimeError, match="MemoryError"):
        measured([sys.executable, "-c", BIG], tmp_path, os.environ, DataLimit(2**27, 1))


@pytest.mark.accept
@pytest.mark.parametrize("limit", [["--limit=6"], []])
def test_a_corpus_goes_from_ingest_to_report_and_leaves_its_figures(tmp_path: Path, limit: list[str]) -> None:
    figures, drawing = tmp_path / "figures.jsonl", tmp_path / "stages.svg"
    command = [sys.executable, "-m", "benchmarks.million", str(demo()), "--sizes", "300", "600", "--judged=5", *limit]
    command += [f"--figures={figures}", f"--picture={drawing}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in figures.read_text().splitlines()]
    assert {row["step"] for row in rows if row["documents"] == 300} == {*million.STEPS}
    assert all(row["cpu"] > 0 and row["pss"] > 0 for row in rows)
    assert ET.parse(drawing).getroot().tag.endswith("svg")
