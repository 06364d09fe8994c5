"""Charts are read back as XML: their titles, their marks, and that labels stay text."""

from xml.etree import ElementTree as ET

import pytest

from curate.core.figures import Figure
from curate.stats.distribution import Bin
from curate.view import charts
from curate.view import charts as marks
from curate.view.charts import ForestRow

HOSTILE = "<script>alert('x')</script>&\""


def drawn(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def widths(svg: str) -> list[float]:
    return [float(bar.attrib["width"].rstrip("%")) for bar in drawn(svg).iter("rect")]


def texts(svg: str) -> list[str]:
    return [(text[-1].tail if len(text) else text.text) or "" for text in drawn(svg).iter("text")]


@pytest.mark.parametrize(
    "svg",
    [
        charts.forest(HOSTILE, [ForestRow(HOSTILE, Figure(0.5, 0.1, 0.9), HOSTILE, tied=True)]),
        charts.histogram(HOSTILE, [Bin(0, 4, 1)], HOSTILE),
        charts.scores(HOSTILE, [(HOSTILE, 0.5, 0.4, 0.6)]),
        charts.scatter(HOSTILE, [(HOSTILE, 0.1, 0.2)], HOSTILE, HOSTILE),
    ],
    ids=["forest", "histogram", "scores", "scatter"],
)
def test_every_chart_is_named_and_keeps_labels_as_text(svg: str) -> None:
    root = drawn(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == HOSTILE == root.findtext("title")
    assert "script" not in {element.tag for element in root.iter()}
    assert all(bar.findtext("title") for bar in root.iter("rect"))
    assert "Noto Sans CJK SC" in root.attrib["font-family"]
    assert "http" not in svg


def test_forest_draws_intervals_on_one_axis_and_marks_what_is_biased_and_what_is_tied() -> None:
    rows = [
        ForestRow("e5", Figure(80.2, 75.8, 84.2), "80.2 (75.8–84.2)", tied=True),
        ForestRow("use", Figure(64.0, 60.0, 68.0), "64.0 (60.0–68.0)", hollow=True),
        ForestRow("alone", Figure(50.0), "50.0"),
    ]
    svg = charts.forest("scores", rows)
    lines = [line for line in drawn(svg).iter("line") if line.attrib["class"] == "whisker"]
    ends = [(float(line.attrib["x1"].rstrip("%")), float(line.attrib["x2"].rstrip("%"))) for line in lines]
    dots = [float(dot.attrib["cx"].rstrip("%")) for dot in drawn(svg).iter("circle")]
    assert dots[1] - ends[1][0] == pytest.approx(ends[1][1] - dots[1], abs=0.02)
    assert len(ends) == 2, "a score without an interval is a dot alone"
    assert dots == sorted(dots, reverse=True)
    assert [dot.attrib["class"] for dot in drawn(svg).iter("circle")] == ["member", "hollow", "member"]
    assert [shade.findtext("title") for shade in drawn(svg).iter("rect")] == ["e5"]
    assert {"e5", "80.2 (75.8–84.2)", "50", "90"} <= set(texts(svg))


def test_histogram_bars_stand_on_one_line() -> None:
    svg = charts.histogram("正例", [Bin(0, 0, 5), Bin(1, 1, 10), Bin(2, None, 0)], "正例数")
    bars = list(drawn(svg).iter("rect"))
    assert [float(bar.attrib["height"]) for bar in bars] == [charts.PLOT / 2, charts.PLOT, 0]
    assert len({float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in bars}) == 1
    assert texts(svg) == ["5", "0", "10", "1", "≥2", "正例数"]
    assert [bar.findtext("title") for bar in bars] == ["0: 5", "1: 10", "≥2: 0"]


def test_charts_of_nothing_are_still_charts() -> None:
    assert drawn(charts.forest("x", [])).findtext("title") == "x"
    assert texts(charts.histogram("x", [], "axis")) == ["axis"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bm25", "bm25"),
        ("multilingual-e5", "multilingua…"),
        ("多语言检索器", "多语言检索器"),
        ("多语言检索器乙", "多语言检索…"),
        ("", ""),
    ],
)
def test_long_labels_are_cut_by_their_width(text: str, shown: str) -> None:
    assert marks.short(text) == shown


def test_a_score_is_a_bar_with_its_interval_over_the_end() -> None:
    svg = charts.scores("nDCG@10", [("e5", 0.5, 0.4, 0.65), ("bm25", 0.25, None, None)])
    assert widths(svg) == [50, 25]
    assert texts(svg) == ["e5", "0.500 (0.400 to 0.650)", "bm25", "0.250"]
    spans = [(line.attrib["x1"], line.attrib["x2"]) for line in drawn(svg).iter("line")]
    assert spans == [("40%", "65%"), ("40%", "40%"), ("65%", "65%")]


def test_dots_stand_where_their_values_are_and_axes_hold_them_all() -> None:
    svg = charts.scatter("alt und neu", [("a", 0.0, 10.0), ("b", 1.0, 20.0), ("c", 0.5, 15.0)], "old", "new")
    dots = [(float(dot.attrib["cx"].rstrip("%")), float(dot.attrib["cy"])) for dot in drawn(svg).iter("circle")]
    assert dots == [(10, 34 + charts.SQUARE), (90, 34), (50, 34 + charts.SQUARE / 2)]
    assert {"0", "1", "10", "20", "a", "b", "c", "old", "new"} <= set(texts(svg))


@pytest.mark.parametrize("points", [[], [("a", 0.3, 0.3)], [("a", -1e-9, 1e6), ("b", 1e-9, 1e6)]])
def test_axes_of_no_one_and_equal_values(points: list[tuple[str, float, float]]) -> None:
    svg = charts.scatter("few", points, "x", "y")
    for dot in drawn(svg).iter("circle"):
        assert 10 <= float(dot.attrib["cx"].rstrip("%")) <= 90
        assert 34 <= float(dot.attrib["cy"]) <= 34 + charts.SQUARE


def test_labels_of_a_scatter_never_lie_on_one_another() -> None:
    same = [(f"model-{number}", 0.5, 0.5) for number in range(9)]
    svg = charts.scatter("crowded", same, "x", "y")
    shown = [text for text in texts(svg) if text.startswith("model-")]
    assert len(shown) == 4, "four places around a dot; the others are in its hint"
    assert len(list(drawn(svg).iter("circle"))) == 9


def test_a_chart_alone_is_a_file_with_ground_and_colours() -> None:
    svg = charts.alone(charts.scores("nDCG", [("e5", 0.5, None, None)]), ".bar{fill:#123}", width=400)
    root = drawn(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["width"] == "400"
    assert ".bar{fill:#123}" in svg
    assert '100%" font' not in svg, "the width of the chart itself is a number"
