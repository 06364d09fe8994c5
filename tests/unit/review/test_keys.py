"""Keys of the review page."""

import pytest

from curate.web.review_pages import keys


@pytest.mark.parametrize(
    ("answers", "pressed"),
    [
        ("S A B C D", "SABCD"),
        ("3 2 1 0", "3210"),
        ("a b", "AB"),
        ("yes no", "12"),
        ("Y N", "12"),
        ("A B U", "123"),
        ("完全相关 相关 无关", "123"),
        ("是 否", "12"),
        ("２ １ ０", "210"),
        ("10 9 8 7 6 5 4 3 2 1", "0987654321"),
        ("2 1 0+ 0", "2130"),
        ("+ ± /", "123"),
        ("30 20 10 0", "1230"),
        ("a b c d e f g h i jk", "1234567890"),
    ],
)
def test_every_answer_has_one_key_of_its_own(answers: str, pressed: str) -> None:
    assert keys(answers.split()) == dict(zip(answers.split(), pressed, strict=True))


def test_an_answer_beyond_the_tenth_has_none() -> None:
    assert list(keys([f"class {number}" for number in range(200)]).items())[-1] == ("class 9", "0")
