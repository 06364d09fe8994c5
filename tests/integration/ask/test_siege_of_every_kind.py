"""A siege of everything that is asked: vendors fail in every way, processes are killed, a cap ends the first round.

Two runs share a ledger. In the end both have what an honest vendor gives, nothing was paid twice but what was in flight
at a kill, no round cost more than its cap as the vendor counts it, and no file holds a text that was to be masked.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.integration.ask.batched import (
    KINDS,
    MANY,
    Desk,
    Kind,
    asks,
    calls,
    desk,
    files_that_say,
    named,
    prepared,
    process,
    table,
    words,
)
from tests.vendor import Call, Chaos, Fault, chaos

pytestmark = pytest.mark.accept

FAULTS = (
    "slow",
    "dribbled",
    "limited, seconds",
    "limited, milliseconds",
    "unavailable",
    "overloaded",
    "reset before the head",
    "reset after the head",
    "broken body",
    "truncated body",
    "html",
    "fenced",
    "cut",
    "chatty",
    "refusal",
    "filtered",
    "filtered midway",
    "null content",
    "empty",
    "no usage",
)
SLOTS = 8
DECIDED: Mapping[str, tuple[str, ...]] = {
    "ratings": ("query_id", "doc_id", "judge", "grade"),
    "classified": ("item_id", "label", "verdict"),
    "synthetic": ("doc_id", "text", "kept"),
    "pairs": ("sentence1", "sentence2", "label"),
    "paraphrases": ("sentence1", "sentence2", "verdict"),
    "originals": ("query_id", "paraphrase", "verdict"),
    "gradients": ("item_id", "destination", "verdict"),
}
"""Table -> what the answers decide of it; how often something had to be written is not among it."""


def decided(folder: Path, kind: Kind) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name in kind.tables:
        rows: pl.DataFrame = table(folder, kind, name)
        columns = [column for column in DECIDED.get(name, rows.columns) if column in rows.columns]
        assert columns
        found[name] = sorted(rows.select(columns).rows(), key=repr)
    return found


class Siege:
    """Two run folders of a kind with one ledger, before a vendor that fails in every way."""

    def __init__(self, kind: Kind, folder: Path, faults: Chaos) -> None:
        self.kind, self.folder, self.faults = kind, folder, faults
        self.ledger = {"CURATE_LEDGER": str(folder / "shared.db")}
        self.folders: list[Path] = []
        self.kills = 0

    def odd(self, call: Call) -> Fault | None:
        """Give the honest answer, spoilt by a fault."""
        fault, said = self.faults(call), self.kind.answer(call)
        return lambda answer: fault(said(answer)) if fault else said(answer)

    def start(self, folder: Path, cap: float) -> "subprocess.Popen[str]":
        return process(folder, *words(self.kind, "--max-cost", f"{cap:.6f}", "--retry"), **self.ledger)

    def attack(self, at: Desk, chance: random.Random, answers: int) -> None:
        """Let both ask, and kill one of them after so many answers."""
        both, before = [self.start(folder, 50) for folder in self.folders], at.answered.total()
        victim = chance.choice(both)
        while victim.poll() is None:
            if at.answered.total() >= before + answers:
                victim.send_signal(signal.SIGKILL)
                self.kills += 1
                break
            time.sleep(0.01)
        for running in both:
            running.communicate(timeout=300)

    def finish(self, folder: Path, honest: Mapping[str, Any]) -> None:
        """Repeat the command until the run has what an honest vendor gives."""
        for _ in range(40):
            running = self.start(folder, 50)
            complaint = running.communicate(timeout=300)[1]
            if running.returncode == 0 and decided(folder, self.kind) == honest:
                return
        pytest.fail(complaint)


@pytest.mark.parametrize("name", KINDS)
def test_a_siege_leaves_nothing_wrong_lost_or_paid_twice(name: str, tmp_path: Path) -> None:
    kind, chance = KINDS[name], random.Random(f"siege {name}")
    with desk(kind) as at:
        asks(prepared(tmp_path / "honest", kind, at), kind, "--max-cost", "50")
        honest, price, needed = decided(tmp_path / "honest", kind), at.spent, at.online.total()
    siege = Siege(kind, tmp_path, chaos(seed=7, share=0.3, kinds=FAULTS))
    with desk(kind, odd=siege.odd) as at:
        siege.folders = [prepared(tmp_path / each, kind, at, concurrency=SLOTS) for each in ("one", "two")]
        first = siege.start(siege.folders[0], price * 0.4)
        first.communicate(timeout=300)
        assert first.returncode != 0, "the cap ends it"
        assert 0 < at.spent <= price * 0.4
        for _ in range(2):
            siege.attack(at, chance, needed // 8)
        for folder in siege.folders:
            siege.finish(folder, honest)
        drawn = siege.faults.drawn.total()
        assert siege.kills
        assert at.twice <= siege.kills * SLOTS * len(kind.models) + drawn
        assert len(calls(tmp_path, ledger=tmp_path / "shared.db")) >= needed
        assert drawn > needed / 10
    if name == "mask":
        persons = [named(number) for number in range(MANY)]
        assert [path for folder in siege.folders for path in files_that_say(folder, persons)] == []
        assert not any(person.encode() in (tmp_path / "shared.db").read_bytes() for person in persons)
    sys.stderr.write(f"{name}: {at.answered.total()} answers for {needed}, {at.twice} twice, {drawn} faults\n")
