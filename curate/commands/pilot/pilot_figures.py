"""Figures of a pilot: kappa of every rule with people, people's own beside it, and what is proposed."""

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
"""Judges -> what asking them about a pair costs."""


@dataclass(frozen=True)
class PilotAnswers:
    """What people said of the pairs of a pilot."""

    pairs: pl.DataFrame
    """query_id, doc_id, grade of the pairs with an answer that counts."""
    twice: pl.DataFrame
    """query_id and the grades `first` and `second` of the pairs that two people read."""
    drawn: int
    gone: int
    """Answered pairs that are not in the pool any more, or whose texts have changed."""
    scale: Scale

    @property
    def relevant(self) -> pl.Series:
        """Return for each pair whether people find it relevant."""
        return self.pairs["grade"].is_in(list(self.scale.relevant))

    def need(self, least: int, folder: Path) -> None:
        """Raise UserError unless there are so many answers, and kappa is defined on them."""
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


def answers(desk: Desk, pool: Container[tuple[str, str]]) -> PilotAnswers:
    """Return the answers to a pilot, of pairs in a pool."""
    kept, twice, gone = list[tuple[str, str, str]](), list[tuple[str, str, str]](), 0
    for row, said, counts in desk.answered():
        query, doc = row["ids"]
        if counts is None:
            continue
        if (query, doc) not in pool:
            gone += 1
            continue
        kept.append((query, doc, counts))
        both = [said[person] for person in row["assessors"] if person in said]
        if len(both) > 1:
            twice.append((query, *both[:2]))
    names = ["query_id", "first", "second"]
    return PilotAnswers(
        pl.DataFrame(kept, dict.fromkeys((*PAIR, "grade"), pl.String), orient="row").sort(PAIR),
        pl.DataFrame(twice, dict.fromkeys(names, pl.String), orient="row"),
        desk.sample.survey.height,
        gone,
        desk.sample.scale,
    )


def figures(
    people: PilotAnswers,
    said: Mapping[str, pl.DataFrame],
    price: Price,
    seed: int,
    unreadable: Mapping[str, str] = MappingProxyType({}),
    *,
    single: bool,
) -> dict[str, Any]:
    """Return every rule beside people, and what is proposed.

    `said` is judge -> its `ratings`, `unreadable` judge -> why it was given up, so that it is in no rule. One judge
    alone is proposed only if `single` says so, and at the cut of the scale, for consensus counts votes there.
    """
    scale = people.scale
    grades = {name: _codes(people.pairs, rows, scale) for name, rows in said.items()}
    few = [name for name, codes in grades.items() if (codes >= 0).sum() < COMPARED]
    silent = [name for name in few if name not in unreadable]
    judges = [name for name in grades if name not in (*few, *unreadable)]
    labels = scale.labels[::-1]
    cut = labels.index(scale.relevant_from)
    plain = unchosen(judges, labels, cut) if len(judges) > 1 else None
    rules = list(candidates(judges, labels, cut))
    more = [plain] if plain and plain not in rules else []
    truth = people.relevant.cast(pl.Int64).to_numpy()
    every = compared([*rules, *more], grades, truth, numbered(people.pairs["query_id"]), seed)

    def cost(rule: VoteRule) -> float | None:
        return price(rule.judges)

    found = [each for each in every if each.rule not in more]
    allowed = [each for each in found if each.rule.calls > 1 or (single and each.rule.cut == cut)]
    chosen = proposed(allowed, cost)
    twice = _between(people, seed)
    shown: dict[str, Any] = {
        "pairs": people.drawn,
        "answered": len(people.pairs),
        "relevant": int(truth.sum()),
        "queries": people.pairs["query_id"].n_unique(),
        "scale": {key: list(value) if isinstance(value, tuple) else value for key, value in scale.to_json().items()},
        "people": twice,
        "unreadable": dict(unreadable),
        "judges": {name: int((codes >= 0).sum()) for name, codes in grades.items()},
        "rules": [_row(each, cost) for each in found],
        "default": next((_row(each, cost) for each in every if each.rule == plain), None),
        "proposal": None if chosen is None else _row(chosen, cost),
        "settings": None if chosen is None else settings(chosen.rule),
        "single": single,
    }
    return {**shown, "warnings": list(_warnings(people, shown, silent))}


def settings(rule: VoteRule) -> dict[str, Json]:
    """Return a rule as the settings of a pipeline; every pair that all judges graded is decided by it."""
    positive, negative = {"at_least": rule.votes, "of": rule.calls}, {"at_least": rule.calls - rule.votes + 1}
    return {"judge.models": list(rule.judges), "consensus.policy": {"positive": positive, "negative": negative}}


def _codes(pairs: pl.DataFrame, rows: pl.DataFrame, scale: Scale) -> Ints:
    """Return a judge's grades of pairs as places, 0 the lowest; -1 for none."""
    grades = pairs.select(PAIR).join(rows.select(*PAIR, "grade"), on=PAIR, how="left", maintain_order="left")["grade"]
    places = {label: place for place, label in enumerate(scale.labels[::-1])}
    return np.array([places.get(grade, -1) for grade in grades], dtype=np.int64)


def _between(people: PilotAnswers, seed: int) -> dict[str, Json]:
    """Return people's own kappa at the cut, on the pairs that two of them read."""
    relevant = list(people.scale.relevant)
    one, other = (people.twice[name].is_in(relevant).cast(pl.Int64).to_numpy() for name in ("first", "second"))
    if not len(one):
        return {"pairs": 0, "kappa": None, "low": None, "high": None}
    tables = crosstab(one, other, 2, numbered(people.twice["query_id"]))
    kappa = scalar(cohen(Crosstab(tables.table.sum(axis=0))))
    return {"pairs": len(one), **_bounds(kappa, interval(tables, cohen, seed=seed))}


def _row(found: RuleAgreement, price: Callable[[VoteRule], float | None]) -> dict[str, Json]:
    rule = found.rule
    named = {"rule": rule.name, **asdict(rule), "judges": list(rule.judges), "calls": rule.calls, "price": price(rule)}
    return {**named, **_bounds(found.kappa, found.interval), "pairs": found.pairs}


def _bounds(kappa: float | None, found: Any) -> dict[str, Json]:  # noqa: ANN401 - an Interval, or None
    low, high = (round(found.low, 4), round(found.high, 4)) if found and kappa is not None else (None, None)
    return {"kappa": None if kappa is None else round(kappa, 4), "low": low, "high": high}


def _warnings(people: PilotAnswers, shown: Mapping[str, Any], silent: Sequence[str]) -> Iterator[str]:
    for name, why in shown["unreadable"].items():
        yield f"{name} is in no rule: {why}; to leave it out, name the others with --models"
    for name in silent:
        yield f"{name} graded {shown['judges'][name]} of {len(people.pairs)} pairs, so it is in no rule; ask it again"
    if people.gone:
        yield f"{people.gone:,} answers are of pairs or texts that the run no longer has, and are left out"
    if shown["people"]["pairs"] < TWICE:
        yield f"{shown['people']['pairs']} pairs were read twice, expected {TWICE}: people's own kappa is uncertain"
    if shown["queries"] < FEW:
        yield f"under {FEW} queries: these intervals are too narrow"
    chosen, plain = shown["proposal"], shown["default"]
    if chosen and chosen["low"] is not None and chosen["low"] <= 0:
        yield (
            "the interval of the proposal's kappa reaches 0 or less: nothing shows that it agrees with people more "
            "than by chance; look at the sheets, or have more pairs read, before you take it"
        )
    if chosen and plain and chosen["calls"] >= plain["calls"] and chosen["rule"] != plain["rule"]:
        yield "the proposal asks no fewer judges than the rule that nobody chose: it saves nothing"


# What a pilot found, as lines for people.

SHOWN = 12
"""Rules in the table, the best first; all of them are in checks/pilot.json."""
Row = Mapping[str, Any]


def pilot_lines(found: Row, *, accepted: bool = False) -> Iterator[str]:
    """Yield people, the best rules, what choosing does to kappa, and the proposal, with what to type."""
    read, people = f"{found['answered']:,} of {found['pairs']:,} pairs read", found["people"]
    yield f"{read}, {found['relevant']:,} relevant, of {found['queries']:,} queries"
    yield f"people with each other: {_kappa(people)} on {people['pairs']:,} pairs read twice, the ceiling of every rule"
    rules, plain, chosen = found["rules"], found["default"], found["proposal"]
    if rules:
        yield as_table([_rule_line(each, found["currency"]) for each in _best(rules, plain, chosen)], digits=3)
    if len(rules) > SHOWN:
        yield f"the best {SHOWN} of {len(rules)} rules; all of them are in checks/pilot.json"
    if plain:
        yield f"held against {plain['rule']}, which nobody chose: {_kappa(plain)}"
    if chosen is None:
        yield "no rule is proposed"
    else:
        yield from _proposal(found)
        if not accepted:
            settings = {tuple(name.split(".")): value for name, value in found["settings"].items()}
            yield f"to take it: --accept with --pipeline FILE, or write into the pipeline file\n{typed(settings)}"
    yield from found["warnings"]


def _proposal(found: Row) -> Iterator[str]:
    chosen = found["proposal"]
    yield f"proposed: {chosen['rule']}, the cheapest within 0.05 of the best: {_kappa(chosen)}, {_cost(chosen, found)}"
    yield (
        f"its kappa is too high, for it was chosen among {len(found['rules'])} rules on these pairs; expect less on "
        "others. A pilot makes labels cheaper, not truer"
    )
    if not found["single"]:
        yield "one judge alone is proposed only with --single: nothing is contested then, and there is no kappa"


def _best(rules: Sequence[Row], plain: Row | None, chosen: Row | None) -> list[Row]:
    top = list(rules[:SHOWN])
    return [*top, *(each for each in (plain, chosen) if each and each not in top)]


def _rule_line(each: Row, currency: str | None) -> dict[str, object]:
    interval = "-" if each["low"] is None else f"{each['low']:.3f} to {each['high']:.3f}"
    price = None if each["price"] is None else f"{each['price']:.2g}"
    return {
        "rule": each["rule"],
        "95 % interval": interval,
        "kappa": each["kappa"],
        "calls": each["calls"],
        f"{currency or 'price'} per pair": price,
        "pairs": each["pairs"],
    }


def _kappa(each: Row) -> str:
    if each["kappa"] is None:
        return "kappa is not defined"
    bounds = "" if each["low"] is None else f" ({each['low']:.3f} to {each['high']:.3f})"
    return f"kappa {each['kappa']:.3f}{bounds}"


def _cost(each: Row, found: Row) -> str:
    price = "" if each["price"] is None else f", {each['price']:.2g} {found['currency'] or ''}".rstrip()
    return f"{each['calls']} calls{price} per pair"
