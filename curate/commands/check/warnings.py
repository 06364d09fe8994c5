"""What the figures of a check warn of, in sentences, and the tables in which they are printed."""

from collections.abc import Iterator, Mapping
from typing import Any

from curate.panel import judge_dependence
from curate.panel.judge_dependence import MEASURED
from curate.view.words import strings

Figures = Mapping[str, Any]
Row = dict[str, object]


def warnings(figures: Figures) -> list[str]:
    """Return a sentence for each thing to look at; empty if there is none."""
    said = [*_of_judges(figures), *figures["gate"]["untested"], *judge_dependence.warnings(figures["panel"], _words())]
    unknown = len(figures["judges"]) > 1 and figures["panel"]["effective"] is None
    return [*said, judge_dependence.worth(figures["panel"], _words())] if unknown else said


def _words() -> Mapping[str, Any]:
    words: Mapping[str, Any] = strings("en")["dependence"]
    return words


def _of_judges(figures: Figures) -> Iterator[str]:
    for name, found in figures["judges"].items():
        if found["heuristic"]:
            yield f"{name} is a heuristic: its figures are no evidence about relevance"
        if name in (figures["gate"]["failed"] or ()):
            yield f"{name} did not pass the gate: {found['controls']['state']}"
        if found["position"]["biased"]:
            yield f"{name}: its grades depend on the place in the prompt"
        if found["again"].get("reversed", {}).get("biased"):
            yield f"{name}: its grades change with the order of the passages"


def tables(figures: Figures) -> list[tuple[str, list[Row]]]:
    """Return titles and rows to print, empty tables left out."""
    judges = figures["judges"].items()
    found = {
        f"controls (gate: lower bound {figures['gate']['floor']:g}, {figures['gate']['least']} a class)": [
            _control(name, each["controls"]) for name, each in judges if each["controls"]
        ],
        "adversarial controls (right: graded not relevant; a judge must be able to reach the mark)": [
            _family(name, family, found)
            for name, each in judges
            if each["controls"]
            for family, found in each["controls"]["adversarial"].items()
        ],
        "position in the prompt, as judged": [_place(name, each["position"]) for name, each in judges],
        "asked again": [_again(name, kind, each) for name, one in judges for kind, each in one["again"].items()],
        "strictness (steps of a grade; positive is lenient)": [_strict(name, each) for name, each in judges],
        "share relevant": [_share(name, each) for name, each in judges],
        "together": [judge_dependence.row(each) for each in figures["panel"]["together"]],
    }
    return [(title, rows) for title, rows in found.items() if rows]


def effective(figures: Figures) -> list[str]:
    """Return the effective number of judges, as a sentence; none where a warning says why it is not defined."""
    return [judge_dependence.worth(figures["panel"], _words())] if figures["panel"]["effective"] else []


def _control(name: str, found: Figures) -> Row:
    kinds = {kind: _estimate(found[kind]) for kind in ("positives", "random", "rejected")}
    fooled = ", ".join(family for family, each in found["adversarial"].items() if each["failed"])
    row: Row = {"judge": name, "gate": found["state"], "balanced": found["value"], "fooled by": fooled}
    return {**row, "low": found["low"], "high": found["high"], **kinds, "unanswered": found["unanswered"]}


def _family(name: str, family: str, found: Figures) -> Row:
    row: Row = {"judge": name, "family": family, "right": _estimate(found["right"]), "mark": found["mark"]}
    return {**row, "unanswered": found["unanswered"], "passed": "no" if found["failed"] else "yes"}


def _place(name: str, found: Figures) -> Row:
    row: Row = {"judge": name, "biased": MEASURED[found["biased"]], "pairs": found["pairs"]}
    return {**row, **_figure("slope", found["slope"]), "explained": found["share"], "p": found["p"]}


def _again(name: str, kind: str, found: Figures) -> Row:
    row: Row = {"judge": name, "asked": kind, "pairs": found["pairs"], "lost": found["lost"]}
    row |= {**_figure("cut_flips", found["cut_flips"]), "grade_flips": _value(found["grade_flips"])}
    return {**row, **_figure("shift", found["shift"]), "slope": _value(found["slope"])}


def _strict(name: str, found: Figures) -> Row:
    people = found["against_people"] or {}
    row: Row = {"judge": name, **_figure("panel", found["strictness"]), **_figure("people", people.get("steps"))}
    return {**row, **{rate: _estimate(people.get(rate)) for rate in ("sensitivity", "specificity")}}


def _share(name: str, found: Figures) -> Row:
    row: Row = {"judge": name, "by": (found["prevalence"] or {}).get("source"), "rated": found["rated"]}
    row |= {"relevant": _value(found["relevant"]), **_figure("corrected", found["prevalence"])}
    return {**row, "legacy": _estimate(found["legacy"])}


def _figure(label: str, found: Figures | None) -> Row:
    known = found or {"value": MEASURED[None]}
    return {label: known["value"], f"{label}_low": known.get("low"), f"{label}_high": known.get("high")}


def _value(found: Figures | None) -> object:
    return found["value"] if found else MEASURED[None]


def _estimate(found: Figures | None) -> str:
    return f"{found['value']:.3f} of {found['answered']:,}" if found else MEASURED[None]
