"""All recognisers on anything: no exception, valid offsets, nothing masked twice, no square growth of time."""

import random

import polars as pl
import pytest
import yaml

from curate.core.records import Span
from curate.pii import RECOGNISERS
from curate.pii.masking import Masked
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all, suspects
from tests import ROOT
from tests.support.recognising import STAY, promised, triggered

MASKER = masker(Masking(), "zh", b"key")
STRINGS, LENGTH = 2_000, 40
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
_PIECES = yaml.safe_load((ROOT / "tests/data").joinpath("pii_pieces.yaml").read_text("utf-8"))
NASTY = _PIECES["repeated"]
PIECES = [*NASTY, *_PIECES["others"]]


def strings(count: int, seed: int) -> list[str]:
    """Return random strings, every second one of a few of the alphabets, the others of pieces."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        letters = "".join(draw.sample(ALPHABETS, draw.randint(1, 3)))
        short = draw.choices(letters, k=draw.randint(0, LENGTH))
        found.append("".join(short if number % 2 else draw.choices(PIECES, k=draw.randint(0, LENGTH // 4))))
    return found


def valid(text: str, spans: list[Span]) -> bool:
    """Say whether spans are in order, apart, not empty, and inside the text."""
    places = [0, *(place for span in spans for place in (span.start, span.end)), len(text)]
    return places == sorted(places) and all(span.start < span.end for span in spans)


def test_anything_is_masked_once() -> None:
    found = 0
    for text in strings(STRINGS, 1):
        once = MASKER.mask(text)
        found += len(once.spans)
        assert valid(text, list(once.spans)), ascii(text)
        assert MASKER.mask(once.text) == Masked(once.text), ascii(text)
    assert found > STRINGS / 10


@pytest.mark.parametrize("name", RECOGNISERS.names())
def test_a_recogniser_gives_valid_spans_and_only_where_its_trigger_is(name: str) -> None:
    recogniser = RECOGNISERS.load(name)
    texts = strings(500, 2)
    spans = [promised(recogniser, text) for text in texts]
    assert all(span.recogniser == name for each in spans for span in each)
    clean = [text.encode("utf-8", "ignore").decode() for text in texts]
    rust = suspects([recogniser], pl.Series(clean))
    assert [row in rust for row in range(len(clean))] == [triggered(recogniser, text) for text in clean]


@pytest.mark.parametrize("name", sorted({*RECOGNISERS.names()} - {"landline"}))  # a sentence names an office's line
def test_what_holds_no_number_stays(name: str) -> None:
    recogniser = RECOGNISERS.load(name)
    assert {text: spans for text in STAY if (spans := promised(recogniser, text))} == {}


@pytest.mark.timeout(120)  # a pattern that goes back and forth takes hours
@pytest.mark.parametrize("part", NASTY)
def test_a_long_line_of_one_thing_ends(part: str) -> None:
    """40 KB of one thing again and again, which ends in something else: where bad patterns go back and forth."""
    text = part * (40_000 // len(part.encode())) + "\u3042"
    (once,) = mask_all(MASKER, [text])
    assert valid(text, list(once.spans))


@pytest.mark.accept
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", NASTY)
def test_a_megabyte_of_one_thing_ends(part: str) -> None:
    text = part * (1_000_000 // len(part.encode())) + "\u3042"
    assert valid(text, list(mask_all(MASKER, [text])[0].spans))


@pytest.mark.timeout(120)
def test_a_long_line_of_everything_ends() -> None:
    draw = random.Random(3)
    text = "".join(draw.choices(PIECES, k=24_000))
    assert len(text.encode()) > 120_000
    assert valid(text, list(MASKER.mask(text).spans))
