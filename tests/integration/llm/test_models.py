"""`curate models` and `curate models test`, as a user types them; no key in anything that comes out."""

import json
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curate.llm.providers.presets import presets
from tests import vendor as fake
from tests.support import machine
from tests.support.runs import exit_code, tiny
from tests.unit.llm.test_providers import both
from tests.vendor import Fault, Vendor, vendor

KEY = "sk-very-secret-0123456789"
WRONG = "sk-very-wrong-9876543210"


def script(query: str, passage: str) -> str:
    return "S" if query.rsplit(maxsplit=1)[-1].strip("?") in passage else "D"


def pipeline(folder: Path, kind: str, server: Vendor, **more: Any) -> str:
    """Write a pipeline with one judge at the vendor's address; return its name."""
    price = {"input": 1000, "output": 2000, "written": 1000, "currency": "EUR", "date": "2026-11-01"}
    settings = {"kind": kind, "model": "m-1", "base_url": server.url, "key_env": "TEST_KEY", "price": price, **more}
    data = {"version": 1, "name": "mine", "language": "en", "judges": {"mine": settings, "words": {"kind": "lexical"}}}
    (folder / "mine.yaml").write_text(json.dumps(data), encoding="utf-8")
    return "mine.yaml"


@dataclass(frozen=True)
class Done:
    """What a command has said."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def curate(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command as a function of its words and of environment variables; it works in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, **variables: str) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["curate", *words])
            for name, value in variables.items():
                patch.setenv(name, value)
            code = exit_code()
        return Done(code, *capsys.readouterr())

    return run


def attempt(
    curate: Command, kind: str, *faults: Fault | None, key: str = KEY, words: tuple[str, ...] = (), **more: Any
) -> tuple[Done, Vendor]:
    """Send the tiny prompt to a vendor that knows KEY alone."""
    with vendor(script, faults, key=KEY) as server:
        name = pipeline(Path(), kind, server, **more)
        return curate("models", "test", "mine", "--pipeline", name, *words, TEST_KEY=key), server


def everything(done: Done) -> str:
    """Return all that a command has left behind: what it said, and every byte of ledger, run folders and caches."""
    files = (path.read_bytes().decode("latin-1") for path in Path().rglob("*") if path.is_file())
    return "\n".join([done.stdout, done.stderr, *files])


def calls(home: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(home / "ledger.db")
    try:
        return connection.execute("SELECT purpose, run, model, finish, cost FROM calls").fetchall()
    finally:
        connection.close()


# The list


def test_presets_are_listed_with_or_without_a_key(curate: Command) -> None:
    done = curate("models", "--json", OPENAI_API_KEY=KEY, ARK_API_KEY=" ")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in machine.data(done.stdout)}
    assert set(rows) == set(presets())
    assert {key: rows["gpt-4o"][key] for key in ("source", "kind", "address", "key", "set", "batch")} == {
        "source": "preset",
        "kind": "openai",
        "address": "https://api.openai.com/v1",
        "key": "OPENAI_API_KEY",
        "set": True,
        "batch": True,
    }
    assert rows["doubao-1.5-pro"]["set"] is False
    assert (rows["vllm"]["key"], rows["vllm"]["set"]) == (None, None)
    assert rows["deepseek-v3"]["input"] is None
    table = curate("models", OPENAI_API_KEY=KEY)
    [line] = [line for line in table.stdout.splitlines() if line.startswith("gpt-4o ")]
    for word in ("gpt-4o-2024-11-20", "OPENAI_API_KEY", "yes", "schema", "128,000", "2.5", "10", "USD"):
        assert word in line.split()
    assert KEY not in done.stdout + done.stderr + table.stdout + table.stderr


def test_a_pipeline_adds_its_own_and_changes_presets(curate: Command) -> None:
    judges = {
        "gpt-4o": {"json_mode": "none"},
        "house": {"kind": "anthropic", "model": "m-1", "vendor": "house", "base_url": "http://localhost:1"},
        "words": {"kind": "lexical"},
    }
    Path("p.yaml").write_text(json.dumps({"version": 1, "judges": judges}), encoding="utf-8")
    rows = {row["name"]: row for row in machine.data(curate("models", "--json", "--pipeline", "p.yaml").stdout)}
    assert set(rows) == {*presets(), "house"}
    assert (rows["gpt-4o"]["source"], rows["gpt-4o"]["json_mode"]) == ("pipeline", "none")
    assert (rows["house"]["address"], rows["house"]["key"], rows["house"]["context"]) == (
        "http://localhost:1",
        None,
        None,
    )


def test_the_newest_run_and_the_working_directory_count(curate: Command) -> None:
    Path("models.yaml").write_text("house: {preset: vllm, model: ours}\n", encoding="utf-8")
    listed = curate("models")
    assert "\nhouse " in listed.stdout
    assert listed.stderr == "using models.yaml of the working directory\n"
    run = curate("run", tiny(Path()), "--run", "runs/t", "--set", "judges.wide={preset: house}")
    assert run.returncode == 0, run.stderr
    listed = curate("models")
    assert "\nwide " in listed.stdout
    assert "working in runs/t" in listed.stderr


PANEL = "deepseek-v3,doubao-1.5-pro,gpt-4o"


def test_a_panel_of_presets_needs_their_keys_only(curate: Command) -> None:
    curate("run", tiny(Path()), "--run", "runs/t")
    no_keys = {"LKEAP_API_KEY": KEY, "ARK_API_KEY": "", "OPENAI_API_KEY": KEY}
    done = curate("judge", "--run", "runs/t", "--models", PANEL, **no_keys)
    assert (done.returncode, "export ARK_API_KEY=" in done.stderr) == (2, True)
    done = curate("judge", "--run", "runs/t", "--models", PANEL, **{**no_keys, "ARK_API_KEY": KEY})
    assert done.returncode == 2
    assert "judging would send:" in done.stderr  # the plan: everything is known, and nothing is sent
    assert KEY not in everything(done)
    done = curate("judge", "--run", "runs/t", "--models", "gpt4o")
    assert (done.returncode, "did you mean 'gpt-4o' or" in done.stderr) == (2, True)


# The call


@both
def test_one_call_is_sent_paid_and_written_down(kind: str, curate: Command, home: Path) -> None:
    done, server = attempt(curate, kind, fake.used(prompt=400, cached=100, output=20, reasoning=5))
    assert done.returncode == 0, done.stderr
    [call] = server.calls
    assert len(call.passages) == 2
    said = {line.split(":")[0].strip(): line for line in done.stdout.splitlines()[1:]}
    assert "m-1" in said["model"]
    assert "as agreed (json_mode schema)" in said["form"]
    assert "P1 S, P2 D" in said["grades"]
    assert "400 prompt tokens, 100 of them from a cache; 20 answer tokens, 5 of them thoughts" in said["usage"]
    assert "0.440000 EUR" in said["cost"]
    assert calls(home) == [("test", "", "m-1", "stop", pytest.approx(0.44))]
    assert KEY not in everything(done)


@both
def test_a_wrong_key_is_a_mistake_of_the_user(kind: str, curate: Command) -> None:
    done, server = attempt(curate, kind, key=WRONG)  # the vendor repeats the key in its answer
    assert done.returncode == 2
    assert len(server.calls) == 1
    assert "HTTP 401" in done.stderr
    assert "environment variable TEST_KEY" in done.stderr
    assert WRONG not in everything(done)
    assert "Traceback" not in done.stderr


@both
def test_a_missing_key_is_named_before_anything_is_sent(kind: str, curate: Command) -> None:
    done, server = attempt(curate, kind, key="")
    assert (done.returncode, server.calls) == (2, [])
    assert "export TEST_KEY=" in done.stderr


@both
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (fake.error(404, "not_found_error", "no such model"), "check model and base_url"),
        (fake.error(500, "server_error", "down"), "HTTP 500 (server_error: down)"),
        (fake.error(429, "insufficient_quota", "broke"), "the account may spend no more"),
        (fake.page("<html>"), "answered with a web page; check kind and base_url"),
        (fake.refusal, "refusals in reply to two harmless sentences; choose another model"),
        (
            fake.says("I would say both are fine."),
            "not in the agreed form in reply to two harmless sentences; try",
        ),
        (
            fake.cut(7),
            "stop at their bound before anything can be read in reply to two harmless sentences",
        ),
    ],
)
def test_what_else_goes_wrong_is_said_and_sent_once(kind: str, fault: Fault, expected: str, curate: Command) -> None:
    done, server = attempt(curate, kind, fault)
    assert (done.returncode, len(server.calls)) == (1, 1)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert KEY not in everything(done)


def test_a_cost_that_is_not_known_is_not_zero(curate: Command) -> None:
    done, _ = attempt(curate, "openai", fake.no_usage, words=("--json",))
    trial = machine.data(done.stdout)
    assert (done.returncode, trial["usage"], trial["cost"], trial["problem"]) == (0, None, None, "")
    assert trial["grades"] == {"P1": "S", "P2": "D"}
    done, _ = attempt(curate, "openai", price=None)
    assert "cost: unknown" in done.stdout


def test_only_a_language_model_is_tried(curate: Command) -> None:
    with vendor(script) as server:
        name = pipeline(Path(), "openai", server)
        done = curate("models", "test", "words", "--pipeline", name)
        assert (done.returncode, "no language model" in done.stderr) == (2, True)
        done = curate("models", "test", "mime", "--pipeline", name)
        assert (done.returncode, "did you mean 'mine'?" in done.stderr) == (2, True)
