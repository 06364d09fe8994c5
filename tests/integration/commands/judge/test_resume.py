"""Kill -9 at several moments of one job, against a vendor that lives on: nothing written is lost or paid again."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from curate.core.config import Settings
from tests import ROOT
from tests.support.pools import QUERIES, pooled, said
from tests.support.trials import accepting
from tests.vendor import Remote, elsewhere

CHILD = ROOT / "tests/support/judge_child.py"
TEXTS = {f"d{n:03}": f"段落{n} {'SABCD'[n % 5]}" for n in range(400)}
CONCURRENCY, BATCH, LATENCY_S = 4, 2, 0.05
CALLS = len(QUERIES) * len(TEXTS) // BATCH
UNIQUE = "SELECT count(*), count(DISTINCT query_digest || passage_digest || judge_digest || rubric_digest) FROM ratings"


def started(run: Path, server: Remote) -> "subprocess.Popen[bytes]":
    """Start the judge stage in a process of its own; `vendor` keeps the judge the same at every address."""
    model = {"kind": "openai", "model": "m-1", "base_url": server.url, "vendor": "v", "concurrency": CONCURRENCY}
    settings: Settings = {"models": ["m"], "batch": BATCH}
    command = [sys.executable, str(CHILD), str(run), json.dumps(settings), json.dumps({"m": model}), str(run / "done")]
    (run / "done").write_text("0", encoding="ascii")
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})


def finished(run: Path, server: Remote) -> bytes:
    """Run the stage to its end; return the table of ratings as it stands on disk."""
    assert started(run, server).wait() == 0
    return (run / "judge" / "ratings.parquet").read_bytes()


def killed(run: Path, server: Remote, answers: int, delay: float) -> None:
    """Run the stage, and kill it some time after the vendor gave so many answers in all, and one to this process."""
    before = server.pressed()["calls"]
    process = started(run, server)
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        seen = server.pressed()
        if seen["calls"] > before and seen["answers"] >= answers:
            break
        time.sleep(0.005)
    time.sleep(delay)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    while server.pressed()["busy"]:
        time.sleep(0.005)


def ledger(run: Path, select: str) -> tuple[int, ...]:
    """Return the one row of a question to the ledger."""
    with closing(sqlite3.connect(run / "home" / "ledger.db")) as connection:
        [row] = connection.execute(select).fetchall()
    return tuple(row)


def unwritten(run: Path, server: Remote) -> int:
    """Return how many answers were paid and are not in the ledger."""
    return server.pressed()["answers"] - ledger(run, "SELECT count(*) FROM calls")[0]


def settled(run: Path) -> int:
    return ledger(run, "SELECT count(*) FROM ratings")[0] if (run / "home" / "ledger.db").exists() else 0


@pytest.mark.parametrize("kills", [2, *accepting(8)])
def test_kills_cost_what_was_in_flight_and_change_nothing(kills: int, tmp_path: Path) -> None:
    chance = random.Random(13)
    moments = sorted(chance.randrange(CALLS - 2 * CONCURRENCY) for _ in range(kills))
    run = pooled(tmp_path / "killed", TEXTS)
    with elsewhere(latency=LATENCY_S) as server:
        lost = 0
        for moment in moments:
            before = settled(run)
            killed(run, server, moment, chance.uniform(0, LATENCY_S))
            told = int((run / "done").read_text(encoding="ascii") or 0)
            assert settled(run) - before >= told  # every answer that was acknowledged is there
            more = unwritten(run, server)
            assert 0 <= more - lost <= CONCURRENCY  # and at most the calls in flight are not
            lost = more
        table = finished(run, server)
        paid = server.pairs("paid")
        assert unwritten(run, server) == lost > 0
    assert set(paid) == {("m-1", query, text) for query in QUERIES.values() for text in TEXTS.values()}
    assert paid.total() - len(paid) == lost * BATCH <= kills * CONCURRENCY * BATCH
    rows, different = ledger(run, UNIQUE)
    assert rows == different == len(paid)
    other = pooled(tmp_path / "undisturbed", TEXTS)
    with elsewhere() as server:
        assert finished(other, server) == table
    assert said(run, "m") == {(query, name): text[-1] for query in QUERIES for name, text in TEXTS.items()}


def test_one_more_document_costs_its_own_pairs(tmp_path: Path) -> None:
    first = pooled(tmp_path / "first", dict(list(TEXTS.items())[:20]))
    with elsewhere() as server:
        finished(first, server)
        before = server.pairs("paid")
        second = pooled(tmp_path / "second", {**dict(list(TEXTS.items())[:20]), "new": "新的段落 C"})
        (first / "home").rename(second / "home")
        finished(second, server)
        assert server.pairs("paid") - before == Counter({("m-1", query, "新的段落 C"): 1 for query in QUERIES.values()})
