"""Checklist in the report: which checks and later steps of a run are done, and their results in a language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from curate.commands.report.figures import Shown
from curate.commands.report.verdict import percents
from curate.view import run_figures

Words = Mapping[str, Any]
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class DoneRow:
    """One row of the checklist."""

    name: str
    state: str
    """`current`, `older` (of earlier tables), `absent` (not done) or `needless` (does not apply)."""
    said: str
    """Result as a sentence; empty unless current."""
    section: str | None = None
    """Section of the report with the details; None without one."""


def done_rows(contents: Shown, words: Words) -> list[DoneRow]:
    """Return the rows, in the order of a run, without needless ones."""
    read = max((expert.read for expert in contents.experts), default=0)
    reviewed = words["done"]["said"]["read"].format(read) if read else ""
    rows = [
        _controls(contents, words),
        _check_row(contents, words, "judge", _judge, "judge_bias"),
        _check_row(contents, words, "pool", _pool, "pool"),
        _check_row(contents, words, "mask", _mask),
        DoneRow("experts", "current" if read else "absent", reviewed, "experts"),
        _circular(contents, words),
        _check_row(contents, words, "leaks", _leaks),
        _check_row(contents, words, "audit", _audit, "audit"),
        _check_row(contents, words, "analyze", _difficulty, "difficulty"),
        _reasons(contents, words),
        DoneRow("export", "current" if "export" in contents.steps else "absent", "", "export"),
        _check_row(contents, words, "evaluation", _evaluation, "evaluation"),
    ]
    return [row for row in rows if row.state != "needless"]


def _check_row(
    contents: Shown, words: Words, name: str, say: Callable[[Figures, Words], str], section: str | None = None
) -> DoneRow:
    check = contents.beside.get(name)
    if check is None or check.state != "current":
        return DoneRow(name, check.state if check else "absent", "", section)
    return DoneRow(name, "current", say(check.figures, {**words["done"]["said"], "words": words}), section)


def _controls(contents: Shown, words: Words) -> DoneRow:
    """Return the row on controls: by the qualification test, else by `curate check judge`, else automatic controls."""
    gate = contents.steps["judge"].facts.get("gate")
    measured = gate.get("judges") if isinstance(gate, Mapping) else None
    checked = contents.beside.get("judge")
    if not measured and checked and checked.state == "current":
        measured = {name: judge["controls"] for name, judge in checked.figures["judges"].items() if judge["controls"]}
    texts = words["done"]["said"]
    if not isinstance(measured, Mapping) or not measured:
        reading = contents.steps["judge"].facts.get("controls")
        if not isinstance(reading, Mapping):
            return DoneRow("controls", "absent", "")
        return DoneRow("controls", "current", texts["reads"].format(words["comma"].join(reading)))
    weak = run_figures.failed({"gate": {"judges": dict(measured)}})
    result = texts["weak"].format(words["comma"].join(weak)) if weak else texts["passed"].format(len(measured))
    return DoneRow("controls", "current", result)


def _judge(figures: Figures, texts: Words) -> str:
    biased = [name for name, judge in figures["judges"].items() if judge["position"]["biased"]]
    return str(texts["biased"].format(texts["words"]["comma"].join(biased)) if biased else texts["unbiased"])


def _pool(figures: Figures, texts: Words) -> str:
    if figures["capture"] is None:
        return str(texts["no_capture"])
    return str(texts["missed"].format(run_figures.counted(figures["capture"]["missed"], texts["words"])))


def _mask(figures: Figures, texts: Words) -> str:
    if not figures["leak"]:
        return str(texts["masked"].format(figures["read"], figures["rows"]))
    return str(texts["leak"].format(figures["read"], percents(figures["leak"], texts["words"])))


def _circular(contents: Shown, words: Words) -> DoneRow:
    judges, texts = contents.lead["circular"], words["done"]["said"]
    if judges is None:
        return DoneRow("circular", "absent", "", "judges")
    warned = [judge["judge"] for judge in judges if judge["warned"]]
    result = texts["gain"].format(words["comma"].join(warned)) if warned else texts["no_gain"]
    return DoneRow("circular", "current", result, "judges")


def _leaks(figures: Figures, texts: Words) -> str:
    leaking = figures["leaking_queries"], figures["leaking_pairs"]
    return str(texts["leaking"].format(*leaking) if any(leaking) else texts["no_leak"])


def _audit(figures: Figures, texts: Words) -> str:
    return str(texts["audit"].format(figures["patch"]["added"], figures["patch"]["removed"]))


def _difficulty(figures: Figures, texts: Words) -> str:
    easy = next((group for group in figures["by_bm25_rank"] if group["name"] == "1"), None)
    if not figures["all"]:
        return str(texts["no_positives"])
    return str(texts["easy"].format(easy["queries"] if easy else 0, figures["all"]["queries"]))


def _reasons(contents: Shown, words: Words) -> DoneRow:
    analysis = contents.beside.get("analyze")
    if analysis is None or analysis.state != "current" or not analysis.figures["questions"]:
        return DoneRow("reasons", "older" if analysis and analysis.state == "older" else "absent", "", "difficulty")
    reasons = analysis.figures["questions"]["reasons"]
    result = words["done"]["said"]["reasons"].format(reasons["drawn"], reasons["model"])
    return DoneRow("reasons", "current", result, "difficulty")


def _evaluation(figures: Figures, texts: Words) -> str:
    return str(texts["evaluation"].format(len(figures["models"]), len(figures["tasks"])))
