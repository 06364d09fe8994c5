"""The judge stage by batches: several processes, retries, and what a kill leaves; every pair is paid once."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from select import select
from typing import Any

import pytest

from curate.core.config import Settings
from curate.core.errors import BudgetError, ProviderError
from curate.ledger import Ledger
from curate.llm.client.batch import judge_batches
from tests import vendor as fake
from tests.integration.ask.test_sharing import children
from tests.support.asking import script, sizes
from tests.support.batching import FAST
from tests.support.pools import QUERIES, pooled, said, step
from tests.support.trials import accepting, two_at_one_ledger
from tests.vendor import Call, Fault, Rules, Vendor, vendor

TEXTS = {f"d{n:02}": f"段落{n} {'SABCD'[n % 5]}" for n in range(20)}
EXPECTED = {(query_id, doc_id): text[-1] for query_id in QUERIES for doc_id, text in TEXTS.items()}
TWO: Settings = {"models": ["m"], "batch": 2}
ONE_QUERY = {"q1": QUERIES["q1"]}


def model(server: Vendor, **more: Any) -> dict[str, Settings]:
    return {
        "m": {
            "kind": "openai",
            "model": "m",
            "base_url": server.url,
            "timeout_s": 20.0,
            "batch": True,
            "vendor": "v",
            **more,
        }
    }


class Work:
    """How long batches take, and how often they are asked for."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        """A vendor that has many works until all but one are deleted."""
        self.seen: Counter[tuple[str, str]] = Counter()
        self.rules = Rules(steps=self.steps, trouble=lambda *asked: self.seen.update([asked]))

    @property
    def created(self) -> int:
        return self.seen["POST", "/batches"]

    @property
    def looks(self) -> int:
        return self.seen["GET", "/batches/batch_0"]


@contextmanager
def counting(faults: Callable[[Call], Fault | None], *, slow: bool = False) -> Iterator[tuple[Vendor, Work]]:
    """Run a vendor whose batches are there at the first look, or, if it is slow, once its `steps` are deleted."""
    work = Work()
    work.steps += ["in_progress"] * (10_000 if slow else 0)
    with vendor(script, faults, batches=work.rules) as server:
        yield server, work


def until(happened: Callable[[], bool], within_s: float = 300.0) -> None:
    end = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def waits(words: str, *processes: subprocess.Popen[str]) -> None:
    """Wait until one of the processes says that it waits for another; what else they say is passed over."""
    said = {each.stderr.fileno(): b"" for each in processes if each.stderr}
    while not any(words.encode() in each for each in said.values()):
        ready, _, _ = select(list(said), [], [], 300)
        pieces = {stream: os.read(stream, 65_536) for stream in ready}
        assert all(pieces.values()), said
        assert pieces, said
        said |= {stream: said[stream] + piece for stream, piece in pieces.items()}


def child(
    run: Path, ledger: Path | str, server: Vendor, settings: Settings = TWO, **more: str
) -> subprocess.Popen[str]:
    """Start a process that judges a run folder of its own."""
    pooled(run / "0", TEXTS)
    environment = {"CURATE_LEDGER": str(ledger), "LEASE_S": "60", **more}
    return children(run, 1, settings, model(server, concurrency=1), **environment)[0]


def all_paid_once(server: Vendor) -> bool:
    return set((server.paid + server.paid_in_batches).values()) == {1} and len(
        server.paid | server.paid_in_batches
    ) == len(EXPECTED)


@two_at_one_ledger
def test_two_processes_ask_one_judge_by_batches(place: Path | str, tmp_path: Path, killed: bool) -> None:
    with counting(lambda _call: None, slow=True) as (server, work):
        first = child(tmp_path / "first", place, server, BATCH="1")
        if killed:
            until(lambda: work.looks > 1)
        second = child(tmp_path / "second", place, server, BATCH="1")
        waits("judges.m: another process asks it by batches", *([second] if killed else [first, second]))
        if killed:
            first.send_signal(signal.SIGKILL)
            first.wait()
        before = work.looks
        until(lambda: work.looks > before + 1)
        del work.steps[1:]
        complaints = [each.communicate(timeout=120)[1] for each in (first, second)]
        assert [first.returncode, second.returncode] == [-signal.SIGKILL if killed else 0, 0], complaints
        assert (work.created, server.calls, all_paid_once(server)) == (1, [], True)
    with Ledger(place) as ledger:
        assert (ledger.count("calls"), ledger.count("ratings")) == (20, 40)
    for name in ("second",) if killed else ("first", "second"):
        assert said(tmp_path / name / "0", "m") == EXPECTED


@pytest.mark.parametrize("killed", [True, *accepting(False)], ids=["the batch is abandoned", "both finish"])
def test_who_asks_online_leaves_to_a_batch_what_is_in_it(tmp_path: Path, killed: bool) -> None:
    place = tmp_path / "ledger.db"

    def faults(_call: Call) -> Fault:
        """Leave something to the batch: all but the first two answers take long until it has begun."""
        return fake.slow(0.05 if work.looks or len(server.calls) < 2 else 3.0)

    with counting(faults, slow=True) as (server, work):
        online = child(tmp_path / "online", place, server, AT_ONCE="4")
        until(lambda: len(server.calls) > 1)
        batch = child(tmp_path / "batch", place, server, BATCH="1")
        until(lambda: work.looks > 1)
        if killed:
            batch.send_signal(signal.SIGKILL)
            batch.wait()
        else:
            waits("other processes are asking", online)
        del work.steps[1:]
        complaint = online.communicate(timeout=120)[1]
        batch.communicate(timeout=120)
        if killed:
            assert "collect them with `curate judge --batch`" in complaint
            batch = child(tmp_path / "last", place, server, BATCH="1")
            batch.communicate(timeout=120)
        assert (batch.returncode, online.returncode) == (0, 1 if killed else 0), complaint
        assert (work.created, all_paid_once(server)) == (1, True)
        assert len(server.calls) < 20
    assert said(tmp_path / ("last" if killed else "batch") / "0", "m") == EXPECTED


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_batches, "PollingPolicy", lambda: FAST)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("fault", [fake.refusal, fake.says("不知道")], ids=["refused", "unparsed"])
@pytest.mark.parametrize("size", [1, 2])
def test_a_retry_by_batch_asks_once(tmp_path: Path, fault: Fault, size: int) -> None:
    asked: Counter[str] = Counter()

    def faults(call: Call) -> Fault | None:
        poisoned = any("毒" in text for text in call.passages.values())
        asked.update(["poisoned"] if poisoned and len(call.passages) == 1 else [])
        return fault if poisoned else None

    run = pooled(tmp_path, {"d0": "段落 S", "d1": "毒 A"}, ONE_QUERY)
    with counting(faults) as (server, _work):
        for retry in (False, True, True):
            asked.clear()
            step(run, "judge", {**TWO, "batch": size}, model(server), yes=True, batch=True, retry=retry)
            assert (asked["poisoned"], server.calls) == (1, [])
        server.faults = lambda _call: None
        step(run, "judge", {**TWO, "batch": size}, model(server), yes=True, batch=True, retry=True)
    assert said(run, "m")["q1", "d1"] == "A"


@pytest.mark.usefixtures("fast")
def test_what_a_batch_did_not_answer_on_a_retry_is_asked_online(tmp_path: Path) -> None:
    run = pooled(tmp_path, {"d0": "段落 S", "d1": "毒 A"}, ONE_QUERY)
    with vendor(script, [None, fake.refusal], batches=Rules(steps=())) as server:
        step(run, "judge", {**TWO, "batch": 1}, model(server, concurrency=1), yes=True)
        assert "refused" in said(run, "m").values()
    with vendor(script, batches=Rules(steps=(), fate=lambda _call: "expired")) as server:
        step(run, "judge", {**TWO, "batch": 1}, model(server), yes=True, batch=True, retry=True)
        assert (sizes(server), "refused" in said(run, "m").values()) == ([1], False)


class Alone:
    """Refuse whatever holds several passages, and note how many each request holds."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, call: Call) -> Fault | None:
        self.sizes.append(len(call.passages))
        return fake.refusal if len(call.passages) > 1 else None


@pytest.mark.usefixtures("fast")
def test_what_gave_nothing_before_a_kill_is_not_asked_whole_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Alone()
    place = tmp_path / "ledger.db"
    monkeypatch.setenv("CURATE_LEDGER", str(place))
    with counting(alone) as (server, work):
        first = child(tmp_path / "run", place, server, BATCH="1", DIE="3")
        complaint = first.communicate(timeout=60)[1]
        assert first.returncode == -signal.SIGKILL, complaint
        step(tmp_path / "run" / "0", "judge", TWO, model(server), yes=True, batch=True)
        assert (work.created, Counter(alone.sizes)) == (2, {2: 20, 1: 40})
    assert said(tmp_path / "run" / "0", "m") == EXPECTED


def test_what_gave_nothing_in_batches_is_asked_online_in_smaller_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_batches, "PollingPolicy", lambda: replace(FAST, rounds=1))
    run = pooled(tmp_path, dict(list(TEXTS.items())[:4]), ONE_QUERY)
    with counting(Alone()) as (server, work):
        step(run, "judge", TWO, model(server), yes=True, batch=True)
        assert (work.created, sizes(server)) == (1, [1, 1, 1, 1])


def test_the_plan_knows_what_gave_nothing(tmp_path: Path) -> None:
    run = pooled(tmp_path, dict(list(TEXTS.items())[:2]), ONE_QUERY)
    with vendor(script, [fake.refusal, fake.error(402), fake.error(402)]) as server:
        with pytest.raises(ProviderError, match="402"):
            step(run, "judge", TWO, model(server, concurrency=1), yes=True)
        with pytest.raises(BudgetError, match="m: 2 calls"):
            step(run, "judge", TWO, model(server))
        del server.calls[:]
        step(run, "judge", TWO, model(server), yes=True)
        assert sizes(server) == [1, 1]
