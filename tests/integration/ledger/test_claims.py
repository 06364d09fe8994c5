"""Claims and batches: who asks what just now, and what a vendor still works on."""

import threading
from pathlib import Path

import pytest

from curate.core.errors import DataError
from curate.ledger import Batches, Claims, Ledger
from tests.support import postgres
from tests.support.rows import child, sql


class Clock:
    """A clock that is set by hand."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_key_is_one_owners_until_it_is_given_back(ledger: Ledger) -> None:
    one, another = Claims(ledger, "one", 600), Claims(ledger, "another", 600)
    assert one.take({"a", "b"}) == {"a", "b"}
    assert another.take(["a", "b", "c", "c"]) == {"c"}
    another.release({"a"})
    assert another.take({"a"}) == set()
    one.release({"a"})
    assert another.take({"a", "b"}) == {"a"}
    assert one.take({"b"}) == {"b"}
    assert one.take([]) == set()


def test_a_lease_ends_unless_it_is_renewed(ledger: Ledger) -> None:
    clock = Clock()
    one, another = Claims(ledger, "one", 60, clock), Claims(ledger, "another", 60, clock)
    one.take({"a", "b"})
    clock.now += 59
    assert another.take({"a"}) == set()
    assert one.renew() == {"a", "b"}
    clock.now += 59
    assert another.take({"a"}) == set()
    clock.now += 1
    assert another.take({"a"}) == {"a"}
    assert one.renew() == {"b"}
    one.release({"a", "b"})
    assert one.take({"a", "b"}) == {"b"}


def test_an_owner_learns_what_another_has_taken_over(ledger: Ledger) -> None:
    clock = Clock()
    one, another = Claims(ledger, "one", 60, clock), Claims(ledger, "another", 60, clock)
    assert not one.sure()
    one.take({"a", "b"})
    assert one.sure()
    clock.now += 40
    one.take({"c"})
    clock.now += 20
    assert not one.sure()
    another.take({"a"})
    assert one.renew() == one.held == {"b", "c"}
    assert one.sure()
    one.release({"b"})
    assert one.held == {"c"}


def test_the_database_has_a_clock_too(ledger: Ledger) -> None:
    assert Claims(ledger, "dead", -1).take({"a"}) == {"a"}
    living = Claims(ledger, "living", 600)
    assert living.take({"a"}) == {"a"}
    assert Claims(ledger, "third", 600).take({"a"}) == set()


def test_leaving_gives_everything_back(ledger: Ledger) -> None:
    keys = {str(number) for number in range(2_500)}
    another = Claims(ledger, "another", 600)
    another.take({"0"})
    with Claims(ledger, "one", 600) as one:
        assert one.take(keys) == keys - {"0"}
        assert one.renew() == keys - {"0"}
    assert sql(ledger, "SELECT key, owner FROM claims") == [("0", "another")]


def test_two_processes_share_the_same_keys_without_overlap(place: Path | str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with child(place, "claim", "one", 1_000, go) as one, child(place, "claim", "another", 1_000, go) as another:
        go.touch()
        shares = []
        for process in (one, another):
            assert process.stdout is not None
            shares.append(list(iter(process.stdout.readline, "done\n")))
        for process in (one, another):
            process.communicate(timeout=60)
    assert len(shares[0]) + len(shares[1]) == 1_000
    assert set(shares[0]).isdisjoint(shares[1])
    assert {int(key) for share in shares for key in share} == set(range(1_000))


def test_the_keys_of_a_killed_process_are_free_when_its_lease_ends(place: Path | str) -> None:
    with child(place, "claim", "dead", 20) as dead:
        assert dead.stdout is not None
        assert len(list(iter(dead.stdout.readline, "done\n"))) == 20
        dead.kill()
    keys = [str(number) for number in range(20)]
    with Ledger(place) as ledger:
        assert Claims(ledger, "living", 600).take(keys) == set()
        assert Claims(ledger, "later", 600, lambda: 9e9).take(keys) == set(keys)


def test_nobody_waits_for_claims_that_are_not_committed(postgres_server: Path) -> None:
    place = postgres.database(postgres_server)  # in SQLite writers take turns
    with Ledger(place) as ledger:
        Claims(ledger, "one", -1).take({"a", "b"})
        with Ledger(place) as other, other.database.transaction() as halfway:
            halfway.exec_driver_sql("UPDATE claims SET owner = 'stalled', expires = 9e9 WHERE key = 'a'")
            taken: list[set[str]] = []
            taking = threading.Thread(target=lambda: taken.append(Claims(ledger, "two", 600).take({"a", "b", "c"})))
            taking.start()
            taking.join(timeout=20)
            assert taken == [{"b", "c"}]


def test_a_batch_is_open_until_it_is_closed(ledger: Ledger) -> None:
    batches = Batches(ledger)
    items = {"f" * 64: {"query_digest": "q", "slots": ["p1", "p2"]}}
    batches.add("batch-1", "openai", "judge", "rubric", 0, "run", items)
    batches.add("batch-2", "openai", "judge", "rubric", 1, "run", {})
    [found] = batches.open("judge", "rubric", 0)
    assert (found.batch_id, found.provider, found.run, found.state, found.items) == (
        "batch-1",
        "openai",
        "run",
        "open",
        items,
    )
    assert batches.open("judge", "other", 0) == batches.open("other", "rubric", 0) == []
    batches.close("batch-1", "collected")
    assert batches.open("judge", "rubric", 0) == []
    assert [each.batch_id for each in batches.open("judge", "rubric", 1)] == ["batch-2"]


def test_a_batch_is_written_down_once_and_closed_only_if_known(ledger: Ledger) -> None:
    batches = Batches(ledger)
    batches.add("batch-1", "openai", "judge", "rubric", 0, "run", {})
    with pytest.raises(DataError, match=r"UNIQUE|unique"):
        batches.add("batch-1", "openai", "judge", "rubric", 0, "run", {})
    with pytest.raises(DataError, match="no batch 'batch-9'"):
        batches.close("batch-9", "collected")
