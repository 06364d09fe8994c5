"""Names in free text: every class of forms with made-up names, each found at exactly its place, and words that stay."""

import random
from collections.abc import Callable, Iterator
from functools import cache

import pytest
import yaml

from curate.pii import RECOGNISERS
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from tests import ROOT
from tests.support import recognising

NEW = ["name_weighed", "name_called", "name_nick", "name_spaced", "name_parts", "name_scarce", "name_given"]
MASKER = masker(Masking(), "zh", b"key")
SEED, COUNT = 15, 60
SURNAMES = (
    "王李张刘陈杨赵吴周徐孙马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚"
    "方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
)
WORDS = "高黄白于方石江常安边向明成左温游车牛马花米金田包应钱纪时"
SEPARATORS = ("·", "•", "・", "．", ".", "-", "‧", "―")


@cache
def frames() -> dict[str, list[str]]:
    path = (ROOT / "tests/data") / "names_free.yaml"
    return yaml.safe_load(path.read_text("utf-8"))  # type: ignore[no-any-return]


def spaced(draw: random.Random) -> str:
    return f"{draw.choice(SURNAMES)}{draw.choice([' ', '  ', chr(0x3000)])}{draw.choice(frames()['given'])}"


def full(draw: random.Random) -> str:
    return draw.choice(SURNAMES) + draw.choice(frames()["given"])


def nick(draw: random.Random) -> str:
    return draw.choice("老小") + draw.choice("高黄白于方石江常安向温游牛马纪钱左王李张刘陈")


def rare(draw: random.Random) -> str:
    return draw.choice(SURNAMES) + draw.choice(frames()["odd"])


def scarce(draw: random.Random) -> str:
    return draw.choice(SURNAMES) + draw.choice(frames()["scarce_given"])


def parts(draw: random.Random) -> str:
    sign = draw.choice(SEPARATORS)
    blank = draw.choice(["", "", " "])
    return f"{draw.choice(frames()['heads'])}{blank}{sign}{blank}{draw.choice(frames()['tails'])}"


MADE: dict[str, tuple[Callable[[random.Random], str], float]] = {
    "spaced": (spaced, 0.95),
    "kin": (full, 0.95),
    "nick": (nick, 0.9),
    "titled_word": (lambda draw: draw.choice(WORDS), 0.9),
    "inside": (lambda draw: draw.choice(SURNAMES), 0.93),
    "rare": (rare, 0.95),
    "parts": (parts, 0.95),
    "bare": (scarce, 0.95),
    "short": (lambda draw: draw.choice("方马高温万石金白牛江"), 0.9),
    "alone": (lambda draw: draw.choice(frames()["alone_given"]), 0.9),
    "dashed": (lambda draw: draw.choice(frames()["dashed_given"]), 0.9),
}
"""Class -> what makes its names, and the share that is found at least."""


def forms(name: str) -> Iterator[tuple[str, int, int]]:
    """Yield texts and where the name stands, the same ones every time."""
    draw, make = random.Random(f"{SEED} {name}"), MADE[name][0]
    for number in range(COUNT):
        frame = frames()[name][number % len(frames()[name])]
        value = make(draw)
        yield frame.replace("{}", value), frame.index("{}"), frame.index("{}") + len(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_names_in_free_text_are_found_at_their_place(name: str) -> None:
    rows = list(forms(name))
    masked = mask_all(MASKER, [text for text, _, _ in rows])
    missed = [
        (text, text[start:end], [text[span.start : span.end] for span in found.spans])
        for (text, start, end), found in zip(rows, masked, strict=True)
        if (start, end, "name") not in {(span.start, span.end, span.kind) for span in found.spans}
    ]
    assert len(missed) <= (1 - MADE[name][1]) * COUNT, missed


def test_words_that_look_like_names_in_free_text_stay() -> None:
    texts = [around.format(text) for text in frames()["stay"] for around in ("{}", "你好，{}", "{}。谢谢", "三天了 {}")]
    masked = zip(texts, mask_all(MASKER, texts), strict=True)
    assert [(text, spans) for text, each in masked if (spans := [s for s in each.spans if s.kind == "name"])] == []


@pytest.mark.parametrize("name", NEW)
def test_what_is_found_was_announced_by_the_trigger(name: str) -> None:
    recogniser = RECOGNISERS.load(name)
    texts = [text for each in MADE for text, _, _ in forms(each)]
    assert sum(len(recognising.promised(recogniser, text)) for text in texts) > 10
