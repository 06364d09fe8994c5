"""Charts are read back as XML: their titles, their marks, and that labels stay text."""

from xml.etree import ElementTree as ET

import pytest

from curate.view import charts
from curate.view import charts as marks

KINDS = {"S": "g-S", "A": "g-A", "D": "g-D"}
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
        charts.funnel(HOSTILE, [(HOSTILE, 2)]),
        charts.stacked(HOSTILE, [(HOSTILE, {"S": 1})], KINDS, {"S": HOSTILE}),
        charts.upset(HOSTILE, [(HOSTILE, 1)], [([HOSTILE], 1)]),
        charts.forest(HOSTILE, [(HOSTILE, [(HOSTILE, 0.5, [0.1, 0.9], HOSTILE)])]),
        charts.histogram(HOSTILE, [(HOSTILE, HOSTILE, 1)], HOSTILE),
        charts.scores(HOSTILE, [(HOSTILE, 0.5, 0.4, 0.6)]),
        charts.scatter(HOSTILE, [(HOSTILE, 0.1, 0.2)], HOSTILE, HOSTILE),
    ],
    ids=["funnel", "stacked", "upset", "forest", "histogram", "scores", "scatter"],
)
def test_every_chart_is_named_and_keeps_labels_as_text(svg: str) -> None:
    root = drawn(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == HOSTILE == root.findtext("title")
    assert "script" not in {element.tag for element in root.iter()}
    assert all(bar.findtext("title") for bar in root.iter("rect"))
    assert "Noto Sans CJK SC" in root.attrib["font-family"]
    assert "http" not in svg


def test_funnel_bars_are_shares_of_the_largest_step() -> None:
    svg = charts.funnel("漏斗", [("检索到", 4_000), ("正例", 1_000), ("导出", 0)])
    assert widths(svg) == [100, 25, 0]
    assert texts(svg) == ["检索到", "4,000", "正例", "1,000", "导出", "0"]


def test_stacked_bars_fill_the_row_in_the_order_of_the_kinds() -> None:
    svg = charts.stacked("等级", [("use", {"D": 90, "S": 6, "A": 4})], KINDS, {})
    assert widths(svg) == [6, 4, 90]
    assert [bar.attrib["x"] for bar in drawn(svg).iter("rect")] == ["0%", "6%", "10%"]
    assert texts(svg) == ["use", "100", "90"], "a number stands only in a bar that is wide enough for it"


def test_a_row_without_counts_has_no_bar() -> None:
    svg = charts.stacked("等级", [("silent", {})], KINDS, {})
    assert widths(svg) == []
    assert texts(svg) == ["silent", "0"]


def test_upset_shows_who_is_in_a_group_and_how_large_it_is() -> None:
    svg = charts.upset("重合", [("a", 30), ("b", 60), ("c", 1)], [(["a", "c"], 8), (["b"], 4)])
    dots = [dot.attrib["class"] for dot in drawn(svg).iter("circle")]
    assert dots == ["member", "other", "member", "other", "member", "other"]
    joints = list(drawn(svg).iter("line"))
    ends = [float(line.attrib["y2"]) - float(line.attrib["y1"]) for line in joints]
    assert ends == [2 * charts.DOTS, 0], "a line from the first member to the last"
    bars = [float(bar.attrib["height"]) for bar in drawn(svg).iter("rect") if bar.attrib["class"] == "bar"]
    assert bars == [4, 4, 4, charts.PLOT, charts.PLOT / 2], "a thin bar per set, then an upright one a group"
    assert texts(svg) == ["a", "30", "b", "60", "c", "1", "8", "4"]


def test_forest_draws_figures_between_their_bounds_and_nothing_for_none() -> None:
    rows = [("kappa", [("cut", 0.5, [0.25, 0.75], "0.5"), ("grades", None, None, "not defined")])]
    svg = charts.forest("agreement", rows)
    [dot], [whisker] = drawn(svg).iter("circle"), [x for x in drawn(svg).iter("line") if "whisker" in x.attrib["class"]]
    left, middle, right = (float(x.rstrip("%")) for x in (whisker.attrib["x1"], dot.attrib["cx"], whisker.attrib["x2"]))
    assert middle - left == pytest.approx(right - middle, abs=0.02)
    assert texts(svg) == ["0", "0.5", "1", "kappa", "0.5", "not defined"]


def test_forest_reaches_below_zero_where_a_bound_does() -> None:
    svg = charts.forest("agreement", [("kappa", [("cut", -0.2, [-0.5, 0.1], "")])])
    assert texts(svg) == ["-0.5", "0", "1", "kappa"]
    assert all(float(dot.attrib["cx"].rstrip("%")) > 0 for dot in drawn(svg).iter("circle"))


def test_histogram_bars_stand_on_one_line() -> None:
    svg = charts.histogram("正例", [("0", "0", 5), ("1", "1", 10), ("2", "2", 0)], "正例数")
    bars = list(drawn(svg).iter("rect"))
    assert [float(bar.attrib["height"]) for bar in bars] == [charts.PLOT / 2, charts.PLOT, 0]
    assert len({float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in bars}) == 1
    assert texts(svg) == ["5", "0", "10", "1", "2", "正例数"]


def test_charts_of_nothing_are_still_charts() -> None:
    for svg in (
        charts.funnel("x", []),
        charts.stacked("x", [], KINDS, {}),
        charts.upset("x", [], []),
        charts.forest("x", []),
    ):
        assert drawn(svg).findtext("title") == "x"
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
