"""Slots, pace and breaker by themselves, on a clock of their own."""

import asyncio
import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.llm.client.limits import MOST_PROBES, Breaker, ConcurrencyLimit, RateLimit

# Gate


def test_an_overload_halves_the_slots_once_and_answers_bring_them_back() -> None:
    async def run() -> None:
        gate = ConcurrencyLimit(8)
        entries = [await gate.enter() for _ in range(8)]
        for entry in entries:  # all of them were sent before anybody knew
            gate.overloaded(entry)
        assert gate.limit == 4
        for _ in entries:
            gate.leave()
        gate.overloaded(await gate.enter())
        assert gate.limit == 2
        for _ in range(100):
            gate.good()
        assert gate.limit == 8

    asyncio.run(run())


def test_at_least_one_slot_stays() -> None:
    async def run() -> None:
        gate = ConcurrencyLimit(3)
        for _ in range(9):
            gate.overloaded(await gate.enter())
            gate.leave()
        assert gate.limit == 1

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(5))
def test_no_more_are_inside_than_there_are_slots_and_nobody_is_forgotten(seed: int) -> None:
    chance = random.Random(seed)
    inside = most = 0
    order: list[int] = []

    async def visitor(gate: ConcurrencyLimit, number: int) -> None:
        nonlocal inside, most
        entry = await gate.enter()
        order.append(number)
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(chance.random() / 1000)
        inside -= 1
        if chance.random() < 0.2:
            gate.overloaded(entry)
        else:
            gate.good()
        gate.leave()

    async def run() -> None:
        gate = ConcurrencyLimit(6)
        visitors = [asyncio.create_task(visitor(gate, number)) for number in range(60)]
        await asyncio.sleep(0)
        gave_up = set(chance.sample(visitors[6:], 10))
        for each in gave_up:
            each.cancel()
        await asyncio.gather(*visitors, return_exceptions=True)
        assert gate.open == 0
        assert sum(each.cancelled() for each in visitors) == 10

    asyncio.run(run())
    assert most <= 6
    assert len(order) == 50
    assert order == sorted(order)


# Pace


@pytest.mark.slow
@given(
    st.integers(3, 40),
    st.integers(50, 2000),
    st.lists(st.tuples(st.integers(1, 200), st.floats(0, 1), st.floats(0, 20)), min_size=1, max_size=120),
)
def test_no_minute_holds_more_than_the_limits(
    requests: int, tokens: int, calls: list[tuple[int, float, float]]
) -> None:
    """Requests of any size that take up to 7 s to arrive and up to 20 s to be answered, sent as soon as they may."""
    pace, now = RateLimit(requests, tokens), 0.0
    flying: list[tuple[float, int, object, int]] = []
    arrivals: list[tuple[float, int]] = []
    for number, (weight, way, answer) in enumerate(calls):
        while (pause := pace.pause(weight, now)) > 0:
            if flying and flying[0][0] <= now + pause:
                now, _, handle, used = heapq.heappop(flying)
                pace.replied(handle, used, now)  # type: ignore[arg-type]
            else:
                now += pause + 1e-6
        arrived = now + way * min(answer, 7.0)
        arrivals.append((arrived, weight))
        heapq.heappush(flying, (now + answer, number, pace.sent(weight, now), weight))
    arrivals.sort()
    for first, (start, _) in enumerate(arrivals):
        window = [weight for at, weight in arrivals[first:] if at < start + 60]
        assert len(window) <= requests
        assert sum(window) <= tokens or len(window) == 1


def test_a_minutes_share_is_spread_over_it() -> None:
    pace, sent, now = RateLimit(60, None), [], 0.0
    while now < 60:
        pause = pace.pause(1.0, now)
        if pause:
            now += pause
            continue
        pace.replied(pace.sent(1.0, now), 1.0, now)
        sent.append(now)
    assert len(sent) == 60
    assert max(sum(start <= at < start + 6 for at in sent) for start in sent) == 6


def test_a_request_that_used_more_than_was_thought_weighs_more() -> None:
    pace = RateLimit(None, 1000)
    sent = pace.sent(100, now=0.0)
    assert pace.pause(900, now=7.0) == 0
    pace.replied(sent, 500, now=7.0)
    assert pace.pause(900, now=7.0) == pytest.approx(60)
    assert pace.pause(500, now=14.0) == 0


def test_what_an_earlier_process_sent_counts_and_unknown_tokens_are_a_whole_minutes() -> None:
    pace = RateLimit(None, 1000)
    pace.count(95.0, 60)
    assert pace.pause(60, now=100.0) == pytest.approx(1)
    pace.count(99.0, None)
    assert pace.pause(60, now=156.0) == pytest.approx(3)
    assert pace.pause(60, now=159.0) == 0


def test_what_is_heavier_than_the_limit_goes_alone() -> None:
    pace = RateLimit(None, 1000)
    assert pace.pause(5000, now=0.0) == 0
    pace.sent(5000, now=0.0)
    assert pace.pause(1, now=0.0) > 0


def test_no_limit_is_no_pause() -> None:
    pace = RateLimit(None, None)
    for _ in range(1000):
        pace.sent(1e6, now=0.0)
    assert pace.pause(1e6, now=0.0) == 0


# Breaker


def outage(breaker: Breaker, slots: int = 4) -> None:
    while breaker.pause(0.0) == 0:
        breaker.bad(0.0, slots)


def test_failures_in_a_row_open_it_and_one_probe_at_a_time_goes_through() -> None:
    breaker = Breaker(cool_s=10)
    outage(breaker, slots=8)
    assert (breaker.failed, breaker.pause(4.0)) == (16, 6.0)
    assert breaker.pause(10.0) == 0
    assert breaker.pause(10.0) > 0  # the probe is out
    breaker.good()
    assert (breaker.pause(10.0), breaker.pause(10.0)) == (0, 0)


def test_pauses_double_up_to_a_minute_until_it_is_broken() -> None:
    breaker, now, pauses = Breaker(cool_s=10), 0.0, []
    outage(breaker)
    while not breaker.broken:
        pauses.append(breaker.pause(now))
        now += pauses[-1]
        assert breaker.pause(now) == 0
        breaker.bad(now, 4)
    assert pauses == [10, 20, 40, 60, 60]
    assert len(pauses) == MOST_PROBES


def test_an_answer_between_failures_keeps_it_closed() -> None:
    breaker = Breaker(cool_s=10)
    for turn in range(100):
        if turn % 9 == 0:
            breaker.good()
        breaker.bad(0.0, 1)
        assert breaker.pause(0.0) == 0


def test_a_probe_that_is_given_up_lets_another_go() -> None:
    breaker = Breaker(cool_s=10)
    outage(breaker)
    assert breaker.pause(10.0) == 0
    breaker.spared()
    assert breaker.pause(10.0) == 0
