"""Every request to a language model can go through a batch: at half the price, once, with the same result."""

import hashlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import curate as package
from curate.llm.client.batch import judge_batches
from tests import ROOT
from tests.integration.ask.batched import (
    BOUND,
    FORMS,
    KINDS,
    LOOK,
    MANY,
    MODELS,
    RESULTS,
    asks,
    calls,
    desk,
    files_that_say,
    killed,
    named,
    planned,
    prepared,
    price,
    process,
    report,
    table,
    tables,
    with_synonyms,
    words,
    written,
)
from tests.support.batching import FAST
from tests.support.runs import curate, ran
from tests.support.trials import accepting
from tests.vendor import Call, Fate, Fault, error, refusal, says

LABEL, QUERIES, MASK = (KINDS[name] for name in ("label", "queries", "mask"))
LONG = ("paraphrase", "sts", "gradient")
"""Kinds that take long to prepare: `make accept` has them in full; `test_requests_stay` holds their requests."""


def cases(*names: str) -> list[Any]:
    """Return kinds as parameters."""
    return [*(name for name in names if name not in LONG), *accepting(*(name for name in names if name in LONG))]


every_kind = pytest.mark.parametrize("name", cases(*KINDS))
both_forms = pytest.mark.parametrize("form", FORMS)
SPEND = ("--max-cost", "50")
PAID = ("--batch", *SPEND)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at batches again at once."""
    monkeypatch.setattr(judge_batches, "PollingPolicy", lambda: FAST)


def number(call: Call) -> int:
    """Return a number under 100 that is the same for every request about one text."""
    return int(hashlib.sha256(json.dumps([*call.passages.values()]).encode()).hexdigest(), 16) % 100


class Once:
    """Do something to a request when it comes for the first time, and nothing later."""

    def __init__(self, choose: Callable[[Call], Any]) -> None:
        self.choose, self.seen = choose, set[str]()

    def __call__(self, call: Call) -> Any:
        """Return what is chosen at first, None afterwards."""
        known = written(call) in self.seen
        self.seen.add(written(call))
        return None if known else self.choose(call)


def verdicts(folder: Path) -> Counter[str]:
    """Return how many texts have each verdict of a panel that picks labels."""
    return Counter(table(folder, LABEL, "classified")["verdict"])


# The price


SPENDING = (
    *("analyze", "audit", "check judge", "extend", "gradient", "judge", "label", "mask", "paraphrase"),
    *("pilot report", "queries", "resolve", "run", "sts", "train-set"),
)


@pytest.mark.parametrize("command", SPENDING)
def test_every_command_that_spends_can_be_told_to_use_batches(command: str, tmp_path: Path) -> None:
    """Half the price is no matter of which command asks."""
    shown = ran(tmp_path, *command.split(), "--help").stdout
    assert "--max-cost" in shown
    assert "--batch" in shown


@every_kind
@both_forms
def test_what_is_asked_by_batches_is_billed_at_half_the_price(name: str, form: str, tmp_path: Path) -> None:
    """No request is sent twice, and none of a large wave is sent online."""
    kind = KINDS[name]
    with desk(kind) as at:
        prepared(tmp_path, kind, at, (form,))
        asks(tmp_path, kind, *PAID)
        assert at.twice == 0
        assert set(at.models) == {MODELS[each] for each in kind.models}
        assert min(at.models.values()) > BOUND
        assert at.server.calls == []
        assert report(tmp_path, kind)["cost"] == pytest.approx(at.spent)
        assert sum(cost for (cost,) in calls(tmp_path, "cost")) == pytest.approx(at.spent)
    assert {purpose for (purpose,) in calls(tmp_path, "purpose")} == {name}


@pytest.mark.parametrize("name", cases(*(name for name in KINDS if name != "mask")))
def test_the_plan_of_batches_has_half_the_price(name: str, tmp_path: Path) -> None:
    """One model is behind an address of the one form, the next behind one of the other."""
    kind = KINDS[name]
    with desk(kind) as at:
        prepared(tmp_path, kind, at)
        online = planned(tmp_path, *words(kind))
        by_batch = planned(tmp_path, *words(kind, "--batch"))
        assert by_batch[-1]["calls"] == online[-1]["calls"]
        assert price(by_batch, batch=True) == pytest.approx(price(online, batch=False) / 2, rel=0.01)
        assert (at.created, at.server.calls) == (0, [])


@both_forms
def test_the_plan_is_the_bill_where_tokens_are_those_that_were_planned(form: str, tmp_path: Path) -> None:
    """All prompts are of nearly one length here, so each can be given the plan's share of tokens."""
    with desk(LABEL) as at:
        prepared(tmp_path, LABEL, at, (form,))
        plan = planned(tmp_path, *words(LABEL, "--batch"))
        row = plan[-1]
        at.usage = round(row["prompt_tokens"] / row["calls"]), round(row["output_tokens"] / row["calls"])
        asks(tmp_path, LABEL, *PAID)
        assert report(tmp_path, LABEL)["cost"] == pytest.approx(price(plan, batch=True), rel=0.001)
        assert at.spent == pytest.approx(price(plan, batch=True), rel=0.001)


def test_the_plan_of_a_whole_pipeline_adds_batches_up(tmp_path: Path) -> None:
    """Two stages of it ask models, and the bill of the pipeline is the sum of theirs."""
    kind = KINDS["sts"]
    with desk(kind) as at:
        prepared(tmp_path, kind, at)
        two = {**json.loads((tmp_path / "t.yaml").read_text("utf-8")), **with_synonyms(tmp_path, MANY)}
        two["stages"] = [*kind.before, "sts", "paraphrase"]
        two["paraphrase"] = {"generator": "g", "panel": ["a"], "retrievers": ["bm25", "use"], "test": MANY, "edits": 0}
        (tmp_path / "t.yaml").write_text(json.dumps(two, ensure_ascii=False), encoding="utf-8")
        online = planned(tmp_path, "run", "t.yaml")
        by_batch = planned(tmp_path, "run", "t.yaml", "--batch")
    assert {row["stage"] for row in by_batch["rows"]} == {"sts", "paraphrase"}
    assert min(row["calls"] for row in by_batch["rows"]) > BOUND
    assert by_batch["most"] == pytest.approx(sum(row["most"] for row in by_batch["rows"]), abs=0.001)
    assert by_batch["most"] == pytest.approx(online["most"] / 2, rel=0.01)


def test_a_pipeline_is_run_by_batches_from_the_command_and_from_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the judge alone is reached by it, and what the command has paid for Python does not pay again."""
    with desk(LABEL) as at:
        prepared(tmp_path, LABEL, at)
        ran(tmp_path, "run", "t.yaml", *PAID)
        assert (at.created, len(at.batched), at.server.calls) == (2, 2 * MANY, [])
    with desk(LABEL) as at:
        other = prepared(tmp_path / "other", LABEL, at)
        monkeypatch.setenv("CURATE_HOME", str(tmp_path / "other" / "home"))
        monkeypatch.chdir(other)
        package.run("t.yaml", batch=True, yes=True)
        assert (at.created, len(at.batched), at.server.calls) == (2, 2 * MANY, [])
        monkeypatch.setenv("CURATE_HOME", str(tmp_path / "home"))
        package.run("t.yaml", force=True, yes=True)
        assert (at.created, at.server.calls, at.twice) == (2, [], 0)


# A kill


@every_kind
def test_killed_and_run_again_it_pays_nothing_twice(name: str, tmp_path: Path) -> None:
    """Each model has one call in flight, which a kill may leave out of the ledger."""
    kind = KINDS[name]
    with desk(kind) as at:
        whole, resumed = (prepared(tmp_path / each, kind, at, size=48, concurrency=1) for each in ("whole", "resumed"))
        asks(whole, kind, *SPEND)
        needed = at.online.total()
        command = [sys.executable, str(ROOT / "tests/support/killer.py"), "after", "5", *words(kind, *SPEND)]
        environment = {**os.environ, "CURATE_HOME": str(resumed / "home"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=resumed, env=environment, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert needed < at.online.total() < 2 * needed
        asks(resumed, kind, *SPEND)
        assert 0 <= at.online.total() - 2 * needed <= len(kind.models), "once for each of the two runs"
        assert len(at.online) == needed
    assert tables(resumed, kind) == tables(whole, kind)


# Small waves


def said_of_the_wave(output: str) -> bool:
    """Tell whether a line below the head of a plan speaks of asking online."""
    return any("online" in line for line in output.splitlines()[1:])


def test_a_small_wave_is_asked_online_and_the_plan_says_so(tmp_path: Path) -> None:
    """A batch may take a day, which few requests are not worth; so the plan has the full price."""
    with desk(LABEL) as at:
        prepared(tmp_path / "large", LABEL, at)
        large = ran(tmp_path / "large", *words(LABEL, "--batch", "--plan"))
        assert not said_of_the_wave(large.stdout + large.stderr)
        prepared(tmp_path, LABEL, at, size=48)
        done = ran(tmp_path, *words(LABEL, "--batch", "--plan"))
        assert said_of_the_wave(done.stdout + done.stderr)
        asks(tmp_path, LABEL, *PAID)
        assert (at.created, len(at.server.calls), at.twice) == (0, 96, 0)
        assert report(tmp_path, LABEL)["cost"] == pytest.approx(at.spent)


def test_the_few_that_are_written_again_do_not_wait_for_a_batch(tmp_path: Path) -> None:
    """The reason why the first try was of no use is in the second one, which is asked online at once."""
    tried: Counter[str] = Counter()

    def empty(call: Call) -> Fault | None:
        document = call.passages.get("document")
        if document is None:
            return None
        tried[document] += 1
        return says('{"query": ""}') if tried[document] == 1 and number(call) < 8 else None

    with desk(QUERIES, odd=empty) as at:
        prepared(tmp_path, QUERIES, at)
        asks(tmp_path, QUERIES, *PAID)
        again = [document for document, times in tried.items() if times == 2]
        assert 0 < len(again) < 30
        assert sorted(call.passages.get("document", "") for call in at.server.calls) == sorted(again)
        assert (at.created, at.twice) == (2, 0)
    assert table(tmp_path, QUERIES, "synthetic").height == MANY


def test_a_model_without_batches_is_asked_online_beside_one_that_has_them(tmp_path: Path) -> None:
    """The plan and the bill have the full price of the one and half the price of the other."""
    with desk(LABEL) as at:
        prepared(tmp_path, LABEL, at)
        settings = json.loads((tmp_path / "t.yaml").read_text("utf-8"))
        settings["judges"]["a"]["batch"] = False
        without = ("--set", f"judges={json.dumps(settings['judges'])}")
        online = price(planned(tmp_path, *words(LABEL, *without)), batch=False)
        rows = planned(tmp_path, *words(LABEL, "--batch", *without))
        assert rows[-1].get("batches") is not None or price(rows, batch=True) == pytest.approx(0.75 * online, rel=0.01)
        asks(tmp_path, LABEL, *PAID, *without)
        assert (at.created, at.models["beta-1"], at.models["gamma-1"]) == (1, 0, MANY)
        assert Counter(call.model for call in at.server.calls) == {"beta-1": MANY}
        assert report(tmp_path, LABEL)["cost"] == pytest.approx(at.spent)


def test_a_model_whose_batches_are_small_gets_several(tmp_path: Path) -> None:
    """The bound is on what is to be asked, not on what one batch may hold."""
    with desk(LABEL) as at:
        prepared(tmp_path, LABEL, at, batch_items=50)
        asks(tmp_path, LABEL, *PAID)
        assert (at.created, len(at.batched), at.server.calls) == (6, 2 * MANY, [])


# What stands in the ledger


@every_kind
def test_batches_ask_what_is_asked_online(name: str, tmp_path: Path) -> None:
    """Requests have the same digests, tables the same rows, and a later run asks nothing, in either way."""
    kind = KINDS[name]
    columns = "request_digest, judge_digest, rubric_digest, replicate, purpose, query_digest, slots, form"
    with desk(kind) as at:
        online, by_batch = (prepared(tmp_path / each, kind, at) for each in ("online", "batch"))
        asks(online, kind, *SPEND)
        asks(by_batch, kind, *PAID)
        assert sorted(calls(by_batch, columns)) == sorted(calls(online, columns))
        assert tables(by_batch, kind) == tables(online, kind)
        before = at.created, at.answered.total(), len(at.server.calls)
        assert before[0] > 0
        for folder, more in ((by_batch, ("--offline",)), (by_batch, SPEND), (by_batch, PAID), (online, PAID)):
            asks(folder, kind, "--force", *more)
        assert (at.created, at.answered.total(), len(at.server.calls)) == before
        assert tables(by_batch, kind) == tables(online, kind)


DIGESTS = {
    "judge": "bc7485c7503ea4a8",
    "label": "999c3abb827b493f",
    "paraphrase": "a867b83b97814ffd",
    "queries": "2eed0d64ff61d13b",
    "sts": "7697dfe2b8ef819c",
    "gradient": "32a6128e52393c8c",
    "mask": "11cc2cf092334ca6",
}
"""Of everything that names a request of each kind: a ledger of 0.2 holds them, and what it holds is not paid again."""


@every_kind
def test_the_names_of_requests_do_not_move(name: str, tmp_path: Path) -> None:
    """A changed digest would make users of a 0.2 ledger pay for everything again."""
    kind = KINDS[name]
    with desk(kind) as at:
        prepared(tmp_path, kind, at)
        asks(tmp_path, kind, *SPEND)
    found = sorted(calls(tmp_path, "request_digest, judge_digest, rubric_digest, replicate, purpose"))
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("name", cases("label", "queries", "sts"))
def test_offline_nothing_is_sent_in_batches_either(name: str, tmp_path: Path) -> None:
    """What the ledger lacks stops the command, and the ledger stays as it was."""
    kind = KINDS[name]
    with desk(kind) as at:
        prepared(tmp_path, kind, at)
        done = curate(tmp_path, *words(kind, "--offline", "--batch"))
        assert done.returncode == 2
        assert "--offline sends none" in done.stderr
        assert (at.created, at.server.calls) == (0, [])


# What comes back


@both_forms
def test_a_batch_with_holes_is_filled(form: str, tmp_path: Path) -> None:
    """Items that are missing, failed, expired or cancelled are asked once more, and no other one is."""
    fates: tuple[Fate, ...] = ("missing", "errored", "expired", "canceled")
    holes = Once(lambda call: fates[number(call) % 4] if number(call) < 20 else None)
    with desk(LABEL, fate=lambda call: holes(call) or "succeeded") as at:
        prepared(tmp_path, LABEL, at, (form,))
        asks(tmp_path, LABEL, *PAID)
        assert verdicts(tmp_path) == {"confirmed": MANY}
        assert (len(at.answered), at.twice) == (2 * MANY, 0)
        asked = at.sent + Counter(map(written, at.server.calls))
        assert 0 < sum(times == 2 for times in asked.values()) < MANY
        assert max(asked.values()) == 2
        assert report(tmp_path, LABEL)["cost"] >= at.spent * 0.999


@both_forms
def test_a_batch_that_expires_as_a_whole_loses_nothing(form: str, tmp_path: Path) -> None:
    """A day has passed and nothing was answered: all is asked again, by a batch or online."""
    gone = Once(lambda _call: "expired")
    with desk(QUERIES, fate=lambda call: gone(call) or "succeeded") as at:
        prepared(tmp_path, QUERIES, at, (form,))
        asks(tmp_path, QUERIES, *PAID)
        assert (len(at.answered), at.twice) == (2 * MANY, 0)
        assert at.created >= 2
        assert report(tmp_path, QUERIES)["cost"] == pytest.approx(at.spent)
    assert table(tmp_path, QUERIES, "synthetic").height == MANY


REFUSED = {
    "openai refuses": ("openai", refusal),
    "openai filters": ("openai", error(400, "data_inspection_failed", "no")),
    "anthropic refuses": ("anthropic", refusal),
}


@pytest.mark.parametrize(("form", "fault"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("share", [6, 60], ids=["few", "many"])
def test_what_was_refused_in_a_batch_is_asked_again_on_a_retry_alone(
    form: str, fault: Fault, share: int, tmp_path: Path
) -> None:
    """A retry asks each once more, in however many rounds its batches go; without one nobody is asked.

    Many are refused where a retry is a batch as well; by then the model takes half of them, and later all.
    """
    refused: list[Callable[[int], bool]] = [lambda each: each < share]
    odd: Callable[[Call], Fault | None] = lambda call: (  # noqa: E731
        fault if call.model == "beta-1" and refused[-1](number(call)) else None
    )
    with desk(LABEL, odd=odd) as at:
        prepared(tmp_path, LABEL, at, (form,), size=240)

        def asked() -> Counter[str]:
            return at.sent + Counter(map(written, at.server.calls))

        asks(tmp_path, LABEL, *PAID)
        first, bad = asked(), verdicts(tmp_path)["incomplete"]
        assert bad > (BOUND if share > 50 else 0)
        assert verdicts(tmp_path) == {"confirmed": 240 - bad, "incomplete": bad}
        assert (len(first), set(first.values())) == (480, {1})
        asks(tmp_path, LABEL, *PAID, "--force")
        assert asked() == first
        refused.append(lambda each: each < share and each % 2 == 1)
        asks(tmp_path, LABEL, *PAID, "--force", "--retry")
        second, still = asked(), verdicts(tmp_path)["incomplete"]
        assert Counter((second - first).values()) == {1: bad}
        assert 0 < still < bad
        refused.append(lambda _each: False)
        asks(tmp_path, LABEL, *PAID, "--force", "--retry")
        assert Counter((asked() - second).values()) == {1: still}
        assert verdicts(tmp_path) == {"confirmed": 240}


@both_forms
def test_a_reply_of_a_batch_that_cannot_be_read_is_known_as_such(form: str, tmp_path: Path) -> None:
    """It is paid, counts as unparsed, stands in the ledger, and is not bought again."""
    odd: Callable[[Call], Fault | None] = lambda call: (  # noqa: E731
        says("I would rather not say.") if call.model == "beta-1" and number(call) < 5 else None
    )
    with desk(LABEL, odd=odd) as at:
        prepared(tmp_path, LABEL, at, (form,))
        asks(tmp_path, LABEL, *PAID)
        before = at.created, at.answered.total(), len(at.server.calls)
        assert before[0] == 2
        bad = verdicts(tmp_path)["incomplete"]
        assert bad > 0
        assert at.twice == 0
        asks(tmp_path, LABEL, *PAID, "--force")
        assert (at.created, at.answered.total(), len(at.server.calls)) == before
        assert verdicts(tmp_path) == {"confirmed": MANY - bad, "incomplete": bad}
    said = Counter(form for (form,) in calls(tmp_path, "form"))
    assert said["labelled"] == 2 * MANY - bad


@both_forms
def test_a_model_that_refuses_a_whole_batch_is_not_asked_online(form: str, tmp_path: Path) -> None:
    """A setting that the vendor does not take would be refused as often as there are texts."""
    no = error(400, "invalid_request_error", "Unsupported value: 'temperature'")
    with desk(LABEL, odd=lambda _call: no) as at:
        prepared(tmp_path, LABEL, at, (form,))
        done = curate(tmp_path, *words(LABEL, *PAID))
        assert done.returncode not in (0, None)
        assert "Unsupported value" in done.stderr
        assert at.server.calls == []


# Kills, and others at the same ledger


LEFT_OPEN = (
    *(("judge", "openai"), ("label", "anthropic"), ("mask", "openai")),
    pytest.param("label", "openai", marks=pytest.mark.accept),
    pytest.param("mask", "anthropic", marks=pytest.mark.accept),
    pytest.param("queries", "anthropic", marks=pytest.mark.accept),
    pytest.param("paraphrase", "openai", marks=pytest.mark.accept),
    pytest.param("gradient", "openai", marks=pytest.mark.accept),
)
ALONE = ("--set", "label.panel=[a]", "--set", "judge.models=[a]")
"""One model is asked, so that a kill at a look at a batch is none at the making of another one."""


@pytest.mark.parametrize(("path", "number"), [(LOOK, 2), (RESULTS, 1)], ids=["open", "ended"])
@pytest.mark.parametrize(("name", "form"), LEFT_OPEN)
def test_the_batch_of_a_killed_run_is_collected_and_not_paid_again(
    name: str, form: str, path: re.Pattern[str], number: int, tmp_path: Path
) -> None:
    """The command is killed while it waits, or while it fetches; the next one makes no batch in place of that one."""
    kind = KINDS[name]
    alone = ALONE if name in ("judge", "label") else ()
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    with desk(kind) as at:
        prepared(whole, kind, at, (form,))
        asks(whole, kind, *PAID, *alone)
        needed = at.created
        assert needed > 0
    with desk(kind) as at:
        prepared(folder, kind, at, (form,))
        killed(at, path, number, lambda: process(folder, *words(kind, *PAID, *alone)))
        if name == "mask":
            assert files_left(folder) == []
        asks(folder, kind, *PAID, *alone)
        assert (at.created, at.twice, at.server.calls) == (needed, 0, [])
        assert set(at.sent.values()) == {1}
    assert tables(folder, kind) == tables(whole, kind)


def test_a_second_wave_is_collected_as_well(tmp_path: Path) -> None:
    """The writer's batch was read, that of the filters was left open."""
    with desk(QUERIES) as at:
        prepared(tmp_path, QUERIES, at, ("openai",))
        killed(at, RESULTS, 2, lambda: process(tmp_path, *words(QUERIES, *PAID)))
        assert at.created == 2
        asks(tmp_path, QUERIES, *PAID)
        assert (at.created, at.twice, at.server.calls) == (2, 0, [])
    assert table(tmp_path, QUERIES, "synthetic").height == MANY


def test_an_open_batch_is_collected_where_nothing_is_left_to_ask(tmp_path: Path) -> None:
    """Two runs share a ledger; the smaller one has all its answers, and yet takes in what the other one paid for."""
    ledger = {"CURATE_LEDGER": str(tmp_path / "shared.db")}
    with desk(LABEL) as at:
        small, large = (prepared(tmp_path / f"of {size}", LABEL, at, size=size) for size in (60, 2 * MANY))
        asks(small, LABEL, *SPEND, *ALONE, **ledger)
        killed(at, LOOK, 2, lambda: process(large, *words(LABEL, *PAID, *ALONE), **ledger))
        assert len(calls(small, ledger=tmp_path / "shared.db")) == 60
        asks(small, LABEL, *PAID, *ALONE, "--force", **ledger)
        assert (at.created, len(at.server.calls)) == (1, 60)
        assert len(calls(small, ledger=tmp_path / "shared.db")) == at.answered.total() == 2 * MANY


@pytest.mark.parametrize("name", ["label", *accepting("mask", "judge")])
def test_two_processes_at_one_ledger_pay_for_one(name: str, tmp_path: Path) -> None:
    """The second one waits for the batch of the first one, or asks for what is not in it."""
    kind = KINDS[name]
    ledger = {"CURATE_LEDGER": str(tmp_path / "shared.db")}
    with desk(kind) as at:
        first, second = (prepared(tmp_path / each, kind, at) for each in ("first", "second"))
        at.held += ["in_progress"] * 10_000
        made = threading.Event()
        at.moment = lambda _method, _path: made.set() if at.created else None
        one = process(first, *words(kind, *PAID), **ledger)
        while not made.wait(0.05):
            assert one.poll() is None, one.communicate()[1]
        other = process(second, *words(kind, *PAID), **ledger)
        assert other.stderr is not None
        in_the_end = threading.Timer(20, at.held.clear)
        in_the_end.start()
        said = next((line for line in other.stderr if "process" in line), "")
        in_the_end.cancel()
        at.held.clear()
        complaints = [each.communicate()[1] for each in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], complaints
        assert said
        assert (at.twice, at.server.calls) == (0, [])
        assert len(at.answered) == len(calls(first, ledger=tmp_path / "shared.db"))
    assert tables(first, kind) == tables(second, kind)


# The cap


@pytest.mark.parametrize("name", cases("judge", "label", "queries", "sts", "mask"))
def test_a_cap_that_is_reached_in_the_middle_holds(name: str, tmp_path: Path) -> None:
    """All waves and models have one cap; a later command with a higher cap pays for the rest alone."""
    kind = KINDS[name]
    with desk(kind) as at:
        prepared(tmp_path / "whole", kind, at)
        asks(tmp_path / "whole", kind, *PAID)
        whole = at.spent
        assert at.created > 0
    with desk(kind) as at:
        prepared(tmp_path, kind, at)
        done = curate(tmp_path, *words(kind, "--batch", "--max-cost", f"{0.4 * whole:.6f}"))
        assert done.returncode not in (0, None)
        assert "cap" in done.stderr
        assert at.spent <= 0.4 * whole
        asks(tmp_path, kind, *PAID)
        assert at.twice == 0
        assert set((at.sent + Counter(map(written, at.server.calls))).values()) == {1}
    assert tables(tmp_path, kind) == tables(tmp_path / "whole", kind)


@both_forms
def test_a_cap_under_the_price_online_suffices_for_batches(form: str, tmp_path: Path) -> None:
    """What a batch may cost is held against the cap at half the price."""
    with desk(LABEL) as at:
        prepared(tmp_path, LABEL, at, (form,))
        plan = planned(tmp_path, *words(LABEL))
        at.usage = plan[-1]["prompt_tokens"] // plan[-1]["calls"], plan[-1]["output_tokens"] // plan[-1]["calls"]
        cap = 0.7 * price(plan, batch=False)
        asks(tmp_path, LABEL, "--batch", "--max-cost", f"{cap:.6f}")
        assert (at.created, len(at.batched), at.server.calls) == (2, 2 * MANY, [])
        assert at.spent <= cap


def test_nothing_is_sent_in_a_batch_without_leave(tmp_path: Path) -> None:
    """Neither a cap nor a yes was given; the refusal has the price of batches."""
    with desk(LABEL) as at:
        prepared(tmp_path, LABEL, at)
        done = curate(tmp_path, *words(LABEL, "--batch"))
        assert done.returncode == 2
        assert f"{2 * MANY} calls" in done.stderr
        assert (at.created, at.server.calls) == (0, [])


# Texts that are not masked yet


NAMES = [named(each) for each in range(MANY)]


def files_left(folder: Path) -> list[str]:
    """Return the files that hold a name, but for the input as it was read."""
    return [path for path in files_that_say(folder, NAMES) if not path.startswith("runs/t/ingest/")]


@both_forms
@pytest.mark.parametrize("case", ["honest", "chatty", "refused", "holes", "filtered"])
def test_no_text_of_a_batch_that_finds_names_is_written_down(form: str, case: str, tmp_path: Path) -> None:
    """No file holds a reply or a part of one that cannot be read; a text that was not checked stops the run."""
    odd: dict[str, Callable[[Call], Fault | None]] = {
        "chatty": lambda call: says(f"这里有{call.passages['text']}"),
        "refused": lambda _call: refusal,
        "filtered": lambda call: error(400, "invalid_request_error", f"filtered: {call.passages['text']}"),
    }
    healthy = case in ("honest", "holes")
    holes = Once(lambda call: "errored" if case == "holes" and number(call) < 20 else None)
    faults: Callable[[Call], Fault | None] = lambda call: (  # noqa: E731
        odd[case](call) if not healthy and number(call) < 10 else None
    )
    with desk(MASK, odd=faults, fate=lambda call: holes(call) or "succeeded") as at:
        prepared(tmp_path, MASK, at, (form,))
        done = curate(tmp_path, *words(MASK, *PAID))
        assert (done.returncode == 0) == healthy, done.stderr
        assert at.created > 0
        assert (files_left(tmp_path), [each for each in NAMES if each in done.stdout + done.stderr]) == ([], [])
        healthy = True
        asks(tmp_path, MASK, *PAID, "--force", "--retry")
        assert set(table(tmp_path, MASK, "spans")["kind"]) == {"name"}
        assert files_left(tmp_path) == []
        before = at.answered.total()
        asks(tmp_path, MASK, "--force", "--offline")
        assert at.answered.total() == before


def test_a_batch_takes_no_unmasked_text_off_this_machine(tmp_path: Path) -> None:
    """The guard of masking is its own, and batches do not pass it."""
    with desk(MASK) as at:
        prepared(tmp_path, MASK, at)
        elsewhere = {**json.loads((tmp_path / "t.yaml").read_text("utf-8"))["judges"]["a"]}
        elsewhere["base_url"] = "http://203.0.113.5:8000"
        done = curate(tmp_path, *words(MASK, *PAID), "--set", f"judges.a={json.dumps(elsewhere)}")
        assert done.returncode == 2
        assert "is not this machine" in done.stderr
        assert (at.created, at.server.calls) == (0, [])


# A task of one's own


def test_a_task_of_ones_own_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example has a task of some forty lines: whether a query is answerable from a passage.

    It is a plug-in by the same door as a judge: a class that an entry point of the group `curate.tasks` names, listed
    by `curate doctor`, and held to its contract by `curate.testing.check_task`. These three names are a guess at what
    the guide will say; that it is one file, imports nothing but the public package, and keeps its contract is not.
    """
    source = (ROOT / "tests" / "plugin" / "curate_example" / "task.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60
    assert set(re.findall(r"^(?:from|import) (curate[\w.]*)", source, re.MULTILINE)) == {"curate"}
    [task] = re.findall(r"^class (\w+)\(LLMTask", source, re.MULTILINE)
    (tmp_path / "answerable.py").write_text(source, encoding="utf-8")
    about = tmp_path / "answerable-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: answerable\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[curate.tasks]\nanswerable = answerable:{task}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "curate", "doctor"],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "CURATE_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "answerable" in done.stdout
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("curate.testing").check_task(getattr(importlib.import_module("answerable"), task))
