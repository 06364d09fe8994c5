"""Warnings and printed tables of `curate check judge`."""

from collections.abc import Iterator, Mapping
from typing import Any

from curate.commands.check.leniency import Prevalence
from curate.commands.check.panel import JudgeFigures, JudgesFigures
from curate.core.figures import Figure
from curate.panel import judge_dependence
from curate.panel.controls import SHORT, Accuracy
from curate.panel.judge_dependence import MEASURED
from curate.panel.position_bias import Changes
from curate.stats.sample_estimates import Estimate
from curate.view.record_words import RecordWords
from curate.view.text import as_table
from curate.view.words import strings

Cells = dict[str, str]


def warnings(figures: JudgesFigures) -> list[str]:
    """Return one sentence per warning: on judges, on the qualification test, on dependence, in this order."""
    sentences = [
        *_judge_warnings(figures),
        *figures.gate.untested,
        *judge_dependence.warnings(figures.panel, _words()),
    ]
    unknown = len(figures.judges) > 1 and figures.panel.effective is None
    return [*sentences, judge_dependence.worth(figures.panel, _words())] if unknown else sentences


def _words() -> Mapping[str, Any]:
    words: Mapping[str, Any] = strings("en")["dependence"]
    return words


def _judge_warnings(figures: JudgesFigures) -> Iterator[str]:
    say = RecordWords("check/judge")
    for name, judge in figures.judges.items():
        if judge.heuristic:
            yield say("heuristic", judge=name)
        if judge.controls and name in (figures.gate.failed or ()):
            yield say("short" if judge.controls.state == SHORT else "failed", judge.controls, judge=name)
        if judge.position.biased:
            yield say("place", judge=name)
        if "reversed" in judge.again and judge.again["reversed"].biased:
            yield say("order", judge=name)


def tables(figures: JudgesFigures) -> Iterator[str]:
    """Yield the tables, each below its title, without empty ones."""
    say, judges = RecordWords("check/judge"), figures.judges.items()
    rows_by_title: dict[str, list[Any]] = {
        say("controls", figures.gate): [
            _control(name, judge.controls, say) for name, judge in judges if judge.controls
        ],
        say("adversarial"): [
            say.cells(
                "family",
                result,
                judge=name,
                family=family,
                right=_estimate(result.right, say),
                passed=None if result.right is None else say("too_few") if result.too_few else not result.failed,
            )
            for name, judge in judges
            if judge.controls
            for family, result in judge.controls.adversarial.items()
        ],
        say("positions"): [
            say.cells(
                "position",
                judge.position,
                judge=name,
                biased=MEASURED[judge.position.biased],
                slope_or_not=_value(judge.position.slope),
            )
            for name, judge in judges
        ],
        say("repeats"): [
            _repeat(name, kind, change, say) for name, judge in judges for kind, change in judge.again.items()
        ],
        say("strictness"): [_strict(name, judge, say) for name, judge in judges],
        say("shares"): [
            say.cells(
                "relevant",
                judge,
                judge=name,
                relevant_or_not=_value(judge.relevant),
                corrected=_value(judge.prevalence),
                legacy_or_not=_estimate(judge.legacy, say),
            )
            for name, judge in judges
        ],
        say("together"): [judge_dependence.row(pair) for pair in figures.panel.together],
    }
    for title, rows in rows_by_title.items():
        if rows:
            yield say("section", title=title, table=as_table(rows, digits=3))


def effective(figures: JudgesFigures) -> list[str]:
    """Return a sentence with the effective number of judges; [] if it is undefined, which is a warning instead."""
    return [judge_dependence.worth(figures.panel, _words())] if figures.panel.effective else []


def _control(name: str, accuracy: Accuracy, say: RecordWords) -> Cells:
    return say.cells(
        "control",
        accuracy,
        judge=name,
        fooled=", ".join(accuracy.fooled),
        positives=_estimate(accuracy.positives, say),
        random=_estimate(accuracy.random, say),
        rejected=_estimate(accuracy.rejected, say),
    )


def _repeat(name: str, kind: str, change: Changes, say: RecordWords) -> Cells:
    return say.cells(
        "repeat",
        change,
        judge=name,
        kind=kind,
        cut_flips_or_not=_value(change.cut_flips),
        grade_flips_or_not=_value(change.grade_flips),
        shift_or_not=_value(change.shift),
        slope_or_not=_value(change.slope),
    )


def _strict(name: str, judge: JudgeFigures, say: RecordWords) -> Cells:
    people = judge.against_people
    return say.cells(
        "strict",
        judge,
        judge=name,
        panel=_value(judge.strictness),
        read=people.pairs if people else 0,
        people=_value(people.steps if people else None),
        steps=people.steps if people else None,
        sensitivity_or_not=_estimate(people.sensitivity if people else None, say),
        specificity_or_not=_estimate(people.specificity if people else None, say),
    )


def _value(estimate: Figure | Estimate | Prevalence | None) -> float | str | None:
    return estimate.value if estimate else MEASURED[None]


def _estimate(estimate: Estimate | None, say: RecordWords) -> str:
    return say("rate", estimate) if estimate else MEASURED[None]
