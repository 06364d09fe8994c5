"""`curate.run` and `curate.plan`: as the commands do, in a running loop and threads, interrupted, with consent."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

import curate
from curate.core.errors import Interrupted
from tests import ROOT
from tests.support.runs import complaint, ran, tiny
from tests.vendor import Vendor, slow, vendor

PRICE = {"input": 10.0, "output": 100.0, "date": "2026-01-01", "currency": "EUR"}
CALLERS: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "in a running loop": lambda work: asyncio.run(_inside(work)),
    "in a thread": lambda work: ThreadPoolExecutor(1).submit(work).result(),
}


async def _inside(work: Callable[[], Any]) -> Any:
    return work()


@pytest.fixture
def server() -> Iterator[Vendor]:
    with vendor(lambda _query, passage: "S" if "咖啡" in passage else "D") as running:
        yield running


@pytest.fixture
def asked(tmp_path: Path, server: Vendor, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the tiny pipeline with a panel of one model that the server plays, in the working directory."""
    monkeypatch.chdir(tmp_path)
    judge = {"kind": "openai", "model": "m", "base_url": server.url, "price": PRICE}
    path = tmp_path / tiny(tmp_path)
    text = path.read_text("utf-8").replace("models: [lexical, strict]", "models: [m], allow_weak_judges: true")
    path.write_text(text.replace("judges:\n", f"judges:\n  m: {json.dumps(judge)}\n"), "utf-8")
    return path.name


def test_a_run_is_that_of_the_command(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parent.parent)
    told: list[str] = []
    steps: set[str] = set()
    mine = curate.run("tiny.yaml", run="runs/mine", tell=told.append, progress=lambda label, *_: steps.add(label))
    assert "pool: started" in told
    assert steps
    theirs = curate.open(tiny_run)
    for name in ("queries", "pool", "ratings", "verdicts", "labels"):
        assert_frame_equal(getattr(mine, name), getattr(theirs, name))
    told.clear()
    again = curate.run(run=Path("runs/mine"), tell=told.append)
    assert again == mine
    assert set(told[-9:]) == {f"{name}: up to date, skipped" for name in mine.status()["stage"]}


def test_settings_are_changed_as_by_set(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parent.parent)
    changed = {"pool.depth": 3, "pool": {"size": 4}, "ingest.source": Path("data"), "description": "x: [y"}
    run = curate.run("tiny.yaml", run="runs/other", settings=changed, stages=["ingest", "mask", "diversify", "pool"])
    assert run.settings["pool"] == {"retrievers": ["words", "pairs"], "depth": 3, "size": 4}
    assert run.settings["description"] == "x: [y"
    assert run.pool.group_by("query_id").len()["len"].max() == 4
    assert run.status()["state"].to_list().count("done") == 4
    with pytest.raises(curate.UserError, match=r"did you mean 'depth'"):
        curate.run("tiny.yaml", settings={"pool.dept": 3})
    with pytest.raises(curate.UserError, match="found object, expected text"):
        curate.run("tiny.yaml", settings={"pool.depth": object()})


def test_neither_pipeline_nor_run_is_an_error() -> None:
    with pytest.raises(curate.UserError, match="found neither a pipeline nor a run"):
        curate.run()
    with pytest.raises(curate.UserError, match=r"^max_cost: expected an amount"):
        curate.run("demo", max_cost="much")


def test_models_are_asked_with_consent_only(asked: str, server: Vendor) -> None:
    with pytest.raises(curate.ConsentNeeded) as caught:
        curate.run(asked)
    plan = caught.value.plan
    assert (plan.calls, plan.currency, len(server.calls)) == (5, "EUR", 0)
    assert "allow it with max_cost=AMOUNT, or with yes=True" in str(caught.value)
    assert "judging would send" in complaint(Path(), "run", asked, CURATE_HOME=os.environ["CURATE_HOME"])
    opened = curate.open("runs/tiny")
    assert opened.plan().cost == plan.cost == curate.plan(asked).cost
    assert opened.plan().frame.columns[0] == "judge"
    billed = curate.bill(asked)
    assert [(row.stage, row.calls) for row in billed.rows] == [("judge", 5)]
    assert (billed.currency, billed.unknown) == ("EUR", ())
    assert billed.most == pytest.approx(plan.cost, abs=1e-3)
    assert f"{plan.cost:.2f}" in plan._repr_html_()
    with pytest.raises(curate.UserError, match="the ledger lacks these answers"):
        curate.run(asked, offline=True)
    assert not server.calls
    run = curate.run(asked, max_cost="5EUR")
    assert len(server.calls) == 5
    assert 0 < run.spent["EUR"] < (plan.cost or 0)
    assert repr(run.plan()) == "CostPlan(nothing is left to send)"


@pytest.mark.parametrize("how", CALLERS)
def test_models_are_asked_wherever_the_call_is_made(asked: str, server: Vendor, how: str) -> None:
    run = CALLERS[how](lambda: curate.run(asked, yes=True))
    assert len(server.calls) == 5
    assert (run.ratings["status"] == "rated").all()


def test_ctrl_c_in_a_running_loop_keeps_what_was_paid(asked: str, server: Vendor) -> None:
    """As in a notebook: the models are asked in another thread, and the system may give the signal to that one."""
    pressed = threading.Event()
    server.faults = lambda _call: slow(0.5)  # longer than it takes to be heard

    def progress(_label: str, _total: int, _done: int, _money: str = "", /) -> None:
        if server.calls and not pressed.is_set():
            pressed.set()
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    async def cell() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as the kernel of a notebook does
        curate.run(asked, yes=True, settings={"judges.m.concurrency": 1}, progress=progress)

    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(Interrupted, match="the same command goes on from there"):
            asyncio.run(cell())
    finally:
        signal.signal(signal.SIGINT, before)
    paid = len(server.calls)
    assert 0 < paid < 5
    run = curate.run(asked, yes=True)
    assert len(server.calls) == 5
    assert run.status()["state"].unique().to_list() == ["done"]


def test_a_script_without_a_main_guard_begins_once(tmp_path: Path) -> None:
    """Processes that work for it are spawned, and would else run the script again."""
    lines = (
        "from functools import partial",
        "from operator import methodcaller",
        "from curate.system.processes import spread",
        "print('begun', list(spread(partial(methodcaller, 'upper'), [(1, 'a'), (2, 'b')], 2)))",
    )
    script = tmp_path / "mine.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "begun [(1, 'A'), (2, 'B')]\n"), done.stderr


def test_names_are_imported_when_they_are_used_and_nothing_of_the_commands() -> None:
    lines = (
        "import sys, curate",
        "print(sorted(name for name in sys.modules if name.startswith('curate.')))",
        "assert set(curate.__all__) <= set(dir(curate))",
        "assert all(getattr(curate, name) for name in ('run', 'plan', 'agree', 'audit', 'anonymise', 'open'))",
        "print([name for name in sys.modules if name.startswith(('curate.cli', 'typer', 'torch'))])",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


def test_the_plan_of_a_run_that_is_not_judged_yet_makes_no_ledger(asked: str, home: Path) -> None:
    with pytest.raises(curate.ConsentNeeded):
        curate.run(asked)
    shutil.rmtree(home)
    assert curate.open("runs/tiny").plan().calls == 5
    assert not home.exists() or not list(home.glob("ledger*"))


def test_a_plan_needs_a_stage_that_judges(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parent.parent)
    with pytest.raises(curate.UserError, match="its stages have no 'judge'"):
        curate.plan("tiny.yaml", settings={"stages": ["ingest", "mask"]})
    ran(Path(), "status", CURATE_HOME=os.environ["CURATE_HOME"])
