"""What the tests of recognisers share: values in their surroundings, promises that every recogniser keeps."""

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

from curate.records import Span

Recogniser = Callable[[str], list[Span]]

STAY = Path(__file__).with_name("data").joinpath("pii_numbers_stay.txt").read_text("utf-8").splitlines()
"""Sentences that hold no number of a person, one a line."""
NASTY = [
    *(
        "1",
        "1 ",
        "1-",
        "一",
        "一 ",
        "12345678",
        "62",
        "0",
        "110101",
        "19870326",
        "X",
        "*",
        "6222 ",
        "4111-",
        " ",
        "(",
        "\n",
    ),
    *("京", "京A", "京A1234", "新A1", "WJ", "使1", "A", "A1", "A1-", "No.", "is", "■", "[病历号]", "号", "军字第"),
    *("住院号", "住院号:", "身份证", "身份证1", "护照", "护照E", "通行证", "社保", "医保", "卡号", "登记号"),
    *("床", "1床", "一床", "3号", "1区", "在科"),
]
STRANGE = ["\ud800", "\udfff", "\x00", "\x1b", "\u200b", "😀", "１", "Ａ", "－", "　", "٣", "²", "Ⅷ", "〇"]


def trigger_of(recogniser: Recogniser) -> str:
    """Return the patterns of a recogniser's trigger as one."""
    return "|".join(f"(?:{pattern})" for pattern in recogniser.triggers)  # type: ignore[attr-defined]


def found(recogniser: Recogniser, text: str) -> list[str]:
    """Return what a recogniser finds, and check what it promises about spans and its trigger."""
    spans = recogniser(text)
    ends = [0, *(place for span in spans for place in (span.start, span.end))]
    assert ends == sorted(ends)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    if spans:
        pattern = trigger_of(recogniser)
        assert re.search(pattern, text)
        if not any("\ud800" <= character <= "\udfff" for character in text):
            assert pl.Series([text]).str.contains(pattern).all()
    return [text[span.start : span.end] for span in spans]


def surrounded(marked: str) -> list[tuple[str, str]]:
    """Return text and value, in every surrounding, of a text in which `|` stands before and after the value."""
    before, value, after = marked.split("|") if "|" in marked else ("", marked, "")
    text = f"{before}{value}{after}"
    around = [
        "{}",
        "我昨天去看病，{}，谢谢医生",
        "您好{}请问",
        "（{}）",
        "说明：{}。",
        "{}\n第二行",
        "好。{}",
        "！{}！",
    ]
    return [(template.format(text), value) for template in around]


def strange_texts(pieces: list[str], count: int) -> list[str]:
    """Return texts of random pieces, the same at every call."""
    draw = random.Random(6)
    return ["".join(draw.choices(pieces, k=draw.randint(1, 30))) for _ in range(count)]


def assert_linear(recogniser: Recogniser, pieces: list[str]) -> None:
    """Check that 16 times the text takes less than 80 times as long, for one repeated piece and for 1 MB of all."""
    for piece in pieces:
        small, large = (_seconds(recogniser, piece * (size // len(piece))) for size in (10_000, 160_000))
        assert large < 80 * max(small, 0.002), piece
    mixed = "".join(strange_texts(pieces, 12_000))
    assert _seconds(recogniser, mixed[:800_000]) < 80 * max(_seconds(recogniser, mixed[:50_000]), 0.002)


def _seconds(recogniser: Recogniser, text: str) -> float:
    start = time.perf_counter()
    recogniser(text)
    return time.perf_counter() - start
