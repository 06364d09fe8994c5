"""What was done for a run and what was not, in the words of a language, with the command that would do it."""

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
    """One thing that can be done for a run."""

    name: str
    state: str
    """current, older, absent (not done) or needless."""
    said: str
    """What came out; empty unless current."""
    section: str | None = None
    """Of the page, where more of it stands."""


def done_rows(shown: Shown, words: Words) -> list[DoneRow]:
    """Return a row each, in the order in which a run is made."""
    rows = [
        _controls(shown, words),
        _beside(shown, words, "judge", _judge, "judge_bias"),
        _beside(shown, words, "pool", _pool, "pool"),
        _beside(shown, words, "mask", _mask),
        _experts(shown, words),
        _circular(shown, words),
        _beside(shown, words, "leaks", _leaks),
        _beside(shown, words, "audit", _audit, "audit"),
        _beside(shown, words, "analyze", _difficulty, "difficulty"),
        _reasons(shown, words),
        DoneRow("export", "current" if "export" in shown.steps else "absent", "", "export"),
        _beside(shown, words, "evaluation", _evaluation, "evaluation"),
    ]
    return [row for row in rows if row.state != "needless"]


def _beside(
    shown: Shown, words: Words, name: str, say: Callable[[Figures, Words], str], section: str | None = None
) -> DoneRow:
    found = shown.beside.get(name)
    if found is None or found.state != "current":
        return DoneRow(name, found.state if found else "absent", "", section)
    return DoneRow(name, "current", say(found.figures, {**words["done"]["said"], "words": words}), section)


def _controls(shown: Shown, words: Words) -> DoneRow:
    """Return whether judges were given pairs of known grade, by the gate or by the check of judges."""
    gate = shown.steps["judge"].facts.get("gate")
    measured = gate.get("judges") if isinstance(gate, Mapping) else None
    checked = shown.beside.get("judge")
    if not measured and checked and checked.state == "current":
        measured = {name: each["controls"] for name, each in checked.figures["judges"].items() if each["controls"]}
    own = words["done"]["said"]
    if not isinstance(measured, Mapping) or not measured:
        reading = shown.steps["judge"].facts.get("controls")
        if not isinstance(reading, Mapping):
            return DoneRow("controls", "absent", "")
        return DoneRow("controls", "current", own["reads"].format(words["comma"].join(reading)))
    weak = run_figures.failed({"gate": {"judges": dict(measured)}})
    said = own["weak"].format(words["comma"].join(weak)) if weak else own["passed"].format(len(measured))
    return DoneRow("controls", "current", said)


def _judge(found: Figures, own: Words) -> str:
    biased = [name for name, each in found["judges"].items() if each["position"]["biased"]]
    return str(own["biased"].format(own["words"]["comma"].join(biased)) if biased else own["unbiased"])


def _pool(found: Figures, own: Words) -> str:
    if found["capture"] is None:
        return str(own["no_capture"])
    return str(own["missed"].format(run_figures.counted(found["capture"]["missed"], own["words"])))


def _mask(found: Figures, own: Words) -> str:
    if not found["leak"]:
        return str(own["masked"].format(found["read"], found["rows"]))
    return str(own["leak"].format(found["read"], percents(found["leak"], own["words"])))


def _experts(shown: Shown, words: Words) -> DoneRow:
    read = max((expert.read for expert in shown.experts), default=0)
    if not read:
        return DoneRow("experts", "absent", "", "experts")
    return DoneRow("experts", "current", words["done"]["said"]["read"].format(read), "experts")


def _circular(shown: Shown, words: Words) -> DoneRow:
    judges, own = shown.lead["circular"], words["done"]["said"]
    if judges is None:
        return DoneRow("circular", "absent", "", "judges")
    warned = [judge["judge"] for judge in judges if judge["warned"]]
    said = own["gain"].format(words["comma"].join(warned)) if warned else own["no_gain"]
    return DoneRow("circular", "current", said, "judges")


def _leaks(found: Figures, own: Words) -> str:
    leaking = found["leaking_queries"], found["leaking_pairs"]
    return str(own["leaking"].format(*leaking) if any(leaking) else own["no_leak"])


def _audit(found: Figures, own: Words) -> str:
    return str(own["audit"].format(found["patch"]["added"], found["patch"]["removed"]))


def _difficulty(found: Figures, own: Words) -> str:
    easy = next((each for each in found["by_bm25_rank"] if each["name"] == "1"), None)
    if not found["all"]:
        return str(own["no_positives"])
    return str(own["easy"].format(easy["queries"] if easy else 0, found["all"]["queries"]))


def _reasons(shown: Shown, words: Words) -> DoneRow:
    found = shown.beside.get("analyze")
    if found is None or found.state != "current" or not found.figures["questions"]:
        return DoneRow("reasons", "older" if found and found.state == "older" else "absent", "", "difficulty")
    asked = found.figures["questions"]["reasons"]
    said = words["done"]["said"]["reasons"].format(asked["drawn"], asked["model"])
    return DoneRow("reasons", "current", said, "difficulty")


def _evaluation(found: Figures, own: Words) -> str:
    return str(own["evaluation"].format(len(found["models"]), len(found["tasks"])))
