"""Scales: what a declaration must say, what a scale answers, and that it comes back from a file as it was."""

import json

import pytest
from hypothesis import given

from curate.core.scale import FIVE, Scale, declared
from tests.support.scales import scales

TREC = declared(["3", "2", "1", "0"], relevant_from="2")
CLASSES = declared(["heart", "lung", "none", "several"], "nominal", none="none", several="several")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"labels": ["a"]}, "1 grades: expected 2 to 10"),
        ({"labels": [str(number) for number in range(11, 0, -1)], "relevant_from": "9"}, "11 grades: expected 2 to 10"),
        ({"labels": [f"c{number}" for number in range(201)], "order": "nominal"}, "expected 2 to 200"),
        ({"labels": ["yes", "no"]}, "relevant_from: it is missing; .* one of yes "),
        ({"labels": ["yes", "no"], "relevant_from": "no"}, "found 'no'"),
        ({"labels": ["a", "a", "b"], "relevant_from": "a"}, "'a' and 'a' are read as the same"),
        ({"labels": ["a", "A", "b"], "relevant_from": "a"}, "'a' and 'A' are read as the same"),
        ({"labels": ["１", "1", "0"], "relevant_from": "1"}, "are read as the same"),
        ({"labels": ["1", "1.0", "0"], "relevant_from": "1"}, "'1' and '1.0' are read as the same"),
        ({"labels": ["5%", "0.05"], "relevant_from": "5%"}, "are read as the same"),
        ({"labels": ["not good", "NotGood"], "relevant_from": "not good"}, "are read as the same"),
        ({"labels": ["yes ", "no"], "relevant_from": "yes "}, "no blank at an end"),
        ({"labels": ["x" * 41, "no"], "relevant_from": "no"}, "1 to 40 printable characters"),
        ({"labels": ["good", "failed"], "relevant_from": "good"}, "tables write that where there is no grade"),
        ({"labels": ["-", "no"], "relevant_from": "-"}, "tables write that"),
        ({"labels": ["0", "1"], "relevant_from": "0"}, "0 stands before 1"),
        ({"labels": ["a", "b"], "relevant_from": "a", "gains": {"a": 1}}, "b stands in only one"),
        ({"labels": ["a", "b"], "relevant_from": "a", "gains": {"a": 1, "b": 2}}, "never rising"),
        ({"labels": ["a", "b"], "relevant_from": "a", "gains": {"a": 101, "b": 2}}, "from 0 to 100"),
        ({"labels": ["a", "b"], "relevant_from": "a", "gains": {"a": 0, "b": 0}}, "a gain above 0"),
        ({"labels": ["a", "b"], "relevant_from": "a", "gains": {"a": 2, "b": 2}}, "more than the worst"),
        ({"labels": ["a", "b"], "order": "nominal", "relevant_from": "a"}, "neither gains nor relevant_from"),
        ({"labels": ["a", "b"], "order": "nominal", "none": "c"}, "none: 'c' is no label"),
        ({"labels": ["a", "b"], "relevant_from": "a", "several": "b"}, "several: 'b' is no label of a nominal"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        declared(**wrong)  # type: ignore[arg-type]


def test_the_five_grades_are_the_default() -> None:
    assert declared(list("SABCD")) == FIVE
    assert FIVE.positives == ("S", "A")
    assert [FIVE.gain(label) for label in FIVE.labels] == [4, 3, 2, 1, 0]
    assert FIVE.described() == "S A | B C D"


def test_a_label_is_read_whatever_its_width_and_case() -> None:
    assert [TREC.read(text) for text in ("3", " ２ ", "4", "", "3.0")] == ["3", "2", None, None, None]
    assert FIVE.read("ｓ") == "S"
    assert declared(["完全相关", "无关"], relevant_from="完全相关").read(" 无关 ") == "无关"


@pytest.mark.parametrize(
    ("grades", "median", "minimum"),
    [
        (["3"], "3", "3"),
        (["3", "2"], "2", "2"),
        (["3", "0", "2"], "2", "0"),
        (["3", "3", "1", "0"], "1", "0"),
        ([], None, None),
    ],
)
def test_the_lower_median_and_the_minimum(grades: list[str], median: str | None, minimum: str | None) -> None:
    assert (TREC.lower_median(grades), TREC.minimum(grades)) == (median, minimum)


def test_a_nominal_scale_has_no_cut() -> None:
    assert CLASSES.relevant == frozenset()
    assert CLASSES.described() == "heart lung none several"
    with pytest.raises(KeyError):
        TREC.gain("4")


@pytest.mark.slow
@given(scales())
def test_a_scale_comes_back_from_a_file(scale: Scale) -> None:
    assert Scale.from_json(json.loads(json.dumps(scale.to_json()))) == scale
    assert all(scale.read(label) == label for label in scale.labels)
    assert 0 < len(scale.relevant) < len(scale.labels)
