"""Head of the report: the evidence for its state, and five figures in the words of a language."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from curate.commands.report.figures import Shown
from curate.core.records import VERDICTS
from curate.llm.exchange_rates import shown
from curate.runs.checks import controls
from curate.stats import ratios
from curate.view import run_figures, state
from curate.view.state import Evidence, HeadFigure

Words = Mapping[str, Any]


@dataclass(frozen=True)
class Cost:
    """What judging cost, earlier runs included."""

    amount: float | None
    """None if unknown: a call without a price, or several currencies without exchange rates."""
    calls: int | None
    currency: str
    """With a leading space; empty if unknown."""


def evidence(contents: Shown) -> Evidence:
    """Return the evidence for the state of a run."""
    export = contents.steps.get("export")
    again = [name for name, step in contents.steps.items() if step.unfinished]
    return state.evidence(
        contents.steps["judge"].facts,
        contents.agreed["panel"],
        export.facts if export else None,
        {**contents.lead, "precision": contents.precision[1]},
        controls(contents.steps["judge"].facts, contents.beside.get("judge")),
        [*again, *contents.outdated],
    )


def cost(contents: Shown) -> Cost | None:
    """Return what judging cost; None if no call was paid."""
    judged: Mapping[str, Any] = contents.steps["judge"].facts
    rows = list((judged.get("bill") or {}).values())
    if not rows:
        return None
    calls = None if any(row["calls"] is None for row in rows) else sum(row["calls"] for row in rows)
    if judged.get("rates"):
        return Cost(judged["total"], calls, f" {judged['currency']}")
    currencies = list(dict.fromkeys(row.get("currency") or "" for row in rows if row["cost"] != 0))
    unknown = any(row["cost"] is None for row in rows) or len(currencies) > 1
    currency = f" {currencies[0]}" if currencies and currencies[0] else ""
    return Cost(None if unknown else sum(row["cost"] for row in rows), calls, currency)


def further(contents: Shown) -> str:
    """Return the amounts that were paid beside judging; empty if nothing was."""
    return ", ".join(shown(amount, currency) for currency, amount in contents.further.items())


def head_figures(contents: Shown, words: Words) -> list[HeadFigure]:
    """Return the figures: published queries, precision, agreement of judges, contested pairs, cost."""
    return [
        _queries(contents, words),
        _people(contents, words),
        _agreement(contents, words),
        _contested(contents, words),
        _paid(contents, words),
    ]


def _queries(contents: Shown, words: Words) -> HeadFigure:
    texts, export = words["head"], contents.steps.get("export")
    source = texts["of"].format(contents.asked)
    if export is None:
        return HeadFigure(texts["queries"], texts["not_exported"], notes=[source])
    queries, positives = export.count("queries"), export.count("qrels")
    mean = texts["positives"].format(positives, positives / queries) if queries else ""
    return HeadFigure(texts["queries"], f"{queries:,}", notes=[source, *([mean] if mean else [])])


def _people(contents: Shown, words: Words) -> HeadFigure:
    texts, lead, (labels, precision) = words["head"], contents.lead, contents.precision
    title = texts["people"][labels]
    if lead["sample"] is None:
        return HeadFigure(title, texts["nobody"])
    notes = [texts["read"].format(lead["sample"], lead["read"], lead["twice"])]
    if precision is None:
        return HeadFigure(title, texts["unread"], notes=notes)
    return HeadFigure.of_text(title, run_figures.percents(precision, words), notes)


def _agreement(contents: Shown, words: Words) -> HeadFigure:
    texts, agreed = words["head"], contents.agreed["cut"]
    notes = [texts["on"].format(agreed["items"], agreed["clusters"])]
    pairs = contents.agreed["all_grades"].get("pairs_of_raters") or () if contents.scale.positives else ()
    if odd := odd_judge(pairs):
        judge, kappa = odd
        shares = _relevant_shares(contents)
        others = [share for name, share in shares.items() if name != judge]
        figures = [f"{share:.0%}" for share in (shares[judge], min(others), max(others))]
        notes.append(texts["odd" if len(set(figures)) > 1 else "odd_alike"].format(judge, kappa, *figures))
    elif len(contents.agreed["panel"]) == len(("one", "other")):
        notes.append(texts["even"])
    return HeadFigure.of_text(texts["agreement"], run_figures.stated(agreed, "fleiss", words), notes)


def odd_judge(pairs: Sequence[Mapping[str, Any]]) -> tuple[str, float] | None:
    """Return the judge with the lowest mean kappa with the others, and that mean; None for fewer than three judges.

    Kappa is weighted linearly if the grades have an order.
    """
    kappas_by_judge = defaultdict[str, list[float]](list)
    for pair in pairs:
        kappa = pair.get("linear", pair["nominal"])
        for judge in pair["raters"] if kappa is not None else ():
            kappas_by_judge[judge].append(kappa)
    if len(kappas_by_judge) < len(("one", "other", "odd")):
        return None
    means = {judge: fmean(kappas) for judge, kappas in kappas_by_judge.items()}
    judge = min(means, key=lambda name: means[name])
    return judge, means[judge]


def _relevant_shares(contents: Shown) -> dict[str, float]:
    """Return judge -> share of its grades that are relevant; 0 for a judge without grades."""
    shares = {}
    for judge, counts in contents.agreed["grades"].items():
        graded = sum(counts.get(label, 0) for label in contents.scale.labels)
        relevant = sum(counts.get(label, 0) for label in contents.scale.positives)
        shares[judge] = relevant / graded if graded else 0.0
    return shares


def _contested(contents: Shown, words: Words) -> HeadFigure:
    texts, queries = words["head"], (contents.published or contents).queries
    counts = [row.verdicts[VERDICTS.index("contested")] for row in queries]
    pairs = [sum(row.verdicts) for row in queries]
    share = ratios.ratio(counts, pairs, range(len(queries)), contents.seed)
    if share is None:
        return HeadFigure(texts["contested"], words["undefined"])
    bounds = "" if share.low is None or share.high is None else f"({100 * share.low:.1f}–{100 * share.high:.1f})"
    return HeadFigure(texts["contested"], f"{share.value:.1%}", bounds, [texts["judged"].format(sum(pairs))])


def _paid(contents: Shown, words: Words) -> HeadFigure:
    texts, paid = words["head"], cost(contents)
    more = [f"{words['bill_further']}{words['colon']}{amounts}"] if (amounts := further(contents)) else []
    if paid is None:
        return HeadFigure(texts["cost"], "0", notes=more or [texts["free"]])
    calls = [] if paid.calls is None else [texts["calls"].format(paid.calls)]
    amount = words["unknown"] if paid.amount is None else f"{paid.amount:,.2f}{paid.currency}"
    return HeadFigure(texts["cost"], amount, notes=[*calls, *more])
