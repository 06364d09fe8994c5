"""The index of the commands: it is what the classes define, and what messages tell to type is in it."""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from curate.cli.app import app
from curate.core.errors import CurateError
from curate.runs import index
from tests import ROOT

ENTRIES = {entry["words"]: entry for entry in index.load()}
OTHERS = {
    "--head",
    "--help",
    "--version",
    "--force-reinstall",
    "--query-gpu",
    "--repo-type",
    "--local-dir",
    "--revision",
    "--no-",
}
"""Options of other programs that messages name, and those of the program itself."""
FLAGS = {flag for entry in ENTRIES.values() for option in entry["options"] for flag in re.split("[,/]", option["flag"])}


def test_the_index_is_what_the_commands_define() -> None:
    assert json.loads(json.dumps(index.entries())) == index.load(), "run: python -m curate.runs.index"


def printed() -> Iterator[tuple[str, str]]:
    """Yield (file, option) for each option in a text of the program, docstrings left out."""
    for path in sorted((ROOT / "curate").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", node.value):
                    yield str(path.relative_to(ROOT)), flag
    for path in sorted((ROOT / "curate").rglob("*words.yaml")):
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), flag


def test_every_option_that_the_program_prints_is_one() -> None:
    known = FLAGS | OTHERS | {"--json", "--json-lines", "--quiet", "--set"}
    outside = {"curate/testing/local_llm.py", "curate/testing/vendor.py"}
    assert not sorted({place for place in printed() if place[1] not in known and place[0] not in outside})


@pytest.mark.parametrize("words", sorted(ENTRIES))
def test_examples_are_commands(words: str) -> None:
    examples = ENTRIES[words]["examples"]
    assert len(examples) == 2
    flags = {flag for option in ENTRIES[words]["options"] for flag in re.split("[,/]", option["flag"])}
    for example in examples:
        assert example.startswith(words)
        typed = {word for word in shlex.split(example) if word.startswith("--")}
        assert typed <= flags | {"--json"}, example


@pytest.mark.parametrize("words", sorted(words for words, entry in ENTRIES.items() if entry["settings"]))
def test_a_setting_that_was_an_option_names_what_to_type(words: str) -> None:
    for name, key in ENTRIES[words]["settings"].items():
        done = CliRunner().invoke(app, [*words.split(), f"--{name.replace('_', '-')}", "3"], prog_name="curate")
        assert done.exit_code == 2
        assert f"is a setting: type --set {key}=VALUE" in done.output


def test_an_unknown_setting_of_a_command_is_named(tmp_path: object) -> None:
    done = CliRunner().invoke(app, ["tokens", "texts.csv", "--set", "term=3"], prog_name="curate")
    assert "did you mean 'terms'" in str(done.exception)


def test_a_command_that_asks_is_not_drawn_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars of progress, once they are drawn, wipe out the line of a question."""

    def drawn() -> NoReturn:
        raise AssertionError("bars around a command that asks")

    monkeypatch.setattr("curate.cli.execute.bars", drawn)
    done = CliRunner().invoke(app, ["init", str(tmp_path / "nothing")], prog_name="curate")
    assert isinstance(done.exception, CurateError)
