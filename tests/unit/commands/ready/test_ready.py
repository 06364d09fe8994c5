"""Difficulty and floors of a task, by what an evaluation says of it."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from curate.ask.gate import reads
from curate.cli.app import app
from curate.commands.ready.evidence import FILE, scored
from curate.commands.ready.points import gate
from curate.core.config import parse_yaml
from curate.system.resources import template
from curate.view.words import strings

RANDOM = "mteb/baseline-random-encoder"


@dataclass
class Known:
    """Evidence of one task, without a run."""

    main: dict[str, float]
    roles: dict[str, list[str]] = field(default_factory=dict)
    kind: str = "Retrieval"
    rules: dict[str, Any] = field(default_factory=lambda: dict(parse_yaml(template(FILE))))
    tasks: tuple[str, ...] = ("t",)
    drawn_by_rank: bool = False

    @property
    def limits(self) -> dict[str, Any]:
        """Return the limits."""
        found: dict[str, Any] = self.rules["limits"]
        return found

    @property
    def evaluation(self) -> dict[str, Any]:
        """Return the models."""
        return {"models": [{"model": name, "roles": self.roles.get(name, [])} for name in self.main]}

    @property
    def scores(self) -> dict[str, Any]:
        """Return the figures."""
        rows = [
            {"model": name, "main": main, "stock": {"low": main - 0.05, "high": main + 0.05}}
            for name, main in self.main.items()
        ]
        models = [{"model": name, "above": main > 0.3} for name, main in self.main.items()]
        against = {"best": "length", "sort": "floor", "score": 0.3, "models": models}
        return {"t": {"kind": self.kind, "scores": rows, "against_floors": against}}

    def command(self, name: str, **more: str) -> str:
        """Return the command's name and what is put in."""
        return " ".join([name, *more.values()])


GOOD = {"bm25": 0.4, RANDOM: 0.1, "a": 0.6, "b": 0.5}


def test_a_task_between_trivial_and_random_is_ok() -> None:
    difficulty, floors = scored(Known(GOOD))  # type: ignore[arg-type]
    assert (difficulty.state, floors.state) == ("ok", "ok")
    assert difficulty.next is None
    assert "a, b" in floors.found.replace("bm25, ", "")


@pytest.mark.parametrize(
    ("known", "state", "said", "typed"),
    [
        (Known({**GOOD, "a": 1.0}, kind="Reranking"), "not ok", "trivial: a has 100.00", "rerank"),
        (Known({**GOOD, "a": 1.0}, kind="Reranking", drawn_by_rank=True), "not ok", "harder queries", "source"),
        (Known({**GOOD, "bm25": 0.995}), "not ok", "trivial: bm25", "source"),
        (Known({**GOOD, "a": 0.15, "b": 0.15}), "not ok", "not above chance", "ORGANISATION/NAME"),
        (Known({"a": 0.5, "b": 0.5, "bm25": 0.4}), "not measured", f"not scored: {RANDOM}", RANDOM),
        (Known(GOOD, {"b": ["judge"]}), "not measured", "1 more that neither retrieved nor judged", "ORGANISATION"),
        (Known({"a": 0.5, "b": 0.5, RANDOM: 0.0}, kind="STS"), "ok", "best a 50.00", None),
    ],
)
def test_a_task_that_tells_nothing_is_not(known: Known, state: str, said: str, typed: str | None) -> None:
    found = next(scored(known))  # type: ignore[arg-type]
    assert found.state == state
    assert said in found.found
    assert found.next is None if typed is None else typed in (found.next or "")


def test_a_random_model_above_the_floors_is_no_reason_to_publish() -> None:
    _, floors = scored(Known({"bm25": 0.1, RANDOM: 0.4}))  # type: ignore[arg-type]
    assert (floors.state, floors.found) == ("not ok", "no model is above the floor length (30.00)")


def test_every_command_that_a_point_may_name_is_one_of_the_program() -> None:
    for line in Known(GOOD).rules["next"].values():
        words = line.split()
        group = words[1] in ("review", "check")
        text = CliRunner().invoke(app, [*words[1 : 3 if group else 2], "--help"], terminal_width=200).output
        assert "Usage" in text, line
        assert all(word in text for word in words if word.startswith("--")), line


def test_judges_that_answered_controls_while_judging_are_called_as_in_the_report(tmp_path: Path) -> None:
    run = SimpleNamespace(folder=tmp_path)
    judged: dict[str, Any] = {"controls": {"alpha": {"likely": (10, 12)}, "beta": {}}}
    evidence: Any = SimpleNamespace(families={"alpha": "a", "beta": "b"}, judged=judged, run=run, command=str)
    found = gate(evidence)
    said = strings("en")["done"]["said"]["reads"].format("alpha, beta")
    assert (found.state, found.found) == ("not measured", said)
    clause = "not qualified, for no person graded these controls"
    assert clause in said
    assert clause in reads("alpha", {"likely": (10, 12)})
