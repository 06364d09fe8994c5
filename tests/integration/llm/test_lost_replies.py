"""Requests whose outcome nobody knows: the vendor may bill them, so a cap counts them and the ledger has a row."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from curate.core.errors import BudgetError
from curate.ledger import Ledger
from curate.ledger.claims import Caps
from curate.llm import client
from curate.llm.budget import Budget, CapPolicy
from tests import vendor as fake
from tests.support.asking import PRICE, PRICED, bound, job, judged, rows, said, script, work
from tests.vendor import Answer, Call, Fault, vendor

LOST: dict[str, Fault] = {
    "timeout": fake.slow(0.5),
    "stalled body": fake.dribbled(0.9),
    "cut body": fake.drop,
    "reset after the head": fake.reset_after_head,
    "reset before the head": fake.reset_before_head,
    "half a JSON": fake.truncated,
    "a page": fake.page("<html>hello</html>"),
    "another form": fake.page('{"object": "list"}'),
    "gateway": fake.error(504),
}


def billed(ledger: Ledger) -> float:
    [(total,)] = rows(ledger, "coalesce(sum(cost), 0)")
    return float(total)


# What is lost


def test_what_the_vendor_bills_for_lost_replies_stays_under_the_cap(ledger: Ledger) -> None:
    faults, sent = list(LOST.values()), 0

    def drawn(_call: Call) -> Fault | None:
        nonlocal sent
        sent += 1
        return faults[sent % len(faults)]

    with vendor(script, drawn) as server:
        most = bound(server)
        cap = len(faults) * 1.1 * most
        with pytest.raises(BudgetError, match="may pass the cap"):
            judged(server, ledger, work("S" * 30), PRICED, batch=1, max_cost=cap, timeout_s=0.25)
    assert len(faults) - 1 <= sent <= len(faults)
    assert sent * most <= billed(ledger) <= cap
    assert rows(ledger, "finish, form, currency")[:sent] == [("error", "lost", "USD")] * sent


def test_only_what_may_be_billed_is_charged(ledger: Ledger) -> None:
    """Refusals are free, and so is an address where nobody listens, though all of them are tried again."""
    faults = iter([fake.unavailable, fake.overloaded, fake.limited(0.01), fake.drop])
    with vendor(script, lambda _call: next(faults, None)) as server:
        bill = judged(server, ledger, work("S"), PRICED)
        most = bound(server)
        assert said(server, ledger, work("S")) == ["S"]
    assert (bill.calls, bill.lost, bill.failed) == (1, 1, 0)
    assert bill.spent == pytest.approx(billed(ledger))
    assert most < bill.spent < 2 * most
    nowhere = judged(server, ledger, work("A"), replace(PRICED, attempts=3), max_cost=most * 1.5)  # it is closed now
    assert (nowhere.failed, nowhere.lost, nowhere.spent) == (1, 0, 0.0)


def test_the_ledger_keeps_the_beginning_of_what_cannot_be_read(ledger: Ledger) -> None:
    faults = iter([fake.page("<b>" + "x" * 1_000_000)])
    with vendor(script, lambda _call: next(faults, None)) as server:
        judged(server, ledger, work("S"))
        assert said(server, ledger, work("S")) == ["S"]
    (lost,), _ = rows(ledger, "raw")
    assert json.loads(lost)["said"].startswith("<b>xxx")
    assert len(lost) < 3_000


# One cap of several


def test_two_that_ask_at_once_under_one_cap_keep_it_together(tmp_path: Path) -> None:
    """Each thread has a ledger and a budget of its own, as two processes have."""
    ends: list[BudgetError] = []
    both = threading.Barrier(2)

    def one(name: str) -> None:
        with Ledger(tmp_path / "ledger.db") as ledger:
            both.wait(10)
            with pytest.raises(BudgetError) as caught:
                client.ask(
                    [job(server, work("S" * 40, name=name), PRICED, batch=1)], ledger, budget=Budget(CapPolicy(cap))
                )
            ends.append(caught.value)

    def dear(answer: Answer) -> Answer:
        prompt = (answer.usage or {})["prompt"]
        output = int((most * 1e6 - prompt * PRICE.input) / PRICE.output)
        return fake.slow(0.1)(fake.used(prompt=prompt, output=output)(answer))

    with vendor(script, lambda call: fake.drop if "7 S" in str(call.passages) else dear) as server:
        most = bound(server)
        cap = 12.5 * most
        threads = [threading.Thread(target=one, args=(name,)) for name in ("左", "右")]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
    assert 10 <= len(server.calls) <= 12
    assert len(ends) == 2
    assert "other processes under this cap" in str(ends[-1])
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert 9.9 * most < billed(ledger) <= cap


def test_who_counts_under_a_cap(ledger: Ledger) -> None:
    dead = set[str]()
    first, second, third = (Caps(ledger, name, "a:10:USD", dead.__contains__) for name in ("1", "2", "3"))
    other = Caps(ledger, "4", "b:10:USD", dead.__contains__)
    assert first.take(10.0, 0.0, 0.0, 4.0).allowed == 4.0
    room = second.take(10.0, 0.0, 0.0, 4.0)
    assert (room.allowed, room.elsewhere, room.returning) == (4.0, 4.0, True)
    assert other.take(10.0, 0.0, 0.0, 9.0).allowed == 9.0  # another cap
    assert first.take(10.0, 4.0, 0.0, 4.0).allowed == 0.0  # no room: 4 spent here, 4 held there
    dead.add("2")  # killed: nobody knows what became of what it held
    room = first.take(10.0, 4.0, 0.0, 3.0)
    assert (room.allowed, room.elsewhere, room.returning) == (0.0, 4.0, False)
    first.leave(4.0)
    assert third.take(10.0, 0.0, 0.0, 10.0).allowed == 10.0  # a command that begins when all others are over
