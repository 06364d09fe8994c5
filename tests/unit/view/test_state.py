"""The state of a set: every condition of green alone flips it, and red, amber and grey come about by their rules."""

import re
import shlex
from dataclasses import replace
from typing import Any, Literal

import pytest
import typer

from curate.cli.app import app
from curate.core.languages import base_language
from curate.runs.checks import CHECKS
from curate.system import resources
from curate.view.state import Evidence, ReadCounts, advice, of_evidence
from curate.view.words import strings

GOOD = Evidence(
    queries=50,
    precision={"value": 0.92, "low": 0.8, "high": 0.95},
    twice=50,
    drawn=True,
    kappa={"value": 0.7, "low": 0.6, "high": 0.8},
)
LANGUAGES = tuple(resources.translations("commands/report/words.yaml"))
BROKEN: dict[str, dict[str, Any]] = {
    "queries": {"queries": 49},
    "sample": {"precision": None, "drawn": False},
    "answered": {"precision": None},
    "precision": {"precision": {"value": 0.92, "low": 0.799, "high": 0.95}},
    "twice": {"twice": 49},
    "judges": {"weak": ["gpt"]},
    "personal": {"personal": 1},
    "flagged": {"flagged": 1},
    "masked": {"personal": None},
    "guessing": {"kappa": {"value": 0.1, "low": 0.0, "high": 0.3}},
}
"""What is missing -> the evidence of which this alone, or what follows from it, is missing."""


def test_green_needs_nothing_more_than_its_conditions() -> None:
    good = of_evidence(GOOD, "en")
    assert (good.colour, good.steps) == ("green", [])
    assert good.sentence == "Ready to compare systems: every condition holds."
    assert all(holds for holds, _ in good.conditions)
    assert of_evidence(GOOD, "zh").sentence.startswith("可以用来比较系统：")


@pytest.mark.parametrize("name", BROKEN)
def test_every_condition_alone_turns_green_into_amber_and_is_the_reason(name: str) -> None:
    found = of_evidence(replace(GOOD, **BROKEN[name]), "en")
    assert found.colour == "amber"
    reason = strings("en")["state"]["report"]["reasons"][name].split("{")[0]
    assert found.sentence.startswith(f"Usable in-house: {reason}")
    assert found.steps[0][1] == found.command
    assert len(found.steps) == 1, "what follows from it is no step of its own"
    assert sum(not holds for holds, _ in found.conditions) >= (name != "answered")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"heuristic": True}, "judged"),
        ({"precision": {"value": 0.13, "low": 0.08, "high": 0.7999}}, "accepted"),
        ({"queries": 0}, "published"),
        ({"heuristic": True, "weak": ["gpt"], "precision": None, "drawn": False}, "judged"),
        ({"weak": ["gpt"], "precision": {"value": 0.13, "low": 0.08, "high": 0.2}}, "accepted"),
    ],
)
def test_red_says_what_is_damning_whatever_else_is_missing(changes: dict[str, Any], reason: str) -> None:
    found = of_evidence(replace(GOOD, **changes), "en")
    assert found.colour == "red"
    assert found.sentence == f"Not fit to score models: {strings('en')['state']['report']['reasons'][reason]}."


def test_an_upper_bound_at_the_threshold_is_not_red() -> None:
    assert of_evidence(replace(GOOD, precision={"value": 0.7, "low": 0.6, "high": 0.8}), "en").colour == "amber"


@pytest.mark.parametrize("changes", [{}, {"heuristic": True}, {"queries": 0}])
def test_what_is_not_finished_is_grey_whatever_it_says(changes: dict[str, Any]) -> None:
    found = of_evidence(replace(GOOD, unfinished="judge", **changes), "en")
    assert (found.colour, found.command) == ("grey", "curate judge")
    assert found.sentence == "Not finished: the stage judge has to run first."


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", ["report", "audit"])
def test_the_thresholds_stand_beside_the_state_in_every_language(
    language: str, page: Literal["report", "audit"]
) -> None:
    found = of_evidence(GOOD, language, page)
    printed = " ".join(text for _, text in found.conditions)
    assert {"50", "80"} <= set(re.findall(r"\d+", printed))
    assert "80" in found.rule
    assert set(strings(language)["state"][page]["names"]) == {"green", "amber", "red", "grey"}
    names = [name for name in GOOD.conditions if name in strings(language)["state"][page]["reasons"]]
    assert {*GOOD.conditions} - {*names} == ({"guessing", "flagged"} if page == "audit" else set())


def test_an_audit_is_green_without_a_kappa() -> None:
    assert of_evidence(replace(GOOD, kappa=None), "en", "audit").colour == "green"
    assert of_evidence(replace(GOOD, kappa=None), "en").colour == "amber"


def commands() -> list[str]:
    pages: tuple[Literal["report", "audit"], ...] = ("report", "audit")
    changes: list[dict[str, Any]] = [{}, {"heuristic": True}, {"queries": 0}, {"unfinished": "resolve"}]
    changes += BROKEN.values()
    found = [of_evidence(replace(GOOD, **changed), "en", page).command for changed in changes for page in pages]
    rejected = replace(GOOD, precision={"value": 0.1, "low": 0.1, "high": 0.2})
    return sorted({*found, of_evidence(rejected, "en").command, *(check.command for check in CHECKS.values())})


@pytest.mark.parametrize("line", commands())
def test_every_command_on_the_page_is_one_of_the_program(line: str) -> None:
    words = shlex.split(line)
    assert words.pop(0) == "curate"
    command: Any = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        command = command.get_command(command.make_context("curate", ["--help"], resilient_parsing=True), words.pop(0))
        assert command is not None, line
    command.make_context("curate", words)


@pytest.mark.parametrize(
    ("precision", "reading", "said"),
    [
        (None, ReadCounts(200, 0), "do not publish: nobody has read a row of this sample"),
        (None, ReadCounts(200, 9), "do not publish: nobody has read a pair that the panel calls relevant"),
        (
            (0.13, 0.08, 0.2),
            ReadCounts(300, 50),
            "do not publish: the readers confirmed 13 % (8–20) of the panel's",
        ),
        ((0.85, 0.7, 0.93), ReadCounts(200, 199), "read on: 1 of 200 rows are open; so far the readers confirmed 85 %"),
        ((0.92, 0.88, 0.95), ReadCounts(300, 260, 60), "read on: 40 of 300 rows are open; so far"),
        (
            (0.85, 0.7, 0.93),
            ReadCounts(200, 200, 60),
            "do not publish yet: the readers confirmed 85 % (70–93) of the panel's pos",
        ),
        ((0.92, 0.88, 0.95), ReadCounts(200, 190, 12, 3), "but two of them read 12 rows only, of 50 that are needed"),
        (
            (0.92, 0.88, 0.95),
            ReadCounts(200, 190, 50, 12),
            "adjudicate 12 rows on which readers differ; they",
        ),
        (
            (0.92, 0.88, 0.95),
            ReadCounts(200, 190, 50),
            "publish: the readers confirmed 92 % (88–95) of the panel's pos",
        ),
        (
            (0.92, 0.88, 0.95),
            ReadCounts(200, 190, 50, flagged=1),
            "do not publish yet: personal data that assessors flagged in 1 rows is open; the readers confirmed 92 %",
        ),
    ],
)
def test_a_review_says_first_what_to_do(precision: Any, reading: ReadCounts, said: str) -> None:
    figure = precision and dict(zip(("value", "low", "high"), precision, strict=True))
    assert said in advice(figure, reading)
    assert advice(figure, reading, language="zh") != advice(figure, reading)


def test_a_review_of_items_speaks_of_labels_and_of_items_that_changed() -> None:
    good = {"value": 0.92, "low": 0.88, "high": 0.95}
    assert "confirmed 92 % (88–95) of the labels" in advice(good, ReadCounts(99, 99, 50), "items")
    assert "the items changed" in advice(None, ReadCounts(99, 99), "items")
    assert "nobody has read a row" in advice(None, ReadCounts(99, 0), "items")


def test_a_figure_of_published_labels_is_called_so() -> None:
    good = {"value": 0.92, "low": 0.88, "high": 0.95}
    assert "of the published positives" in advice(good, ReadCounts(99, 99, 50), "published")
    assert "发布的正例" in advice(good, ReadCounts(99, 99, 50), "published", language="zh")


def test_a_third_language_is_only_an_entry_of_the_words() -> None:
    assert {base_language(language) for language in LANGUAGES} == {"zh", "en"}
    assert not re.search(r"[\u4e00-\u9fff]", (resources.data_file("view/state.py")).read_text(encoding="utf-8"))
    assert of_evidence(GOOD, "fr") == of_evidence(GOOD, "en")


def test_what_assessors_reject_stays_red_while_a_stage_waits() -> None:
    rejected = {"value": 0.3, "low": 0.2, "high": 0.4}
    state = of_evidence(Evidence(queries=60, precision=rejected, unfinished="export"), "en")
    assert (state.colour, state.command) == ("red", "curate check judge")
    assert of_evidence(Evidence(queries=60, precision=None, unfinished="export"), "en").colour == "grey"
