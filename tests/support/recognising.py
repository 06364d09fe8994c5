"""What the tests of recognisers share: values in their surroundings, and promises that every recogniser keeps."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import NamedTuple

import yaml

from curate.core.records import Span
from tests import ROOT

Recogniser = Callable[[str], list[Span]]

STAY = (ROOT / "tests/data").joinpath("pii_numbers_stay.txt").read_text("utf-8").splitlines()
"""Sentences that hold no number of a person, one a line."""

GROUPS = yaml.safe_load((ROOT / "tests/data/recognised.yaml").read_text("utf-8"))
MARK = re.compile("〈(.*?)〉")
ESCAPE = re.compile(r"\\n|\\r|\\u([0-9a-f]{4})")


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


class Case(NamedTuple):
    """A text, where in it something is found, and how it is masked if that is given."""

    text: str
    places: list[tuple[int, int]]
    masked: str | None = None


def unescaped(text: str) -> str:
    return ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else {"n": "\n", "r": "\r"}[match[0][1]], text)


def cases(group: str) -> Iterator[Case]:
    """Yield every text of a group in each of its surroundings."""
    for line, around in product(GROUPS[group]["texts"].splitlines(), GROUPS[group].get("around", ["{}"])):
        written, _, masked = (unescaped(part) for part in line.partition(" ⇒ "))
        marked = MARK.search(written)
        for value in marked[1].split("|") if marked and "|" in marked[1] else [None]:
            chosen = written if value is None else MARK.sub(f"〈{value}〉", written)
            text = unescaped(around).replace("{}", chosen)
            places = [
                (match.start() - 2 * before, match.end() - 2 * before - 2)
                for before, match in enumerate(MARK.finditer(text))
            ]
            yield Case(MARK.sub(r"\1", text), places, masked or None)
