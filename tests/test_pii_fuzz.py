"""All recognisers on anything: no exception, valid offsets, nothing masked twice, no square growth of time."""

import random
import re

import polars as pl
import pytest

from curate.pii import RECOGNISERS
from curate.pii.masking import Masked
from curate.pii.settings import Masking, masker
from curate.records import Span
from tests.recognising import trigger_of

MASKER = masker(Masking(), "zh", b"key")
STRINGS, LENGTH = 100_000, 40
ALPHABETS = (
    "0123456789",
    "0123456789０１２３４５６７８９ -.()+转",
    "零〇一二三四五六七八九十幺壹贰",
    "我叫王李张欧阳医生女士先生患者姓名：，。男年岁某",
    "省市区县镇村路街号栋单元室医院大学北京上海广东",
    "abcXYZ@._-/:#%wxqqVX微信电话号身份证住院床",
    "[电话]姓名＊■[]",
    "🙂👩‍⚕️𠮷é\u200b\u202e\ufeff",
    "\x00\x01\x1b\t\n\r\x85\u2028 ",
    "\ud800\udfff\udc00",
    "ＡＢＣａｂｃ＠．：／",
)
NASTY = (
    *("1", "13", "139 ", "1-3-", "0755-", "6222", "1/", "2019年", "1月", "A1", "x", "a", "a.", "a@", "a@b.", "@"),
    *(
        "一",
        "三八",
        "王",
        "王小",
        "我叫",
        "医生",
        "王医生",
        "患者",
        "姓名：",
        "·",
        "买买提·",
        "某",
        "身份证",
        "住院号",
        "床",
    ),
    *("北京市", "路", "1号", "村", "第一", "医院", "大学", "微信", "QQ", "http://", "a/", "+86", "京A"),
    *("[", "[电话", "((", " ", "，", "＊", "■"),
)


def strings(count: int, seed: int) -> list[str]:
    """Return random strings, each of a few of the alphabets."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        letters = "".join(draw.sample(ALPHABETS, draw.randint(1, 3)))
        found.append("".join(draw.choices(letters, k=draw.randint(0, LENGTH))))
    return found


def valid(text: str, spans: list[Span]) -> bool:
    """Say whether spans are in order, apart, not empty, and inside the text."""
    places = [0, *(place for span in spans for place in (span.start, span.end)), len(text)]
    return places == sorted(places) and all(span.start < span.end for span in spans)


@pytest.mark.slow
def test_anything_is_masked_once() -> None:
    found = 0
    for text in strings(STRINGS, 1):
        once = MASKER.mask(text)
        found += len(once.spans)
        assert valid(text, list(once.spans)), ascii(text)
        assert MASKER.mask(once.text) == Masked(once.text), ascii(text)
    assert found > STRINGS / 100


@pytest.mark.slow
@pytest.mark.parametrize("name", RECOGNISERS.names())
def test_a_recogniser_gives_valid_spans_and_only_where_its_trigger_is(name: str) -> None:
    recogniser = RECOGNISERS.load(name)
    trigger = trigger_of(recogniser)
    texts = strings(5_000, 2)
    found = [recogniser(text) for text in texts]
    clean = [text.encode("utf-8", "ignore").decode() for text in texts]
    rust = pl.Series(clean).str.contains(trigger)
    for text, spans, hit in zip(texts, found, rust, strict=True):
        assert valid(text, spans), ascii(text)
        assert all(span.recogniser == name for span in spans)
        assert not spans or re.search(trigger, text), ascii(text)
        assert hit or not recogniser(text.encode("utf-8", "ignore").decode()), ascii(text)


@pytest.mark.slow
@pytest.mark.timeout(300)  # with the square of the length it would take days
@pytest.mark.parametrize("part", NASTY)
def test_a_line_of_a_megabyte_ends(part: str) -> None:
    """A megabyte of one thing again and again, which ends in something else: where bad patterns go back and forth."""
    text = part * (1_000_000 // len(part.encode())) + "\u3042"
    once = MASKER.mask(text)
    assert valid(text, list(once.spans))
