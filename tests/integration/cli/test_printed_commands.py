"""Every command that the program prints runs, in the folder in which it was printed."""

import shutil
from pathlib import Path

import pytest

from tests.support.printed import commands
from tests.support.runs import curate, ran, tiny

SITUATIONS = {
    "finished": [["run", "tiny.yaml"]],
    "ready": [["ready", "runs/tiny"]],
    "paper": [["paper", "runs/tiny"]],
    "no sample": [["review", "report", "--run", "runs/tiny"]],
    "sample": [["review", "export", "--run", "runs/tiny", "--size", "9"], ["review", "report", "--run", "runs/tiny"]],
    "stale": [["judge", "--run", "runs/tiny", "--set", "judge.batch=3"], ["export", "--run", "runs/tiny"]],
    "no run": [["status", "--run", "runs/none"]],
    "no audit": [["audit", "--run", "runs/tiny"]],
    "bare": [["pool", "--depth", "3"]],
    "accept": [["review", "export", "--run", "runs/tiny", "--target", "accept", "--size", "9"]],
    "accept off": [["consensus", "--run", "runs/tiny", "--set", "consensus.accept=null"]],
    "unknown judge": [["judge", "--run", "runs/tiny", "--models", "gpt4o", "--plan"]],
    "unknown table": [["show", "nothing", "--run", "runs/tiny"]],
    "residual": [["check", "mask", "--residual", "--run", "runs/tiny"]],
    "models": [["models"]],
    "doctor": [["doctor"]],
    "init": [["init", "data"], ["init", "data", "--out", "other.yaml"]],
    "verify": [["verify", "runs/tiny/export"]],
    "check": [["check", "judge", "--run", "runs/tiny"], ["check", "circular", "--run", "runs/tiny"]],
    "analyze": [["analyze", "--run", "runs/tiny"]],
    "extend": [["extend", "runs/tiny", "--retriever", "nosuch"]],
}
REFUSALS = (
    "judging would send",
    "holds no key",
    "is not ready",
    "was drawn yet",
    "found no relevant pair",
    "judged by",
)
"""What a command says that refuses what it announces: money, an unfinished checklist, a sample that is not there."""
LONG = ("evaluate", "serve", "doctor --try")
"""Commands that load models, or wait for a browser."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("printed")
    ran(folder, "run", tiny(folder))
    return folder


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_printed_runs(situation: str, work: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    shutil.copytree(work, before)
    said = [curate(before, *words) for words in SITUATIONS[situation]]
    printed = {tuple(each) for done in said for each in commands(done.stdout + "\n" + done.stderr)}
    for number, words in enumerate(sorted(printed)):
        if any(f"{' '.join(words)} ".startswith(f"{each} ") or each in words for each in LONG):
            continue
        folder = Path(shutil.copytree(before, tmp_path / str(number)))
        done = curate(folder, *words)
        refused = any(each in done.stderr for each in REFUSALS)
        assert done.returncode == 0 or refused, (words, done.stderr)


def test_the_road_prints_commands(work: Path) -> None:
    """The collection finds what a reader would type; else the test above would hold of nothing."""
    said = curate(work, "run", "tiny.yaml").stdout + curate(work, "ready", "runs/tiny").stdout
    assert ["review", "export", "--run", "runs/tiny", "--size", "200", "--assessors", "first,second"] in list(
        commands(said)
    )
    assert list(commands("next: curate run x.yaml --set 'a={b: 1}': it goes on")) == [
        ["run", "x.yaml", "--set", "a={b: 1}"]
    ]
    assert list(commands("`curate judge --models A,B` and `curate run PIPELINE`")) == []
