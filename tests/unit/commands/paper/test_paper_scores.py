"""Tables and figures of scores for a paper: what was measured, marked, tested, and nothing that was not."""

import csv
import io
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from curate.commands.paper import comparison_tables, score_tables
from curate.commands.paper.evidence import LANGUAGES, words
from curate.commands.paper.figures import COLOURS, SHAPES, FigureFonts, PaperFigures
from tests.support.paper_scores import HOSTILE, MODELS, evaluation, task

TASKS = [task("one", [0.5, 0.6, 0.4, 0.3], speed=True), task("二", [0.2, 0.9, 0.4, 0.1])]
CIRCULAR = f"{MODELS[0]} (c)"


def keys(value: Any) -> Any:
    return {name: keys(each) for name, each in value.items()} if isinstance(value, dict) else type(value)


def test_every_language_has_the_same_words() -> None:
    first, *others = (words(language) for language in LANGUAGES)
    assert all(keys(each) == keys(first) for each in others)
    heads = [
        [len(table["heads"]) for table in each["tables"].values() if "heads" in table] for each in (first, *others)
    ]
    assert heads[0] == heads[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_scores_hold_what_was_measured(language: str) -> None:
    table = score_tables.scores(TASKS, words(language))
    assert table is not None
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert rows[1] == [MODELS[1], "0.6", "0.5499999999999999", "0.64", "0.9", "0.85", "0.9400000000000001", "0.75"]
    assert [row[0] for row in rows[1:]] == [MODELS[1], HOSTILE, CIRCULAR, "bm25", "random encoder"]
    assert "n = 734" in table.caption
    assert "95 %" in table.caption
    assert "(c)" in table.caption


def test_a_model_that_lacks_a_task_has_no_mean() -> None:
    short = {**TASKS[1], "scores": TASKS[1]["scores"][1:]}
    table = score_tables.scores([TASKS[0], short], words("en"))
    assert table is not None
    last = next(row for row in table.rows if row[0] == MODELS[1])
    assert [cell.value for cell in last[1:]] == [0.6, None, None]  # type: ignore[union-attr]


def test_tests_are_named_in_the_caption() -> None:
    table = score_tables.differences([TASKS[0], {**TASKS[1], "exchanged": False}], words("en"))
    assert table is not None
    assert "one: paired randomisation test, n = 734 queries, pairs of models: 6" in table.caption
    assert "二: paired bootstrap" in table.caption
    assert "4 of 6 neighbours" in table.caption


def test_another_reading_than_that_of_mteb_is_a_second_table() -> None:
    led = [{**row, "median": {"value": 1 - row["lead"], "low": None, "high": None}} for row in TASKS[0]["scores"]]
    both = {**TASKS[0], "lead": "median", "scores": led, "floors": []}
    first, second = (make([both], words("en")) for make in (score_tables.scores, score_tables.stock_scores))
    assert first is not None
    assert second is not None
    bold = [[row[0] for row in table.rows if row[1].best] for table in (first, second)]  # type: ignore[union-attr]
    assert bold == [["bm25"], [MODELS[1]]]
    assert "median grade" in first.caption
    assert "as mteb computes them" in second.caption
    assert score_tables.stock_scores(TASKS, words("en")) is None


def test_results_of_others_stand_beside_stock_scores() -> None:
    results = [
        {"model": "acme/x_1", "scores": {"one": 0.7, "二": 0.5}},
        {"model": "acme/half", "scores": {"one": 0.1}},
        {"model": "acme/elsewhere", "scores": {"other": 0.9}},
    ]
    table = score_tables.stock_scores(TASKS, words("en"), results)
    assert table is not None
    rows = list(csv.reader(io.StringIO(table.csv())))[-2:]
    assert rows == [["acme/x_1", "0.7", "", "", "0.5", "", "", "0.6"], ["acme/half", "0.1", "", "", "", "", "", ""]]
    assert "without intervals and never in bold: acme/x_1, acme/half." in table.caption


def test_difficulty_has_a_row_of_shares_and_dashes_for_ranks_without_queries() -> None:
    table = comparison_tables.difficulty(TASKS, words("en"))
    assert table is not None
    assert [row[1] for row in table.rows] == ["share of queries, %", MODELS[1], CIRCULAR, *MODELS[2:]]
    best = next(row for row in table.rows if row[1] == CIRCULAR)
    assert [cell.value for cell in best[2:]] == [1 / 700, None, 1 / 34, None, None]  # type: ignore[union-attr]
    assert "(1: 700, 11 to 100: 34)" in table.caption


def test_averages_and_legacy_tasks_say_how_far_orders_agree_and_by_what_test() -> None:
    found = evaluation(*TASKS)
    averages = comparison_tables.averages(found, TASKS, words("en"))
    legacy = comparison_tables.legacy(found, TASKS, words("en"))
    assert averages is not None
    assert legacy is not None
    assert "Spearman's ρ 0.354 [-0.220, 0.740], p = 0.2150" in averages.caption
    assert [row[1] for row in averages.rows] == [CIRCULAR, "theirs"] * 2
    assert "no correlation is given below 8 models" in legacy.caption
    assert [row[2] for row in legacy.rows] == [MODELS[1], CIRCULAR]
    assert comparison_tables.averages(found, TASKS[1:], words("en")) is None, "a task of it has no score of today"
    assert comparison_tables.legacy(found, TASKS[1:], words("en")) is None


def test_without_scores_or_speed_there_is_no_table() -> None:
    said = words("en")
    assert score_tables.scores([], said) is None
    assert score_tables.differences([{**TASKS[0], "enough": {"neighbours": []}}], said) is None
    assert score_tables.speed([TASKS[1]], said) is None
    timed = score_tables.speed(TASKS, said)
    assert timed is not None
    assert [row[1] for row in timed.rows] == list(reversed(MODELS))


def drawn(folder: Path, language: str = "en") -> dict[str, bytes]:
    folder.mkdir()
    figures = PaperFigures(folder, TASKS, words(language))
    figures.difficulty()
    figures.quality_speed()
    figures.scores()
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
def test_figures_are_the_same_bytes_without_dates_and_as_vectors(tmp_path: Path) -> None:
    first = drawn(tmp_path / "a")
    assert first == drawn(tmp_path / "b")
    assert list(first) == ["difficulty.pdf", "quality-speed.pdf", "scores.pdf"]
    for content in first.values():
        assert content.startswith(b"%PDF")
        assert not re.search(rb"CreationDate|/Producer|/Creator|/Subtype */Image", content)
        assert b"/Type3" not in content, "many journals refuse such fonts"


def test_letters_that_no_font_has_are_code_points_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    fonts = PaperFigures(folder, TASKS, words("en")).fonts
    assert "😀" in fonts.absent or "[U+1F600]" not in fonts.drawn(HOSTILE)
    unknown = "\U0010fffd"
    assert FigureFonts(["a" + unknown]).drawn("a" + unknown) == "a[U+10FFFD]"


def test_seventy_models_differ_in_colour_or_shape() -> None:
    assert len({(COLOURS[at % len(COLOURS)], SHAPES[at % len(SHAPES)]) for at in range(70)}) == 70


@pytest.mark.slow
def test_names_cannot_become_formulas(tmp_path: Path) -> None:
    named = [{**TASKS[0], "name": r"$\frac{1}{0}$ $", "speed": None}]
    PaperFigures(tmp_path, named, words("zh")).scores()
    assert zlib.crc32((tmp_path / "scores.pdf").read_bytes())
