"""The one door to a model, against a real HTTP server that fails in every way: paid once, never guessed, never lost."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from curate.ask import rating
from curate.ask.judges.llm import LlmJudge
from curate.core.errors import BudgetError, ProviderError, RunFailed
from curate.core.messages import Request, Usage
from curate.core.protocols import Provider
from curate.core.records import Outcome
from curate.ledger import Ledger
from curate.llm import client
from curate.llm.budget import Budget, CapPolicy, Meter, plan
from curate.llm.client import Account, Job
from curate.llm.cost import EstimatedUsage
from curate.llm.providers.openai import OpenAIProvider
from curate.llm.providers.sdk import SdkProvider
from curate.llm.providers.settings import ProviderConfig
from curate.llm.token_rate import TokenRate, token_rate
from curate.retrieval.encoders.api import Api
from curate.retrieval.encoders.api import Config as ApiConfig
from curate.system import http
from tests import vendor as fake
from tests.support.asking import (
    FAST,
    PRICE,
    PRICED,
    bound,
    cut,
    guess,
    job,
    judged,
    key,
    llm,
    paid_twice,
    rows,
    said,
    script,
    sizes,
    standing,
    work,
)
from tests.support.rows import sql
from tests.vendor import Answer, Call, Fault, Vendor, vendor

ONE = replace(FAST, concurrency=1)


def named(model: str) -> Fault:
    return lambda answer: replace(answer, model=model)


def test_every_passage_gets_its_grade_and_every_reply_is_kept(ledger: Ledger) -> None:
    jobs = work("SABCD" * 5)
    with vendor(script, lambda _call: fake.used(prompt=1000, output=100, cached=200)) as server:
        bill = judged(server, ledger, jobs, PRICED)
        assert said(server, ledger, jobs) == list("SABCD" * 5)
    assert sorted(sizes(server)) == [5, 10, 10]
    assert (bill.calls, bill.failed) == (3, 0)
    assert bill.spent == pytest.approx(3 * (0.0008 * 2 + 0.0002 * 2 + 0.001))
    kept = rows(ledger, "run, purpose, model, finish, prompt_tokens, cached_tokens, output_tokens")
    assert kept == [("bench", "judge", "m-1", "stop", 1000, 200, 100)] * 3
    assert all("P1" in raw for (raw,) in rows(ledger, "raw"))
    assert len(set(rows(ledger, "request_digest"))) == 3


def test_the_order_of_slots_is_the_order_of_the_prompt(ledger: Ledger) -> None:
    with vendor(script) as server:
        judged(server, ledger, work("SABCD"), ONE, batch=3)
        found = standing(server, ledger).sort("call_id", "slot").select("grade", "slot", "batch_size").rows()
    assert found == [("S", 0, 3), ("A", 1, 3), ("B", 2, 3), ("C", 0, 2), ("D", 1, 2)]


@pytest.mark.parametrize("header", ["0.5", "500 ms"])
def test_retry_after_is_obeyed(ledger: Ledger, header: str) -> None:
    arrived: list[float] = []

    def faults(_call: Call) -> Fault | None:
        arrived.append(time.monotonic())
        waits = {"retry-after": "0.5"} if header == "0.5" else {"retry-after-ms": "500"}
        return (lambda answer: replace(answer, status=429, headers=waits)) if len(arrived) == 1 else None

    with vendor(script, faults) as server:
        judged(server, ledger, work("SB"))
        assert said(server, ledger, work("SB")) == ["S", "B"]
    assert len(arrived) == 2
    assert arrived[1] - arrived[0] >= 0.5
    assert ledger.count("calls") == 1


def test_what_passes_is_tried_again_with_growing_pauses(ledger: Ledger) -> None:
    arrived: list[float] = []
    faults = iter([fake.error(500), fake.error(529), fake.drop, fake.page("<html>gateway</html>"), None])

    def fault(_call: Call) -> Fault | None:
        arrived.append(time.monotonic())
        return next(faults)

    with vendor(script, fault) as server:
        judged(server, ledger, work("SB"), replace(FAST, wait_s=0.05))
        assert said(server, ledger, work("SB")) == ["S", "B"]
    pauses = [after - before for before, after in pairwise(arrived)]
    assert all(pause >= floor for pause, floor in zip(pauses, (0.05, 0.1, 0.2, 0.4), strict=True))


def test_what_never_passes_is_failed_and_no_grade(ledger: Ledger) -> None:
    with vendor(script, lambda _call: fake.error(503)) as server:
        bill = judged(server, ledger, work("SB"), replace(FAST, attempts=3))
        assert said(server, ledger, work("SB")) == ["failed", "failed"]
    assert len(server.calls) == 3
    assert (bill.calls, bill.failed) == (0, 1)
    [(finish, raw, tokens)] = rows(ledger, "finish, raw, prompt_tokens")
    assert (finish, tokens, json.loads(raw)["too_long"]) == ("error", None, False)
    assert "HTTP 503" in json.loads(raw)["error"]
    assert standing(server, ledger)["grade"].to_list() == [None, None]


BROKEN: dict[str, tuple[Fault, list[int]]] = {
    "one label is missing": (fake.missing("P3"), [4, 1]),
    "two labels are missing": (fake.missing("P1", "P4"), [4, 2]),
    "a foreign label": (fake.edit(lambda grades: {**grades, "P9": "S", "X": "S"}), [4]),
    "a label twice, the same": (fake.says('{"P1": "S", "P1": "S", "P2": "A", "P3": "B", "P4": "C"}'), [4]),
    "a label twice, otherwise": (fake.says('{"P1": "S", "P1": "D", "P2": "A", "P3": "B", "P4": "C"}'), [4, 1]),
    "a letter that is no grade": (fake.edit(lambda grades: {**grades, "P2": "E"}), [4, 1]),
    "cut inside the third item": (fake.cut(25), [4, 2]),
    "cut at once": (fake.cut(0), [4, 2, 2]),
    "truncated JSON that claims to be whole": (fake.says('{"P1": "S", "P2": "A", "P3'), [4, 2, 2]),
    "prose": (fake.says("P1 is S, P2 is A, P3 is B, P4 is C."), [4, 2, 2]),
    "thoughts and no answer": (fake.null_content, [4, 2, 2]),
    "a refusal": (fake.refusal, [4, 2, 2]),
    "an empty object": (fake.says("{}"), [4, 2, 2]),
}


@pytest.mark.parametrize(("fault", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_broken_reply_is_mended_by_smaller_calls(ledger: Ledger, fault: Fault, expected: list[int]) -> None:
    with vendor(script, [fault]) as server:
        judged(server, ledger, work("SABC"), ONE)
        assert said(server, ledger, work("SABC")) == ["S", "A", "B", "C"]
    assert sizes(server) == expected
    assert ledger.count("calls") == len(expected)
    assert ledger.count("ratings") == 4


def test_foreign_and_repeated_labels_are_counted(ledger: Ledger) -> None:
    text = '{"P1": "S", "P1": "S", "P2": "A", "P7": "D", "query": "S"}'
    with vendor(script, [fake.says(text)]) as server:
        judged(server, ledger, work("SA"))
    assert rows(ledger, "foreign_labels, repeated_labels") == [(2, 1)]


def test_nonsense_to_the_end_is_unparsed(ledger: Ledger) -> None:
    with vendor(script, lambda _call: fake.says("好的")) as server:
        bill = judged(server, ledger, work("SAB"), ONE)
        assert said(server, ledger, work("SAB")) == ["unparsed"] * 3
    assert sorted(sizes(server), reverse=True) == [3, 2, 1, 1, 1]
    assert bill.calls == ledger.count("calls") == 5


TOO_LONG = {
    "openai": fake.error(400, "context_length_exceeded", "too many tokens"),
    "anthropic": fake.error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    "compatible": fake.error(400, "", "This model's maximum context length is 4096 tokens."),
    "proxy": fake.error(413),
}


SPLIT: dict[str, tuple[Callable[[Call], Fault | None], list[str], list[int]]] = {
    "halves, then one by one, until the bad one stands alone": (
        lambda call: fake.refusal if any("段落5" in text for text in call.passages.values()) else None,
        [*"SABCD", "refused", *"AB"],
        [8, 4, 4, 2, 2, 1, 1],
    ),
    "one answer at a time": (lambda _call: fake.edit(lambda grades: {"P1": grades["P1"]}), [*"SABC"], [4, 3, 2, 1]),
} | {
    f"too long, {name}": (
        partial(lambda fault, call: fault if len(call.passages) > 2 else None, fault),
        [*"SABCD"],
        [5, 3, 2, 2, 1],
    )
    for name, fault in TOO_LONG.items()
}


@pytest.mark.parametrize(("faults", "expected", "calls"), SPLIT.values(), ids=SPLIT)
def test_what_cannot_be_answered_at_once_is_split(
    ledger: Ledger, faults: Callable[[Call], Fault | None], expected: list[str], calls: list[int]
) -> None:
    grades = "SABCDSAB"[: len(expected)]
    with vendor(script, faults) as server:
        judged(server, ledger, work(grades), ONE)
        assert said(server, ledger, work(grades)) == expected
    assert sizes(server) == calls
    assert ledger.count("calls") == len(calls)


def test_a_passage_that_is_too_long_alone_is_refused(ledger: Ledger) -> None:
    def faults(call: Call) -> Fault | None:
        return TOO_LONG["openai"] if any("段落1" in text for text in call.passages.values()) else None

    with vendor(script, faults) as server:
        judged(server, ledger, work("SAB"), ONE)
        assert said(server, ledger, work("SAB")) == ["S", "refused", "B"]


BAD = fake.error(400, "invalid_request_error", "unknown field: response_format")


def test_a_text_that_is_refused_is_found_by_halves_and_booked_with_the_vendors_words(ledger: Ledger) -> None:
    """No list of codes or words: any refusal by a judge that answers others is for the text."""
    words = {400: "Content Exists Risk", 403: "flagged", 406: "拒绝", 422: "", 451: "<html>no</html>"}
    for status, body in words.items():
        judge, refusal = f"m-{status}", fake.error(status, "unheard_of", body)

        def faults(call: Call, refusal: Fault = refusal) -> Fault | None:
            return refusal if "段落2 B" in call.passages.values() else None

        with vendor(script, faults) as server:
            bill = judged(server, ledger, work("SABC"), ONE, batch=4, model=judge)
            assert said(server, ledger, work("SABC"), model=judge) == ["S", "A", "refused", "C"], status
        assert (sizes(server), bill.failed) == ([4, 2, 2, 1, 1], 3)
    assert any("Content Exists Risk" in raw for (raw,) in rows(ledger, "raw"))


def test_the_first_texts_may_be_those_that_are_refused(ledger: Ledger) -> None:
    with vendor(script, lambda call: BAD if {"段落0 S", "段落1 A"} & {*call.passages.values()} else None) as server:
        judged(server, ledger, work("SABC"), ONE, batch=1)
        assert said(server, ledger, work("SABC")) == ["refused", "refused", "B", "C"]


def test_a_refusal_before_any_answer_waits_for_the_slower_answers(ledger: Ledger) -> None:
    """A content filter refuses in milliseconds, answers take seconds: ten quick refusals would end the judge."""
    with vendor(script, lambda call: BAD if "段落1 A" in call.passages.values() else fake.slow(1)) as server:
        judged(server, ledger, work("SABC"), FAST, batch=1)
        assert said(server, ledger, work("SABC")) == ["S", "refused", "B", "C"]
    assert len(server.calls) == 5


def test_a_judge_that_answers_nothing_is_misconfigured(ledger: Ledger) -> None:
    with vendor(script, lambda _call: BAD) as server, pytest.raises(ProviderError, match="json_mode"):
        judged(server, ledger, work("S" * 40), ONE, batch=4)
    assert 10 <= len(server.calls) <= 12, "what is in flight is awaited"
    assert ledger.count("ratings") == 0, "a setting that is wrong is no refusal of a text"


def test_refusals_in_a_row_stop_the_judge(ledger: Ledger) -> None:
    jobs = work("S" * 60)
    with vendor(script, lambda call: None if "段落0 S" in call.passages.values() else BAD) as server:
        with pytest.raises(ProviderError, match=r"5 requests in a row .*json_mode"):
            judged(server, ledger, jobs, ONE, batch=1)
        told = said(server, ledger, jobs)
    assert [told.count(status) for status in ("S", "refused", "failed", None)] == [1, 40, 5, 14]


def test_half_a_reply_that_ended_for_no_known_reason_is_asked_again(ledger: Ledger) -> None:
    """A whole object counts whatever its end is called, also where it lacks a label."""

    def broke_off(answer: Answer) -> Answer:
        return replace(answer, text=(answer.text or "")[:9], finish="network_error")

    def nameless(answer: Answer) -> Answer:
        return replace(fake.missing("P2")(answer), finish="eos")

    with vendor(script, [broke_off, nameless]) as server:
        judged(server, ledger, work("SA"), ONE, batch=2)
        assert said(server, ledger, work("SA")) == ["S", "A"]
        assert sizes(server) == [2, 2, 1], "the half one again, then what the whole one lacked"


def test_an_error_in_the_place_of_an_answer_is_asked_again_and_free(ledger: Ledger) -> None:
    pages = ['{"error": {"message": "busy"}}', '{"choices": null}', '{"choices": [], "error": {"code": "429"}}']
    with vendor(script, [fake.page(page) for page in pages]) as server:
        bill = judged(server, ledger, work("S"), ONE)
        assert said(server, ledger, work("S")) == ["S"]
    assert (bill.calls, bill.failed) == (1, 0)
    with vendor(script, lambda _call: fake.page('{"error": {"code": 402, "message": "no credits"}}')) as server:
        with pytest.raises(ProviderError, match=r"402 \(no credits\)"):
            judged(server, ledger, work("A"), ONE, model="poor")
        assert len(server.calls) == 1


def test_long_requests_in_a_row_do_not(ledger: Ledger) -> None:
    fault = TOO_LONG["openai"]
    with vendor(script, lambda call: fault if len(call.passages) > 1 else None) as server:
        judged(server, ledger, work("SABCD" * 4), FAST, batch=2)
        assert said(server, ledger, work("SABCD" * 4)) == list("SABCD" * 4)


def test_nobody_waits_for_an_hour(ledger: Ledger) -> None:
    started = time.monotonic()
    with vendor(script, [fake.error(429, "rate_limit_exceeded", retry_after=3600)]) as server:
        judged(server, ledger, work("SA"), ONE, batch=1)
        assert said(server, ledger, work("SA")) == ["failed", "A"]
    assert time.monotonic() - started < 20
    [(raw,), _] = rows(ledger, "raw")
    assert "asks to wait 3,600 s" in json.loads(raw)["error"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (fake.error(402, "insufficient_quota", "You exceeded your current quota"), "may spend no more"),
        (fake.error(401, "invalid_api_key"), "check the key"),
        (fake.error(404, "model_not_found"), "check model"),
    ],
)
def test_a_fatal_answer_stops_the_judge_and_keeps_what_is_in_flight(ledger: Ledger, fault: Fault, words: str) -> None:
    jobs = work("S" * 40)

    def faults(call: Call) -> Fault | None:
        return fault if "段落9 S" in call.passages.values() else fake.slow(0.2)

    with vendor(script, faults) as server, pytest.raises(ProviderError, match=words):
        judged(server, ledger, jobs, batch=1)
    assert 10 <= len(server.calls) <= 13  # nothing is sent after the fatal answer
    assert ledger.count("calls") == len(server.calls) - 1
    assert said(server, ledger, jobs).count("S") == len(server.calls) - 1
    assert "failed" not in said(server, ledger, jobs)


def test_a_fatal_answer_ends_long_pauses(ledger: Ledger) -> None:
    def faults(call: Call) -> Fault | None:
        waits = "段落0" in next(iter(call.passages.values()))
        return fake.error(503, retry_after=60) if waits else lambda answer: fake.error(401)(fake.slow(0.3)(answer))

    started = time.monotonic()
    with vendor(script, faults) as server, pytest.raises(ProviderError, match="401"):
        judged(server, ledger, work("SS"), batch=1)
    assert time.monotonic() - started < 10
    assert said(server, ledger, work("SS")) == [None, None]


def test_tasks_are_taken_as_slots_become_free(ledger: Ledger) -> None:
    taken = 0

    def counted(server: Vendor) -> Iterator[client.Task]:
        nonlocal taken
        judge, _ = llm(server)
        for task in rating.tasks(judge, cut(work("S" * 100), 1), key(server)):
            taken += 1
            yield task

    with vendor(script, [fake.error(401)]) as server, pytest.raises(ProviderError):
        client.ask([Job("m", counted(server), llm(server)[1], Account("j"), ONE)], ledger)
    assert taken <= 3


def test_no_more_calls_at_once_than_allowed(ledger: Ledger) -> None:
    with vendor(script, lambda _call: fake.slow(0.1)) as server:
        judged(server, ledger, work("S" * 24), replace(FAST, concurrency=6), batch=1)
    assert server.peak == 6


def test_progress_counts_items_up_to_the_total(ledger: Ledger) -> None:
    seen: list[tuple[int, int]] = []
    with vendor(script, [fake.missing("P2", "P3")]) as server:
        judge, asked = llm(server)
        tasks = rating.tasks(judge, work("SABC"), key(server))
        progress = lambda _label, total, done, _money="": seen.append((total, done))  # noqa: E731 - one expression
        client.ask([Job("m", tasks, asked, Account("j"), ONE, total=4)], ledger, progress=progress)
    assert seen == [(4, 0), (4, 2), (4, 4)]


# Money


def all_used(server: Vendor) -> Fault:
    """Report that a call on one passage used all that it may."""
    most = Meter(PRICE).most(guess(server))
    return fake.used(prompt=most.prompt, output=most.output)


def test_the_cap_is_never_passed_and_calls_in_flight_count(ledger: Ledger) -> None:
    with vendor(script) as server:
        most = bound(server, "S")
        dear = all_used(server)
        server.faults = lambda _call: lambda answer: fake.slow(0.05)(dear(answer))
        cap = 5.5 * most
        with pytest.raises(BudgetError, match="raise --max-cost"):
            judged(server, ledger, work("S" * 40), PRICED, batch=1, max_cost=cap)
    assert len(server.calls) == ledger.count("calls") == 5
    [(total,)] = rows(ledger, "sum(cost)")
    assert 4.9 * most < total <= cap


def test_near_the_cap_calls_wait_for_those_in_flight(ledger: Ledger) -> None:
    price = PRICE.model_copy(update={"input": 0.0})
    with vendor(script) as server:
        cheap, most = fake.used(prompt=guess(server).prompt, output=1), Meter(price).bound(guess(server))
        server.faults = lambda _call: lambda answer: fake.slow(0.03)(cheap(answer))
        limits = replace(FAST, price=price)
        bill = judged(server, ledger, work("S" * 20), limits, batch=1, max_cost=2.5 * most)
    assert bill.calls == 20
    assert server.peak == 2
    assert bill.spent < most


@pytest.mark.parametrize("share", [0.5, 1.4])
def test_what_a_vendor_told_is_what_the_next_plan_counts(ledger: Ledger, share: float) -> None:
    def half(answer: Answer) -> Answer:
        return fake.used(prompt=round(share * guess(server).prompt), output=10)(answer)

    with vendor(script, lambda call: fake.no_usage if "段落3 S" in call.passages.values() else half) as server:
        judged(server, ledger, work("S" * 10), PRICED, batch=1, max_cost=1.0)
        before = token_rate(ledger, key(server).judge_digest, key(server).rubric_digest, 0.86)
        judged(server, ledger, work("A" * 2), PRICED, batch=1, max_cost=1.0)
        after = token_rate(ledger, key(server).judge_digest, key(server).rubric_digest, 0.86)
        other = token_rate(ledger, key(server).judge_digest, "another template", 0.86)
        sent = guess(server)
    assert (before.answers, after.answers, other.answers) == (9, 11, 0)  # a call without usage tells nothing
    assert before.expected(sent) == other.expected(sent) == sent.prompt_with(0.86)
    assert after.expected(sent) == pytest.approx(share * sent.prompt, rel=0.01)


def test_unknown_usage_is_charged_at_its_bound(ledger: Ledger) -> None:
    with vendor(script, lambda _call: fake.no_usage) as server:
        cap = 3.5 * bound(server, "S")
        with pytest.raises(BudgetError):
            judged(server, ledger, work("S" * 20), PRICED, batch=1, max_cost=cap)
    assert len(server.calls) == 3
    most = pytest.approx(bound(server, "S"), rel=0.02)  # prompts differ by a digit
    assert rows(ledger, "cost, prompt_tokens, output_tokens") == [(most, None, None)] * 3


def test_an_answer_beyond_its_bound_is_believed() -> None:
    meter, guess = Meter(PRICE), EstimatedUsage(output=100_000)
    assert meter.bound(guess) == 1.0
    meter.learn(guess, Usage(output=300_000))
    assert (meter.bound(guess), meter.tokens(guess)) == (3.0, 300_000)
    meter.learn(guess, Usage(output=50_000))
    assert meter.bound(guess) == 3.0


def test_a_prompt_may_all_be_written_to_a_cache_that_is_dear() -> None:
    dear = PRICE.model_copy(update={"written": 2.5})
    guess = EstimatedUsage(1_000_000)
    assert Meter(dear).bound(guess) == pytest.approx(1.25 * Meter(PRICE).bound(guess))


def test_the_cap_holds_for_what_is_spent_and_what_is_in_flight() -> None:
    budget = Budget(CapPolicy(10.0), spent=3.0)
    first = budget.hold(3.0)
    budget.hold(3.0)
    assert not budget.fits(3.0)
    first.turn(0.5)
    assert budget.fits(3.0)


def test_a_cap_needs_a_price(ledger: Ledger) -> None:
    with vendor(script) as server, pytest.raises(BudgetError, match="without prices: give openai:m-1,"):
        judged(server, ledger, work("S"), max_cost=1.0)
    assert server.calls == []


def test_a_plan_is_a_sum_of_bounds() -> None:
    request = Request((), max_tokens=1000)
    assert plan([request, request], PRICE, TokenRate()).cost == pytest.approx(0.02)
    assert plan([request], None, TokenRate()).cost is None
    nothing = plan([], PRICE, TokenRate())
    assert (nothing.calls, nothing.cost) == (0, 0.0)


# Models


def test_a_reply_that_names_another_model_stops_the_judge(ledger: Ledger) -> None:
    with vendor(script, [named("m-1-0301"), named("m-1-0301"), named("m-1-0915")]) as server:
        with pytest.raises(RunFailed, match=r"m-1-0301, m-1-0915.*mixed_models"):
            judged(server, ledger, work("S" * 20), ONE, batch=1)
        assert len(server.calls) == ledger.count("calls") == 3
        with pytest.raises(RunFailed, match="m-1-0301, m-1-0915"):
            judged(server, ledger, work("S" * 20), ONE, batch=1)
        assert len(server.calls) == 3  # the next asking sends nothing
        judged(server, ledger, work("SSS"), replace(ONE, mixed_models=True), batch=1)
        assert len(server.calls) == 6


def test_a_model_that_changes_between_two_askings_is_noticed(ledger: Ledger) -> None:
    with vendor(script, [named("old"), named("new")]) as server:
        judged(server, ledger, work("SA"), ONE)
        with pytest.raises(RunFailed, match="old, new"):
            judged(server, ledger, work("BC", name="另"), ONE)


def test_a_refusal_that_names_no_model_is_no_change(ledger: Ledger) -> None:
    filtered = fake.error(400, "content_filter", "filtered")
    with vendor(script, [None, filtered]) as server:
        judged(server, ledger, work("SA"), ONE, batch=1)
        assert said(server, ledger, work("SA")) == ["S", "refused"]
    assert rows(ledger, "model, finish") == [("m-1", "stop"), ("", "refusal")]


# Ends


def interrupting(at: int, times: int, delay: float) -> Callable[[Call], Fault]:
    """Press Ctrl-C when the nth call arrives; all answers take a while."""
    arrived = iter(range(1, 1000))

    def faults(_call: Call) -> Fault:
        if next(arrived) == at:
            for press in range(times):
                time.sleep(0.2 * press)
                os.kill(os.getpid(), signal.SIGINT)
        return fake.slow(delay)

    return faults


def test_ctrl_c_keeps_the_answers_in_flight(ledger: Ledger) -> None:
    jobs = work("S" * 40)
    with vendor(script, interrupting(at=8, times=1, delay=0.3)) as server, pytest.raises(RunFailed, match="goes on"):
        judged(server, ledger, jobs, batch=1)
    assert 8 <= len(server.calls) <= 12
    assert ledger.count("calls") == said(server, ledger, jobs).count("S") == len(server.calls)
    assert paid_twice(server) == {}


def test_a_program_keeps_its_own_way_with_ctrl_c(ledger: Ledger) -> None:
    def own(_signal: int, _frame: object) -> None:
        raise AssertionError("not while asking")

    before = signal.signal(signal.SIGINT, own)
    try:
        with vendor(script, interrupting(at=1, times=1, delay=0.1)) as server, pytest.raises(RunFailed):
            judged(server, ledger, work("S" * 20), batch=1)
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_stops_at_once(ledger: Ledger) -> None:
    started = time.monotonic()
    with vendor(script, interrupting(at=4, times=2, delay=4.0)) as server:
        with pytest.raises(RunFailed):
            judged(server, ledger, work("S" * 40), batch=1)
        assert time.monotonic() - started < 3
    assert rows(ledger, "finish, form") == [("error", "lost")] * 4  # they were sent, and may be paid


def test_it_runs_in_a_thread_that_takes_no_signals(ledger: Ledger) -> None:
    with vendor(script) as server:
        thread = threading.Thread(target=judged, args=(server, ledger, work("SAB")))
        thread.start()
        thread.join(timeout=20)
        assert said(server, ledger, work("SAB")) == ["S", "A", "B"]


def tasks_with(server: Vendor, grades: str, **changed: Any) -> Iterator[client.Task]:
    """Yield a task per passage, the third one changed."""
    judge, _ = llm(server)
    for number, task in enumerate(rating.tasks(judge, cut(work(grades), 1), key(server))):
        yield replace(task, **changed) if number == 2 else task


def test_an_unexpected_error_surfaces_as_itself_and_keeps_the_rest(ledger: Ledger) -> None:
    def broken(_reply: object) -> client.ReplyResult:
        raise ZeroDivisionError("a bug in reading")

    def faults(call: Call) -> Fault | None:
        return fake.slow(0.3) if "段落2" not in next(iter(call.passages.values())) else None

    with vendor(script, faults) as server, pytest.raises(ZeroDivisionError, match="a bug"):
        client.ask([Job("m", tasks_with(server, "S" * 20, read=broken), llm(server)[1], Account("j"), FAST)], ledger)
    assert len(server.calls) <= 5
    assert ledger.count("calls") == len(server.calls)  # the reply that could not be read is paid, too
    assert [form for (form,) in rows(ledger, "form")].count("broken") == 1


def test_an_error_in_the_tasks_themselves_surfaces_too(ledger: Ledger) -> None:
    def tasks(server: Vendor) -> Iterator[client.Task]:
        yield from tasks_with(server, "S" * 9)
        raise KeyError("a bug in building")

    with vendor(script, lambda _call: fake.slow(0.2)) as server, pytest.raises(KeyError, match="a bug"):
        client.ask([Job("m", tasks(server), llm(server)[1], Account("j"), FAST)], ledger)
    assert ledger.count("calls") == len(server.calls) >= 5  # those in flight at the end are written


def test_a_full_ledger_stops_with_a_sentence_and_never_hangs(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    groups, writer = iter(range(100)), ledger._writer
    commit = writer._commit

    def full(group: Any) -> None:
        if next(groups) >= 2:
            raise OSError(28, "No space left on device")
        commit(group)

    monkeypatch.setattr(writer, "_commit", full)
    with vendor(script) as server, pytest.raises(OSError, match="No space left"):
        judged(server, ledger, work("S" * 30), batch=1)
    assert len(server.calls) < 15


# All together


def chaos(seed: int) -> Callable[[Call], Fault | None]:
    """Break every third call or so in a way that a seed and its turn decide."""
    kinds: list[Fault] = [
        fake.error(429, retry_after=0.01),
        fake.error(500),
        fake.drop,
        fake.page("<html></html>"),
        fake.cut(20),
        fake.missing("P1"),
        fake.says("{}"),
        fake.says("```json\n{"),
        fake.null_content,
        fake.no_usage,
        fake.refusal,
        fake.edit(lambda grades: {**grades, "P1": "Z", "P99": "S"}),
    ]
    turns = iter(range(10**6))

    def faults(_call: Call) -> Fault | None:
        turn = next(turns) * 7 + seed
        return kinds[turn % len(kinds)] if turn % 3 == 0 else None

    return faults


@pytest.mark.parametrize("seed", [1, 2])
def test_in_chaos_no_grade_is_wrong_and_none_is_lost(ledger: Ledger, seed: int) -> None:
    jobs = [each for n in range(6) for each in work("SABCDDCBAS" * 3, name=f"第{n}组")]
    with vendor(script, chaos(seed)) as server:
        judged(server, ledger, jobs, replace(FAST, concurrency=8, attempts=10))
        found = said(server, ledger, jobs)
    truth = [passage.text[-1] for each in jobs for passage in each.passages]
    wrong = [(right, got) for right, got in zip(truth, found, strict=True) if got not in (right, "refused", "unparsed")]
    assert wrong == []
    assert found.count("refused") + found.count("unparsed") < 20
    assert ledger.count("ratings") == len(truth)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_rating_can_be_derived_from_the_calls(ledger: Ledger, seed: int) -> None:
    """Chaos and passages too long or too bad for any prompt: prompts and replies alone give all that was written."""

    def faults(call: Call) -> Fault | None:
        shown = " ".join(call.passages.values())
        return TOO_LONG["proxy"] if "组5" in shown else BAD if "组17" in shown else broken(call)

    broken, jobs = chaos(seed), work("SABCDDCBAS" * 3, name="组")
    with vendor(script, faults) as server:
        judged(server, ledger, jobs, replace(FAST, attempts=10), batch=4)
        judge, asked = llm(server)
    columns = "judge_digest, rubric_digest, replicate, query_digest, slots, finish, raw, call_id"
    derived: dict[tuple[object, ...], tuple[str | None, str]] = {}
    for *pair, slots, finish, raw, _ in rows(ledger, columns):
        shown = json.loads(slots)
        for passage, outcome in zip(shown, read_again(judge, asked, finish, raw, len(shown)), strict=True):
            before = derived.get((*pair, passage), (None, ""))
            derived[*pair, passage] = (outcome.grade, outcome.status) if before[0] is None else before
    columns = "judge_digest, rubric_digest, replicate, query_digest, passage_digest, grade, status"
    kept = sql(ledger, f"SELECT {columns} FROM ratings ORDER BY rating_id")
    assert {row[:5]: row[5:] for row in kept} == derived
    assert {status for _, status in derived.values()} >= {"rated", "refused"}


def read_again(judge: LlmJudge, asked: Provider, finish: str, raw: str, number: int) -> list[Outcome]:
    if finish == "error":
        return [Outcome(None, "refused" if json.loads(raw)["too_long"] else "failed")] * number
    assert isinstance(asked, SdkProvider)
    reply = asked.read(json.loads(raw), raw)
    assert reply is not None
    return judge.parse(reply, number)


def test_answers_are_named_by_what_they_answer(ledger: Ledger) -> None:
    """Two queries at once: no answer is written down for the other one."""
    delays = {"段落": 0.2, "另": 0.0}

    def faults(call: Call) -> Fault:
        return fake.slow(next(delay for name, delay in delays.items() if name in next(iter(call.passages.values()))))

    jobs = work("SSSS") + work("DDDD", name="另")
    with vendor(script, faults) as server:
        judged(server, ledger, jobs)
        assert said(server, ledger, jobs) == list("SSSSDDDD")


def test_a_model_that_never_answers_in_form_is_given_up(tmp_path: Path) -> None:
    """Every reply is paid, and asking in smaller parts multiplies them: no call is sent that cannot tell anything."""
    with vendor(script, faults=lambda _call: fake.says("I am a teapot")) as server, Ledger(tmp_path / "l.db") as ledger:
        with pytest.raises(RunFailed, match=r"10 answers in a row .* 'I am a teapot'; try another json_mode"):
            judged(server, ledger, work("SABCD" * 40))
        assert len(server.calls) == client.MOST_UNREADABLE


def test_a_model_that_could_be_read_before_is_given_up_later(tmp_path: Path) -> None:
    """Of another process it may be, too: then the ledger tells."""
    with vendor(script) as server, Ledger(tmp_path / "l.db") as ledger:
        judged(server, ledger, work("SABCD"))
        known = len(server.calls)
        server.faults = lambda _call: fake.says("I am a teapot")
        with pytest.raises(RunFailed, match="answers in a row gave nothing"):
            judged(server, ledger, work("SABCD" * 40, name="另"))
        assert 0 <= len(server.calls) - known - client.MOST_FRUITLESS <= FAST.concurrency


def test_refusals_are_answers_that_can_be_read(tmp_path: Path) -> None:
    with vendor(script, faults=lambda _call: fake.refusal) as server, Ledger(tmp_path / "l.db") as ledger:
        with pytest.raises(RunFailed, match=r"gave nothing .* refusals; choose another model(?!.*json_mode)"):
            judged(server, ledger, work("SABCD" * 40))
        assert 0 <= len(server.calls) - client.MOST_FRUITLESS <= FAST.concurrency


def test_a_server_that_is_down_is_given_up_and_named(tmp_path: Path) -> None:
    with vendor(script) as server:
        url = server.url
    with Ledger(tmp_path / "l.db") as ledger, pytest.raises(ProviderError, match=f"no answer from {url}"):
        judged(server, ledger, work("SABCD" * 40), replace(FAST, attempts=2))


# Side by side


def test_judges_are_asked_side_by_side(ledger: Ledger) -> None:
    jobs = work("SABCD" * 4)
    with vendor(script, lambda _call: fake.slow(0.1)) as server:
        both = [job(server, jobs, batch=1, model=name) for name in ("m-1", "m-2")]
        bills = client.ask(both, ledger)
        assert said(server, ledger, jobs, model="m-1") == said(server, ledger, jobs, model="m-2") == list("SABCD" * 4)
    assert [bill.calls for bill in bills.values()] == [20, 20]
    assert server.peak == 2 * FAST.concurrency


def test_a_judge_without_money_ends_and_the_other_finishes(ledger: Ledger) -> None:
    jobs, told = work("S" * 20), list[str]()

    def faults(call: Call) -> Fault | None:
        poor = call.model == "poor" and "段落9 S" in call.passages.values()
        return fake.error(429, "insufficient_quota") if poor else None

    with vendor(script, faults) as server:
        both = [job(server, jobs, ONE, batch=1, model=name) for name in ("poor", "rich")]
        with pytest.raises(ProviderError, match=r"poor.*spend no more"):
            client.ask(both, ledger, tell=told.append)
        assert said(server, ledger, jobs, model="rich") == ["S"] * 20
        assert said(server, ledger, jobs, model="poor") == ["S"] * 9 + [None] * 11
    [line] = told
    assert "poor: stopped, the others go on" in line


def test_a_judge_whose_key_is_wrong_from_the_start_stops_all(ledger: Ledger) -> None:
    def faults(call: Call) -> Fault:
        return fake.error(401, "invalid_api_key") if call.model == "wrong" else fake.slow(0.3)

    jobs = work("S" * 30)
    with vendor(script, faults) as server, pytest.raises(ProviderError, match="401"):
        client.ask([job(server, jobs, ONE, batch=1, model=name) for name in ("right", "wrong")], ledger)
    assert len(server.calls) <= 3
    assert ledger.count("calls") == len(server.calls) - 1


def test_reasons_of_several_judges_are_all_told(ledger: Ledger) -> None:
    jobs = work("S" * 3)
    faults = lambda call: fake.error(402) if "段落2 S" in call.passages.values() else None  # noqa: E731 - one expression
    with vendor(script, faults) as server, pytest.raises(RunFailed, match=r"m-1.*\n.*m-2"):
        client.ask([job(server, jobs, ONE, batch=1, model=name) for name in ("m-1", "m-2")], ledger)


def test_one_cap_holds_for_all_judges(ledger: Ledger) -> None:
    with vendor(script) as server:
        most = bound(server, "S")
        dear = all_used(server)
        server.faults = lambda _call: dear
        both = [job(server, work("S" * 30), PRICED, batch=1, model=name) for name in ("m-1", "m-2")]
        with pytest.raises(BudgetError):
            client.ask(both, ledger, budget=Budget(CapPolicy(9.5 * most)))
    assert len(server.calls) == 9
    assert {call.model for call in server.calls} == {"m-1", "m-2"}


# Limits of a vendor


@pytest.mark.parametrize("limits", [{"requests_per_minute": 30}, {"tokens_per_minute": 20_000}])
def test_a_vendors_limits_are_kept_in_every_minute(ledger: Ledger, limits: dict[str, Any]) -> None:
    """A minute of 1.2 s: the server counts what arrives in any second, which leaves a busy machine a little room."""
    arrived: list[tuple[float, int]] = []

    def faults(_call: Call) -> Fault:
        arrived.append((time.monotonic(), 1 if "requests_per_minute" in limits else tokens))
        return fake.used(prompt=tokens - 100, output=100)

    tokens = 900  # the estimate is a little above
    with vendor(script, faults) as server:
        pace = replace(FAST, concurrency=16, minute_s=1.2, **limits)
        judged(server, ledger, work("S" * 70), pace, batch=1)
        assert said(server, ledger, work("S" * 70)) == ["S"] * 70
    most = next(iter(limits.values()))
    for start, _ in arrived:
        assert sum(weight for at, weight in arrived if start <= at < start + 1) <= most


@pytest.mark.parametrize("limits", [{"requests_per_minute": 30}, {"tokens_per_minute": 20_000}])
def test_a_vendors_limits_are_kept_by_processes_that_begin_again(place: Path | str, limits: dict[str, Any]) -> None:
    """Each sends two requests, which alone may go at once, and the next one knows of them from the ledger."""
    arrived: list[float] = []
    tokens = 700

    def faults(_call: Call) -> Fault:
        arrived.append(time.monotonic())
        return fake.used(prompt=tokens - 100, output=100)

    pace = replace(FAST, minute_s=1.2, **limits)
    with vendor(script, faults) as server:
        for number in range(40):
            with Ledger(place) as ledger:
                judged(server, ledger, work("SS", name=f"{number} "), pace, batch=1)
    assert len(arrived) == 80
    assert max(sum(start <= at < start + 1 for at in arrived) for start in arrived) <= (
        30 if "requests_per_minute" in limits else 20_000 // tokens
    )


def test_an_overloaded_vendor_is_asked_less_at_once(ledger: Ledger) -> None:
    """More than four at once are turned away: soon no more than that are sent, and everything is rated."""
    busy: list[int] = []

    def faults(_call: Call) -> Fault:
        busy.append(server.busy)
        return fake.error(529) if server.busy > 4 else fake.slow(0.02)

    with vendor(script, faults) as server:
        judged(server, ledger, work("S" * 200), replace(FAST, concurrency=32, attempts=20), batch=1)
        assert said(server, ledger, work("S" * 200)) == ["S"] * 200
    assert sum(busy[-100:]) / 100 < 8


def test_an_outage_is_waited_for_without_losing_anything(ledger: Ledger) -> None:
    """The server is away for a while: few tries are made, and no request uses all of its own up."""
    turns = iter(range(10**6))
    faults = lambda _call: fake.error(500) if 40 <= next(turns) < 75 else None  # noqa: E731 - one expression
    with vendor(script, faults) as server:
        bill = judged(server, ledger, work("S" * 100), replace(FAST, concurrency=16), batch=1)
        assert said(server, ledger, work("S" * 100)) == ["S"] * 100
    assert (bill.calls, bill.failed) == (100, 0)


@pytest.mark.parametrize(("away", "lines"), [(range(12), 1), (range(40, 52), 0)])
def test_a_server_that_is_not_there_is_said_once_at_the_first_try(ledger: Ledger, away: range, lines: int) -> None:
    """Later, when it has answered, a pause is no news."""
    turns, told = iter(range(10**6)), list[str]()
    faults = lambda _call: fake.error(500) if next(turns) in away else None  # noqa: E731 - one expression
    with vendor(script, faults) as server:
        client.ask([job(server, work("S" * 60), batch=1)], ledger, tell=told.append)
    said = [line for line in told if line.endswith("trying again, for some minutes at most")]
    assert (len(said), all("HTTP 500" in line for line in said)) == (lines, True)


def test_an_outage_without_an_end_loses_nothing_and_is_named(ledger: Ledger) -> None:
    faults = lambda _call: fake.error(500) if ledger.count("calls") >= 30 else None  # noqa: E731 - one expression
    jobs = work("S" * 100)
    with vendor(script, faults) as server, pytest.raises(ProviderError, match=r"tries in a row failed.*HTTP 500"):
        judged(server, ledger, jobs, replace(FAST, concurrency=16), batch=1)
    assert "failed" not in said(server, ledger, jobs)
    assert len(server.calls) < 120


def test_an_outage_under_a_limit_ends_too(ledger: Ledger) -> None:
    """The probe of the breaker must not be given away while the minute is full."""
    limits = replace(FAST, concurrency=2, requests_per_minute=12, minute_s=0.5)
    with vendor(script, lambda _call: fake.error(500)) as server, pytest.raises(ProviderError, match="in a row"):
        judged(server, ledger, work("S" * 40), limits, batch=1)


def test_smaller_tasks_that_wait_for_the_only_slot_end_with_the_rest(ledger: Ledger) -> None:
    faults = [fake.says("nothing"), fake.error(402)]
    with vendor(script, faults) as server, pytest.raises(ProviderError, match="402"):
        judged(server, ledger, work("S" * 8), ONE, batch=2)


class Lookups:
    """A network in which no name leads anywhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[object] = []
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: object, *_more: object, **_named: object) -> list[object]:
        self.names.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


NAMELESS = "http://no-such-host.invalid/v1"


def test_a_name_that_leads_nowhere_is_given_up_after_three_tries(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = OpenAIProvider(ProviderConfig(kind="openai", model="m-1", base_url=NAMELESS))
    with vendor(script) as server:
        one = replace(job(server, work("S" * 40), ONE, batch=1), provider=provider)
    lookups = Lookups(monkeypatch)
    with pytest.raises(ProviderError, match=f"{NAMELESS}: the name of its host leads to no address") as caught:
        client.ask([one], ledger)
    assert (caught.value.fatal, lookups.names) == (True, ["no-such-host.invalid"] * 3)


def test_a_name_that_led_somewhere_before_is_an_outage() -> None:
    error = OSError()
    error.__cause__ = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    assert http.silent("m", NAMELESS, error, "", reached=False).unresolved
    assert not http.silent("m", NAMELESS, error, "", reached=True).unresolved
    assert not http.silent("m", NAMELESS, OSError(), "", reached=False).unresolved


def test_an_encoder_gives_a_name_up_after_three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups = Lookups(monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    encoder = Api("far", ApiConfig(base_url=NAMELESS, model="m", dim=3))
    with pytest.raises(ProviderError, match="the name of its host leads to no address"):
        encoder.encode(["text"], "query")
    assert len(lookups.names) == 3
