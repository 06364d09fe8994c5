"""The ledger: found by text, appended once, whole after a kill, shared by processes, and honest about what it lacks."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from curate.errors import DataError
from curate.ledger import MIGRATIONS, Call, Ledger, Rating
from tests.conftest import need

CHILD = Path(__file__).with_name("ledger_child.py")
RATING = Rating("query", "passage", "judge", "rubric", 0, "A", "rated", 2, 10)
CALL = Call("judge", "run", "judge", "request", "m-1", "stop", '{"P1": "A"}', 0.5, "2026-11-21T00:00:00+00:00")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "home" / "ledger.db") as opened:
        yield opened


def sql(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_a_rating_is_found_by_texts_judge_rubric_and_replicate(ledger: Ledger) -> None:
    call_id = ledger.append([RATING], CALL)
    [row] = ledger.ratings("judge", "rubric").rows(named=True)
    assert row == {
        "query_digest": "query",
        "passage_digest": "passage",
        "grade": "A",
        "status": "rated",
        "slot": 2,
        "batch_size": 10,
        "call_id": call_id,
    }
    for other in (("judge-2", "rubric", 0), ("judge", "rubric-2", 0), ("judge", "rubric", 1)):
        assert ledger.ratings(*other).is_empty()


STANDING = [
    ("failed", "failed"),
    ("failed rated:B", "B"),
    ("rated:B failed", "B"),
    ("rated:B rated:S", "B"),
    ("failed unparsed refused", "refused"),
    ("refused unparsed", "unparsed"),
    ("refused rated:D failed rated:S", "D"),
]


@pytest.mark.parametrize(("history", "standing"), STANDING)
def test_the_first_grade_stands_else_the_last_word(ledger: Ledger, history: str, standing: str) -> None:
    for word in history.split():
        status, _, grade = word.partition(":")
        ledger.append([replace(RATING, status=status, grade=grade or None)])  # type: ignore[arg-type]
    [row] = ledger.ratings("judge", "rubric").rows(named=True)
    assert (row["grade"] or row["status"]) == standing
    assert ledger.count("ratings") == len(history.split())


def test_a_call_and_its_ratings_are_written_together_or_not_at_all(ledger: Ledger) -> None:
    broken = replace(RATING, grade=object())  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"ledger\.db"):
        ledger.append([RATING, broken], replace(CALL, raw="a private answer"))
    assert (ledger.count("calls"), ledger.count("ratings")) == (0, 0)


def test_an_error_holds_no_reply(ledger: Ledger) -> None:
    with pytest.raises(DataError) as caught:
        ledger.append([], replace(CALL, raw="a private answer", request_digest=object()))  # type: ignore[arg-type]
    chain = f"{caught.value} {caught.value.__cause__}"
    assert "private" not in chain


def test_a_judge_is_known_by_what_changes_its_grades(ledger: Ledger) -> None:
    first = ledger.register({"model": "m", "temperature": 0})
    assert ledger.register({"temperature": 0, "model": "m"}) == first
    assert ledger.register({"model": "m", "temperature": 1}) != first
    assert ledger.count("judges") == 2


def test_models_are_named_first_to_last(ledger: Ledger) -> None:
    for model in ("b", "a", "", "b", "c"):
        ledger.append([], replace(CALL, model=model, rubric_digest="rubric"))
    assert ledger.models("judge", "rubric") == ["b", "a", "c"]
    assert ledger.models("judge-2", "rubric") == ledger.models("judge", "rubric-2") == []


def test_the_bill_adds_up_what_a_run_paid(ledger: Ledger) -> None:
    known = replace(CALL, prompt_tokens=100, cached_tokens=40, output_tokens=10, cost=0.5)
    for call in (known, known, replace(known, run="another"), replace(known, judge_digest="free", cost=None)):
        ledger.append([], call)
    bill = ledger.bill("run", ["judge", "free", "never asked"]).rows()
    assert bill == [("free", 1, 100, 40, 10, None), ("judge", 2, 200, 80, 20, 1.0)]
    ledger.append([], replace(CALL))
    assert ledger.bill("run", ["judge"]).rows() == [("judge", 3, None, None, None, None)]


def test_a_request_without_a_reply_is_on_no_bill(ledger: Ledger) -> None:
    ledger.append([], replace(CALL, cost=0.5))
    ledger.append([], replace(CALL, finish="error"))
    assert ledger.bill("run", ["judge"])["calls", "cost"].rows() == [(1, 0.5)]


@pytest.mark.parametrize(
    ("grade", "status"), [("E", "rated"), (None, "rated"), ("S", "failed"), (None, "lost"), ("", "refused")]
)
def test_a_grade_is_kept_exactly_with_the_status_rated(ledger: Ledger, grade: str | None, status: str) -> None:
    with pytest.raises(DataError, match="CHECK constraint failed"):
        ledger.append([replace(RATING, grade=grade, status=status)])  # type: ignore[arg-type]
    assert ledger.count("ratings") == 0


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for expected in (1, 2, 3):
        with Ledger(path) as ledger:
            ledger.append([RATING], CALL)
            assert ledger.count("ratings") == expected
    assert sql(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert sql(path, "PRAGMA journal_mode") == [("wal",)]


def opened() -> list[str]:
    """Return the ledgers that this process has open."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing itself is open while it lists
            links.append(str(link.readlink()))
    return [link for link in links if "ledger.db" in link]


def test_a_closed_ledger_holds_no_file(tmp_path: Path) -> None:
    need(Path("/proc/self/fd").is_dir(), "/proc, which lists open files,")
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.append([RATING], CALL)
        assert opened() != []
    assert opened() == []
    (tmp_path / "bad.ledger.db").write_text("no database" * 100)
    with pytest.raises(DataError):
        Ledger(tmp_path / "bad.ledger.db")
    assert opened() == []


def test_wrong_files_are_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(DataError, match=r"text.db: file is not a database; .*CURATE_HOME"):
        Ledger(tmp_path / "text.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(DataError, match=r"folder.db: unable to open database file; .*CURATE_HOME"):
        Ledger(tmp_path / "folder.db")
    Ledger(tmp_path / "new.db").close()
    sql(tmp_path / "new.db", "PRAGMA user_version=99")
    with pytest.raises(DataError, match="newer version of curate"):
        Ledger(tmp_path / "new.db")


def fill(ledger: Ledger) -> None:
    """Write replies without end."""
    for number in count():
        ledger.append([RATING], replace(CALL, request_digest=str(number), raw="x" * 10_000))


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Ledger(path) as ledger:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
            with pytest.raises(DataError, match=r"ledger\.db: .*no space left on the disk"):
                fill(ledger)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        kept = ledger.count("calls")
        assert kept == ledger.count("ratings") > 5
        assert sql(path, "SELECT request_digest FROM calls") == [(str(number),) for number in range(kept)]
        ledger.append([RATING], CALL)
        assert ledger.count("calls") == kept + 1
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def child(path: Path, name: str, rows: int, *go: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(CHILD), str(path), name, str(rows), *go]
    environment = {**os.environ, "PYTHONPATH": str(CHILD.parents[1])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_processes_open_a_new_ledger_and_write_to_it_at_once(tmp_path: Path) -> None:
    path, go = tmp_path / "ledger.db", tmp_path / "go"
    children = [child(path, str(number), 40, str(go)) for number in range(4)]
    go.touch()
    for each in children:
        each.communicate(timeout=60)
    assert [each.returncode for each in children] == [0] * 4
    with Ledger(path) as ledger:
        assert (ledger.count("calls"), ledger.count("ratings")) == (160, 480)
        assert len(ledger.ratings("j", "r")) == 480


def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for name in ("first", "second"):
        process = child(path, name, 100_000)
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 30:
                process.send_signal(signal.SIGKILL)
                break
        told = [int(line) for line in process.stdout.read().split()]
        assert process.wait() == -signal.SIGKILL
        with Ledger(path) as ledger:
            kept = len(ledger.ratings("j", "r").filter(pl.col("query_digest").str.starts_with(name)))
            assert kept % 3 == 0
            assert kept / 3 in (max(told, default=30) + 1, max(told, default=30) + 2)
            assert ledger.count("calls") * 3 == ledger.count("ratings")
        process.stdout.close()
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
