"""Sentences and rows of records; every template of every command renders, in each language."""

import pytest

from curate.core.figures import Display, Figure, Record, figure
from curate.system import resources
from curate.view import record_words
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


class Anything(int):
    """A figure that is a number, a text, and a record with every figure, too."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec.endswith(("d", "f", "g", "%", ",")) else format(str(int(self)), spec)

    def displays(self) -> "Everything":
        return Everything()


class Everything(dict[str, tuple[object, Display]]):
    def __missing__(self, name: str) -> tuple[object, Display]:
        return Anything(1), Display()


NAMES = [f"{path.parent.name}/{path.name.removesuffix('.words.yaml')}" for path in COMMANDS.glob("*/*.words.yaml")]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_template_renders_in_each_language_and_no_column_is_lost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_language = resources.translations(f"commands/{name}.words.yaml")
    for language, translated in by_language.items():
        assert translated.keys() == by_language["en"].keys(), language
        say = RecordWords(name, language)
        for key, template in translated.items():
            if isinstance(template, dict):
                monkeypatch.setattr(record_words, "_displays", lambda *_: Everything())
                assert len(say.cells(key)) == len(by_language["en"][key]), (language, key)
            elif template is not None:
                assert say.vformat(template, (), Everything())
