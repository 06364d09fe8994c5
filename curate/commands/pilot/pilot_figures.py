"""Figures of a pilot, as records and as printed lines: kappa of every rule with assessors, and the proposal."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from curate.commands.pilot.sample import TWICE
from curate.core.config import Json
from curate.core.errors import UserError
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.pipeline.pipeline_edit import lines as typed
from curate.review.desk import Desk
from curate.stats.agreement import cohen, scalar
from curate.stats.bootstrap import FEW, interval
from curate.stats.ratios import numbered
from curate.stats.tally import Crosstab, Ints, crosstab
from curate.stats.vote_rules import COMPARED, RuleAgreement, VoteRule, candidates, compared, proposed, unchosen
from curate.view.text import as_table

Price = Callable[[Sequence[str]], float | None]
"""Judges -> price of asking all of them about a pair; None if unknown."""


@dataclass(frozen=True)
class PilotAnswers:
    """People's answers on the pairs of a pilot."""

    pairs: pl.DataFrame
    """query_id, doc_id, grade of the pairs with a final answer."""
    twice: pl.DataFrame
    """query_id and the grades `first` and `second` of pairs read by two people."""
    drawn: int
    gone: int
    """Answered pairs that are no longer in the pool, or whose texts have changed."""
    scale: Scale

    @property
    def relevant(self) -> pl.Series:
        """Return per pair whether people graded it relevant."""
        return self.pairs["grade"].is_in(list(self.scale.relevant))

    def need(self, least: int, folder: Path) -> None:
        """Raise UserError unless there are `least` answers, on both sides of the cut, so that kappa is defined."""
        gone = f" ({self.gone:,} more are of pairs or texts that the run no longer has)" if self.gone else ""
        if len(self.pairs) < least:
            raise UserError(
                f"{folder}: found answers to {len(self.pairs):,} of {self.drawn:,} pairs{gone}, expected {least} or "
                f"more; read on with `curate review serve --sample {folder.name}`"
            )
        if self.relevant.n_unique() < 2:
            side = "relevant" if self.relevant[0] else "not relevant"
            raise UserError(
                f"{folder}: found {len(self.pairs):,} answers, and all of them are {side}, so no rule can be told from "
                "another; draw more pairs with `curate pilot export --sample NAME --size N`"
            )


def answers(collected: Desk, pool: Container[tuple[str, str]]) -> PilotAnswers:
    """Collect the answers on pairs in the pool."""
    answered, twice, gone = list[tuple[str, str, str]](), list[tuple[str, str, str]](), 0
    for row, grades, grade in collected.answered():
        query, doc = row["ids"]
        if grade is None:
            continue
        if (query, doc) not in pool:
            gone += 1
            continue
        answered.append((query, doc, grade))
        second_readings = [grades[person] for person in row["assessors"] if person in grades]
        if len(second_readings) > 1:
            twice.append((query, *second_readings[:2]))
    names = ["query_id", "first", "second"]
    return PilotAnswers(
        pl.DataFrame(answered, dict.fromkeys((*PAIR, "grade"), pl.String), orient="row").sort(PAIR),
        pl.DataFrame(twice, dict.fromkeys(names, pl.String), orient="row"),
        collected.sample.survey.height,
        gone,
        collected.sample.scale,
    )


def figures(
    people: PilotAnswers,
    ratings: Mapping[str, pl.DataFrame],
    price: Price,
    seed: int,
    unreadable: Mapping[str, str] = MappingProxyType({}),
    *,
    single: bool,
) -> dict[str, Any]:
    """Compare every rule with people and propose one.

    `ratings` maps a judge to its ratings, `unreadable` a dropped judge to the reason. A single judge is proposed only
    with `single`, and only at the scale's cut, where consensus counts votes.
    """
    scale = people.scale
    grades = {name: _codes(people.pairs, rows, scale) for name, rows in ratings.items()}
    sparse = [name for name, codes in grades.items() if (codes >= 0).sum() < COMPARED]
    silent = [name for name in sparse if name not in unreadable]
    judges = [name for name in grades if name not in (*sparse, *unreadable)]
    labels = scale.labels[::-1]
    cut = labels.index(scale.relevant_from)
    plain = unchosen(judges, labels, cut) if len(judges) > 1 else None
    rules = list(candidates(judges, labels, cut))
    extra = [plain] if plain and plain not in rules else []
    truth = people.relevant.cast(pl.Int64).to_numpy()
    all_agreements = compared([*rules, *extra], grades, truth, numbered(people.pairs["query_id"]), seed)

    def cost(rule: VoteRule) -> float | None:
        return price(rule.judges)

    agreements = [agreement for agreement in all_agreements if agreement.rule not in extra]
    allowed = [
        agreement for agreement in agreements if agreement.rule.calls > 1 or (single and agreement.rule.cut == cut)
    ]
    chosen = proposed(allowed, cost)
    human_agreement = _human_agreement(people, seed)
    summary: dict[str, Any] = {
        "pairs": people.drawn,
        "answered": len(people.pairs),
        "relevant": int(truth.sum()),
        "queries": people.pairs["query_id"].n_unique(),
        "scale": {key: list(entry) if isinstance(entry, tuple) else entry for key, entry in scale.to_json().items()},
        "people": human_agreement,
        "unreadable": dict(unreadable),
        "judges": {name: int((codes >= 0).sum()) for name, codes in grades.items()},
        "rules": [_row(agreement, cost) for agreement in agreements],
        "default": next((_row(agreement, cost) for agreement in all_agreements if agreement.rule == plain), None),
        "proposal": None if chosen is None else _row(chosen, cost),
        "settings": None if chosen is None else settings(chosen.rule),
        "single": single,
    }
    return {**summary, "warnings": list(_warnings(people, summary, silent))}


def settings(rule: VoteRule) -> dict[str, Json]:
    """Return a rule as pipeline settings, which decide every pair that all judges graded."""
    positive, negative = {"at_least": rule.votes, "of": rule.calls}, {"at_least": rule.calls - rule.votes + 1}
    return {"judge.models": list(rule.judges), "consensus.policy": {"positive": positive, "negative": negative}}


def _codes(pairs: pl.DataFrame, rows: pl.DataFrame, scale: Scale) -> Ints:
    """Return a judge's grades of pairs as codes, 0 the lowest, -1 for none."""
    grades = pairs.select(PAIR).join(rows.select(*PAIR, "grade"), on=PAIR, how="left", maintain_order="left")["grade"]
    codes = {label: code for code, label in enumerate(scale.labels[::-1])}
    return np.array([codes.get(grade, -1) for grade in grades], dtype=np.int64)


def _human_agreement(people: PilotAnswers, seed: int) -> dict[str, Json]:
    """Return people's kappa with each other at the cut, on pairs read by two."""
    relevant = list(people.scale.relevant)
    first, second = (people.twice[name].is_in(relevant).cast(pl.Int64).to_numpy() for name in ("first", "second"))
    if not len(first):
        return {"pairs": 0, "kappa": None, "low": None, "high": None}
    tables = crosstab(first, second, 2, numbered(people.twice["query_id"]))
    kappa = scalar(cohen(Crosstab(tables.table.sum(axis=0))))
    return {"pairs": len(first), **_bounds(kappa, interval(tables, cohen, seed=seed))}


def _row(agreement: RuleAgreement, price: Callable[[VoteRule], float | None]) -> dict[str, Json]:
    rule = agreement.rule
    fields = {"rule": rule.name, **asdict(rule), "judges": list(rule.judges), "calls": rule.calls, "price": price(rule)}
    return {**fields, **_bounds(agreement.kappa, agreement.interval), "pairs": agreement.pairs}


def _bounds(kappa: float | None, bounds: Any) -> dict[str, Json]:  # noqa: ANN401 - an Interval, or None
    low, high = (round(bounds.low, 4), round(bounds.high, 4)) if bounds and kappa is not None else (None, None)
    return {"kappa": None if kappa is None else round(kappa, 4), "low": low, "high": high}


def _warnings(people: PilotAnswers, summary: Mapping[str, Any], silent: Sequence[str]) -> Iterator[str]:
    for name, why in summary["unreadable"].items():
        yield f"{name} is in no rule: {why}; to leave it out, name the others with --models"
    for name in silent:
        yield f"{name} graded {summary['judges'][name]} of {len(people.pairs)} pairs, so it is in no rule; ask it again"
    if people.gone:
        yield f"{people.gone:,} answers are of pairs or texts that the run no longer has, and are left out"
    if summary["people"]["pairs"] < TWICE:
        yield f"{summary['people']['pairs']} pairs were read twice, expected {TWICE}: people's own kappa is uncertain"
    if summary["queries"] < FEW:
        yield f"under {FEW} queries: these intervals are too narrow"
    chosen, plain = summary["proposal"], summary["default"]
    if chosen and chosen["low"] is not None and chosen["low"] <= 0:
        yield (
            "the interval of the proposal's kappa reaches 0 or less: nothing shows that it agrees with people more "
            "than by chance; look at the sheets, or have more pairs read, before you take it"
        )
    if chosen and plain and chosen["calls"] >= plain["calls"] and chosen["rule"] != plain["rule"]:
        yield "the proposal asks no fewer judges than the rule that nobody chose: it saves nothing"


# Figures of a pilot as lines for people.

SHOWN = 12
"""Rules in the table, the best first; all of them are in checks/pilot.json."""
Row = Mapping[str, Any]


def pilot_lines(summary: Row, *, accepted: bool = False) -> Iterator[str]:
    """Yield people's agreement, the best rules, the proposal with its optimism, and how to accept it."""
    read, people = f"{summary['answered']:,} of {summary['pairs']:,} pairs read", summary["people"]
    yield f"{read}, {summary['relevant']:,} relevant, of {summary['queries']:,} queries"
    yield f"people with each other: {_kappa(people)} on {people['pairs']:,} pairs read twice, the ceiling of every rule"
    rules, plain, chosen = summary["rules"], summary["default"], summary["proposal"]
    if rules:
        top = list(rules[:SHOWN])
        top += [row for row in (plain, chosen) if row and row not in top]
        yield as_table([_rule_line(row, summary["currency"]) for row in top], digits=3)
    if len(rules) > SHOWN:
        yield f"the best {SHOWN} of {len(rules)} rules; all of them are in checks/pilot.json"
    if plain:
        yield f"held against {plain['rule']}, which nobody chose: {_kappa(plain)}"
    if chosen is None:
        yield "no rule is proposed"
    else:
        yield from _proposal(summary)
        if not accepted:
            settings = {tuple(name.split(".")): setting for name, setting in summary["settings"].items()}
            yield f"to take it: --accept with --pipeline FILE, or write into the pipeline file\n{typed(settings)}"
    yield from summary["warnings"]


def _proposal(summary: Row) -> Iterator[str]:
    chosen = summary["proposal"]
    price = "" if chosen["price"] is None else f", {chosen['price']:.2g} {summary['currency'] or ''}".rstrip()
    cost = f"{chosen['calls']} calls{price} per pair"
    yield f"proposed: {chosen['rule']}, the cheapest within 0.05 of the best: {_kappa(chosen)}, {cost}"
    yield (
        f"its kappa is too high, for it was chosen among {len(summary['rules'])} rules on these pairs; expect less on "
        "others. A pilot makes labels cheaper, not truer"
    )
    if not summary["single"]:
        yield "one judge alone is proposed only with --single: nothing is contested then, and there is no kappa"


def _rule_line(row: Row, currency: str | None) -> dict[str, object]:
    interval = "-" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}"
    price = None if row["price"] is None else f"{row['price']:.2g}"
    return {
        "rule": row["rule"],
        "95 % interval": interval,
        "kappa": row["kappa"],
        "calls": row["calls"],
        f"{currency or 'price'} per pair": price,
        "pairs": row["pairs"],
    }


def _kappa(row: Row) -> str:
    if row["kappa"] is None:
        return "kappa is not defined"
    bounds = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
    return f"kappa {row['kappa']:.3f}{bounds}"
