"""Batches against a real HTTP server that speaks both vendors' APIs: half price, paid once, nothing lost."""

import asyncio
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from curate.core.config import text_digest
from curate.core.errors import BudgetError, ConfigError, ProviderError, RunFailed
from curate.ledger import Ledger
from curate.llm import client
from curate.llm.budget import Budget, CapPolicy, Meter
from curate.llm.client.batch import BatchJob, ask_batches, no_batch
from curate.llm.cost import Price, batch_price, estimate
from curate.llm.providers.batch import batch_provider
from tests import ROOT
from tests import vendor as fake
from tests.support.asking import QUERY, passages, rows, script, work
from tests.support.batching import FAST, PRICE, age, book, collected, configured, order, states
from tests.vendor import Call, Fate, Rules, Vendor, vendor

KEY = "sk-very-secret-0123456789"
CHILD = ROOT / "tests/support/batch_child.py"
KINDS = ["anthropic", "openai"]
both = pytest.mark.parametrize("kind", KINDS)
CREATED = {"openai": ("POST", "/batches"), "anthropic": ("POST", "/v1/messages/batches")}


LOOK = {"openai": "/batches/batch_0", "anthropic": "/v1/messages/batches/msgbatch_0"}


class Watched:
    """Rules of batches that count the requests around them, and let some of these fail."""

    def __init__(self, **more: Any) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self.troubles: dict[tuple[str, str], list[fake.Fault]] = {}
        self.rules = Rules(trouble=self.trouble, **more)

    def trouble(self, method: str, path: str) -> fake.Fault | None:
        self.seen[method, path] += 1
        waiting = self.troubles.get((method, path))
        return waiting.pop(0) if waiting else None

    def created(self, kind: str) -> int:
        return self.seen[CREATED[kind]]


@contextmanager
def serving(watched: Watched, **more: Any) -> Iterator[Vendor]:
    with vendor(script, batches=watched.rules, **more) as server:
        yield server


def grades(ledger: Ledger, letters: str) -> list[str | None]:
    """Return what the ledger holds of these passages, in order, whichever judge said it; each was rated once."""
    [digest] = {found for (found,) in rows(ledger, "judge_digest")} or {""}
    [rubric] = {found for (found,) in rows(ledger, "rubric_digest")} or {""}
    found = {row["passage_digest"]: row["grade"] or row["status"] for row in ledger.ratings(digest, rubric).to_dicts()}
    return [found.get(text_digest(each.shown())) for each in passages(letters)]


def left(one: BatchJob) -> list[int]:
    """Return the sizes of the prompts that the ledger still lacks."""
    return [len(task.slots) for task in one.tasks()]


@both
def test_a_batch_gives_every_passage_its_grade_at_half_the_price(ledger: Ledger, kind: str) -> None:
    watched, told = Watched(), list[str]()
    written = 300 if kind == "anthropic" else 0
    used = fake.used(prompt=1000, output=100, cached=200, written=written)
    with serving(watched, faults=lambda _call: used) as server:
        one = order(server.url, ledger, work("SABCD"), kind=kind)
        [found] = ask_batches([one], ledger, pace=FAST, tell=told.append)
        assert (watched.created(kind), len(server.calls), set(server.paid_in_batches.values())) == (1, 0, {1})
    assert grades(ledger, "SABCD") == list("SABCD")
    each = ((800 - written) * 2 + 200 * 1 + written * 3 + 100 * 10) / 2 / 1e6
    assert found.spent == pytest.approx(3 * each)
    assert (found.calls, left(one)) == (3, [])
    kept = rows(ledger, "run, purpose, model, finish, prompt_tokens, cached_tokens, written_tokens, cost, latency_s")
    assert [row[:-2] for row in kept] == [("bench", "judge", "m-1", "stop", 1000, 200, written)] * 3
    assert all(row[-2] == pytest.approx(each) for row in kept)
    assert states(ledger) == ["ended" if kind == "anthropic" else "completed"]
    assert ["submitted" in told[0], "3 answers" in told[1], len(told)] == [True, True, 2]


@both
def test_the_rows_are_those_of_an_online_call(ledger: Ledger, tmp_path: Path, kind: str) -> None:
    columns = "request_digest, model, finish, query_digest, slots, judge_digest, rubric_digest"
    with serving(Watched()) as server:
        collected(server.url, ledger, work("SABCD"), kind=kind)
    with vendor(script) as server, Ledger(tmp_path / "online.db") as other:
        one = order(server.url, other, work("SABCD"), kind=kind)
        client.ask([client.Job("m", one.tasks(), one.provider, one.account)], other)
        assert sorted(rows(other, columns)) == sorted(rows(ledger, columns))
        assert grades(other, "SABCD") == grades(ledger, "SABCD")


@both
@pytest.mark.parametrize(("limit", "expected"), [({"most_items": 2}, 3), ({"most_bytes": 1}, 5), ({}, 1)])
def test_batches_keep_to_the_limits(ledger: Ledger, kind: str, limit: dict[str, int], expected: int) -> None:
    watched = Watched(most_lines=limit.get("most_items", 5), most_requests=limit.get("most_items", 5))
    with serving(watched) as server:
        collected(server.url, ledger, work("SABCD" * 2), replace(FAST, **limit), kind=kind)
        assert watched.created(kind) == expected
    assert grades(ledger, "SABCD" * 2) == list("SABCD" * 2)


@both
def test_a_batch_is_as_large_as_its_bytes_allow(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        one = order(server.url, ledger, work("SABCD" * 2), kind=kind)
        lines = [one.provider.item(task.key, task.request) for task in one.tasks()]
        watched.rules = replace(watched.rules, most_bytes=sum(map(len, lines[:2])))
        pace = replace(FAST, most_bytes=sum(map(len, lines[:2])))
        ask_batches([one], ledger, pace=pace)
        assert watched.created(kind) == 3
    assert grades(ledger, "SABCD" * 2) == list("SABCD" * 2)


def killed(kind: str, url: str, ledger: Ledger, moment: str) -> None:
    command = [sys.executable, str(CHILD), kind, url, str(ledger.path), moment]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    ("kind", "moment"),
    [("openai", "unwritten"), *((kind, moment) for kind in KINDS for moment in ("written", "collecting"))],
)
def test_whoever_comes_after_a_kill_collects_and_pays_nothing_twice(ledger: Ledger, kind: str, moment: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        killed(kind, server.url, ledger, moment)
        collected(server.url, ledger, work("SABCDSAB"), kind=kind)
        assert watched.created(kind) == 1
        assert set(server.paid_in_batches.values()) == {1}
    assert grades(ledger, "SABCDSAB") == list("SABCDSAB")
    assert ledger.count("calls") == 4
    assert ledger.count("ratings") == 8


def abandoned(kind: str, url: str, ledger: Ledger, letters: str) -> list[str]:
    """Submit a batch and press Ctrl-C; return what was said."""
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if "submitted" in line:
            os.kill(os.getpid(), signal.SIGINT)

    one = order(url, ledger, work(letters), kind=kind)
    with pytest.raises(RunFailed, match="batches go on at the vendors, and the same command collects them"):
        ask_batches([one], ledger, pace=FAST, tell=tell)
    return told


class Fates:
    """Let what the first passage stands for happen to an item, `times` times; then it succeeds."""

    def __init__(self, times: int = 1, **fates: Fate) -> None:
        self.fates, self.times = fates, times
        self.sent: Counter[str] = Counter()

    def __call__(self, call: Call) -> Fate:
        first = next(iter(call.passages.values()))
        self.sent[first[-1]] += 1
        return self.fates.get(first[-1], "succeeded") if self.sent[first[-1]] <= self.times else "succeeded"


@both
def test_what_a_batch_did_not_answer_goes_alone_into_another(ledger: Ledger, kind: str) -> None:
    fates = Fates(S="expired", A="errored", B="missing", C="canceled")
    watched = Watched(fate=fates)
    with serving(watched) as server:
        one = order(server.url, ledger, work("SABCD"), size=1, kind=kind)
        [found] = ask_batches([one], ledger, pace=FAST)
        assert set(server.paid_in_batches.values()) == {1}
    assert watched.created(kind) == 2
    assert fates.sent == {"S": 2, "A": 2, "B": 2, "C": 2, "D": 1}
    assert grades(ledger, "SABCD") == list("SABCD")
    assert (found.calls, left(one)) == (5, [])


@both
def test_what_no_batch_answers_is_left_to_be_asked_online(ledger: Ledger, kind: str) -> None:
    fates = Fates(times=9, S="expired", A="errored", B="missing")
    watched = Watched(fate=fates)
    with serving(watched) as server:
        one = order(server.url, ledger, work("SABCD"), size=1, kind=kind)
        ask_batches([one], ledger, pace=FAST)
        assert watched.created(kind) == FAST.rounds
        client.ask([client.Job("m", one.tasks(), one.provider, one.account)], ledger)
        assert sorted(next(iter(call.passages.values()))[-1] for call in server.calls) == list("ABS")
    assert grades(ledger, "SABCD") == list("SABCD")


@both
def test_an_item_that_may_have_been_answered_is_charged_and_written_down(ledger: Ledger, kind: str) -> None:
    """One is missing in a batch that was completed, and the result of one is a line of 5 MB."""
    odd: dict[str, fake.Fault] = {"段落1": fake.says("x" * 5_000_000)}
    missing: Iterator[Fate] = iter(["missing"])

    def fate(call: Call) -> Fate:
        return next(missing, "succeeded") if "段落0" in str(call.passages) else "succeeded"

    def faults(call: Call) -> fake.Fault | None:
        return odd.pop(next((name for name in odd if name in str(call.passages)), ""), None)

    with serving(Watched(fate=fate), faults=faults) as server:
        bill = collected(server.url, ledger, work("SAB"), size=1, kind=kind, max_cost=1.0)
    assert grades(ledger, "SAB") == list("SAB")
    assert (bill.calls, bill.lost) == (3, 2)
    lost = [cost for form, cost in rows(ledger, "form, cost") if form == "lost"]
    assert len(lost) == 2
    assert all(cost > 0 for cost in lost)
    assert bill.spent == pytest.approx(sum(cost for (cost,) in rows(ledger, "cost")))


@both
def test_an_item_that_is_too_long_is_sent_in_parts_in_another_batch(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    long = fake.error(400, "invalid_request_error", "prompt is too long")
    faults = lambda call: long if len(call.passages) == 2 else None  # noqa: E731
    with serving(watched, faults=faults) as server:
        one = order(server.url, ledger, work("SABCD"), kind=kind)
        ask_batches([one], ledger, pace=FAST)
    assert watched.created(kind) == 2
    assert left(one) == []
    assert grades(ledger, "SABCD") == list("SABCD")


@both
def test_what_a_filter_refuses_is_halved_in_the_next_batch_and_said(ledger: Ledger, kind: str) -> None:
    """The last passage is refused with the vendor's words; none is asked online, and no advice is given."""
    no = fake.error(400, "invalid_request_error", "Content Exists Risk")
    with serving(
        Watched(), faults=lambda call: no if any("C" in text for text in call.passages.values()) else None
    ) as server:
        one = order(server.url, ledger, work("CSACSBAD"), size=4, kind=kind)
        [bill] = ask_batches([one], ledger, pace=replace(FAST, rounds=1))
        assert (left(one), len(server.calls)) == ([], 0)
    assert grades(ledger, "CSACSBAD") == ["refused", "S", "A", "refused", *"SBAD"]
    said = ledger.refusals("bench", [one.account.judge_digest])[one.account.judge_digest]
    assert said.endswith("Content Exists Risk")
    assert "json_mode" not in said
    assert bill.failed == 5


@both
def test_a_judge_that_refuses_everything_is_not_asked_online(ledger: Ledger, kind: str) -> None:
    no = fake.error(400, "invalid_request_error", "Unsupported value: 'temperature'")
    with serving(Watched(), faults=lambda _call: no) as server:
        one = order(server.url, ledger, work("SABCD"), size=1, kind=kind)
        with pytest.raises(ProviderError, match=r"answered none: .*Unsupported value.* without --batch") as caught:
            ask_batches([one], ledger, pace=FAST)
        assert left(one) == [1, 1, 1, 1, 1]
    assert caught.value.fatal


def test_what_a_refusal_of_everything_repeats_of_a_text_is_not_said(ledger: Ledger) -> None:
    text = "高血压病人的咖啡" * 3
    quoting = fake.error(400, "invalid_request_error", f"no: {text}")
    with serving(Watched(), faults=lambda _call: quoting) as server, pytest.raises(ProviderError) as caught:
        collected(server.url, ledger, work("SABCD", name=text), kind="openai")
    assert text[:4] not in str(caught.value)


@both
def test_what_an_answer_left_out_is_asked_again_without_the_rest(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched, faults=[fake.missing("P2"), fake.says("no JSON")]) as server:
        one = order(server.url, ledger, work("SABCD"), kind=kind)
        ask_batches([one], ledger, pace=FAST)
        assert left(one) == []
    assert watched.created(kind) == 2
    assert grades(ledger, "SABCD") == list("SABCD")
    assert sorted(slots.count(",") + 1 for (slots,) in rows(ledger, "slots")) == [1, 1, 1, 1, 2, 2]


@both
def test_a_refusal_is_a_refusal_and_asked_once(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    filtered = fake.error(400, "data_inspection_failed", "no") if kind == "openai" else fake.refusal
    with serving(watched, faults=[fake.refusal, filtered]) as server:
        one = order(server.url, ledger, work("SA"), size=1, kind=kind)
        ask_batches([one], ledger, pace=FAST)
        assert (watched.created(kind), left(one)) == (1, [])
    assert grades(ledger, "SA") == ["refused", "refused"]


@both
def test_trouble_in_passing_is_waited_for(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    watched.troubles = {
        CREATED[kind]: [fake.error(429, retry_after=0.01), fake.unavailable],
        ("GET", LOOK[kind]): [fake.error(500), fake.reset_after_head, fake.error(429, retry_after=0)],
        ("GET", f"{LOOK[kind]}/results"): [fake.halved, fake.error(529)],
        ("GET", "/files/file-3/content"): [fake.halved, fake.error(500)],
    }
    with serving(watched) as server:
        collected(server.url, ledger, work("SABCD"), kind=kind)
        assert set(server.paid_in_batches.values()) == {1}
    assert watched.troubles[CREATED[kind]] == []
    assert watched.troubles["GET", LOOK[kind]] == []
    assert grades(ledger, "SABCD") == list("SABCD")
    assert ledger.count("calls") == 3


def test_a_batch_whose_creation_is_not_confirmed_is_found_by_its_file(ledger: Ledger) -> None:
    watched = Watched()
    watched.troubles = {CREATED["openai"]: [fake.reset_after_head]}
    with serving(watched) as server:
        collected(server.url, ledger, work("SABCD"), kind="openai")
        assert (watched.created("openai"), set(server.paid_in_batches.values())) == (1, {1})
    assert grades(ledger, "SABCD") == list("SABCD")


def test_anthropic_says_what_may_be_paid_twice(ledger: Ledger) -> None:
    watched = Watched()
    watched.troubles = {CREATED["anthropic"]: [fake.reset_after_head]}
    with serving(watched) as server, pytest.raises(ProviderError, match=r"console.*else it is paid twice") as caught:
        collected(server.url, ledger, work("SABCD"), kind="anthropic")
    assert caught.value.useless
    assert watched.created("anthropic") == 1


@both
def test_a_vendor_that_nobody_reaches(ledger: Ledger, kind: str) -> None:
    with serving(Watched()) as server:
        gone = server.url
    with pytest.raises(ProviderError, match=r"no answer from http://127.0.0.1") as caught:
        collected(gone, ledger, work("S"), kind=kind)
    assert "twice" not in str(caught.value)


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@both
def test_a_wrong_key_is_fatal_and_shown_nowhere(ledger: Ledger, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    told: list[str] = []
    with serving(Watched(), key="sk-another") as server:
        one = order(server.url, ledger, work("S"), kind=kind, key_env="TEST_KEY")
        with pytest.raises(ProviderError) as caught:
            ask_batches([one], ledger, pace=FAST, tell=told.append)
    assert caught.value.fatal
    assert "HTTP 401 (invalid_api_key); check the key" in str(caught.value)
    assert KEY not in said(caught.value) + "".join(told)


@both
def test_key_and_texts_stay_out_of_what_is_kept_and_said(
    ledger: Ledger, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    told: list[str] = []
    leak = fake.error(500, "server_error", f"{KEY} {QUERY.text}")
    with serving(Watched(), key=KEY, faults=lambda call: leak if "A" in str(call.passages) else None) as server:
        one = order(server.url, ledger, work("SA"), size=1, kind=kind, key_env="TEST_KEY")
        ask_batches([one], ledger, pace=FAST, tell=told.append)
    other = Ledger(ledger.path.parent / "other" / "ledger.db")
    with other, serving(Watched(end="failed"), key=KEY) as server, pytest.raises(ProviderError) as caught:
        collected(server.url, other, work("A"), kind="openai", key_env="TEST_KEY")
    kept = b"".join(path.read_bytes() for path in ledger.path.parent.rglob("*.db*"))
    assert grades(ledger, "SA") == ["S", None]
    for secret in (KEY, QUERY.text):
        assert secret.encode() not in kept
        assert secret not in said(caught.value) + "".join(told)


def test_a_batch_that_the_vendor_refuses_is_asked_in_smaller_ones(ledger: Ledger) -> None:
    """One after the other, for the limit may be on all together; what was refused costs nothing."""
    watched, told = Watched(most_lines=2), list[str]()
    with serving(watched) as server:
        one = order(server.url, ledger, work("SABCDSABC"), size=1, kind="openai")
        ask_batches([one], ledger, pace=FAST, tell=told.append)
        assert set(server.paid_in_batches.values()) == {1}
    assert grades(ledger, "SABCDSABC") == list("SABCDSABC")
    assert states(ledger)[:2] == ["failed", "failed"]
    assert next(line for line in told if "as a whole" in line).endswith(
        "as a whole (too_many_tasks: 9 requests are too many.); going on in batches of 5, one after the other"
    )


def test_a_batch_of_one_that_the_vendor_refuses_ends_it(ledger: Ledger) -> None:
    watched = Watched(most_lines=0)
    with serving(watched) as server, pytest.raises(ProviderError, match=r"as a whole .too_many_tasks: 1 req") as caught:
        collected(server.url, ledger, work("SABCD"), kind="openai")
    assert caught.value.fatal
    assert (states(ledger), server.paid_in_batches) == (["failed"] * 3, {})
    assert ledger.count("calls") == 0


@both
def test_a_batch_holds_no_more_than_its_setting_says(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        one = replace(order(server.url, ledger, work("SABCD"), size=1, kind=kind), most_items=2)
        ask_batches([one], ledger, pace=FAST)
    assert watched.created(kind) == 3
    assert grades(ledger, "SABCD") == list("SABCD")


@both
def test_a_cap_is_held_before_a_batch_is_sent(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        one = order(server.url, ledger, work("SABCD"), size=1, kind=kind)
        whole = sum(Meter(batch_price(PRICE)).bound(estimate(task.request)) for task in one.tasks())
        ask_batches([one], ledger, pace=FAST, budget=Budget(CapPolicy(0.7 * whole)))
        assert watched.created(kind) == 2  # the second after the first came to less than its bound
        assert grades(ledger, "SABCD") == list("SABCD")


@both
def test_nothing_is_sent_beyond_the_cap(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        with pytest.raises(BudgetError, match="raise --max-cost"):
            collected(server.url, ledger, work("SABCD"), max_cost=1e-9, kind=kind)
        one = replace(order(server.url, ledger, work("S"), kind=kind), price=None)
        with pytest.raises(BudgetError, match="without prices"):
            ask_batches([one], ledger, budget=Budget(CapPolicy(1.0)), pace=FAST)
    assert watched.created(kind) == 0


def test_two_judges_are_asked_side_by_side(ledger: Ledger) -> None:
    watched, told = Watched(), list[str]()
    with serving(watched) as server:
        orders = [order(server.url, ledger, work("SABCD"), kind=kind) for kind in KINDS]
        found = ask_batches(orders, ledger, pace=FAST, tell=told.append)
    assert [each.calls for each in found] == [3, 3]
    assert ["submitted" in line for line in told] == [True, True, False, False]


@both
def test_ctrl_c_leaves_batches_to_the_next_one_who_asks(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        told = abandoned(kind, server.url, ledger, "SABCD")
        assert (ledger.count("calls"), len(told), "1 batches go on" in told[-1]) == (0, 2, True)
        collected(server.url, ledger, work("SABCD"), kind=kind)
        assert watched.created(kind) == 1
    assert grades(ledger, "SABCD") == list("SABCD")


@both
def test_open_batches_are_collected_without_anything_new(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        abandoned(kind, server.url, ledger, "SABCDSAB")
        one = order(server.url, ledger, work("SABCDSAB" + "SS"), kind=kind)
        ask_batches([one], ledger, pace=replace(FAST, rounds=0))
        assert watched.created(kind) == 1
        assert left(one) == [2]
    assert rows(ledger, "run") == [("bench",)] * 4


@both
def test_replies_of_another_model_stop_the_judge(ledger: Ledger, kind: str) -> None:
    faults = [None, fake.renamed("m-2")]
    with serving(Watched(), faults=faults) as server, pytest.raises(RunFailed, match=r"several models .m-.*, m-"):
        collected(server.url, ledger, work("SABCD"), size=1, kind=kind)


@both
def test_answers_that_nobody_can_read_are_not_paid_for_again(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    nothing = "52 answers in a row gave nothing that can be read"
    prose = lambda _call: fake.says("I cannot rate this.")  # noqa: E731
    with serving(watched, faults=prose) as server, pytest.raises(RunFailed, match=nothing):
        collected(server.url, ledger, work("SD" * 52), kind=kind)
    assert watched.created(kind) == 1


@both
def test_a_batch_that_is_not_known_needs_the_right_key_unless_it_is_too_old(ledger: Ledger, kind: str) -> None:
    watched = Watched()
    with serving(watched) as server:
        abandoned(kind, server.url, ledger, "SABCD")
        watched.troubles["GET", LOOK[kind]] = [fake.error(404, "not_found"), fake.error(404, "not_found")]
        with pytest.raises(RunFailed, match=r"batch_0 is not known at http.*; give the key and the base_url"):
            collected(server.url, ledger, work("SABCD"), kind=kind)
        age(ledger, days=31)
        collected(server.url, ledger, work("SABCD"), kind=kind)
        assert watched.created(kind) == 2
    assert grades(ledger, "SABCD") == list("SABCD")
    assert states(ledger)[0] == "gone"


@both
def test_no_character_of_a_text_ends_a_line(ledger: Ledger, kind: str) -> None:
    odd = "a\u2028b\u2029c\x85d\ne"
    with serving(Watched(), faults=lambda _call: lambda answer: replace(answer, reasoning=odd)) as server:
        jobs = work("SABCD", name=f"段落{odd}")
        one = order(server.url, ledger, jobs, kind=kind)
        lines = [one.provider.item(task.key, task.request) for task in one.tasks()]
        assert all(len(line.decode().splitlines()) == 1 for line in lines)
        ask_batches([one], ledger, pace=FAST)
    found = ledger.ratings(one.account.judge_digest, one.account.rubric_digest)
    assert sorted(found["grade"]) == list("ABCDS")


@both
def test_a_batch_can_be_cancelled(ledger: Ledger, kind: str) -> None:
    with serving(Watched()) as server:
        abandoned(kind, server.url, ledger, "SABCDSAB")
        one = order(server.url, ledger, work("SABCDSAB"), kind=kind)
        [batch] = book(ledger).open(one.account.judge_digest, one.account.rubric_digest, 0)

        async def stop() -> None:
            await one.provider.cancel(batch.batch_id)
            await one.provider.close()

        asyncio.run(stop())
        [found] = ask_batches([one], ledger, pace=replace(FAST, rounds=0))
    assert (found.calls, left(one)) == (2, [2, 2])


def test_an_address_has_a_batch_api_if_its_settings_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://127.0.0.1:1"
    assert batch_provider(configured(url, batch=False)) is None
    assert batch_provider(configured(url, batch=True)) is not None
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        batch_provider(configured(url, base_url=None))
    assert no_batch("m") == "judges.m: its address offers no batch API (set batch: true if it does); asked online"


def test_the_batch_price_is_a_share_of_every_part() -> None:
    price = Price(input=2.0, output=10.0, cached=1.0, date=date(2026, 1, 1), batch=0.4)
    less = batch_price(price)
    assert less == Price(input=0.8, output=4.0, cached=0.4, date=date(2026, 1, 1), batch=1.0)
    assert batch_price(less) == less
    assert batch_price(None) is None
