"""Conclusion of the report, a sentence: queries retained, precision, effective number of judges, use of the scores.

A clause whose figure is not measured names the command that measures it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curate.commands.report.figures import Shown
from curate.stats.bootstrap import FEW
from curate.view import run_figures

Words = Mapping[str, Any]
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class VerdictClause:
    """A clause of the conclusion, with commands in backticks; `measured` is whether its figure is known."""

    text: str
    measured: bool = True


def verdict(contents: Shown, words: Words) -> list[VerdictClause]:
    """Return the four clauses of the conclusion in a language."""
    return [
        _kept_clause(contents, words),
        _confirmed_clause(contents.lead, words),
        _worth_clause(contents.lead, words),
        _usable_clause(contents, words),
    ]


def sentence(clauses: Sequence[VerdictClause], words: Words) -> str:
    """Return the clauses of the conclusion as one sentence."""
    text = str(words["conclusion"]["join"]).join(clause.text for clause in clauses) + str(words["conclusion"]["end"])
    return text[:1].upper() + text[1:]


def percents(figure: Figures, words: Words) -> str:
    """Return a share and its interval in percent, with one decimal if rounding would give 0, 100 or equal bounds."""
    bounds = [figure[name] for name in ("value", "low", "high") if figure[name] is not None]
    printed = [f"{100 * bound:.0f}" for bound in bounds]
    ends = any(text in ("0", "100") and bound not in (0, 1) for text, bound in zip(printed, bounds, strict=True))
    if ends or len(set(printed)) < len(set(bounds)):
        printed = [f"{100 * bound:.1f}" for bound in bounds]
    text_form = words["conclusion"]["percent" if len(printed) == len(("value", "low", "high")) else "bare_percent"]
    return str(text_form.format(*printed))


def _kept_clause(contents: Shown, words: Words) -> VerdictClause:
    texts, export = words["conclusion"], contents.steps.get("export")
    if export is None:
        return VerdictClause(texts["not_exported"].format(contents.asked), measured=False)
    return VerdictClause(texts["kept"].format(export.count("queries"), contents.asked))


def _confirmed_clause(lead: Figures, words: Words) -> VerdictClause:
    texts = words["conclusion"]
    if lead["precision"]:
        return VerdictClause(texts["confirmed"].format(percents(lead["precision"], words)))
    return VerdictClause(texts["nothing_relevant" if lead["sample"] else "unread"], measured=False)


def _worth_clause(lead: Figures, words: Words) -> VerdictClause:
    texts, effective = words["conclusion"], lead["effective"]
    if effective is None:
        return VerdictClause(texts["worth_unknown"][lead["not_measured"]], measured=False)
    names: Sequence[str] = texts["numbers"]
    judges = names[effective["judges"]] if effective["judges"] < len(names) else effective["judges"]
    printed = f"{effective['value']:.1f}"
    if effective["low"] is not None:
        printed = texts["between"].format(printed, f"{effective['low']:.1f}", f"{effective['high']:.1f}")
    return VerdictClause(texts["worth"].format(judges, printed))


def _usable_clause(contents: Shown, words: Words) -> VerdictClause:
    """Return the clause on scores: unusable if judges are weak; else usable to rank systems, or as absolute scores."""
    texts, judged, export = words["conclusion"], contents.steps["judge"].facts, contents.steps.get("export")
    if export and not export.count("queries"):
        return VerdictClause(texts["empty"])
    heuristics = judged.get("heuristic")
    names = [str(name) for name in heuristics] if isinstance(heuristics, list | tuple) else []
    if run_figures.only_heuristics(contents.agreed["panel"], names):
        return VerdictClause(texts["heuristics"])
    if weak := run_figures.failed(judged):
        return VerdictClause(texts["failed"].format(words["comma"].join(weak)))
    kappa = contents.lead["kappa"]
    if kappa is None or kappa["low"] is None:
        return VerdictClause(texts["ranking_unknown"], measured=False)
    if kappa["low"] <= 0:
        return VerdictClause(texts["by_chance"].format(run_figures.between(kappa)))
    return VerdictClause(
        texts["ranking"] + "".join(_limits(contents, words)) + texts["levels"][contents.lead["levels"]]
    )


def _limits(contents: Shown, words: Words) -> Iterator[str]:
    """Yield limitations of system rankings: minimum detectable difference, self-preference, too few queries."""
    texts = words["conclusion"]
    if smallest := _smallest(contents):
        yield texts["from"].format(smallest)
    if warned := [judge["judge"] for judge in contents.lead["circular"] or () if judge["warned"]]:
        yield texts["not_of"].format(words["comma"].join(warned))
    if (queries := contents.agreed["all_grades"]["clusters"]) < FEW:
        yield texts["few"].format(queries)


def _smallest(contents: Shown) -> str | None:
    """Return the median minimum detectable difference (80 % power) of the current evaluation; None if not measured."""
    evaluated = contents.beside.get("evaluation")
    tasks = evaluated.figures["tasks"] if evaluated and evaluated.state == "current" else ()
    for task in tasks:
        if task["kind"] == "Retrieval" and (detectable := task.get("detectable")) and detectable["median"] is not None:
            return f"{100 * detectable['median']:.1f} {task['shown']}"
    return None
