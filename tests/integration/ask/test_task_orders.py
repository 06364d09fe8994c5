"""Tasks asked by the engine: what is held in memory, read again, asked again, and kept of what is gone."""

import gc
import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curate.ask import engine, task
from curate.ask.panel import Panel
from curate.ask.task import AskedModel, LLMTask, TaskOrder
from curate.core import config
from curate.core.errors import BudgetError, ProviderError, RunFailed, UserError
from curate.core.messages import Message, Reply, Request
from curate.ledger import Ledger
from curate.ledger.claims import Batches
from curate.llm.client import Task
from curate.llm.client.batch import judge_batches
from curate.llm.providers.presets import LanguageModel
from curate.pipeline.stage import Consent
from tests.support.batching import FAST
from tests.support.rows import sql
from tests.support.small import context
from tests.vendor import Call, Fault, Rules, Vendor, error, refusal, says, vendor

PRICE: Any = {"input": 2.0, "output": 10.0, "date": "2026-01-01"}


@dataclass(frozen=True)
class Said:
    """What a model says: `read`, or why there is no answer."""

    status: str
    text: str = ""


class Echo(LLMTask[str, Said]):
    """Have a text repeated."""

    what = "texts"
    digest = "echo"

    def request(self, item: str, thinking_tokens: int) -> Request:
        return Request((Message("user", item),), 20 + thinking_tokens)

    def read(self, item: str, reply: Reply) -> Said:
        if reply.finish == "refusal":
            return Said("refused")
        return Said("read", reply.text) if reply.text and reply.text.endswith(item) else Said("unparsed")

    def none(self, status: str) -> Said:
        return Said(status)


def text(call: Call) -> str:
    return str(call.body["messages"][-1]["content"])


def echo(call: Call) -> Fault:
    return says(text(call))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as found:
        yield found


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_batches, "PollingPolicy", lambda: FAST)
    monkeypatch.setattr(task, "LEAST_BATCH", 3)


def model(server: Vendor, **more: Any) -> AskedModel:
    data = {"kind": "openai", "model": "m-1", "base_url": server.url, "local": True, "vendor": "v", "price": PRICE}
    settings = config.check(LanguageModel, {**data, "batch": True, "timeout_s": 20.0, **more}, "judges.a")
    return AskedModel("a", settings, "label")


def panel(ledger: Ledger, folder: Path, server: Vendor, told: list[str] | None = None, **consent: Any) -> Panel:
    found = replace(context(folder), consent=Consent(**{"yes": True, **consent}), tell=(told or []).append)
    return Panel(ledger, replace(found, run_id="run"), [model(server)])


TEXTS = {f"t{n}": f"text {n}" for n in range(6)}


def statuses(answers: dict[str, dict[str, Said]]) -> list[str]:
    return [by_model["a"].status for by_model in answers.values()]


def test_no_request_outlives_its_call(ledger: Ledger, tmp_path: Path) -> None:
    """A hundred thousand texts are held as texts; their prompts are made when they are sent."""
    alive: weakref.WeakSet[Request] = weakref.WeakSet()
    most = calls = 0

    class Counted(Echo):
        def request(self, item: str, thinking_tokens: int) -> Request:
            made = _Request((Message("user", item),), 20 + thinking_tokens)
            alive.add(made)
            return made

    def counted(call: Call) -> Fault:
        nonlocal most, calls
        calls += 1
        if calls % 30 == 0:  # to collect takes a second where a whole suite is loaded
            gc.collect()
            most = max(most, len(alive))
        return echo(call)

    with vendor(lambda _query, _text: "", counted) as server:
        answers = panel(ledger, tmp_path, server).ask(Counted(), {f"t{n}": f"text {n}" for n in range(300)})
    assert statuses(answers) == ["read"] * 300
    assert 0 < most < 100, "of 300: what is in flight, what waits for a slot or is written, and what is made ahead"


class _Request(Request):
    """A request that can be counted; `Request` compares by content."""

    __hash__ = object.__hash__


def test_a_growing_ledger_is_read_once(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim of some prompts looks for what others answered: only at what is new."""
    asked: list[str] = []
    generations = Ledger.generations

    def counted(self: Ledger, judge: str, rubric: str, replicate: int = 0, since: str = "") -> Any:
        asked.append(since)
        return generations(self, judge, rubric, replicate, since)

    monkeypatch.setattr(Ledger, "generations", counted)
    monkeypatch.setattr(engine, "AT_ONCE", 2)
    with vendor(lambda _query, _text: "", echo) as server:
        panel(ledger, tmp_path, server).ask(Echo(), TEXTS)
        asked.clear()
        panel(ledger, tmp_path, server).ask(Echo(), {name: f"new {text}" for name, text in TEXTS.items()})
    assert asked[0] == ""
    assert len(asked) > 3
    assert all(asked[1:])


def test_an_answer_of_another_process_is_not_paid_again(ledger: Ledger, tmp_path: Path) -> None:
    """It came between the plan and the claim."""
    with vendor(lambda _query, _text: "", echo) as server:
        late, _ = TaskOrder.of_task(Echo(), TEXTS.values(), model(server), ledger, context(tmp_path))
        panel(ledger, tmp_path, server).ask(Echo(), dict(list(TEXTS.items())[:4]))
        assert len(late.work) == 6
        engine.settle([late], ledger, replace(context(tmp_path), consent=Consent(yes=True)))
        assert len(server.calls) == 6


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("fault", "status"),
    [(refusal, "refused"), (error(400, "content_filter", "no"), "refused"), (says("?"), "unparsed")],
)
def test_what_gave_no_answer_is_asked_once_a_retry(
    ledger: Ledger, tmp_path: Path, fault: Fault, status: str, batch: bool
) -> None:
    """Equal texts under two names are one request, and a round of batches is no second retry."""
    asked: list[str] = []

    def odd(call: Call) -> Fault:
        asked.append(text(call))
        return fault if text(call) == "text 5" else echo(call)

    with vendor(lambda _query, _text: "", odd, batches=Rules(steps=())) as server:
        for retry in (False, False, True, True):
            asked_before = len(asked)
            answers = panel(ledger, tmp_path, server, batch=batch, retry=retry)
            texts = {**TEXTS, "twin": "text 5"}
            found = answers.ask(Echo(), texts)
            assert statuses(answers.ask(Echo(), texts)) == statuses(found) == ["read"] * 5 + [status] * 2
            new = asked[asked_before:]
            assert new.count("text 5") in ((1, 2) if asked_before == 0 else ((1,) if retry else (0,)))
            assert len(new) - new.count("text 5") == (5 if asked_before == 0 else 0)


def test_a_reply_about_a_text_that_is_gone_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    """A batch of one run is collected by another one with other texts; the model is not given up for it."""
    with vendor(lambda _query, _text: "", echo, batches=Rules(steps=["in_progress"] * 2)) as server:
        order = left_open(panel(ledger, tmp_path, server, batch=True))
        [batch] = Batches(ledger).open(order.account.judge_digest, "echo", 0)
        assert len(batch.items) == 6
        others = panel(ledger, tmp_path, server, batch=True).ask(Echo(), {"other": "another text"})
        assert statuses(others) == ["read"]
        assert not Batches(ledger).open(order.account.judge_digest, "echo", 0)
        assert sorted(sql(ledger, "SELECT form FROM calls")) == [("",)] * 6 + [("read",)]
        back = panel(ledger, tmp_path, server, offline=True).ask(Echo(), TEXTS)
        assert statuses(back) == ["read"] * 6, "it is read once its text is back"
        assert len(server.calls) == 1


def left_open(first: Panel) -> TaskOrder[str, Said]:
    """Submit a batch, and stop before it is collected."""
    order, _ = TaskOrder.of_task(Echo(), TEXTS.values(), first.models[0], first.ledger, first.context)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_batches.JudgeBatches, "_collect", _killed)
        with pytest.raises(RunFailed, match="killed"):
            engine.settle([order], first.ledger, first.context)
    return order


async def _killed(_self: Any, *_batch: Any) -> None:
    raise RunFailed("killed")


def test_an_open_batch_is_not_asked_online(ledger: Ledger, tmp_path: Path) -> None:
    with vendor(lambda _query, _text: "", echo, batches=Rules(steps=["in_progress"] * 2)) as server:
        left_open(panel(ledger, tmp_path, server, batch=True))
        second = panel(ledger, tmp_path, server)
        with pytest.raises(UserError, match=r"still works on 1 batches.*`curate label --batch`"):
            second.permitted("asking", lambda panel: panel.ask(Echo(), TEXTS))
        assert server.calls == []


def test_a_reader_that_breaks_keeps_no_private_text(ledger: Ledger, tmp_path: Path) -> None:
    """The reply of a batch was paid, so its call is written; what it says of a private text is not."""

    class Broken(Echo):
        def read(self, item: str, reply: Reply) -> Said:
            raise ZeroDivisionError

    with vendor(lambda _query, _text: "", echo, batches=Rules(steps=())) as server:
        for private in (False, True):
            found = panel(ledger, tmp_path, server, batch=True)
            items = {name: f"secret {private} {name}" for name in "abc"}
            order, _ = TaskOrder.of_task(Broken(), items.values(), found.models[0], ledger, found.context)
            with pytest.raises(ZeroDivisionError):
                engine.settle([replace(order, private=private)], ledger, found.context)
    raws = [raw for (raw,) in sql(ledger, "SELECT raw FROM calls WHERE form = 'broken' ORDER BY call_id")]
    assert len(raws) == 2
    assert "secret" in raws[0]
    assert raws[1] == ""


def test_a_refusal_of_one_text_in_a_batch_ends(ledger: Ledger, tmp_path: Path) -> None:
    """A request about one text has no halves: it is given up, and no batch is made of it again and again."""
    made: list[str] = []

    def odd(call: Call) -> Fault:
        return error(422, "bad", "no") if text(call) == "text 5" else echo(call)

    rules = Rules(steps=(), trouble=lambda method, path: made.append(path) if (method, path) == _CREATE else None)
    with vendor(lambda _query, _text: "", odd, batches=rules) as server:
        found = panel(ledger, tmp_path, server, batch=True)
        assert statuses(found.ask(Echo(), TEXTS)) == ["read"] * 5 + ["refused"]
        assert statuses(found.ask(Echo(), TEXTS)) == ["read"] * 5 + ["refused"]
    assert made == ["/batches"]


_CREATE = ("POST", "/batches")


def test_few_requests_go_online_at_the_full_price_and_the_plan_says_so(ledger: Ledger, tmp_path: Path) -> None:
    told: list[str] = []
    with vendor(lambda _query, _text: "", echo, batches=Rules(steps=())) as server:
        few, many = ({f"t{n}": f"text {n}" for n in range(size)} for size in (2, 4))
        plans = []
        for texts in (few, many):
            asked = panel(ledger, tmp_path, server, told, batch=True)
            asked.context = replace(asked.context, tell=told.append)
            [row] = asked.planned(partial(_asking, texts))
            plans.append(row)
        [line] = told
        assert "2 requests are too few to wait for a batch" in line
        assert plans[0].cost == pytest.approx(plans[1].cost, rel=0.01), "half as many, at the double price"
        assert plans[0].to_json().keys() == plans[1].to_json().keys()
        cap = panel(ledger, tmp_path, server, batch=True, yes=False)
        with pytest.raises(BudgetError, match="too few to wait for a batch"):
            cap.permitted("asking", lambda panel: panel.ask(Echo(), few))


def _asking(texts: dict[str, str], panel: Panel) -> object:
    return panel.ask(Echo(), texts)


def test_a_failure_is_asked_again_and_a_refusal_is_not() -> None:
    failed = task.failure(ProviderError("down"))
    refused = task.failure(ProviderError("no", refused=True))
    assert (failed.form, refused.form) == ("failed", "refused")
    assert not failed.fruitful


def test_tasks_of_an_order_have_its_places(ledger: Ledger, tmp_path: Path) -> None:
    """A claim is found by the place of a task: a task without it would be taken for another process's."""
    with vendor(lambda _query, _text: "", echo) as server:
        order, keys = TaskOrder.of_task(Echo(), TEXTS.values(), model(server), ledger, context(tmp_path))
    sent: list[Task] = list(order.tasks(order.work))
    assert [one.place for one in sent] == [one.key for one in sent] == [order.place(key) for key in keys]
    assert json.dumps(order.work) == json.dumps(keys)
