"""Hours of chaos: `curate judge` is killed at random while vendors fail in every way, and is started again with a cap.

None of 20,000 ratings is wrong, none is lost, and no command costs more than its cap as the vendor counts it.
CURATE_CHAOS_S says how many seconds the work lasts (7,200 by default), CURATE_CHAOS_PAIRS how many pairs each of the
two judges grades (10,000).
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support.chaos_vendor import LANES, PRICES, STUBBORN, TIMEOUT_S
from tests.support.runs import started

SECONDS = float(os.environ.get("CURATE_CHAOS_S", "7200"))
PAIRS = int(os.environ.get("CURATE_CHAOS_PAIRS", "10000"))
DEPTH, BATCH = 100, 4
QUERIES = PAIRS // DEPTH
KINDS = {"m-1": "openai", "m-2": "anthropic"}
SIGNALS = {signal.SIGKILL: 6, signal.SIGTERM: 2, signal.SIGINT: 2}
ANSWERED = "(finish <> 'error' AND model <> '') OR form = 'lost'"
UNIQUE = "SELECT count(*), count(DISTINCT query_digest || passage_digest || judge_digest || rubric_digest) FROM ratings"
TEXTS = {f"d{n:03}": f"第{n}组：高血压患者喝茶的说明，等级是{'SABCD'[n * 7 % 5]}" for n in range(DEPTH)}


@dataclass
class Command:
    """One command from its start to its end."""

    cap: float
    how: str
    """The signal that it was sent, or `itself`."""
    code: int
    said: str
    bills: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    """Calls that it wrote into the ledger and that may be billed."""
    paid: float = 0.0
    """What they cost by the ledger."""

    @property
    def billed(self) -> float:
        return float(sum(each["cost"] for each in self.bills))

    @property
    def unwritten(self) -> int:
        """Calls that were billed and are not in the ledger."""
        return sum(bool(each["billed"]) for each in self.bills) - self.rows

    @property
    def untold(self) -> int:
        """Calls whose answer said nothing of usage: a cap counts them at the most, and the ledger at no price."""
        return sum(each["kind"] == "no usage" for each in self.bills)

    @property
    def stopped_by_cap(self) -> bool:
        return self.how == "itself" and " cap of " in self.said

    @property
    def ended_at_once(self) -> bool:
        """Say whether it could write nothing any more: SIGTERM and SIGKILL are not waited for."""
        return self.code in (-signal.SIGKILL, -signal.SIGTERM)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run the vendor; give its address."""
    words = [str(folder), str(2 * PAIRS), str(BATCH), str(SECONDS)]
    server = subprocess.Popen([sys.executable, "-m", "tests.support.chaos_vendor", *words])
    try:
        while not (folder / "port").exists():
            assert server.poll() is None
            time.sleep(0.05)
        yield (folder / "port").read_text("ascii")
    finally:
        server.terminate()
        server.wait()


def prepared(folder: Path, url: str) -> None:
    """Write texts and pipeline, and run it up to the judges."""
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    queries = {f"q{n:03}": f"高血压患者能喝第{n}号茶吗" for n in range(QUERIES)}
    for name, texts in (("queries", queries), ("corpus", TEXTS)):
        rows = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in texts.items()]
        (data / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    qrels = [f"{name}\td{n:03}\t1\n" for n, name in enumerate(queries)]
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(qrels), encoding="utf-8")
    judges = {
        name: {
            "kind": KINDS[name],
            "model": name,
            "base_url": url,
            "vendor": name,
            "concurrency": LANES // 2,
            "timeout_s": TIMEOUT_S,
            "price": {"input": dear, "written": dear, "output": dearer, "date": "2026-01-01"},
        }
        for name, (dear, dearer) in PRICES.items()
    }
    pipeline = {
        "version": 1,
        "name": "chaos",
        "ingest": {"source": "data"},
        "diversify": {"enabled": False},
        "pool": {"retrievers": ["pairs"], "depth": DEPTH, "size": DEPTH},
        "retrievers": {"pairs": {"kind": "bm25", "tokens": "bigrams"}},
        "judges": judges,
        "judge": {"models": list(judges), "batch": BATCH, "mixed_models": True},
    }
    (folder / "chaos.yaml").write_text(json.dumps(pipeline), encoding="utf-8")  # JSON is YAML
    done = started(folder, "run", "chaos.yaml", "--run", "runs/c")
    assert "judging would send" in done.stderr, done.stderr
    pool = pl.read_parquet(folder / "runs/c/pool/pool.parquet")
    assert pool.height == PAIRS


@dataclass
class Siege:
    """All commands of the run, one after the other."""

    folder: Path
    chance: random.Random = field(default_factory=lambda: random.Random(37))
    commands: list[Command] = field(default_factory=list)
    read: int = 0
    """Bytes of the bills that earlier commands account for."""
    began: float = field(default_factory=time.monotonic)
    told: float = 0.0

    def command(self, cap: float, patience: float | None, *options: str) -> Command:
        """Run the command, for so many seconds at the most, and account for it."""
        before, complaints = self.ledger(), self.folder / "stderr.txt"
        words = [sys.executable, "-m", "curate", "judge", "--run", "runs/c", "--max-cost", f"{cap:.6f}USD", *options]
        environment = {**os.environ, "CURATE_HOME": str(self.folder / "home")}
        with complaints.open("wb") as out:
            running = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=out, stderr=out)
            how = self.ended(running, patience)
        time.sleep(0.5)  # what was sent just before the end has arrived by now
        done = Command(cap, how, running.returncode, complaints.read_text("utf-8", "replace"))
        with (self.folder / "bills.jsonl").open("rb") as bills:
            bills.seek(self.read)
            done.bills = [json.loads(line) for line in bills]
            self.read = bills.tell()
        rows, paid = self.ledger()
        done.rows, done.paid = rows - before[0], paid - before[1]
        self.commands.append(done)
        with (self.folder / "commands.jsonl").open("a", encoding="utf-8") as out:  # read by whoever looks into it later
            told = {name: getattr(done, name) for name in ("cap", "how", "code", "billed", "paid", "rows", "unwritten")}
            out.write(json.dumps(told | {"untold": done.untold, "said": done.said[-2_000:]}) + "\n")
        self.tell(done)
        return done

    def ended(self, running: "subprocess.Popen[bytes]", patience: float | None) -> str:
        """Wait for the end, or bring it about; return how it came."""
        try:
            running.wait(patience)
        except subprocess.TimeoutExpired:
            [how] = self.chance.choices(list(SIGNALS), list(SIGNALS.values()))
            running.send_signal(how)
            try:
                running.wait(120)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
            return how.name
        return "itself"

    def ledger(self) -> tuple[int, float]:
        """Return how many calls may have been billed by the ledger, and for how much."""
        path = self.folder / "home" / "ledger.db"
        if not path.exists():
            return 0, 0.0
        with closing(sqlite3.connect(path, timeout=60)) as connection:
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchall()
            query = f"SELECT count(*), coalesce(sum(cost), 0) FROM calls WHERE {ANSWERED}"
            rows, paid = connection.execute(query).fetchone() if tables else (0, 0.0)
        return int(rows), float(paid)

    def tell(self, last: Command) -> None:
        """Print a line every few minutes, and one on everything that is wrong already."""
        passed = time.monotonic() - self.began
        most = LANES if last.ended_at_once else 0
        sound = last.billed <= last.cap and 0 <= last.unwritten <= most
        if not sound or passed - self.told > min(180.0, SECONDS / 10):
            self.told = passed
            word = "" if sound else f" WRONG: {last.how} {last.code} {last.cap} {last.billed} {last.unwritten}"
            calls, paid = sum(each.rows for each in self.commands), sum(each.paid for each in self.commands)
            count = len(self.commands)
            print(f"{passed:6.0f} s: {count} commands, {calls} calls, {paid:.3f} USD{word}", flush=True)  # noqa: T201

    def run(self) -> None:
        """Run, kill and start again until all is settled; then ask again what was refused."""
        high = min(90.0, SECONDS / 12)
        finish = self.began + SECONDS
        while True:
            cap = self.chance.uniform(0.008, 0.08) if self.chance.random() < 0.35 else self.chance.uniform(5, 50)
            over = time.monotonic() > finish
            patience = None if over else min(high, 5 + self.chance.expovariate(1 / (high / 2)))
            done = self.command(50.0 + self.chance.random() if over else cap, patience)
            assert not over or time.monotonic() < finish + SECONDS, done.said
            if done.how == "itself" and done.code == 0 and "failed" not in self.statuses():
                break
        for _ in range(10):
            if self.command(50.0 + self.chance.random(), None, "--retry").code == 0 and self.settled():
                break

    def ratings(self) -> pl.DataFrame:
        return pl.read_parquet(self.folder / "runs/c/judge/ratings.parquet")

    def statuses(self) -> Counter[str]:
        return Counter(self.ratings()["status"])

    def settled(self) -> bool:
        return self.statuses() == {"rated": 2 * PAIRS - 2, "refused": 2}


@pytest.fixture(scope="module")
def siege(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    folder = tmp_path_factory.mktemp("siege")
    with serving(folder) as url:
        prepared(folder, url)
        whole = Siege(folder)
        whole.run()
        print(figures(whole), flush=True)  # noqa: T201
        yield whole


def duplicates(commands: list[Command]) -> Counter[tuple[str, str, str]]:
    """Return how often more than once a pair was graded soundly and paid."""
    paid: Counter[tuple[str, str, str]] = Counter()
    for bill in (bill for each in commands for bill in each.bills if bill["kind"] in ("", "slow", "dribbled")):
        paid.update((bill["model"], bill["query"], text) for text in bill["texts"])
    return paid - Counter(set(paid))


def wrong(siege: Siege) -> int:
    rated = siege.ratings().filter(pl.col("grade").is_not_null())["doc_id", "grade"].rows()
    return sum(TEXTS[name][-1] != grade for name, grade in rated)


def lost(siege: Siege) -> int:
    """Return how many pairs of a judge have no row in the ratings."""
    return 2 * PAIRS - siege.ratings().select("judge", "query_id", "doc_id").n_unique()


def figures(siege: Siege) -> str:
    """Return the table of what happened."""
    commands = siege.commands
    bills = [bill for each in commands for bill in each.bills]
    rows: dict[str, object] = {
        "seconds": round(time.monotonic() - siege.began),
        "commands": len(commands),
        "ended by": dict(Counter(each.how for each in commands)),
        "exit codes": dict(Counter(each.code for each in commands)),
        "requests": len(bills),
        "billed requests": sum(bill["billed"] for bill in bills),
        "billed, reply unreadable": sum(bill["billed"] and not bill["read"] for bill in bills),
        "faults": dict(Counter(bill["kind"] for bill in bills if bill["kind"]).most_common()),
        "billed USD": round(sum(each.billed for each in commands), 4),
        "ledger USD": round(sum(each.paid for each in commands), 4),
        "billed, not in the ledger": sum(each.unwritten for each in commands),
        "most of one command": max(each.unwritten for each in commands),
        "caps that bit": sum(each.stopped_by_cap for each in commands),
        "caps passed": sum(each.billed > each.cap for each in commands),
        "nearest to its cap": round(max(each.billed / each.cap for each in commands), 4),
        "pairs paid again": duplicates(commands).total(),
        "statuses": dict(siege.statuses()),
        "wrong": wrong(siege),
        "lost": lost(siege),
    }
    return "\n".join(["", *(f"{name:26} {value}" for name, value in rows.items())])


@pytest.mark.accept
def test_no_rating_is_wrong_and_none_is_lost(siege: Siege) -> None:
    assert wrong(siege) == 0
    assert lost(siege) == 0
    found = siege.ratings()
    assert found.height == 2 * PAIRS
    assert siege.statuses() == {"rated": 2 * PAIRS - 2, "refused": 2}
    refused = set(found.filter(pl.col("status") == "refused")["query_id", "doc_id"].rows())
    assert refused == {("q000", name) for name, text in TEXTS.items() if text.startswith(STUBBORN)}
    with closing(sqlite3.connect(siege.folder / "home" / "ledger.db")) as ledger:
        assert ledger.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.accept
def test_no_command_costs_more_than_its_cap_as_the_vendor_counts_it(siege: Siege) -> None:
    assert [each for each in siege.commands if each.billed > each.cap] == []
    assert sum(each.stopped_by_cap for each in siege.commands) >= max(1, SECONDS // 1_800)


@pytest.mark.accept
def test_the_ledger_holds_what_was_billed_but_for_what_was_in_flight_at_a_kill(siege: Siege) -> None:
    """What was in flight at a kill has no row, and an answer without usage no price; all else has at least its own."""
    dearest = max(bill["cost"] for each in siege.commands for bill in each.bills)
    for each in siege.commands:
        assert 0 <= each.unwritten <= (LANES if each.ended_at_once else 0)
        assert each.paid + (each.unwritten + each.untold) * dearest >= each.billed - 1e-9
    assert duplicates(siege.commands).total() <= BATCH * sum(each.unwritten for each in siege.commands)


@pytest.mark.accept
def test_it_was_as_bad_as_it_should_be(siege: Siege) -> None:
    ends = Counter(each.how for each in siege.commands)
    assert all(ends[how.name] > 0 for how in SIGNALS)
    assert all(each.code >= 0 for each in siege.commands if each.how in ("SIGINT", "itself"))  # in time, by its own way
    assert time.monotonic() - siege.began > 0.9 * SECONDS
