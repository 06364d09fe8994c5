"""Shortcuts: counted by hand, and drawn as stock mteb draws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.stats.shortcuts import alike_in_length, commonest, drawn, grams, keyword_rule, overlap, unspaced


def test_overlap_is_the_cosine_of_one_and_two_grams() -> None:
    # ab: a, b, ab; ac: a, c, ac.
    assert overlap("AB", "ac") == pytest.approx(1 / 3)
    assert overlap("aa", "a") == pytest.approx(2 / 5**0.5), "raw counts: a twice, aa once"
    assert overlap("", "a") == 0


@given(st.text(max_size=8), st.text(max_size=8))
def test_overlap_has_no_direction(one: str, other: str) -> None:
    assert overlap(one, other) == pytest.approx(overlap(other, one))
    assert 0 <= overlap(one, other) <= 1 + 1e-9


def test_length_and_the_commonest_class() -> None:
    assert alike_in_length("abc", "a") == -2
    assert commonest([2, 1, 1, 2, 3]) == 1


def test_texts_of_every_draw_are_those_of_mteb() -> None:
    datasets = pytest.importorskip("datasets")
    classification = pytest.importorskip("mteb.abstasks.classification")
    labels = [place % 3 if place % 5 else 2 for place in range(100)]

    class Bare(classification.AbsTaskClassification):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            self.seed, self.samples_per_label = 42, 8

    data, order, theirs = datasets.Dataset.from_dict({"label": labels}), None, []
    for number in range(10):
        _, order, chosen = Bare()._undersample_data(data, number, order)
        theirs.append(list(chosen))
    assert list(drawn(labels)) == theirs


def test_a_keyword_per_class_is_found_and_the_surest_is_tried_first() -> None:
    texts = ["肝炎怎么办", "乙肝怎么办", "胃痛怎么办", "胃酸怎么办", "胃炎和肝炎", "失眠怎么办"]
    rule = keyword_rule(grams(texts), [0, 0, 1, 1, 1, 2], otherwise=1)
    assert dict(rule.keywords) == {"胃": 1, "失": 2, "肝": 0}
    assert rule.keywords[-1] == ("肝", 0), "it stands in a text of another class too"
    assert rule(grams(["肝和胃", "头晕"])) == [1, 1]


def test_words_where_there_are_spaces_and_characters_where_there_are_none() -> None:
    assert "liver disease" in grams(["The Liver disease"])[0]
    assert "liv" not in grams(["The Liver disease"])[0]
    assert {"肝", "肝病", "肝病的药"} <= grams(["肝病的药"])[0]
    assert unspaced(["用 B 超检查肝脏"])
    assert not unspaced(["Hepatitis B is 乙肝"])
