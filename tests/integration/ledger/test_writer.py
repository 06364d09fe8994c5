"""Group commit: what waits goes into one transaction, and nobody goes on before it is committed."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from curate.core.errors import DataError
from curate.ledger import Ledger, database
from curate.ledger import database as writer_module
from curate.ledger.database import Away, Writer
from tests.support import postgres
from tests.support.rows import CALL, RATING, locked, sql


class Slow:
    """A commit that waits to be let go, and keeps the groups that it was given."""

    def __init__(self, broken: str = "") -> None:
        self.groups: list[list[str]] = []
        self.begun: Queue[None] = Queue()
        self.free = threading.Semaphore(0)
        self.broken = broken

    def __call__(self, group: Sequence[str]) -> None:
        self.groups.append(list(group))
        self.begun.put(None)
        assert self.free.acquire(timeout=30)
        if self.broken in group:
            raise DataError("broken")


async def gave(writer: Writer[str], commit: Slow, *items: str) -> list[BaseException | None]:
    """Give the first item, the others while it is being committed; return what each was told."""
    first = asyncio.create_task(writer.put(items[0]))
    await asyncio.to_thread(commit.begun.get, timeout=30)
    others = [asyncio.create_task(writer.put(item)) for item in items[1:]]
    await asyncio.sleep(0)
    assert not first.done(), "acknowledged before it was committed"
    commit.free.release(100)
    return await asyncio.gather(first, *others, return_exceptions=True)


def test_what_came_during_a_commit_goes_into_the_next_together() -> None:
    commit = Slow()
    writer = Writer(commit)
    assert asyncio.run(gave(writer, commit, "a", "b", "c", "d")) == [None] * 4
    assert commit.groups == [["a"], ["b", "c", "d"]]
    writer.close()


def test_an_error_is_told_to_the_giver_of_what_is_wrong_and_to_nobody_else() -> None:
    commit = Slow(broken="c")
    writer = Writer(commit)
    told = asyncio.run(gave(writer, commit, "a", "b", "c", "d", "e"))
    assert [type(each) for each in told] == [type(None), type(None), DataError, type(None), type(None)]
    assert commit.groups == [["a"], ["b", "c", "d", "e"], ["b", "c"], ["b"], ["c"], ["d", "e"]]
    writer.close()


@pytest.mark.parametrize(("times", "error"), [(1, type(None)), (2, type(None)), (9, Away)])
def test_a_store_that_is_away_is_tried_again_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch, times: int, error: type
) -> None:
    monkeypatch.setattr(writer_module, "PAUSES_S", (0.0, 0.01))
    tries: list[list[str]] = []

    def commit(group: Sequence[str]) -> None:
        tries.append(list(group))
        if len(tries) <= times:
            raise Away("gone")

    async def both() -> list[BaseException | None]:
        return list(await asyncio.gather(writer.put("a"), writer.put("b"), return_exceptions=True))

    writer = Writer(commit)
    assert {type(each) for each in asyncio.run(both())} == {error}
    assert len(tries) <= 6
    writer.close()


async def given_up(writer: Writer[str], commit: Slow) -> None:
    waiting = [asyncio.create_task(writer.put(item)) for item in ("a", "b")]
    await asyncio.to_thread(commit.begun.get, timeout=30)
    for each in waiting:
        each.cancel()
    assert all(
        isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*waiting, return_exceptions=True)
    )


def test_closing_writes_what_nobody_waits_for_any_more() -> None:
    commit = Slow()
    writer = Writer(commit)
    asyncio.run(given_up(writer, commit))
    commit.free.release(2)
    writer.close()
    assert [item for group in commit.groups for item in group] == ["a", "b"]


def test_an_error_that_nobody_heard_is_raised_at_the_end() -> None:
    commit = Slow(broken="a")
    writer = Writer(commit)
    asyncio.run(given_up(writer, commit))
    commit.free.release(3)
    with pytest.raises(DataError, match="broken"):
        writer.close()
    writer.close()


def test_an_error_whose_giver_was_cancelled_is_raised_at_the_end() -> None:
    commit = Slow(broken="a")
    writer = Writer(commit)

    async def cancelled() -> None:
        await given_up(writer, commit)
        commit.free.release(9)
        await writer.put("c")

    asyncio.run(cancelled())
    with pytest.raises(DataError, match="broken"):
        writer.close()


def test_closing_what_never_wrote_is_nothing() -> None:
    Writer(Slow()).close()


async def many(ledger: Ledger) -> list[str | None]:
    calls = [replace(CALL, request_digest=str(number)) for number in range(300)]
    ratings = [[replace(RATING, query_digest=call.request_digest)] * 2 for call in calls]
    return await asyncio.gather(*map(ledger.write, ratings, calls))


def test_many_at_once_are_all_written_in_the_order_given(ledger: Ledger) -> None:
    made = asyncio.run(many(ledger))
    assert made == sorted(set(map(str, made)))
    found = ledger.ratings("judge", "rubric")
    assert dict(found["query_digest", "call_id"].iter_rows()) == {str(number): each for number, each in enumerate(made)}
    assert (ledger.count("calls"), ledger.count("ratings")) == (300, 600)


async def with_one_bad(ledger: Ledger) -> list[object]:
    bad = replace(RATING, grade="Z")
    rows = [[bad if number == 17 else RATING] for number in range(40)]
    return await asyncio.gather(*(ledger.write(each, CALL) for each in rows), return_exceptions=True)


def test_a_row_that_is_refused_takes_no_other_with_it(ledger: Ledger) -> None:
    told = asyncio.run(with_one_bad(ledger))
    assert [number for number, each in enumerate(told) if not isinstance(each, str)] == [17]
    assert isinstance(told[17], DataError)
    assert not isinstance(told[17], Away)
    assert ledger.count("calls") == ledger.count("ratings") == 39


def test_what_waited_when_the_server_ended_the_connection_is_written(postgres_server: Path) -> None:
    with Ledger(postgres.database(postgres_server)) as ledger, ledger.database.engine.connect() as other:
        other.exec_driver_sql("LOCK TABLE calls IN EXCLUSIVE MODE")

        async def cut_off() -> list[str | None]:
            writing = asyncio.gather(*(ledger.write([RATING], CALL) for _ in range(50)))
            await asyncio.to_thread(end_what_waits, ledger)
            other.rollback()
            return await writing

        assert len(set(asyncio.run(cut_off()))) == 50
        assert (ledger.count("calls"), ledger.count("ratings")) == (50, 50)


def end_what_waits(ledger: Ledger) -> None:
    """End the server's process that waits for a lock."""
    waiting = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    until = time.monotonic() + 120
    while not sql(ledger, f"SELECT pg_terminate_backend(pid) {waiting}"):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_waited_for_a_locked_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(writer_module, "PAUSES_S", (0.0, 1.0))
    with Ledger(tmp_path / "ledger.db") as ledger, locked(ledger.path) as other:

        async def late() -> list[str | None]:
            writing = asyncio.gather(*(ledger.write([RATING], CALL) for _ in range(50)))
            await asyncio.sleep(0.6)  # the first tries are over
            other.rollback()
            return await writing

        assert len(set(asyncio.run(late()))) == 50
        assert (ledger.count("calls"), ledger.count("ratings")) == (50, 50)


def test_a_commit_whose_answer_was_lost_is_not_written_twice(ledger: Ledger) -> None:
    commit = ledger._writer._commit

    def lost(group: Sequence[Any]) -> None:
        commit(group)
        ledger._writer._commit = commit
        raise Away("the connection is gone")

    ledger._writer._commit = lost
    assert asyncio.run(ledger.write([RATING], CALL)) is not None
    assert (ledger.count("calls"), ledger.count("ratings")) == (1, 1)


def test_a_write_that_is_under_way_is_kept_by_closing(place: str) -> None:
    with Ledger(place) as ledger:

        async def leave() -> None:
            asyncio.get_running_loop().create_task(ledger.write([RATING], CALL)).add_done_callback(lambda _: None)
            await asyncio.sleep(0)

        asyncio.run(leave())
    with Ledger(place) as ledger:
        assert ledger.count("calls") == 1
