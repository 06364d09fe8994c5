"""What the tests of recognisers share: values in their surroundings, and promises that every recogniser keeps."""

import re
from collections.abc import Callable
from itertools import pairwise

from curate.core.records import Span
from tests import ROOT

Recogniser = Callable[[str], list[Span]]

STAY = (ROOT / "tests/data").joinpath("pii_numbers_stay.txt").read_text("utf-8").splitlines()
"""Sentences that hold no number of a person, one a line."""


def promised(recogniser: Recogniser, text: str) -> list[Span]:
    """Return what a recogniser finds, and check what it promises: spans in order, apart, and only after its trigger."""
    spans = recogniser(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert not spans or triggered(recogniser, text), text
    return spans


def triggered(recogniser: Recogniser, text: str) -> bool:
    """Say whether the trigger of a recogniser matches a text, in Python."""
    return any(all(re.search(pattern, text) for pattern in chain) for chain in recogniser.triggers)  # type: ignore[attr-defined]


def found(recogniser: Recogniser, text: str) -> list[str]:
    """Return the values that a recogniser finds, and check its promises."""
    return [text[span.start : span.end] for span in promised(recogniser, text)]


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
