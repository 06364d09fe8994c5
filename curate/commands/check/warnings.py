"""Warnings and printed tables of `curate check judge`."""

from collections.abc import Iterator, Mapping
from typing import Any

from curate.panel import judge_dependence
from curate.panel.judge_dependence import MEASURED, Dependence
from curate.view.words import strings

Figures = Mapping[str, Any]
Row = dict[str, object]


def warnings(figures: Figures) -> list[str]:
    """Return one sentence per warning: on judges, on the qualification test, on dependence, in this order."""
    sentences = [
        *_judge_warnings(figures),
        *figures["gate"]["untested"],
        *judge_dependence.warnings(_dependence(figures), _words()),
    ]
    unknown = len(figures["judges"]) > 1 and figures["panel"]["effective"] is None
    return [*sentences, judge_dependence.worth(_dependence(figures), _words())] if unknown else sentences


def _dependence(figures: Figures) -> Dependence:
    return Dependence.from_json(figures["panel"])


def _words() -> Mapping[str, Any]:
    words: Mapping[str, Any] = strings("en")["dependence"]
    return words


def _judge_warnings(figures: Figures) -> Iterator[str]:
    for name, figures_ in figures["judges"].items():
        if figures_["heuristic"]:
            yield f"{name} is a heuristic: its figures are no evidence about relevance"
        if name in (figures["gate"]["failed"] or ()):
            yield f"{name} did not pass the gate: {figures_['controls']['state']}"
        if figures_["position"]["biased"]:
            yield f"{name}: its grades depend on the place in the prompt"
        if figures_["again"].get("reversed", {}).get("biased"):
            yield f"{name}: its grades change with the order of the passages"


def tables(figures: Figures) -> list[tuple[str, list[Row]]]:
    """Return (title, rows) of the tables to print, without empty ones."""
    judges = figures["judges"].items()
    tables = {
        f"controls (gate: lower bound {figures['gate']['floor']:g}, {figures['gate']['least']} a class)": [
            _control_row(name, judge["controls"]) for name, judge in judges if judge["controls"]
        ],
        "adversarial controls (right: graded not relevant; a judge must be able to reach the mark)": [
            {
                "judge": name,
                "family": family,
                "right": _estimate(accuracy["right"]),
                "mark": accuracy["mark"],
                "unanswered": accuracy["unanswered"],
                "passed": "no" if accuracy["failed"] else "yes",
            }
            for name, judge in judges
            if judge["controls"]
            for family, accuracy in judge["controls"]["adversarial"].items()
        ],
        "position in the prompt, as judged": [
            {
                "judge": name,
                "biased": MEASURED[judge["position"]["biased"]],
                "pairs": judge["position"]["pairs"],
                **_figure("slope", judge["position"]["slope"]),
                "explained": judge["position"]["share"],
                "p": judge["position"]["p"],
            }
            for name, judge in judges
        ],
        "asked again": [
            _repeat_row(name, kind, change) for name, judge in judges for kind, change in judge["again"].items()
        ],
        "strictness (steps of a grade; positive is lenient)": [_strictness_row(name, judge) for name, judge in judges],
        "share relevant": [
            {
                "judge": name,
                "by": (judge["prevalence"] or {}).get("source"),
                "rated": judge["rated"],
                "relevant": _value(judge["relevant"]),
                **_figure("corrected", judge["prevalence"]),
                "legacy": _estimate(judge["legacy"]),
            }
            for name, judge in judges
        ],
        "together": [judge_dependence.row(statistic) for statistic in _dependence(figures).together],
    }
    return [(title, rows) for title, rows in tables.items() if rows]


def _repeat_row(judge: str, kind: str, change: Figures) -> Row:
    return {
        "judge": judge,
        "asked": kind,
        "pairs": change["pairs"],
        "lost": change["lost"],
        **_figure("cut_flips", change["cut_flips"]),
        "grade_flips": _value(change["grade_flips"]),
        **_figure("shift", change["shift"]),
        "slope": _value(change["slope"]),
    }


def effective(figures: Figures) -> list[str]:
    """Return a sentence with the effective number of judges; [] if it is undefined, which is a warning instead."""
    return [judge_dependence.worth(_dependence(figures), _words())] if figures["panel"]["effective"] else []


def _control_row(name: str, accuracy: Figures) -> Row:
    kinds = {kind: _estimate(accuracy[kind]) for kind in ("positives", "random", "rejected")}
    fooled = ", ".join(family for family, result in accuracy["adversarial"].items() if result["failed"])
    row: Row = {"judge": name, "gate": accuracy["state"], "balanced": accuracy["value"], "fooled by": fooled}
    return {**row, "low": accuracy["low"], "high": accuracy["high"], **kinds, "unanswered": accuracy["unanswered"]}


def _strictness_row(name: str, judge: Figures) -> Row:
    people = judge["against_people"] or {}
    row: Row = {"judge": name, **_figure("panel", judge["strictness"]), **_figure("people", people.get("steps"))}
    return {**row, **{rate: _estimate(people.get(rate)) for rate in ("sensitivity", "specificity")}}


def _figure(label: str, estimate: Figures | None) -> Row:
    bounds = estimate or {"value": MEASURED[None]}
    return {label: bounds["value"], f"{label}_low": bounds.get("low"), f"{label}_high": bounds.get("high")}


def _value(estimate: Figures | None) -> object:
    return estimate["value"] if estimate else MEASURED[None]


def _estimate(estimate: Figures | None) -> str:
    return f"{estimate['value']:.3f} of {estimate['answered']:,}" if estimate else MEASURED[None]
