"""Several processes judge one pool: every pair is rated once a judge, and who is killed is followed."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from curate.ask import engine
from curate.ask.engine import Share, rest
from curate.ask.rating import Key, Work, prompts, tasks
from curate.core.config import Settings
from curate.core.records import Query
from curate.ledger import Ledger
from curate.ledger.claims import Claims
from curate.llm import client
from curate.system.processes import owner
from tests import ROOT
from tests import vendor as fake
from tests.support.asking import FAST, job, judged, key, llm, order, paid_twice, passages, script
from tests.support.pools import QUERIES, pooled, said
from tests.support.rows import locked
from tests.support.trials import two_at_one_ledger
from tests.vendor import Call, vendor

CHILD = ROOT / "tests/support/judge_child.py"
KEY = Key("judge", "rubric")


def cut(grades: str, query: str = "问题") -> list[Work]:
    documents = passages(grades)
    return prompts(Query("q1", query), documents, 2, {each.doc_id for each in documents})


@pytest.fixture
def shares(ledger: Ledger) -> Iterator[list[Share[Work]]]:
    with Claims(ledger, "one", 60) as first, Claims(ledger, "two", 60) as second:
        yield [Share(order(ledger, cut("SABCDS"), KEY), claims) for claims in (first, second)]


def test_what_one_has_claimed_is_elsewhere_for_the_other(shares: list[Share[Work]]) -> None:
    one, two = shares
    assert len(list(one)) == 3
    assert list(two) == []
    assert len(two.elsewhere) == 3


def test_what_was_rated_meanwhile_is_not_asked_again(ledger: Ledger, shares: list[Share[Work]]) -> None:
    one, two = shares
    with vendor(script) as server:
        judged(server, ledger, cut("SABCDS")[:1])
        found = [replace(share, order=order(ledger, cut("SABCDS"), key(server))) for share in (one, two)]
    assert [len(each.passages) for each in found[0]] == [2, 2]
    assert (list(found[1]), len(found[1].elsewhere)) == ([], 3)


def test_the_rest_comes_once_the_others_are_done(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PAUSE_S", 0.0)
    told: list[str] = []
    work = cut("SABCDS")
    with Claims(ledger, "two", 60) as second:
        mine = Share(order(ledger, work, KEY), second)
        with Claims(ledger, "one", 60) as first:
            first.take([mine._name(each.place) for each in work[:2]])
            assert list(mine) == work[2:]
            [mine] = rest([mine], told.append)
            assert list(mine) == []
        [mine] = rest([mine], told.append)
        assert list(mine) == work[:2]
        assert rest([mine], told.append) == []
    [line] = told
    assert "asking 2 of these prompts" in line


def test_the_claims_of_a_dead_process_are_free_at_once(ledger: Ledger) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mine, alive, elsewhere = owner(), owner(), f"elsewhere:{gone.pid}:0"
    dead = mine.replace(f":{os.getpid()}:", f":{gone.pid}:")
    for number, each in enumerate((dead, alive, elsewhere)):
        Claims(ledger, each, 60).take([f"k{number}"])
    with Claims(ledger, mine, 60) as claims:
        engine.bury(claims)
        assert claims.take(["k0", "k1", "k2"]) == {"k0"}


def test_the_claims_of_another_container_are_left_alone(ledger: Ledger) -> None:
    """It has the same host name, and process ids of its own: that such a process is not here says nothing."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mine = owner()
    dead = mine.replace(f":{os.getpid()}:", f":{gone.pid}:")
    boot, space = Path("/proc/sys/kernel/random/boot_id").read_text().strip(), str(Path("/proc/self/ns/pid").readlink())
    owners = [dead.replace(space, "pid:[1]"), dead.replace(boot, "another"), dead]
    for number, each in enumerate(owners):
        Claims(ledger, each, 60).take([f"k{number}"])
    with Claims(ledger, mine, 60) as claims:
        engine.bury(claims)
        assert claims.owners() == set(owners[:2])


def test_what_others_took_over_during_a_sleep_is_not_sent(ledger: Ledger) -> None:
    """The lease passes while the first request is under way, and another process claims the rest."""
    now, work = [1_000.0], cut("SABCDS")
    one, two = (Claims(ledger, name, 60, lambda: now[0]) for name in ("one", "two"))
    mine = Share(order(ledger, work, KEY), one)

    def slept(_call: Call) -> None:
        now[0] += 100
        assert len(two.take([mine._name(each.place) for each in work])) == 3

    with vendor(script, slept) as server:
        judge, asked = llm(server)
        account = client.Account(**vars(KEY))
        limits = client.RequestLimits(concurrency=1)
        client.ask([client.Job("m", tasks(judge, mine, KEY), asked, account, limits, ours=mine.keeps)], ledger)
    assert len(server.calls) == ledger.count("calls") == 1
    assert mine.elsewhere == work[1:]


@contextmanager
def locked_until(path: Path, seen: Callable[[], bool]) -> Iterator[list[bool]]:
    """Keep a SQLite file locked until something is seen, for ten seconds at most; give whether it was."""
    told: list[bool] = []

    def watch(connection: sqlite3.Connection) -> None:
        until = time.monotonic() + 120
        while not seen() and time.monotonic() < until:
            time.sleep(0.01)
        told.append(seen())
        connection.rollback()

    with locked(path) as connection:
        watching = threading.Thread(target=watch, args=[connection])
        watching.start()
        yield told
        watching.join()


def test_a_lane_that_waits_for_its_claims_keeps_no_other_waiting(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger, vendor(script) as server, Claims(ledger, "one", 60) as claims:
        judge, asked = llm(server, model="m-2")
        mine = Share(order(ledger, cut("SABCDS"), KEY), claims)
        first = client.Job("m", tasks(judge, mine, KEY), asked, client.Account("judge"), FAST, ours=mine.keeps)
        with locked_until(ledger.path, lambda: len(server.calls) >= 4) as told:
            client.ask([first, job(server, cut("S" * 20))], ledger)
        assert told == [True]
        assert ledger.count("ratings") == 26


def test_claims_that_wait_to_be_renewed_keep_nobody_waiting(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger, vendor(script) as server, Claims(ledger, "one", 60) as claims:
        limits = replace(FAST, concurrency=30, requests_per_minute=30, minute_s=1.2)  # three at once
        with locked_until(ledger.path, lambda: len(server.calls) >= 9) as told:
            client.ask([job(server, cut("S" * 60), limits)], ledger, beat=(0.05, claims.renew))
        assert told == [True]
        assert ledger.count("ratings") == 60


def children(
    run: Path, runs: int, settings: Settings, judges: dict[str, Settings], **more: str
) -> list[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return [
        subprocess.Popen(
            [sys.executable, str(CHILD), str(run / str(number)), json.dumps(settings), json.dumps(judges)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(runs)
    ]


@two_at_one_ledger
def test_two_processes_judge_one_pool(place: Path | str, tmp_path: Path, killed: bool) -> None:
    """Two run folders with the same pool, two connections to one ledger: SQLite, and PostgreSQL."""
    texts = {f"d{n:03}": f"段落{n} {'SABCD'[n % 5]}" for n in range(40)}
    for number in range(2):
        pooled(tmp_path / str(number), texts)
    with vendor(script, lambda _call: fake.slow(0.05)) as server:
        judges: dict[str, Settings] = {
            name: {"kind": "openai", "model": name, "base_url": server.url, "timeout_s": 20.0, "concurrency": 4}
            for name in ("m", "n")
        }
        settings: Settings = {"models": ["m", "n"], "batch": 2}
        first, second = children(tmp_path, 2, settings, judges, CURATE_LEDGER=str(place), LEASE_S="30", AT_ONCE="8")
        while killed and len(server.calls) < 30:
            time.sleep(0.01)
        if killed:
            first.send_signal(signal.SIGKILL)
        complaints = [each.communicate(timeout=120)[1] for each in (first, second)]
    assert second.returncode == 0, complaints[1]
    assert first.returncode == (-signal.SIGKILL if killed else 0), complaints[0]
    everything = {(name, query, text) for name in judges for query in QUERIES.values() for text in texts.values()}
    assert set(server.paid) == everything
    assert paid_twice(server).total() <= (2 * 4 * 2 if killed else 0)  # what was in flight: judges, slots, passages
    with Ledger(place) as ledger:
        assert ledger.count("ratings") == len(everything)
    expected = {(query_id, doc_id): text[-1] for query_id in QUERIES for doc_id, text in texts.items()}
    for number in (1,) if killed else (0, 1):
        assert said(tmp_path / str(number), "m") == said(tmp_path / str(number), "n") == expected
