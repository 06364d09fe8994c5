"""Replies that are too long, packed too tightly or counted wrongly: their request fails or is charged, nothing else."""

import gzip
import json
import zlib
from dataclasses import replace

import pytest

from curate.ledger import Ledger
from curate.llm.providers import reader
from curate.llm.providers.sdk import KEPT, shortened
from curate.llm.providers.transport import TooLarge, unpacked
from curate.runs.ledger_check import check
from tests import vendor as fake
from tests.support.asking import PRICED, judged, key, llm, rows, said, script, work
from tests.vendor import Call, Fault, vendor


def test_a_body_that_is_too_long_fails_its_request_and_nothing_else(ledger: Ledger) -> None:
    """It is not asked for again, for each try may be paid; a refusal of that size is a refusal still."""
    body, refusals = "x" * 5_000_000, iter([503])

    def faults(call: Call) -> Fault | None:
        if "段落1" in str(call.passages):
            return fake.page(body)
        status = next(refusals, None) if "段落2" in str(call.passages) else None
        return (lambda answer: replace(answer, status=status, page=body)) if status else None

    with vendor(script, faults) as server:
        bill = judged(server, ledger, work("SSSA"), PRICED, batch=1)
        assert said(server, ledger, work("SSSA")) == ["S", "failed", "S", "A"]
    assert (bill.calls, bill.lost, bill.failed) == (3, 1, 1)
    assert len(server.calls) == 5
    assert any("more than 4 MB; raise reply_bytes" in raw for (raw,) in rows(ledger, "raw"))


@pytest.mark.parametrize("codings", ["gzip", "gzip, gzip", "deflate", "gzip, gzip, gzip"])
def test_nothing_is_unpacked_beyond_the_bound(codings: str) -> None:
    content = b"{}" if codings.count("gzip") == 3 else bytes(50_000_000)
    for name in codings.split(", "):
        content = gzip.compress(content, 1) if name == "gzip" else zlib.compress(content, 1)
    with pytest.raises(TooLarge):
        unpacked(content, codings, 4_000_000)


def test_what_is_packed_is_unpacked() -> None:
    raw = zlib.compressobj(wbits=-15)
    for content, codings in (
        (gzip.compress(b"{}"), "x-gzip"),
        (zlib.compress(b"{}"), "Deflate"),
        (raw.compress(b"{}") + raw.flush(), "deflate"),
        (gzip.compress(zlib.compress(b"{}")), "deflate, gzip"),
        (b"{}", "identity"),
    ):
        assert unpacked(content, codings, 20) == b"{}"


def test_chatter_is_kept_short_and_reads_the_same_again(ledger: Ledger) -> None:
    endless = fake.says("哈" * 900_000)
    with vendor(script, [endless]) as server:
        judge, _ = llm(server)
        assert ledger.register(judge.identity) == key(server).judge_digest
        judged(server, ledger, work("SB"))
        assert said(server, ledger, work("SB")) == ["S", "B"]
    assert rows(ledger, "form") == [("unreadable",), ("whole",), ("whole",)]
    assert 60_000 < max(len(raw) for (raw,) in rows(ledger, "raw")) < KEPT
    assert check(ledger) == []


@pytest.mark.parametrize(
    "junk", ["[" * 300_000, "[" + "0," * 300_000 + "0]", json.dumps([["x" * 60_000] * 50]), "x" * 300_000]
)
def test_what_is_long_is_shortened_or_no_reply(junk: str) -> None:
    assert len(shortened(junk)) <= KEPT
    assert shortened('{"a": 1.0}') == '{"a": 1.0}'


OPENAI = '{"model": "m", "choices": [{"message": {"content": "A"}, "finish_reason": ["stop"]}], "usage": {%s}}'
ANTHROPIC = '{"model": "m", "content": [{"type": "text", "text": "A"}], "stop_reason": {}, "usage": {%s}}'
WRONG = ["-5", "10000001", "1" + "0" * 400, "1" + "0" * 5_000, "NaN", "Infinity", '"12"', "1.5", "true", "[1]", "{}"]


@pytest.mark.parametrize(
    ("kind", "form", "usage"),
    [
        ("openai", OPENAI, '"prompt_tokens": %s, "completion_tokens": 5'),
        ("openai", OPENAI, '"prompt_tokens": 5, "completion_tokens": %s'),
        (
            "openai",
            OPENAI,
            '"prompt_tokens": 5, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": %s}',
        ),
        ("anthropic", ANTHROPIC, '"input_tokens": %s, "output_tokens": 5'),
        ("anthropic", ANTHROPIC, '"input_tokens": 5, "output_tokens": 5, "cache_creation_input_tokens": %s'),
    ],
)
def test_a_count_that_cannot_be_is_unknown_usage_of_a_reply_that_is_read(kind: str, form: str, usage: str) -> None:
    read = reader(kind)
    assert read is not None
    for wrong in WRONG:
        reply = read(form % (usage % wrong))
        assert reply is not None, wrong
        assert (reply.text, reply.usage) == ("A", None), wrong
    good = read(form % (usage % "4"))
    assert good is not None
    assert good.usage is not None


def test_usage_that_cannot_be_is_charged_at_its_bound(ledger: Ledger) -> None:
    with vendor(script, lambda _call: fake.used(prompt=-1_000_000, output=10**30)) as server:
        bill = judged(server, ledger, work("S"), PRICED, max_cost=1.0)
    assert 0 < bill.spent < 0.1
    assert rows(ledger, "prompt_tokens, output_tokens, cost") == [(None, None, pytest.approx(bill.spent))]
