"""What of a query stands in a passage, and the guide's text, read for a page."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.review import forms
from curate.system import resources
from curate.web.highlight import pieces

TEXT = st.text(st.sampled_from("高血压患者的吗 喝咖啡aAＨhpv-9İß<&\n"), max_size=40)


def marked(query: str, passage: str) -> list[str]:
    return [piece for piece, match in pieces(query, passage) if match]


@pytest.mark.parametrize(
    ("query", "passage", "found"),
    [
        ("高血压的人可以喝咖啡吗", "高血压患者喝咖啡要适量", ["高血压", "喝咖啡"]),
        ("高血压的人可以喝咖啡吗", "血压高的人可以吗", ["血压"]),
        ("糖尿病足", "糖尿病患者的足部", ["糖尿病"]),
        ("打完HPV疫苗多久", "hpv 与ＨＰＶ疫苗", ["hpv", "ＨＰＶ疫苗"]),
        ("what is the dose of metformin", "Metformin: the usual dose", ["Metformin", "dose"]),
        ("dose", "overdose", []),
        ("为什么可以吗", "为什么可以吗", []),
        ("", "高血压", []),
        ("高血压", "", []),
    ],
)
def test_runs_of_chinese_and_whole_words_are_found(query: str, passage: str, found: list[str]) -> None:
    assert marked(query, passage) == found


@given(TEXT, TEXT)
def test_pieces_are_the_passage_and_every_match_stands_in_the_query(query: str, passage: str) -> None:
    parts = pieces(query, passage)
    assert "".join(piece for piece, _ in parts) == passage
    assert all(piece for piece, _ in parts)
    assert all(one[1] != other[1] for one, other in pairwise(parts))
    assert all(len(piece) > 1 for piece, match in parts if match)


def test_the_guide_says_what_every_grade_means_in_both_languages() -> None:
    text = resources.guide("GUIDE.md")
    assert forms.meanings(text, "en")["D"] == "unrelated"
    assert forms.meanings(text, "zh")["D"] == "无关"
    assert list(forms.meanings(text, "zh")) == ["S", "A", "B", "C", "D"]
    assert forms.meanings("# Only a title", "en") == {}


def test_the_guide_is_html_and_tags_in_it_stay_text() -> None:
    page = forms.html(
        "# Title\n\nOne **bold** <script>x</script>.\n\n| a | b |\n| --- | --- |\n| c | d |\n\n1. First\n"
    )
    assert "<h1>Title</h1>" in page
    assert "<strong>bold</strong> &lt;script&gt;" in page
    assert "<td>d</td>" in page
    assert "<li>First</li>" in page
