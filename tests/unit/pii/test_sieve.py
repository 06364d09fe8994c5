"""The scans in front of the recognisers: nothing is lost by them, and no work is done whose answer is known."""

import random
from collections import Counter
from collections.abc import Callable

import polars as pl
import pytest
import yaml

from curate.core.records import Span
from curate.pii.masking import Masker, last_resort, placeholders
from curate.pii.patterns import trigger
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all, suspects
from curate.pii.texts import Batch, mask_batches
from tests import ROOT
from tests.support.recognising import GROUPS

MASKER = masker(Masking(), "zh", b"key")
_PIECES = yaml.safe_load((ROOT / "tests/data/pii_pieces.yaml").read_text("utf-8"))
PIECES = [*_PIECES["repeated"], *_PIECES["others"], "\n", "\r\n", " ", "，", "\u200b", "&#49;&#51;&#56;", "Ａ１", "𠮷"]


def made(count: int, seed: int) -> list[str]:
    """Return texts of pieces of personal data, in whose lines a sign is lost or comes now and then."""
    draw, found = random.Random(seed), []
    lines = [line for group in GROUPS.values() for line in group["texts"].splitlines()]
    for number in range(count):
        text = "".join(draw.choice(draw.choice((PIECES, lines))) for _ in range(draw.randint(1, 4)))
        at = draw.randrange(len(text))
        found.append(text[:at] + draw.choice(("", *PIECES)) + text[at + 1 :] if number % 3 == 0 else text)
    return found


def counting(name: str, pattern: str, calls: Counter[tuple[str, str]]) -> Callable[[str], list[Span]]:
    """Return a recogniser of a word that counts how often it looks at a text."""

    @trigger(pattern)
    def found(text: str) -> list[Span]:
        calls[name, text] += 1
        place = text.find(pattern)
        return [Span(place, place + len(pattern), "private", name)] if place >= 0 else []

    return found


@pytest.mark.slow
def test_the_scans_lose_nothing() -> None:
    texts = [*made(300, 5), "13912345678\ud800"]
    masked, whole = mask_all(MASKER, texts), list(map(MASKER.mask, texts))
    assert [(each.text, each.spans, each.written) for each in masked] == [
        (each.text, each.spans, each.written) for each in whole
    ]
    assert sum(bool(each.spans) for each in masked) > 60


def test_a_recogniser_looks_once_at_a_text_in_which_it_may_find_something() -> None:
    calls: Counter[tuple[str, str]] = Counter()
    recognisers = [counting(name, name, calls) for name in ("left", "right", "private")]
    mask = Masker(recognisers, last_resort("en"), last_resort("en"), placeholders(["private"]))
    texts = [
        f"{words} {sign * 2_000}"
        for words, sign in zip(("nothing", "left", "left right", "right"), ".:;,", strict=True)
    ]
    assert [len(each.spans) for each in mask_all(mask, texts)] == [0, 1, 2, 1]
    raw, written = ({(name, text) for name, text in calls if (text in texts) is first} for first in (True, False))
    assert raw == {("left", texts[1]), ("left", texts[2]), ("right", texts[2]), ("right", texts[3])}
    assert {name for name, _ in written} == {"private"}  # what was written calls one, and that finds it closed
    assert set(calls.values()) == {1}


@pytest.mark.slow
def test_rows_are_those_of_every_pattern_alone() -> None:
    texts = pl.Series(made(300, 6))
    found = suspects(MASKER.recognisers, texts)
    for recogniser in MASKER.recognisers:
        chains = recogniser.triggers  # type: ignore[attr-defined]
        alone = [
            set.intersection(*(set(texts.str.contains(pattern).arg_true()) for pattern in chain)) for chain in chains
        ]
        assert {row for row, asked in found.items() if recogniser in asked} == set.union(*alone), recogniser


def test_batches_are_masked_together_and_given_back_apart() -> None:
    texts = made(60, 7)
    known = {3: [Span(0, 1, "name", "model")]}
    batches: list[tuple[int, Batch]] = [(0, (texts[:20], {})), (1, (texts[20:40], known)), (2, (texts[40:], {}))]
    alone = [(thing, mask_all(MASKER, *batch)) for thing, batch in batches]
    assert list(mask_batches(Masking(), "zh", b"key", batches, 1)) == alone
