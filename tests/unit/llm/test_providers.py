"""Providers against a real HTTP server: the same contract for every vendor, and no secret in what comes out."""

import asyncio
import json
import traceback
from datetime import date
from typing import Any

import pytest

from curate.ask.judges.llm import LlmJudge
from curate.core import config as settings
from curate.core.config import canonical, read_yaml
from curate.core.errors import AccessError, ProviderError
from curate.core.messages import Reply, Request, Usage
from curate.core.records import Outcome
from curate.llm.cost import Price
from curate.llm.prompts import rubric
from curate.llm.providers import PROVIDERS, provider
from curate.llm.providers.errors import as_status
from curate.llm.providers.openai import OpenAIBatch, OpenAIProvider
from curate.llm.providers.settings import ProviderConfig
from curate.testing import check_provider
from tests import ROOT
from tests import vendor as fake
from tests.vendor import Fault, Vendor, vendor

PROMPTS = ROOT / "prompts"
RUBRIC = rubric(read_yaml(PROMPTS / "rubric-zh.yaml"), "rubric-zh")
JUDGE = LlmJudge("m", RUBRIC, {})
QUERY = "儿童发烧怎么办"
PASSAGES = ["儿童发烧怎么办：多喝水，物理降温。", "今天的股市行情。", "发烧是免疫反应。"]
KEY = "sk-very-secret-0123456789"
KINDS = sorted(PROVIDERS.builtin)
both = pytest.mark.parametrize("kind", KINDS)


def script(query: str, passage: str) -> str:
    """Grade as a reader would: the query's words answer it, its second half is related."""
    return "S" if query in passage else "B" if query[2:4] in passage else "D"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def config(kind: str, server: Vendor, **more: Any) -> ProviderConfig:
    data = {"kind": kind, "model": "m-1", "base_url": server.url, "key_env": "TEST_KEY", "timeout_s": 20.0, **more}
    return settings.check(ProviderConfig, data, "judges.m")


def ask(configured: ProviderConfig, request: Request | None = None) -> Reply:
    async def once() -> Reply:
        asked = provider(configured)
        try:
            return await asked.answer(request or JUDGE.build(QUERY, PASSAGES))
        finally:
            await asked.close()

    return asyncio.run(once())


def answer(kind: str, *faults: Fault | None, **more: Any) -> Reply:
    with vendor(script, faults) as server:
        return ask(config(kind, server, **more))


def failure(kind: str, *faults: Fault | None, **more: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        answer(kind, *faults, **more)
    return caught.value


@both
def test_a_judge_that_reads_our_prompt_is_understood(kind: str) -> None:
    with vendor(script, key=KEY) as server:
        reply = ask(config(kind, server))
    assert JUDGE.parse(reply, 3) == [Outcome("S"), Outcome("D"), Outcome("B")]
    assert (reply.finish, reply.model) == ("stop", "m-1")
    [call] = server.calls
    assert (call.query, list(call.passages.values())) == (QUERY, PASSAGES)
    assert set(server.paid.values()) == {1}


@both
def test_the_contract(kind: str) -> None:
    with vendor(script, key=KEY) as server:
        there, away = config(kind, server), config(kind, server, base_url="http://127.0.0.1:9/v1")
        request = JUDGE.build(QUERY, PASSAGES)
        check_provider(lambda: provider(there), lambda: provider(away), request, key=KEY)


@both
def test_the_rubric_is_sent_before_the_texts(kind: str) -> None:
    with vendor(script) as server:
        ask(config(kind, server))
    body = canonical(server.calls[0].body)
    assert RUBRIC.rules[0] in body
    if kind == "anthropic":
        [system] = server.calls[0].body["system"]
        assert system == {"type": "text", "text": RUBRIC.prefix, "cache_control": {"type": "ephemeral"}}
    else:
        assert [turn["role"] for turn in server.calls[0].body["messages"]] == ["system", "user"]


@both
def test_tokens_are_counted_alike(kind: str) -> None:
    written = 300 if kind == "anthropic" else 0
    reply = answer(kind, fake.used(prompt=1000, cached=600, written=written, output=50, reasoning=20))
    assert reply.usage == Usage(prompt=1000, cached=600, written=written, output=50, reasoning=20)


@both
def test_unknown_usage_is_none(kind: str) -> None:
    assert answer(kind, fake.no_usage).usage is None


@both
def test_thoughts_are_no_answer(kind: str) -> None:
    reply = answer(kind, fake.null_content)
    assert reply.text is None
    assert JUDGE.parse(reply, 3) == [Outcome(None, "unparsed")] * 3
    assert "P1" in reply.raw


def test_an_answer_in_parts_is_their_texts_and_no_thought() -> None:
    parts = [
        {"type": "thinking", "thinking": "x"},
        {"type": "text", "text": '{"P1": '},
        {"type": "text", "text": '"S"}'},
    ]
    said = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    reply = OpenAIProvider.read(said, "")
    assert reply is not None
    assert (reply.text, reply.thoughts) == ('{"P1": "S"}', True)
    parts[1:] = []
    reply = OpenAIProvider.read(said, "")
    assert reply is not None
    assert (reply.text, reply.thoughts) == (None, True)


def test_a_status_may_be_a_text() -> None:
    assert [as_status(code) for code in (400, "400", "rate_limited", None, "")] == [400, 400, None, None, None]
    row = {"response": {"status_code": "200", "body": {"choices": [{"message": {"content": "x"}}]}}}
    said = OpenAIBatch(ProviderConfig(model="m", base_url="http://127.0.0.1:9"))._result("b", row)
    assert isinstance(said, Reply)


@both
def test_a_refusal_is_a_refusal(kind: str) -> None:
    reply = answer(kind, fake.refusal)
    assert reply.finish == "refusal"
    assert JUDGE.parse(reply, 3) == [Outcome(None, "refused")] * 3


@both
def test_a_content_filter_is_a_refusal_of_no_model(kind: str) -> None:
    reply = answer(kind, fake.error(400, "data_inspection_failed", "not allowed"))
    assert (reply.finish, reply.text, reply.usage, reply.model) == ("refusal", None, None, "")


@both
def test_an_answer_cut_at_its_bound_keeps_its_complete_items(kind: str) -> None:
    reply = answer(kind, fake.cut(22))
    assert reply.finish == "length"
    assert JUDGE.parse(reply, 3) == [Outcome("S"), Outcome("D"), Outcome(None, "unparsed")]


@both
def test_missing_and_foreign_labels(kind: str) -> None:
    reply = answer(kind, fake.edit(lambda grades: {"P1": grades["P1"], "P3": "E", "P9": "S"}))
    assert JUDGE.parse(reply, 3) == [Outcome("S"), Outcome(None, "unparsed"), Outcome(None, "unparsed")]
    assert JUDGE.read(reply, 3).foreign == 1


@both
@pytest.mark.parametrize(
    ("status", "code", "kept"),
    [
        (302, "", "useless"),
        (400, "", "useless"),
        (400, "context_length_exceeded", "useless"),
        (400, "insufficient_quota", "fatal"),
        (401, "invalid_api_key", "fatal"),
        (402, "", "fatal"),
        (403, "", "fatal"),
        (404, "model_not_found", "fatal"),
        (408, "", "may pass"),
        (409, "", "may pass"),
        (413, "", "useless"),
        (422, "", "useless"),
        (429, "rate_limit_exceeded", "may pass"),
        (429, "insufficient_quota", "may pass"),
        (500, "", "may pass"),
        (501, "", "useless"),
        (503, "", "may pass"),
        (529, "overloaded_error", "may pass"),
    ],
)
def test_fatal_is_what_no_request_passes_and_useless_what_this_one_never_does(
    kind: str, status: int, code: str, kept: str
) -> None:
    error = failure(kind, fake.error(status, code, "the vendor's words"))
    assert (error.fatal, error.useless) == (kept == "fatal", kept == "useless")
    assert f"HTTP {status}" in str(error)
    assert "the vendor's words" in str(error)
    assert code in str(error)
    assert error.retry_after is None


@both
def test_one_call_is_sent_once(kind: str) -> None:
    with vendor(script, [fake.error(429, retry_after=7), None]) as server:
        with pytest.raises(ProviderError) as caught:
            ask(config(kind, server))
        assert caught.value.retry_after == 7
        assert len(server.calls) == 1  # the SDK does not retry by itself


@both
def test_a_broken_connection_may_be_tried_again(kind: str) -> None:
    error = failure(kind, fake.drop)
    assert not error.fatal
    assert "no answer from http://127.0.0.1" in str(error)


@both
def test_nobody_listens(kind: str) -> None:
    with vendor(script) as server:
        gone = config(kind, server)
    with pytest.raises(ProviderError, match="ConnectError") as caught:
        ask(gone)
    assert not caught.value.fatal


@both
def test_a_slow_answer_is_given_up_after_the_whole_timeout(kind: str) -> None:
    error = failure(kind, fake.slow(1.0), timeout_s=0.2)
    assert not error.fatal
    assert "no answer within 0.2 s; raise timeout_s" in str(error)


@both
@pytest.mark.parametrize("page", ["<html>welcome</html>", "[]", "{}", '"S"', '{"choices": [], "content": 1}', "null"])
def test_a_page_that_is_no_answer_is_an_error(kind: str, page: str) -> None:
    error = failure(kind, fake.page(page))
    assert not error.fatal
    assert "check kind and base_url" in str(error)


@both
def test_a_provider_works_again_after_close_in_another_loop(kind: str) -> None:
    with vendor(script) as server:
        asked = provider(config(kind, server))
        for _ in range(2):

            async def once() -> Reply:
                try:
                    return await asked.answer(JUDGE.build(QUERY, PASSAGES))
                finally:
                    await asked.close()

            assert asyncio.run(once()).finish == "stop"


@both
def test_calls_run_side_by_side_up_to_the_concurrency(kind: str) -> None:
    async def many(configured: ProviderConfig) -> list[Reply]:
        asked = provider(configured)
        try:
            return await asyncio.gather(*(asked.answer(JUDGE.build(QUERY, PASSAGES)) for _ in range(8)))
        finally:
            await asked.close()

    with vendor(script, lambda _call: fake.slow(0.1)) as server:
        replies = asyncio.run(many(config(kind, server, concurrency=4)))
    assert len(replies) == 8
    assert 2 <= server.peak <= 4


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"max_tokens": 112}),
        ({"token_field": "max_completion_tokens"}, {"max_completion_tokens": 112, "max_tokens": None}),
        ({"temperature": 0.0}, {"temperature": 0.0}),
        ({"temperature": None}, {"temperature": None}),
        ({"json_mode": "object"}, {"response_format": {"type": "json_object"}}),
        ({"json_mode": "none"}, {"response_format": None}),
        ({"extra_body": {"enable_thinking": False}}, {"enable_thinking": False}),
    ],
)
def test_quirks_of_compatible_vendors_are_settings(more: dict[str, Any], expected: dict[str, Any]) -> None:
    with vendor(script) as server:
        ask(config("openai", server, **more))
    assert {name: server.calls[0].body.get(name) for name in expected} == expected


def test_schemas_are_sent_as_each_vendor_wants_them() -> None:
    wanted = JUDGE.build(QUERY, PASSAGES).schema
    with vendor(script) as server:
        ask(config("openai", server))
        ask(config("anthropic", server, extra_body={"output_config": {"effort": "low"}}, temperature=0.5))
    openai, anthropic = (call.body for call in server.calls)
    form = {"name": "reply", "strict": True, "schema": wanted}
    assert openai["response_format"] == {"type": "json_schema", "json_schema": form}
    assert anthropic["output_config"] == {"format": {"type": "json_schema", "schema": wanted}, "effort": "low"}
    assert anthropic["temperature"] == 0.5


@pytest.mark.parametrize(
    ("base_url", "written", "explicit"), [(None, 1.25, True), (None, None, False), ("http://h/v1", 1.25, False)]
)
def test_openai_caches_the_rubric_alone_where_it_bills_writing(
    monkeypatch: pytest.MonkeyPatch, base_url: str | None, written: float | None, explicit: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    price = Price(input=1, written=written, output=5, date=date(2026, 11, 1))
    request = JUDGE.build(QUERY, PASSAGES)
    body: Any = OpenAIProvider(ProviderConfig(model="m", base_url=base_url, price=price)).body(request)
    first, second = body["messages"]
    text = {"type": "text", "text": request.messages[0].content, "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert body.get("prompt_cache_options") == ({"mode": "explicit"} if explicit else None)
    assert first == {"role": "system", "content": [text] if explicit else request.messages[0].content}
    assert second == {"role": "user", "content": request.messages[1].content}


def test_deepseek_names_cached_tokens_otherwise() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64}
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    reply = answer("openai", fake.page(json.dumps(body)))
    assert reply.usage == Usage(prompt=100, cached=64, output=5)
    assert (reply.finish, reply.model) == ("other", "")


def traced(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@both
@pytest.mark.parametrize(
    ("status", "code", "denied"), [(401, "", True), (403, "", True), (403, "billing_error", False)]
)
def test_only_a_key_that_is_refused_is_the_users_to_mend(kind: str, status: int, code: str, denied: bool) -> None:
    error = failure(kind, fake.error(status, code, "no"))
    assert error.fatal
    assert isinstance(error, AccessError) == denied
    assert ("TEST_KEY" in str(error)) == denied


@both
@pytest.mark.parametrize("placeholder", ["key", "message"])
def test_a_placeholder_for_a_key_garbles_no_words(kind: str, placeholder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", placeholder)
    error = failure(kind, fake.error(401, "invalid_api_key", "the message of your key"))
    assert "(invalid_api_key: the message of your key)" in str(error)


@both
def test_the_key_is_in_nothing_that_comes_out(kind: str) -> None:
    echo = f"Incorrect API key provided: {KEY}"
    error = failure(kind, fake.error(401, "invalid_api_key", "x" * 250 + echo))
    reply = answer(kind, fake.says(f"you said {KEY}"))
    with vendor(script) as server:
        asked = provider(config(kind, server))
    for text in (traced(error), repr(error.__dict__), repr(reply), reply.raw, str(reply.text), repr(asked), asked.name):
        assert KEY[:12] not in text
    assert KEY not in canonical(asked.identity)


@both
def test_the_vendors_words_are_left_out_where_they_quote_a_text(kind: str) -> None:
    error = failure(kind, fake.error(400, "bad_input", f"cannot read: {PASSAGES[0]}"))
    assert "bad_input" in str(error)
    assert PASSAGES[0][:6] not in traced(error)
