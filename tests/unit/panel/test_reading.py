"""Whether a judge reads its prompts: what copying, one grade and length look like, and what honest grades do not."""

import numpy as np
import pytest

from curate.core.scale import FIVE
from curate.ledger import Rating
from curate.panel.reading import FEWEST, LONG_LOOK, ReadingTest

GRADES = "SABCD"
SHARES = (0.05, 0.1, 0.2, 0.25, 0.4)


def prompt(grades: str, number: int = 0) -> list[Rating]:
    """Return the ratings of one reply."""
    return [
        Rating("q", f"{number}-{slot}", "j", "r", 0, grade, "rated", slot, len(grades))
        for slot, grade in enumerate(grades)
    ]


def honest(chance: np.random.Generator, size: int) -> str:
    """Return grades that have nothing to do with the slot."""
    return "".join(chance.choice(list(GRADES), size, p=SHARES))


def first_finding(prompts: list[str], lengths: dict[str, int] | None = None) -> tuple[int, str] | None:
    """Return after how many prompts something is found, and what."""
    test = ReadingTest(FIVE, lengths or {})
    for number, grades in enumerate(prompts, 1):
        test.add(prompt(grades, number))
        if finding := test.finding():
            return number, finding
    return None


@pytest.mark.parametrize("size", [2, 4, 8, 10])
def test_the_same_grades_by_slot_are_found_at_once(size: int) -> None:
    found = first_finding(["CADBSABDCA"[:size]] * 30)
    assert found is not None
    assert found[0] == FEWEST
    assert "place in the prompt" in found[1]


@pytest.mark.parametrize("copied", [0.7, 0.9])
def test_a_judge_that_mostly_copies_is_found(copied: float) -> None:
    chance = np.random.default_rng(7)
    found = [
        first_finding(["CADBSABDCA" if chance.random() < copied else honest(chance, 10) for _ in range(20)])
        for _ in range(100)
    ]
    assert sum(finding is not None for finding in found) >= 90


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 5, 10])
def test_honest_grades_are_left_alone(size: int) -> None:
    chance = np.random.default_rng(11)
    for _ in range(10):
        assert first_finding([honest(chance, size) for _ in range(200)]) is None


@pytest.mark.slow
def test_grades_that_follow_the_query_are_left_alone() -> None:
    chance = np.random.default_rng(13)
    prompts = [grade * 8 if chance.random() < 0.5 else honest(chance, 8) for grade in GRADES * 40]
    assert first_finding(prompts) is None


@pytest.mark.slow
def test_nearly_all_the_worst_is_what_a_deep_pool_gives() -> None:
    chance = np.random.default_rng(17)
    for _ in range(10):
        rare = ["".join(chance.choice(["D", "S"], 10, p=(0.99, 0.01))) for _ in range(200)]
        assert first_finding(rare) is None
    assert first_finding(["D" * 10] * 60) is None


def test_one_good_grade_for_all_is_found() -> None:
    assert first_finding(["A" * 8] * 30) == (LONG_LOOK, "it gave A to all 160 passages of its last 20 prompts")


@pytest.mark.parametrize("longer", [1, -1])
def test_grades_by_length_are_found(longer: int) -> None:
    chance = np.random.default_rng(19)
    lengths, prompts = dict[str, int](), list[str]()
    for number in range(1, 31):
        sizes = chance.integers(20, 400, 8)
        lengths |= {f"{number}-{slot}": int(size) for slot, size in enumerate(sizes)}
        prompts.append("".join(GRADES[::-longer][min(int(size) // 80, 4)] for size in sizes))
    found = first_finding(prompts, lengths)
    assert found is not None
    assert "length" in found[1]


def test_a_reply_about_one_passage_says_nothing() -> None:
    test = ReadingTest(FIVE, {})
    for number in range(200):
        test.add(prompt("A", number))
    assert test.undecided
    assert test.finding() == ""
