"""Checklist in the report: which checks and later steps of a run are done, and their results in a language."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curate.commands.report.figures import Shown
from curate.panel import controls as controls_of_judges
from curate.runs.checks import CHECKS, controls
from curate.view import run_figures

Words = Mapping[str, Any]
Figures = Mapping[str, Any]
Result = tuple[str, tuple[object, ...]]
"""(Key of a sentence on a check, what to fill into it)."""
_ALARMING = frozenset({"weak", "biased", "leak", "gain", "leaking"})
"""Sentences on a fault that a check found."""


@dataclass(frozen=True)
class DoneRow:
    """One row of the checklist."""

    name: str
    state: str
    """`current`, `older` (of earlier tables), `absent` (not done) or `needless` (does not apply)."""
    result: str = ""
    """Result as a sentence; empty unless current."""
    alarming: bool = False
    """Whether the check found a fault."""


def done_rows(contents: Shown, words: Words) -> list[DoneRow]:
    """Return the rows, in the order of a run, without needless ones."""
    checks = {"judge": _judge, "pool": _pool, "mask": _mask, "leaks": _leaks, "audit": _audit, "analyze": _difficulty}
    rows = {name: _check_row(contents, words, name, say) for name, say in checks.items()}
    analysis, circular = contents.beside.get("analyze"), contents.lead["circular"]
    reasons = analysis.figures["questions"] if analysis and analysis.state == "current" else None
    rows["reasons"] = _row("reasons", _reasons(reasons) if reasons else None, words)
    if analysis and analysis.state == "older":
        rows["reasons"] = DoneRow("reasons", "older")
    rows["controls"] = _row("controls", _controls(contents, words), words)
    rows["circular"] = _row("circular", None if circular is None else _circular(circular, words), words)
    rows["evaluation"] = _check_row(contents, words, "evaluation", _evaluation)
    return [rows[name] for name in CHECKS if rows[name].state != "needless"]


def _row(name: str, result: Result | None, words: Words) -> DoneRow:
    if result is None:
        return DoneRow(name, "absent")
    key, values = result
    return DoneRow(name, "current", words["done"]["said"][key].format(*values), key in _ALARMING)


def _check_row(contents: Shown, words: Words, name: str, say: Callable[[Figures, Words], Result]) -> DoneRow:
    check = contents.beside.get(name)
    if check is None or check.state != "current":
        return DoneRow(name, check.state if check else "absent")
    return _row(name, say(check.figures, words), words)


def _controls(contents: Shown, words: Words) -> Result | None:
    """Return the result of controls, else of the automatic ones while judging."""
    judged = contents.steps["judge"].facts
    measured, reading = controls(judged, contents.beside.get("judge")), contents.steps["judge"].facts.get("controls")
    if measured:
        weak = run_figures.failed({"gate": {"judges": dict(measured)}})
        short = [name for name in weak if measured[name]["state"] == controls_of_judges.SHORT]
        if weak and len(short) == len(weak):
            return "few", (words["comma"].join(short),)
        return ("weak", (words["comma"].join(weak),)) if weak else ("passed", (len(measured),))
    return ("reads", (words["comma"].join(reading),)) if isinstance(reading, Mapping) else None


def _judge(figures: Figures, words: Words) -> Result:
    biased = [name for name, judge in figures["judges"].items() if judge["position"]["biased"]]
    return ("biased", (words["comma"].join(biased),)) if biased else ("unbiased", ())


def _pool(figures: Figures, words: Words) -> Result:
    if figures["capture"] is None:
        return "no_capture", ()
    return "missed", (run_figures.counted(figures["capture"]["missed"], words),)


def _mask(figures: Figures, words: Words) -> Result:
    if not figures["leak"]:
        return "masked", (figures["read"], figures["rows"])
    return "leak", (figures["read"], run_figures.percents(figures["leak"], words))


def _circular(judges: Sequence[Figures], words: Words) -> Result:
    warned = [judge["judge"] for judge in judges if judge["warned"]]
    return ("gain", (words["comma"].join(warned),)) if warned else ("no_gain", ())


def _leaks(figures: Figures, _words: Words) -> Result:
    leaking = figures["leaking_queries"], figures["leaking_pairs"]
    return ("leaking", leaking) if any(leaking) else ("no_leak", ())


def _audit(figures: Figures, _words: Words) -> Result:
    return "audit", (figures["patch"]["added"], figures["patch"]["removed"])


def _difficulty(figures: Figures, _words: Words) -> Result:
    easy = next((group for group in figures["by_bm25_rank"] if group["name"] == "1"), None)
    if not figures["all"]:
        return "no_positives", ()
    return "easy", (easy["queries"] if easy else 0, figures["all"]["queries"])


def _reasons(questions: Figures) -> Result:
    return "reasons", (questions["reasons"]["drawn"], questions["reasons"]["model"])


def _evaluation(figures: Figures, _words: Words) -> Result:
    return "evaluation", (len(figures["models"]), len(figures["tasks"]))
