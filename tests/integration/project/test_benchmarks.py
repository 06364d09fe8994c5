"""The benchmarks still run: their figures are not looked at here."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from benchmarks import diversify, engine, gpu, gpu_checks, judge_engine, million, search, vectors
from benchmarks.process_tree import DataLimit, measured
from curate.system.resources import demo
from tests import ROOT


def test_a_run_ends_with_its_rows_in_the_table() -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.judge_engine",
        "--calls=20",
        "--latency=0.01",
        "--repeats=1",
        "--again=0",
    ]
    done = subprocess.run([*command, "--only=sockets"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 3
    assert all(float(row.split("|")[3].replace(",", "")) > 0 for row in rows)


@pytest.mark.parametrize("name", ["curate", "aiohttp"])
def test_a_contender_is_answered(name: str, tmp_path: Path) -> None:
    engine.prompts(20, tmp_path / "prompts.jsonl")
    row = next(row for row in judge_engine.ROWS if row.name == name)
    figures = judge_engine.measure(row, Path(sys.executable), tmp_path / "prompts.jsonl", 20, 0.01)
    assert min(figures["rate"], figures["open"], figures["cpu"]) > 0


@pytest.mark.accept
def test_pools_and_growth_end_with_a_row_for_every_step(tmp_path: Path) -> None:
    drawing = tmp_path / "growth.svg"
    growth = ["benchmarks.growth", "--sizes", "300", "600", "--queries=5", f"--picture={drawing}"]
    for module, last in (
        (["benchmarks.pool", "--documents=300", "--queries=5"], "| together | "),
        (growth, "| searching, a dense retriever | "),
    ):
        done = subprocess.run([sys.executable, "-m", *module], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().splitlines()[-1].startswith(last)
    assert ET.parse(drawing).getroot().tag.endswith("svg")


def test_pages_of_a_run_end_with_a_row_each() -> None:
    sizes = ["--documents", "300", "600", "--queries=5", "--pool=10"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.view", *sizes], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = {line.split("|")[1].strip(): line for line in done.stdout.splitlines() if line.startswith("| ")}
    assert {"first start", "later start", "a pair", "search, two words"} <= rows.keys()
    assert "anonymous" in done.stdout


def test_the_answers_that_search_is_held_against_are_the_literal_ones(tmp_path: Path) -> None:
    documents = vectors.clusters(700, 3, 0.001)
    documents[600:] = documents[:100]
    queries = vectors.asked(documents, 5)
    for query, found in zip(queries, search.exact(queries, documents), strict=True):
        products = [-float(np.sum(query.astype(np.float64) * row)) for row in documents]
        assert sorted(found.tolist()) == sorted(np.lexsort((range(700), products))[: search.K].tolist())
    for name, each in (
        ("queries", queries),
        ("documents", documents),
        ("exact", list(search.exact(queries, documents))),
    ):
        np.save(tmp_path / f"{name}.npy", each)
    assert [search.measure(name, tmp_path)["other"] for name in (search.OURS, search.FAISS)] == [0, 5]


def test_decisions_of_the_contenders_are_compared(tmp_path: Path) -> None:
    items = vectors.near_duplicates(300)
    (tmp_path / "t.json").write_text(json.dumps(diversify.T))
    found = {name: measure(tmp_path, items) for name, measure in list(diversify.CONTENDERS.items())[:4]}
    assert [figures.get("other") for figures in found.values()] == [0, 0, None, 0]
    assert 0 < found[diversify.CHOSEN]["kept"] < 300
    assert all(figures["wall"] > 0 for figures in found.values())


BIG = "import time; time.sleep(1); held = bytearray(200 << 20); held[::4096] = b'x' * len(held[::4096]); time.sleep(1)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BIG!r}], check=True)"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_a_tree_is_that_of_all_its_processes_and_the_system_refuses_more(tmp_path: Path) -> None:
    cost = measured([sys.executable, "-c", PARENT], tmp_path, os.environ, DataLimit(2**30, 2**30))
    assert cost.pss > cost.private > 200
    with pytest.raises(RuntimeError, match="MemoryError"):
        measured([sys.executable, "-c", BIG], tmp_path, os.environ, DataLimit(2**27, 1))


def test_every_check_of_a_gpu_has_its_rows_on_the_processor() -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--dry-run"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert list(dict.fromkeys(row[0].removeprefix("| ") for row in rows)) == [*gpu_checks.CHECKS]
    assert all(len(row) == len(gpu.HEADS) for row in rows)


def test_a_failed_check_of_a_gpu_is_shown_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(_bench: gpu_checks.Bench) -> Iterator[list[str]]:
        yield ["first half", "1 s", "2 s", "equal"]
        raise RuntimeError("3 of 4 differ | by much")

    monkeypatch.setattr(gpu_checks, "CHECKS", {"halves": wrong, "thinning": gpu_checks.thinning})
    monkeypatch.setattr(gpu, "prepare", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu", "--dry-run"])
    with pytest.raises(SystemExit, match="failed: halves"):
        gpu.main()
    printed = capsys.readouterr()
    assert "| halves |  |  |  | failed: RuntimeError: 3 of 4 differ / by much |" in printed.out
    assert [line.split(" | ")[0] for line in printed.out.splitlines()[-4:-1]] == ["| halves", "| halves", "| thinning"]
    assert "Traceback" in printed.err


def test_without_a_device_nothing_is_checked_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gpu, "prepare", lambda: None)
    monkeypatch.setattr(sys, "argv", ["gpu", "--write"])
    gpu.main()
    assert capsys.readouterr().out == f"skipped: torch {torch.__version__} finds no CUDA device\n"


@pytest.mark.accept
def test_a_corpus_goes_from_ingest_to_report_and_leaves_its_figures(tmp_path: Path) -> None:
    figures, drawing = tmp_path / "figures.jsonl", tmp_path / "stages.svg"
    command = [sys.executable, "-m", "benchmarks.million", str(demo()), "--sizes", "300", "600", "--judged=5"]
    command += ["--limit=6", f"--figures={figures}", f"--picture={drawing}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in figures.read_text().splitlines()]
    assert {row["step"] for row in rows if row["documents"] == 300} == {*million.STEPS}
    assert all(row["cpu"] > 0 and row["pss"] > 0 for row in rows)
    assert ET.parse(drawing).getroot().tag.endswith("svg")
