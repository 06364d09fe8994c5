"""State of a benchmark or an audit, in one of four colours, by a rule with thresholds that are this project's own.

Green needs every condition. Red: assessors reject the positives, heuristics judged, or no query is published. Grey: a
stage is not finished. Everything else is amber.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curate.system import resources
from curate.view import run_figures
from curate.view.words import strings

QUERIES, TWICE, PRECISION = 50, 50, 0.8
"""Minimum numbers of queries and of pairs that two assessors read, and minimum lower bound of precision."""
SILENT = 0.05
"""Share of the drawn rows without an answer above which figures need worst-case bounds, and reading goes on."""
_RED = frozenset({"judged", "published", "accepted"})
"""Conditions without which a set must not score models."""
_ASSESSED = ("accepted", "sample", "answered", "precision", "twice", "guessing")
"""Conditions that assessors' answers meet, in the order in which they can be met."""


@dataclass(frozen=True)
class Evidence:
    """Figures that decide the state."""

    queries: int
    precision: Mapping[str, Any] | None
    """Share of the positives that assessors confirm, by a probability sample: value, low, high; None if unread."""
    twice: int = 0
    """Number of pairs that two assessors read."""
    drawn: bool = False
    """Whether a sample was drawn, read or not."""
    kappa: Mapping[str, Any] | None = None
    """Agreement of panel and assessors on relevance; None if it is not measured. An audit does not need it."""
    heuristic: bool = False
    """Whether all judges are heuristics."""
    weak: Sequence[str] = ()
    """Judges that their controls show to be weak, or that left too many pairs without a grade."""
    personal: int | None = 0
    """Number of texts with open personal data; None if nothing looked for it."""
    flagged: int = 0
    """Number of rows in which assessors flagged personal data that is not settled."""
    unfinished: str = ""
    """Stage to run next; empty if the run is finished."""

    @property
    def conditions(self) -> dict[str, bool]:
        """Return condition of green -> whether it holds, the most urgent first."""
        low, high = ((self.precision or {}).get(bound) for bound in ("low", "high"))
        return {
            "finished": not self.unfinished,
            "judged": not self.heuristic,
            "published": self.queries > 0,
            "personal": not self.personal,
            "flagged": not self.flagged,
            "judges": not self.weak,
            "accepted": high is None or high >= PRECISION,
            "sample": self.drawn or self.precision is not None,
            "answered": self.precision is not None,
            "precision": low is not None and low >= PRECISION,
            "twice": self.twice >= TWICE,
            "guessing": self.kappa is not None and (self.kappa["low"] or 0) > 0,
            "masked": self.personal is not None,
            "queries": self.queries >= QUERIES,
        }


def evidence(
    judged: Mapping[str, Any],
    panel: Sequence[str],
    export: Mapping[str, Any] | None,
    people: Mapping[str, Any],
    controls: Mapping[str, Any],
    unfinished: Sequence[str],
) -> Evidence:
    """Return the evidence of a run: facts of `judge` and of `export` (None before it), assessors' figures, controls.

    `people` has the keys of `review.lead.of_people`; `controls` is judge -> result on control pairs; `unfinished` are
    the stages to run again, in order.
    """
    gate = export.get("gate") if export else None
    lost = str(judged.get("too_many_lost") or "")
    return Evidence(
        queries=int(export.get("queries") or 0) if export else 0,
        precision=people["precision"],
        twice=people["twice"],
        drawn=people["drawn"],
        flagged=people["flagged"],
        kappa=people["kappa"],
        heuristic=run_figures.only_heuristics(panel, [str(name) for name in judged.get("heuristic") or ()]),
        weak=[*run_figures.weak(controls), *(lost.split(", ") if lost else ())],
        personal=int(export.get("residual") or 0) + gate["published"] if export and gate and gate["looked"] else None,
        unfinished=next(iter([*unfinished, *([] if export else ["export"])]), ""),
    )


def audit_evidence(figures: Mapping[str, Any], weak: Sequence[str], personal: int | None) -> Evidence:
    """Return the evidence of an audit, from the content of audit.json: the sample with the most answers counts."""
    samples = [sample for sample in figures["corrected"] if not sample["outdated"]]
    checked = max(samples, key=lambda sample: sample["answered"], default=None)
    return Evidence(
        queries=figures["queries"],
        precision=checked["precision"] if checked else None,
        twice=checked.get("twice", 0) if checked else 0,
        drawn=bool(samples),
        heuristic=figures["heuristic"],
        weak=weak,
        personal=personal,
    )


@dataclass(frozen=True)
class State:
    """A colour, with its reason, rule and next steps in a language."""

    colour: Literal["green", "amber", "red", "grey"]
    sentence: str
    command: str
    """The one command to type next."""
    conditions: Sequence[tuple[bool, str]]
    """(Whether it holds, a condition of green)."""
    rule: str
    """How the other colours come about."""
    steps: Sequence[tuple[str, str]]
    """(What is missing, command), the most urgent first; assessors have one step at a time."""


@dataclass(frozen=True)
class HeadFigure:
    """A figure at the top of a page: number, interval, and lines on what it was counted on."""

    title: str
    number: str
    interval: str = ""
    notes: Sequence[str] = ()

    @classmethod
    def of_text(cls, title: str, text: str, notes: Sequence[str]) -> "HeadFigure":
        """Return a figure that is printed as a number with its interval in brackets, if it has one."""
        number, bracket, bounds = text.replace("（", " (").replace("）", ")").partition(" (")
        return cls(title, number, f"({bounds}" if bracket else "", notes)


def of_evidence(evidence: Evidence, language: str, page: Literal["report", "audit"] = "report") -> State:
    """Return the state that the evidence gives, in the words of a page."""
    words, holding = strings(language)["state"], evidence.conditions
    unmet = [name for name, holds in holding.items() if not holds and name in words[page]["reasons"]]
    listed = {**commands(page), "finished": f"curate {evidence.unfinished}"}
    values = {"weak": words["comma"].join(evidence.weak), "stage": evidence.unfinished, **_thresholds(words)}
    reasons = {name: text.format(**values) for name, text in words[page]["reasons"].items()}
    later = [name for name in unmet if name in _ASSESSED][1:]
    # what assessors reject does not get better by running a stage again
    damning = [name for name in unmet if name in _RED and (name == "accepted" or not evidence.unfinished)]
    first = next(iter([*damning, *unmet]), "ready")
    colour: Literal["green", "amber", "red", "grey"] = (
        "red" if damning else "grey" if evidence.unfinished else "amber" if unmet else "green"
    )
    return State(
        colour=colour,
        sentence=words["sentence"].format(words[page]["names"][colour], reasons[first]),
        command=listed[first],
        conditions=[
            (holding[name], text.format(**values))
            for name, text in words["conditions"].items()
            if name in words[page]["reasons"]
        ],
        rule=words["rule"].format(**values),
        steps=[(reasons[name], listed[name]) for name in unmet if name not in later],
    )


def commands(group: Literal["report", "audit"]) -> Mapping[str, str]:
    """Return the commands of a group of `commands.yaml`."""
    by_group: Mapping[str, Mapping[str, str]] = resources.translations("view/commands.yaml")
    return by_group[group]


@dataclass(frozen=True)
class ReadCounts:
    """How far assessors read a sample."""

    rows: int
    read: int
    twice: int = 0
    """Rows that two assessors read."""
    disputed: int = 0
    """Rows on which assessors differ, without a final answer."""
    flagged: int = 0
    """Rows of the run with an open flag of personal data."""

    @property
    def many_open(self) -> bool:
        """Return whether more than `SILENT` of the rows have no answer."""
        return self.rows - self.read > SILENT * self.rows


def obstacle(precision: Mapping[str, Any] | None, reading: ReadCounts) -> str:
    """Return the first condition of publication that labels do not meet by a sample that assessors read, else `ready`.

    `precision` is that of the positives, or of a task type's labels. Reading goes on while many rows are open, or any
    row if the precision is not high enough; figures that reject the labels stop it.
    """
    if precision is None:
        return "nothing" if reading.read else "unread"
    holding = Evidence(QUERIES, precision, reading.twice).conditions
    open_rows = reading.rows - reading.read
    conditions = {
        "accepted": holding["accepted"],
        "open": not (reading.many_open or (open_rows and not holding["precision"])),
        "precision": holding["precision"],
        "twice": holding["twice"],
        "disputed": not reading.disputed,
        "flagged": not reading.flagged,
    }
    return next((name for name, holds in conditions.items() if not holds), "ready")


def advice(
    precision: Mapping[str, Any] | None,
    reading: ReadCounts,
    labels: Literal["panel", "published", "items"] = "panel",
    *,
    language: str = "en",
) -> str:
    """Return what to do with labels by a sample that assessors read, as a sentence; `labels` are those of `precision`.

    `items` are a task type's.
    """
    words = strings(language)
    texts = words["state"]["advice"]
    key = obstacle(precision, reading)
    return str(texts["outdated" if key == "nothing" and labels == "items" else key]).format(
        share=run_figures.percents(precision, words) if precision else "",
        what=texts["of"][labels],
        pairs=f"{reading.twice:,}",
        open=f"{reading.rows - reading.read:,}",
        rows=f"{reading.rows:,}",
        disputed=f"{reading.disputed:,}",
        flagged=f"{reading.flagged:,}",
        **_thresholds(words["state"]),
    )


def _thresholds(words: Mapping[str, Any]) -> dict[str, str]:
    return {
        "queries": f"{QUERIES:,}",
        "twice": f"{TWICE:,}",
        "precision": words["percent"].format(f"{100 * PRECISION:.0f}"),
    }
