"""Group commit: what waits goes into one transaction, and nobody goes on before it is committed."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from queue import Queue

import pytest

from curate.errors import DataError
from curate.ledger import Ledger
from curate.ledger.writer import Writer
from tests.rows import CALL, RATING


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
    commit.free.release(len(items))
    return await asyncio.gather(first, *others, return_exceptions=True)


def test_what_came_during_a_commit_goes_into_the_next_together() -> None:
    commit = Slow()
    writer = Writer(commit)
    assert asyncio.run(gave(writer, commit, "a", "b", "c", "d")) == [None] * 4
    assert commit.groups == [["a"], ["b", "c", "d"]]
    writer.close()


def test_an_error_is_told_to_all_of_its_transaction_and_to_nobody_else() -> None:
    commit = Slow(broken="c")
    writer = Writer(commit)
    told = asyncio.run(gave(writer, commit, "a", "b", "c", "d"))
    assert [type(each) for each in told] == [type(None), DataError, DataError, DataError]
    commit.free.release()
    asyncio.run(writer.put("e"))
    assert commit.groups[-1] == ["e"]
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
    commit.free.release(2)
    with pytest.raises(DataError, match="broken"):
        writer.close()
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


async def one_of_two(ledger: Ledger) -> tuple[object, object]:
    bad = replace(RATING, grade="Z")  # type: ignore[arg-type]
    return await asyncio.gather(ledger.write([RATING], CALL), ledger.write([bad], CALL), return_exceptions=True)


def test_nothing_is_kept_of_a_refused_transaction_and_the_next_is_written(ledger: Ledger) -> None:
    told = asyncio.run(one_of_two(ledger))
    assert isinstance(told[1], DataError)
    assert ledger.count("calls") == ledger.count("ratings") == sum(isinstance(each, str) for each in told)
    assert asyncio.run(ledger.write([RATING])) is None
    assert ledger.ratings("judge", "rubric")["call_id"].to_list()[0] == (told[0] if isinstance(told[0], str) else None)


def test_a_write_that_is_under_way_is_kept_by_closing(place: str) -> None:
    with Ledger(place) as ledger:

        async def leave() -> None:
            asyncio.get_running_loop().create_task(ledger.write([RATING], CALL)).add_done_callback(lambda _: None)
            await asyncio.sleep(0)

        asyncio.run(leave())
    with Ledger(place) as ledger:
        assert ledger.count("calls") == 1
