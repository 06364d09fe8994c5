"""The verdict of a run in words: every clause is a measured figure, or says what was not measured."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from curate.commands.report.figures import Shown, ShownCheck, Step
from curate.commands.report.verdict import percents, sentence, verdict
from curate.view.words import strings

MEASURED: dict[str, Any] = {
    "sample": "1",
    "precision": {"value": 0.94, "low": 0.9, "high": 0.97},
    "effective": {"value": 1.2, "low": None, "high": None, "judges": 3},
    "not_measured": None,
    "kappa": {"value": 0.7, "low": 0.6, "high": 0.8},
    "levels": "none",
    "circular": None,
}
UNREAD = {"sample": None, "precision": None, "kappa": None, "effective": None, "not_measured": "people"}


@dataclass
class Run:
    """What the verdict reads of a page's figures."""

    lead: dict[str, Any] = field(default_factory=lambda: dict(MEASURED))
    asked: int = 60
    exported: int | None = 54
    judged: dict[str, Any] = field(default_factory=lambda: {"heuristic": []})
    queries: int = 54
    beside: dict[str, ShownCheck] = field(default_factory=dict)

    @property
    def steps(self) -> dict[str, Step]:
        steps = {"judge": Step(0, 0, 0, self.judged)}
        return steps if self.exported is None else {**steps, "export": Step(0, 0, 0, {"queries": self.exported})}

    @property
    def agreed(self) -> dict[str, Any]:
        return {"panel": ["one", "two", "three"], "all_grades": {"clusters": self.queries}}


def said(run: Run, language: str = "en") -> str:
    words = strings(language)
    return sentence(verdict(cast("Shown", run), words), words)


def test_a_measured_run_has_a_verdict_without_a_gap() -> None:
    assert said(Run()) == (
        "54 of 60 queries kept; of what the panel calls relevant people confirm 94 % (90 to 97); three judges are worth"
        " 1.2; usable for ranking, not for absolute scores."
    )
    assert said(Run(), "zh") == (
        "读入 60 个查询，保留 54 个；评审组判为相关的，人认可 94%（90 至 97）；三位评审相当于 1.2 位独立评审；"
        "可用于排序系统，不可用于绝对分数。"
    )


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (Run(lead={**MEASURED, **UNREAD}), "not known until people check it (`curate review export`)"),
        (Run(lead={**MEASURED, **UNREAD, "not_measured": "few"}), "there is one judge"),
        (Run(lead={**MEASURED, "precision": None}), "people have read nothing that the panel calls relevant"),
        (Run(lead={**MEASURED, "kappa": {"value": 0.1, "low": -0.1, "high": 0.3}}), "no better than by chance"),
        (Run(lead={**MEASURED, "kappa": {"value": 0.1, "low": None, "high": None}}), "not known until"),
        (Run(lead={**MEASURED, "levels": "corrected"}), "only by the corrected P@10"),
        (Run(exported=None), "nothing exported yet (`curate export`)"),
        (Run(exported=0), "0 of 60 queries kept"),
        (Run(exported=0), "no query is left to score a model on"),
        (Run(judged={"heuristic": ["one", "two", "three"]}), "every judge is a heuristic"),
        (Run(judged={"heuristic": [], "gate": {"judges": {"two": {"state": "weak"}}}}), "two did not pass"),
        (Run(queries=20), "with 20 queries only"),
    ],
)
def test_what_is_not_measured_is_said_so(run: Run, words: str) -> None:
    assert words in said(run)
    assert ("usable for ranking," in said(run)) <= (run.lead["kappa"] is not None)


@pytest.mark.parametrize(("state", "shown"), [("current", True), ("older", False)])
def test_only_a_current_evaluation_says_what_can_be_told_apart(state: Any, shown: bool) -> None:
    task = {"kind": "Retrieval", "shown": "nDCG@10", "detectable": {"median": 0.0234}}
    run = Run(beside={"evaluation": ShownCheck(state, {"tasks": [task]})})
    assert ("from a difference of 2.3 nDCG@10" in said(run)) == shown


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        ((0.994, 0.986, 0.999), "99.4 % (98.6 to 99.9)"),
        ((0.94, 0.9, 0.97), "94 % (90 to 97)"),
        ((1.0, 0.9, 1.0), "100 % (90 to 100)"),
        ((0.5, None, None), "50 %"),
    ],
)
def test_a_share_has_a_decimal_where_whole_percents_would_hide_something(figure: Any, shown: str) -> None:
    assert percents(dict(zip(("value", "low", "high"), figure, strict=True)), strings("en")) == shown
