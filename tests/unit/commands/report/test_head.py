"""The five figures of the report's head: what they are counted on, and what is said where nothing was measured."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from curate.commands.report.figures import Shown, Step
from curate.commands.report.head import cost, evidence, head_figures, odd_judge
from curate.core.scale import FIVE, Scale
from curate.view.charts import fitted
from curate.view.run_figures import QueryCounts
from curate.view.words import strings

LEAD: dict[str, Any] = {
    "sample": "expert",
    "read": 200,
    "twice": 60,
    "drawn": True,
    "flagged": 0,
    "precision": {"value": 0.92, "low": 0.88, "high": 0.95},
    "kappa": {"value": 0.7, "low": 0.6, "high": 0.8},
}
UNREAD = {"sample": None, "read": 0, "twice": 0, "drawn": False, "flagged": 0, "precision": None, "kappa": None}
EXPORT = {"queries": 48, "qrels": 214, "residual": 0, "gate": {"looked": True, "published": 0}}


def pair(one: str, other: str, kappa: float | None) -> dict[str, Any]:
    return {"raters": [one, other], "nominal": kappa}


CUT = {
    "fleiss": 0.8137,
    "intervals": {"fleiss": [0.79, 0.83]},
    "one_category": False,
    "items": 900,
    "clusters": 64,
    "pairs_of_raters": [pair("gpt", "qwen", 0.9), pair("gpt", "odd", 0.31), pair("qwen", "odd", 0.35)],
}


@dataclass(frozen=True)
class Run:
    """What the head reads of a page's contents."""

    lead: dict[str, Any] = field(default_factory=lambda: LEAD)
    export: dict[str, Any] | None = field(default_factory=lambda: EXPORT)
    judged: dict[str, Any] = field(default_factory=lambda: {"heuristic": []})
    cut: dict[str, Any] = field(default_factory=lambda: CUT)
    asked: int = 64
    outdated: tuple[str, ...] = ()
    beside: dict[str, Any] = field(default_factory=dict)
    unfinished: str = ""
    further: dict[str, float] = field(default_factory=dict)
    published: None = None
    seed: int = 7
    queries: tuple[QueryCounts, ...] = (
        QueryCounts("a", "", 10, (5, 4, 1, 0, 0)),
        QueryCounts("b", "", 30, (5, 22, 3, 0, 0)),
    )

    @property
    def precision(self) -> tuple[str, Any]:
        return "panel", self.lead["precision"]

    @property
    def steps(self) -> dict[str, Step]:
        steps = {"judge": Step(0, 0, 0, self.judged, self.unfinished)}
        return steps if self.export is None else {**steps, "export": Step(0, 0, 0, self.export)}

    @property
    def agreed(self) -> dict[str, Any]:
        grades = {"gpt": {"S": 10, "D": 90}, "qwen": {"A": 20, "B": 80}, "odd": {"S": 80, "D": 20}}
        return {"panel": [*grades], "cut": self.cut, "all_grades": self.cut, "grades": grades}

    @property
    def scale(self) -> Scale:
        return FIVE


def texts(run: Run, language: str = "en") -> list[str]:
    figures = head_figures(cast("Shown", run), fitted(strings(language), FIVE))
    return [
        " | ".join([figure.title, f"{figure.number} {figure.interval}".strip(), *figure.notes]) for figure in figures
    ]


def test_five_figures_stand_with_interval_and_n() -> None:
    head = strings("en")["head"]
    odd = head["odd"].format("odd", 0.33, "80%", "10%", "20%")
    paid = {"calls": 1200, "cost": 12.5, "currency": "USD"}
    assert texts(Run(judged={"heuristic": [], "bill": {"gpt": paid}})) == [
        "queries published with a reliable answer | 48 | of 64 queries | 214 positives, 4.5 per query",
        f"{head['people']['panel']} | 92 % (88–95) | sample expert: 200 pairs read, 60 of them by two",
        f"{head['agreement']} | 0.814 (0.790–0.830) | 900 pairs of 64 queries | {odd}",
        "contested pairs | 10.0% (10.0–10.0) | of 40 judged pairs",
        "paid | 12.50 USD | 1,200 calls",
    ]
    assert (
        texts(Run(), "zh")[1]
        == "评审组的正例中复核人确认的（精确率） | 92% (88–95) | 样本 expert，已读 200 对，其中两人读过 60 对"
    )


def test_what_nobody_measured_is_said() -> None:
    figures = texts(Run(lead=UNREAD, export=None, cut={**CUT, "fleiss": None, "pairs_of_raters": []}))
    assert figures[0].endswith("| not exported yet | of 64 queries")
    assert figures[1].endswith("| nobody has checked")
    assert "| not defined |" in figures[2]
    assert "odd one out" not in figures[2]
    assert figures[4] == "paid | 0 | no call was paid"
    further = strings("en")["bill_further"]
    assert texts(Run(further={"CNY": 0.5}))[4] == f"paid | 0 | {further}: 0.5 CNY"
    assert "nobody has read a positive" in texts(Run(lead={**LEAD, "precision": None}))[1]
    none = tuple(replace(row, verdicts=(0, 0, 0, 0, 0)) for row in Run().queries)
    assert texts(Run(queries=none))[3] == "contested pairs | not defined"


def test_the_odd_judge_is_the_one_furthest_from_the_others() -> None:
    odd = odd_judge([pair("gpt", "qwen", 0.9), pair("gpt", "odd", 0.31), pair("qwen", "odd", 0.35)])
    assert odd is not None
    assert (odd[0], round(odd[1], 6)) == ("odd", 0.33)
    assert odd_judge([pair("gpt", "qwen", 0.9)]) is None
    assert odd_judge([pair("gpt", "qwen", None), pair("gpt", "odd", None), pair("qwen", "odd", None)]) is None


@pytest.mark.parametrize(
    ("facts", "amount", "currency"),
    [
        ({"bill": {"a": {"calls": 1, "cost": 1.5, "currency": "USD"}, "b": {"calls": 2, "cost": 0}}}, 1.5, " USD"),
        ({"bill": {"a": {"calls": 1, "cost": 1.5}, "b": {"calls": 2, "cost": None}}}, None, ""),
        (
            {"bill": {name: {"calls": 1, "cost": 1, "currency": name} for name in ("USD", "CNY")}},
            None,
            " USD",
        ),
        (
            {
                "bill": {name: {"calls": 1, "cost": 1, "currency": name} for name in ("USD", "CNY")},
                "rates": [{}],
                "total": 8.1,
                "currency": "CNY",
            },
            8.1,
            " CNY",
        ),
    ],
)
def test_the_cost_is_a_sum_only_of_one_currency(facts: dict[str, Any], amount: float | None, currency: str) -> None:
    paid = cost(cast("Shown", Run(judged=facts)))
    assert paid is not None
    assert (paid.amount, paid.currency) == (amount, currency)
    assert cost(cast("Shown", Run())) is None


def test_evidence_names_the_stage_to_run_and_counts_what_is_open() -> None:
    good = evidence(cast("Shown", Run()))
    assert (good.queries, good.twice, good.personal, good.unfinished, good.heuristic) == (48, 60, 0, "", False)
    assert evidence(cast("Shown", Run(export=None))).unfinished == "export"
    assert evidence(cast("Shown", Run(outdated=("resolve",), unfinished="9 ratings failed"))).unfinished == "judge"
    assert evidence(cast("Shown", Run(outdated=("resolve",)))).unfinished == "resolve"
    assert evidence(cast("Shown", Run(export={**EXPORT, "residual": 2}))).personal == 2
    assert evidence(cast("Shown", Run(export={**EXPORT, "gate": {"looked": False, "published": 0}}))).personal is None
    weak = {"heuristic": [], "gate": {"judges": {"gpt": {"state": "weak"}}}, "too_many_lost": "qwen, odd"}
    assert evidence(cast("Shown", Run(judged=weak))).weak == ["gpt", "qwen", "odd"]
    assert evidence(cast("Shown", Run(judged={"heuristic": ["gpt", "qwen", "odd"]}))).heuristic
