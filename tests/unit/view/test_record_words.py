"""Sentences and rows of records; every template of every command renders, in each language."""

from pathlib import Path
from string import Formatter

import pytest

from curate.core.figures import Figure, Record, figure
from curate.system import resources
from curate.view.record_words import DASH, RecordWords
from tests import ROOT

COMMANDS = ROOT / "curate" / "commands"


class Depth(Record, schema_name="depth_of_test"):
    low: int
    share: Figure = figure(digits=1, percent=True)


class Row(Record, schema_name="row_of_test"):
    name: str | None
    count: int
    mean: float = figure(digits=2)
    warned: bool
    depth: Depth
    undefined: Figure = figure(default=Figure(None))


ROW = Row("bm25", 1234, 0.126, warned=False, depth=Depth(7, Figure(0.5, 0.25, 0.75)))
TEMPLATES = {
    "sentence": "{name}: {count} of {count:d}, {mean} ({depth.share} %), {warned}, {undefined}",
    "table": {"system@{count:d}": "name", "share": "{depth.share} %", "low": "low"},
}


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> type[RecordWords]:
    originals = resources.words
    monkeypatch.setattr(
        resources, "words", lambda name, language: TEMPLATES if "nothing" in name else originals(name, language)
    )
    return RecordWords


def test_a_sentence_rounds_by_the_record_unless_it_says_how(words: type[RecordWords]) -> None:
    said = words("nothing")("sentence", ROW)
    assert said == "bm25: 1,234 of 1234, 0.13 (50.0 (25.0 to 75.0) %), no, not defined"


def test_flags_and_what_is_not_defined_are_words_of_the_language(words: type[RecordWords]) -> None:
    assert words("nothing", "zh")("sentence", ROW).endswith("否, 未定义")


def test_a_row_has_the_figures_of_parent_and_child(words: type[RecordWords]) -> None:
    cells = words("nothing").cells("table", ROW, ROW.depth)
    assert cells == {"system@1234": "bm25", "share": "50.0 (25.0 to 75.0) %", "low": "7"}


@pytest.mark.parametrize(("empty", "expected"), [("-", "-"), (DASH, "–")])
def test_an_empty_cell_is_what_the_table_takes_for_it(words: type[RecordWords], empty: str, expected: str) -> None:
    nameless = Row(None, 1, 1.0, warned=True, depth=ROW.depth)
    assert words("nothing", empty=empty).cells("table", nameless, nameless.depth)["system@1"] == expected


FILES = [path.relative_to(COMMANDS) for path in sorted(COMMANDS.glob("*/*.words.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_template_is_one_and_every_column_has_its_own_heading(path: Path) -> None:
    by_language = resources.translations(f"commands/{path}")
    english = by_language["en"]
    for language, translated in by_language.items():
        assert translated.keys() == english.keys(), language
        for key, template in translated.items():
            columns = template if isinstance(template, dict) else {"": template}
            original = english[key] if isinstance(english[key], dict) else {"": english[key]}
            assert len(columns) == len(original), (language, key)
            for heading, cell in columns.items():
                fields = [field for _, field, _, _ in Formatter().parse(f"{heading}{cell}") if field is not None]
                assert all(fields), (language, key, "a template names its figures")
