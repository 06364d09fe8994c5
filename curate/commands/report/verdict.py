"""The verdict of a run in words: what was kept, what people confirm, what the panel is worth, what scores are good for.

A clause is a figure only where it was measured; else it names what was not, with the command that measures it.
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
    """One clause, commands between backticks."""

    text: str
    measured: bool = True


def verdict(shown: Shown, words: Words) -> list[VerdictClause]:
    """Return the clauses of the verdict in the words of a language."""
    return [_kept(shown, words), _confirmed(shown.lead, words), _worth(shown.lead, words), _usable(shown, words)]


def sentence(clauses: Sequence[VerdictClause], words: Words) -> str:
    """Return the verdict as one sentence."""
    text = str(words["conclusion"]["join"]).join(clause.text for clause in clauses) + str(words["conclusion"]["end"])
    return text[:1].upper() + text[1:]


def percents(figure: Figures, words: Words) -> str:
    """Return a share with its interval in percent, with a decimal where whole ones would hide something."""
    bounds = [figure[name] for name in ("value", "low", "high") if figure[name] is not None]
    said = [f"{100 * bound:.0f}" for bound in bounds]
    ends = any(text in ("0", "100") and bound not in (0, 1) for text, bound in zip(said, bounds, strict=True))
    if ends or len(set(said)) < len(set(bounds)):
        said = [f"{100 * bound:.1f}" for bound in bounds]
    form = words["conclusion"]["percent" if len(said) == len(("value", "low", "high")) else "bare_percent"]
    return str(form.format(*said))


def _kept(shown: Shown, words: Words) -> VerdictClause:
    own, export = words["conclusion"], shown.steps.get("export")
    if export is None:
        return VerdictClause(own["not_exported"].format(shown.asked), measured=False)
    return VerdictClause(own["kept"].format(export.count("queries"), shown.asked))


def _confirmed(lead: Figures, words: Words) -> VerdictClause:
    own = words["conclusion"]
    if lead["precision"]:
        return VerdictClause(own["confirmed"].format(percents(lead["precision"], words)))
    return VerdictClause(own["nothing_relevant" if lead["sample"] else "unread"], measured=False)


def _worth(lead: Figures, words: Words) -> VerdictClause:
    own, found = words["conclusion"], lead["effective"]
    if found is None:
        return VerdictClause(own["worth_unknown"][lead["not_measured"]], measured=False)
    names: Sequence[str] = own["numbers"]
    judges = names[found["judges"]] if found["judges"] < len(names) else found["judges"]
    value = f"{found['value']:.1f}"
    if found["low"] is not None:
        value = own["between"].format(value, f"{found['low']:.1f}", f"{found['high']:.1f}")
    return VerdictClause(own["worth"].format(judges, value))


def _usable(shown: Shown, words: Words) -> VerdictClause:
    """Return what scores on the labels are good for: nothing if judges prove nothing, else orders, perhaps levels."""
    own, judged, export = words["conclusion"], shown.steps["judge"].facts, shown.steps.get("export")
    if export and not export.count("queries"):
        return VerdictClause(own["empty"])
    if run_figures.only_heuristics(shown.agreed["panel"], _names(judged.get("heuristic"))):
        return VerdictClause(own["heuristics"])
    if weak := run_figures.failed(judged):
        return VerdictClause(own["failed"].format(words["comma"].join(weak)))
    kappa = shown.lead["kappa"]
    if kappa is None or kappa["low"] is None:
        return VerdictClause(own["ranking_unknown"], measured=False)
    if kappa["low"] <= 0:
        return VerdictClause(own["by_chance"].format(run_figures.between(kappa)))
    return VerdictClause(own["ranking"] + "".join(_limits(shown, words)) + own["levels"][shown.lead["levels"]])


def _limits(shown: Shown, words: Words) -> Iterator[str]:
    """Yield what limits a ranking: differences too small, models that judged, too few queries."""
    own = words["conclusion"]
    if smallest := _smallest(shown):
        yield own["from"].format(smallest)
    if warned := [each["judge"] for each in shown.lead["circular"] or () if each["warned"]]:
        yield own["not_of"].format(words["comma"].join(warned))
    if (queries := shown.agreed["all_grades"]["clusters"]) < FEW:
        yield own["few"].format(queries)


def _smallest(shown: Shown) -> str | None:
    """Return the median difference that the current evaluation would show in 80 of 100 cases; None if not known."""
    evaluated = shown.beside.get("evaluation")
    tasks = evaluated.figures["tasks"] if evaluated and evaluated.state == "current" else ()
    for task in tasks:
        if task["kind"] == "Retrieval" and (found := task.get("detectable")) and found["median"] is not None:
            return f"{100 * found['median']:.1f} {task['shown']}"
    return None


def _names(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
