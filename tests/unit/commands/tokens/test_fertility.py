"""Units of a text, tokens per unit, and the figures that they add up to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.tokens import tokenizers
from curate.commands.tokens.tokenizers import COLUMNS, FREQUENT, Pieces, Terms, figures, per_unit, row, spans


def units(text: str) -> list[str]:
    found = spans(text)
    return [text[start:end] for start, end in zip(found.starts, found.ends, strict=True)]


@pytest.mark.slow
@given(st.text())
def test_units_are_everything_but_white_space(text: str) -> None:
    assert "".join(units(text)) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HbA1c: 7.5 %...", ["HbA1c", ":", "7", ".", "5", "%..."]),
        ("高血压 type 2", ["高", "血", "压", "type", "2"]),
        ("e\u0301tude हिन्दी", ["e\u0301tude", "हिन्दी"]),
    ],
)
def test_a_unit_is_a_word_a_character_or_a_run_of_signs(text: str, expected: list[str]) -> None:
    assert units(text) == expected


def test_characters_are_counted_among_the_units() -> None:
    assert (spans("高血压 type 2").characters, len(spans("高血压 type 2")), len(spans(""))) == (3, 5, 0)


def test_a_token_counts_for_every_unit_that_it_touches() -> None:
    found = spans("abc 高血 de")  # tokens: a, bc, " 高血" in one, de
    assert per_unit(found, np.array([0, 1, 3, 7]), np.array([1, 3, 6, 9])).tolist() == [2, 1, 1, 1]


def of(tokens: int, length: int, counts: list[int], own: int | None = 4) -> list[float]:
    found = spans(" ".join("x" for _ in counts))
    return row(found, Pieces(tokens, length, np.array(counts), np.zeros(len(counts), dtype=int)), own)


def test_the_figures_of_two_tokenizers() -> None:
    one = np.array([of(3, 5, [2, 1]), of(4, 6, [1, 1, 2]), of(2, 4, [1, 1])])
    other = np.array([row(spans("x x"), Pieces(6, 130, None), None)] * 3)
    first, second = figures([one, other], seed=0)
    assert first["fertility"].value == pytest.approx(9 / 7, abs=1e-6)
    assert first["split"].value == pytest.approx(2 / 7, abs=1e-6)
    assert first["ceiling"].value == pytest.approx(1 - 7 / 9, abs=1e-6), "one token per word"
    assert first["over_own"].value == pytest.approx(2 / 3, abs=1e-6)
    assert first["unknown"].value == 0
    assert second["relative"].value == 2
    assert (second["over_128"].value, second["over_256"].value) == (1, 0)
    assert [second[name].value for name in ("split", "unknown", "ceiling", "over_own")] == [None] * 4
    assert first["fertility"].low is not None
    assert first["fertility"].low < 9 / 7


def test_one_text_has_no_interval() -> None:
    assert figures([np.array([of(3, 5, [2, 1])])], seed=0)[0]["fertility"].low is None


def test_a_term_of_few_texts_is_not_listed() -> None:
    terms, text = Terms(), "Gout rash"
    for _ in range(FREQUENT - 1):
        terms.add(text, spans(text), np.array([3, 1]))
    assert terms.worst(9) == []
    terms.add("gout", spans("gout"), np.array([2]))
    assert terms.worst(9) == [("gout", FREQUENT, FREQUENT, 2 * (FREQUENT - 1) + 1)]


def test_every_sum_has_a_name() -> None:
    assert len(of(3, 5, [2, 1])) == len(COLUMNS)
    assert len(tokenizers.LENGTHS) == 3
