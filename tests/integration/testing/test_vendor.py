"""The vendor of the other tests, seen by real SDKs: files, batches, limits, and faults as they look to a provider."""

import asyncio
import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic import APIStatusError as AnthropicError
from hypothesis import given
from hypothesis import strategies as st
from openai import APIStatusError, OpenAI

from curate.core.errors import ProviderError
from curate.core.messages import Reply
from curate.llm.providers.sdk import SdkProvider
from tests import vendor as fake
from tests.support.asking import QUERY, llm, passages, script
from tests.vendor import KINDS, Arrival, Call, Fate, Rate, Remote, Rules, Vendor, chaos, elsewhere, vendor

GRADES = "SABCDSABCD"


@contextmanager
def openai(server: Vendor) -> Iterator[OpenAI]:
    with OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0, timeout=20) as client:
        yield client


@contextmanager
def anthropic(server: Vendor) -> Iterator[Anthropic]:
    with Anthropic(api_key="k", base_url=server.url, max_retries=0, timeout=20) as client:
        yield client


def body(server: Vendor, grades: str, kind: str = "openai") -> Any:
    """Return what our judge would send for these passages."""
    judge, asked = llm(server, kind=kind)
    assert isinstance(asked, SdkProvider)
    return asked.body(judge.build(QUERY.text, [each.shown() for each in passages(grades)]))


def input_file(server: Vendor, grades: str = GRADES, name: str = "item{}") -> bytes:
    """Return a line per passage; every custom id is `name` with the passage's number."""
    rows = [
        {
            "custom_id": name.format(n),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body(server, "-" * n + each),
        }
        for n, each in enumerate(grades)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def started(client: OpenAI, content: bytes, **more: Any) -> Any:
    kept = client.files.create(file=("in.jsonl", io.BytesIO(content)), purpose="batch")
    assert client.files.retrieve(kept.id).bytes == len(content)
    return client.batches.create(
        input_file_id=kept.id, endpoint="/v1/chat/completions", completion_window="24h", **more
    )


def ended(client: OpenAI, batch: Any) -> tuple[Any, list[str]]:
    states = [batch.status]
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        batch = client.batches.retrieve(batch.id)
        states.append(batch.status)
    return batch, states


def rows(client: OpenAI, name: str | None) -> dict[str, Any]:
    text = client.files.content(name).text if name else ""
    return {row["custom_id"]: row for row in map(json.loads, text.splitlines())}


def fate(call: Call) -> Fate:
    """Return the fate that the last letter of the last passage stands for."""
    fates: dict[str, Fate] = {"A": "missing", "B": "errored", "C": "expired", "D": "canceled"}
    return fates.get(list(call.passages.values())[-1][-1], "succeeded")


# Batches of OpenAI


def test_openai_batch_goes_through_its_states_and_answers_every_item() -> None:
    with vendor(script) as server, openai(server) as client:
        batch, states = ended(client, started(client, input_file(server)))
        found = rows(client, batch.output_file_id)
    assert states == ["validating", "validating", "in_progress", "finalizing", "completed"]
    assert (batch.request_counts.total, batch.request_counts.completed, batch.error_file_id) == (10, 10, None)
    assert list(found) != sorted(found)  # in no order
    said = {
        name: json.loads(row["response"]["body"]["choices"][0]["message"]["content"]) for name, row in found.items()
    }
    assert [said[f"item{n}"][f"P{n + 1}"] for n in range(10)] == list(GRADES)
    assert (server.calls, server.paid, server.answers) == ([], Counter(), 0)
    assert server.paid_in_batches["m-1", QUERY.text, "段落9 D"] == 1
    assert server.paid_in_batches["m-1", QUERY.text, "段落0 -"] == 9


def test_openai_items_have_their_fates() -> None:
    rules = Rules(steps=("in_progress",), fate=fate)
    with vendor(script, batches=rules) as server, openai(server) as client:
        batch, states = ended(client, started(client, input_file(server)))
        good, bad = rows(client, batch.output_file_id), rows(client, batch.error_file_id)
    assert states[1:] == ["in_progress", "completed"]
    assert set(good) == {"item0", "item5"}
    assert set(bad) == {"item2", "item7", "item3", "item8"}
    assert (bad["item2"]["response"]["status_code"], bad["item2"]["error"]) == (500, None)
    assert (bad["item3"]["response"], bad["item3"]["error"]["code"]) == (None, "batch_expired")
    assert (batch.request_counts.completed, batch.request_counts.failed, batch.request_counts.total) == (2, 4, 10)
    assert server.paid_in_batches.total() == 1 + 6


def test_openai_batch_that_expires_keeps_what_was_done() -> None:
    rules = Rules(steps=(), end="expired", fate=fate)
    with vendor(script, batches=rules) as server, openai(server) as client:
        batch, states = ended(client, started(client, input_file(server)))
        assert states[-1] == "expired"
        assert set(rows(client, batch.output_file_id)) == {"item0", "item5"}


def test_openai_faults_of_the_text_reach_the_items() -> None:
    with vendor(script, faults=[fake.missing("P1"), fake.error(400, "x", "bad")]) as server, openai(server) as client:
        batch, _ = ended(client, started(client, input_file(server, "SA")))
        good, bad = rows(client, batch.output_file_id), rows(client, batch.error_file_id)
    assert good["item0"]["response"]["body"]["choices"][0]["message"]["content"] == "{}"
    assert bad["item1"]["response"]["body"]["error"]["message"] == "bad"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (lambda server: input_file(server, name="same"), "duplicate_custom_id"),
        (lambda server: input_file(server, "S" * 13), "too_many_tasks"),
        (lambda _server: b"no json\n", "invalid_json_line"),
        (lambda _server: b"", "empty_file"),
        (lambda server: input_file(server).replace(b"m-1", b"m-2", 1), "model_mismatch"),
        (lambda server: input_file(server).replace(b"/v1/chat", b"/v2/chat", 1), "url_mismatch"),
    ],
)
def test_openai_batch_fails_its_validation(content: Any, code: str) -> None:
    with vendor(script, batches=Rules(most_lines=12)) as server, openai(server) as client:
        batch, _ = ended(client, started(client, content(server)))
        assert (batch.status, batch.output_file_id) == ("failed", None)
        assert batch.errors.data[0].code == code
    assert server.paid_in_batches == Counter()


def test_openai_file_has_a_limit() -> None:
    with vendor(script, batches=Rules(most_bytes=1000)) as server, openai(server) as client:
        with pytest.raises(APIStatusError, match="File is too large") as caught:
            started(client, input_file(server))
        assert caught.value.status_code == 400


def test_openai_batch_is_cancelled_in_the_middle() -> None:
    with vendor(script) as server, openai(server) as client:
        batch = started(client, input_file(server))
        client.batches.retrieve(batch.id)
        assert client.batches.cancel(batch.id).status == "cancelling"
        batch, states = ended(client, batch)
        assert states[1:] == ["cancelling", "cancelled"]
        assert set(rows(client, batch.output_file_id)) == {f"item{n}" for n in range(0, 10, 2)}
        with pytest.raises(APIStatusError, match="over"):
            client.batches.cancel(batch.id)


def test_openai_batches_are_listed_newest_first_with_what_they_were_given() -> None:
    with vendor(script) as server, openai(server) as client:
        names = [started(client, input_file(server, "S"), metadata={"n": str(n)}).id for n in range(5)]
        found = list(client.batches.list(limit=2))
        assert [(each.id, each.metadata) for each in found] == [(names[n], {"n": str(n)}) for n in (4, 3, 2, 1, 0)]
        assert {each.status for each in found} == {"validating"}  # looking is no poll


def test_a_batch_whose_creation_was_not_heard_of_is_there() -> None:
    trouble = iter([None, fake.reset_after_head, fake.error(500)])

    def first(method: str, path: str) -> fake.Fault | None:
        return next(trouble, None) if method == "POST" else None

    with vendor(script, batches=Rules(trouble=first)) as server, openai(server) as client:
        with pytest.raises(Exception, match="Connection error"):
            started(client, input_file(server, "S"))
        assert len(list(client.batches.list())) == 1
        with pytest.raises(APIStatusError):
            client.files.create(file=io.BytesIO(b"x"), purpose="batch")
        assert len(list(client.batches.list())) == 1


def test_what_is_unknown_is_not_found() -> None:
    with vendor(script) as server, openai(server) as client, anthropic(server) as other:
        for unknown in (lambda: client.batches.retrieve("b"), lambda: client.files.content("f")):
            with pytest.raises(APIStatusError) as caught:
                unknown()
            assert caught.value.status_code == 404
        with pytest.raises(AnthropicError, match="No batch b"):
            other.messages.batches.retrieve("b")


# Batches of Anthropic


def requests(server: Vendor, grades: str = GRADES) -> list[Any]:
    made = (body(server, "-" * n + each, "anthropic") for n, each in enumerate(grades))
    return [{"custom_id": f"item{n}", "params": params} for n, params in enumerate(made)]


def test_anthropic_batch_ends_and_tells_every_fate() -> None:
    rules = Rules(steps=("in_progress", "in_progress"), fate=fate)
    with vendor(script, batches=rules) as server, anthropic(server) as client:
        batch = client.messages.batches.create(requests=requests(server))
        states = [batch.processing_status]
        while batch.processing_status != "ended":
            assert batch.results_url is None
            batch = client.messages.batches.retrieve(batch.id)
            states.append(batch.processing_status)
        found = {each.custom_id: each.result for each in client.messages.batches.results(batch.id)}
    assert states == ["in_progress"] * 3 + ["ended"]
    assert list(found) != sorted(found)
    types = {"S": "succeeded", "B": "errored", "C": "expired", "D": "canceled"}
    assert {name: each.type for name, each in found.items()} == {
        f"item{n}": types[each] for n, each in enumerate(GRADES) if each != "A"
    }
    assert json.loads(found["item5"].message.content[0].text)["P6"] == "S"  # type: ignore[union-attr]
    assert (batch.request_counts.succeeded, batch.request_counts.errored) == (2, 2)
    assert server.paid_in_batches.total() == 1 + 6


def test_anthropic_batch_is_cancelled_and_listed() -> None:
    with vendor(script) as server, anthropic(server) as client:
        batch = client.messages.batches.create(requests=requests(server, "SS"))
        assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
        with pytest.raises(Exception, match="results_url"):
            client.messages.batches.results(batch.id)  # asks once, which is a poll
        assert client.messages.batches.retrieve(batch.id).processing_status == "ended"
        assert [each.result.type for each in client.messages.batches.results(batch.id)].count("canceled") == 1
        assert [each.id for each in client.messages.batches.list(limit=1)] == [batch.id]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(most_requests=9), "1 to 9 requests"),
        (Rules(most_request_bytes=1000), "exceeds the maximum size"),
    ],
)
def test_anthropic_batch_has_limits(rules: Rules, words: str) -> None:
    with (
        vendor(script, batches=rules) as server,
        anthropic(server) as client,
        pytest.raises(AnthropicError, match=words),
    ):
        client.messages.batches.create(requests=requests(server))


def test_anthropic_ids_are_unique() -> None:
    with vendor(script) as server, anthropic(server) as client, pytest.raises(AnthropicError, match="unique"):
        client.messages.batches.create(requests=[*requests(server, "S"), *requests(server, "S")])


# Faults

NO_ANSWER, WHOLE = "no answer", '"P2": "A"'
LOOKS = {
    "slow": WHOLE,
    "dribbled": WHOLE,
    "limited, seconds": "429",
    "limited, date": "429",
    "limited, milliseconds": "429",
    "unavailable": "500",
    "overloaded": "529",
    "reset before the head": NO_ANSWER,
    "reset after the head": NO_ANSWER,
    "broken body": NO_ANSWER,
    "truncated body": "unknown form",
    "html": "web page",
    "fenced": '```json\n{"P1": "S", "P2": "A", "P3": "B"}\n```',
    "fenced and cut": "```json\n{",
    "cut": '{"P1": "S", "P2":',
    "halved": '{"P1": "S", "P2',
    "chatty": "Here are",
    "missing label": '{"P2": "A"}',
    "extra label": '"P99": "S"}',
    "repeated label": '"P3": "B", "P1": "S"}',
    "contradicted label": '"P3": "B", "P2": "Z"}',
    "wrong letter": '{"P1": "E"',
    "refusal": "refusal",
    "filtered": "refusal",
    "filtered midway": "refusal",
    "null content": "None",
    "empty": "stop: ",
    "no usage": WHOLE,
    "too long": "maximum context length",
    "renamed": "another-model",
    "no money": "may spend no more",
}


def looks(server: Vendor | Remote, kind: str) -> str:
    """Return how an answer, or its failure, looks to a provider."""

    async def once() -> Reply:
        judge, asked = llm(server, kind=kind)
        try:
            return await asked.answer(judge.build(QUERY.text, [each.shown() for each in passages("SAB")]))
        finally:
            await asked.close()

    try:
        reply = asyncio.run(once())
    except ProviderError as error:
        return str(error)
    return f"{reply.model} {reply.finish}: {reply.text}"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("name", KINDS)
def test_every_fault_looks_as_it_should(name: str, kind: str) -> None:
    with vendor(script, [KINDS[name]]) as server:
        seen = looks(server, kind)
        again = looks(server, kind)
    assert LOOKS[name] in seen
    assert again == 'm-1 stop: {"P1": "S", "P2": "A", "P3": "B"}'
    lost = name in ("reset before the head", "reset after the head", "broken body", "truncated body")
    refused = seen.startswith(kind) or name == "filtered"
    assert server.answers == 1 + (not refused)
    assert set(server.paid.values()) == {server.answers}
    assert set(server.lost.values()) == ({1} if lost else set())


def test_chaos_depends_on_the_request_and_its_try_alone() -> None:
    calls = [Call("openai", "m", "q", {"P1": f"{n} S"}, {}, {}) for n in range(2000)]
    here, there = chaos(1), chaos(1)
    first = [(here(call), here(call)) for call in calls]
    assert [(there(call), there(call)) for call in reversed(calls)] == first[::-1]
    assert [(fault, again) for fault, again in first if fault and again]
    assert 0.18 < sum(fault is not None for fault, _ in first) / len(first) < 0.22
    assert set(here.drawn) == set(KINDS)
    assert here.drawn["no money"] < min(here.drawn[name] for name in KINDS if name not in fake.RARE)


# Limits and load


def test_what_is_beyond_the_rate_is_refused_until_the_window_has_passed() -> None:
    with vendor(script, rate=Rate(requests=2, window_s=0.4)) as server:
        seen = [looks(server, "openai") for _ in range(3)]
        assert ["429" in each for each in seen] == [False, False, True]
        time.sleep(0.45)
        assert "stop" in looks(server, "anthropic")
    assert [each.refused for each in server.arrivals] == [False, False, True, False]
    assert (server.answers, server.heaviest(0.0)[0]) == (3, 1)


def test_tokens_have_a_rate_of_their_own() -> None:
    with vendor(script, rate=Rate(tokens=100, window_s=30, weigh=lambda _call: 40)) as server:
        seen = [looks(server, "openai") for _ in range(3)]
    assert ["429" in each for each in seen] == [False, False, True]
    assert server.heaviest() == (3, 120)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), max_size=20), st.integers(0, 20))
def test_the_heaviest_window_is_that_of_trying_all(arrived: list[tuple[int, int]], window: int) -> None:
    server = Vendor(script, lambda _call: None, arrivals=[Arrival(at, weight) for at, weight in arrived])
    inside = [[weight for at, weight in arrived if start <= at <= start + window] for start, _ in arrived]
    requests, tokens = max(map(len, inside), default=0), max(map(sum, inside), default=0)
    assert server.heaviest(window) == (requests, tokens)


def test_it_carries_128_calls_at_once() -> None:
    async def call(server: Vendor) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        content = json.dumps(body(server, "SAB")).encode()
        writer.write(b"POST /chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(content) + content)
        head = await reader.readline()
        writer.close()
        return head

    async def many(server: Vendor) -> list[bytes]:
        return await asyncio.gather(*(call(server) for _ in range(128)))

    with vendor(script, latency=1.0) as server:
        assert set(asyncio.run(many(server))) == {b"HTTP/1.1 200 OK\r\n"}
    assert (server.peak, server.answers) == (128, 128)


# A process of its own


def test_elsewhere_it_counts_the_same(tmp_path: Path) -> None:
    counted = tmp_path / "counters.json"
    with elsewhere("last", counters=counted, chaos=3, share=0.0, requests=10) as remote:
        assert WHOLE in looks(remote, "openai")
        assert WHOLE in looks(remote, "anthropic")
        assert remote.pressed() == {"calls": 2, "answers": 2, "busy": 0, "peak": 1}
        found = remote.counters()
        assert set(remote.pairs("paid").values()) == {2}
    assert json.loads(counted.read_text()) == found
    assert set(found["usage"]) == {"prompt", "output"}


def test_elsewhere_it_ends_when_it_is_told_to() -> None:
    with elsewhere() as remote:
        assert remote.pressed()["calls"] == 0
    with pytest.raises(OSError, match="refused"):
        remote.pressed()
