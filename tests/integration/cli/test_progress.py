"""Progress as users and machines see it: on a terminal, in a log, as JSON lines, and not at all."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from curate.core.progress import WORKING
from curate.pipeline import stages
from curate.pipeline.pipeline import Pipeline
from curate.runs.runner import Run
from tests.support.runs import complaint, ran, tiny

RUN = ("run", "tiny.yaml", "--run", "runs/t")
STEP = """\
import sys, time
from curate.view.progress import bars
from curate.core.progress import StepLabel
with bars() as (progress, tell):
    tell("begins")
    for done in range({steps}):
        progress(StepLabel("encoding documents, e5", "texts", "pool"), 1000, done)
        time.sleep(0.05)
    tell("ends")
print("after", flush=True)
"""
SHOW, HIDE, UP, ERASE = "\x1b[?25h", "\x1b[?25l", "\x1b[1A", "\x1b[2K"


@contextmanager
def on_terminal(steps: int, columns: int = 80, **variables: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run a program with a step in a terminal of its own while the block lasts."""
    ours, theirs = pty.openpty()
    base = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "FORCE_COLOR")}
    environment = {**base, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "24", **variables}
    command = [sys.executable, "-c", STEP.format(steps=steps)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def screen(terminal: int, until: str = "", seconds: float = 30.0) -> str:
    """Return what a terminal was sent, up to a text or the end of the program."""
    said, end = b"", time.monotonic() + seconds
    while time.monotonic() < end and (not until or until not in said.decode("utf-8", "replace")):
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            more = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        if not more:
            break
        said += more
    return said.decode("utf-8", "replace")


def test_a_terminal_has_a_bar_that_is_gone_in_the_end() -> None:
    with on_terminal(45, 110) as (process, terminal):
        said = screen(terminal)
        assert process.wait(10) == 0
    first, _, _ = said.partition("━")
    assert "begins" in first
    assert re.search(r"pool: encoding documents, e5.*\d+ of 1,000 texts +\d+/s +about \d+ s left", said)
    left = said.rpartition("━")[2]
    assert left.count(UP + ERASE) == 2, "the line of the bar and the one below it are taken off the screen"
    assert left.rstrip().endswith("after")
    assert said.count(SHOW) >= said.count(HIDE)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_process_leaves_the_cursor_to_the_shell(how: signal.Signals) -> None:
    with on_terminal(10_000) as (process, terminal):
        said = screen(terminal, "/s")
        process.send_signal(how)
        process.wait(10)
        said += screen(terminal, seconds=1)
    assert "━" in said
    assert said.rindex(SHOW) > said.rfind(HIDE), "it is not hidden while bars are drawn"
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)
    assert shown.endswith("\n"), "the prompt of the shell begins a line"


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("CI", "1")])
def test_a_terminal_that_cannot_draw_gets_plain_lines(name: str, value: str) -> None:
    with on_terminal(30, 80, **{name: value}) as (_, terminal):
        assert screen(terminal).split() == ["begins", "ends", "after"]


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the events of a whole run."""
    folder = tmp_path_factory.mktemp("told")
    tiny(folder)
    done = ran(folder, *RUN, "--json-lines")
    assert "started" not in done.stderr
    return events(done.stdout)


def test_json_lines_tell_news_and_end_with_the_result(told: list[dict[str, Any]]) -> None:
    assert {each["event"] for each in told} == {"progress", "line", "result"}
    assert next(each["text"] for each in told if each["event"] == "line") == "ingest: started"
    assert [each["event"] for each in told].index("result") == len(told) - 1
    result = told[-1]
    assert (result["run_folder"], result["benchmark"]) == ("runs/t", "runs/t/export")
    assert result["report"] == "runs/t/report.html"
    assert result["summary"][0].startswith("queries: 5 of 5")


def test_progress_events_say_stage_label_unit_and_how_far(told: list[dict[str, Any]]) -> None:
    steps = [each for each in told if each["event"] == "progress"]
    keys = {"event", "stage", "label", "unit", "done", "total", "rate", "seconds_left", "cost"}
    assert all(each.keys() == keys for each in steps)
    rated = [each for each in steps if each["label"] == "rating, lexical"][-1]
    assert (rated["stage"], rated["unit"], rated["done"], rated["total"]) == ("judge", "pairs", 40, 40)


def test_every_stage_says_how_far_it_is_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    work = Run(Path("runs/t"), Pipeline.load(Path(tiny(tmp_path))))
    said: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)

    def note(label: str, total: int, done: int, _money: str = "") -> None:
        said[getattr(label, "stage", ""), str(label)].append((total, done))

    work.progress = note
    work.execute()
    for (stage, label), steps in said.items():
        assert steps[-1][0] == steps[-1][1], f"{stage}: {label} ends at its total"
        for (whole, before), (total, done) in pairwise(steps):
            assert done >= before or before == whole, f"{stage}: {label} goes back, and has not ended"
            assert done <= total
    exact = {stage for stage, label in said if label != WORKING}
    assert exact >= {"ingest", "mask", "pool", "judge", "consensus", "export", "report"}
    assert {stage for stage, _ in said} == {"", *(name for name in stages.NAMES if name in work.pipeline.head.stages)}


def test_quiet_prints_results_and_errors_alone(tmp_path: Path) -> None:
    tiny(tmp_path)
    ingest = ("ingest", "--pipeline", "tiny.yaml", "--run", "runs/t", "--quiet")
    done = ran(tmp_path, *ingest)
    assert done.stderr == "language: zh, detected in the texts\n"
    assert done.stdout == "run folder: runs/t\n"
    assert "mask.nonsense" in complaint(tmp_path, *ingest, "--set", "mask.nonsense=1")


def test_anonymise_counts_as_the_last_event(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("call 13800138000\n" * 3)
    done = ran(tmp_path, "anonymise", "in.txt", "out.txt", "--json-lines")
    *steps, result = events(done.stdout)
    assert [each["done"] for each in steps][-1] == (tmp_path / "in.txt").stat().st_size
    assert (result["event"], result["out"], result["texts"], result["changed"]) == ("result", "out.txt", 3, 3)
    said = complaint(tmp_path, "anonymise", "in.txt", "-", "--json-lines")
    assert "give a file for OUT" in said
