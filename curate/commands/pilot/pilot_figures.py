"""Figures of a pilot: kappa of every rule with assessors, and the proposal."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from curate.core.config import Json
from curate.core.errors import UserError
from curate.core.figures import Record, figure
from curate.core.scale import Scale
from curate.panel.voting import PAIR
from curate.pipeline.pipeline_edit import Changes
from curate.review.desk import Desk
from curate.stats.agreement import cohen, scalar
from curate.stats.bootstrap import Interval, interval
from curate.stats.ratios import numbered
from curate.stats.tally import Crosstab, Ints, crosstab
from curate.stats.vote_rules import COMPARED, RuleAgreement, VoteRule, candidates, compared, proposed, unchosen
from curate.view.record_words import RecordWords
from curate.view.state import TWICE
from curate.view.text import too_few

WORDS = "pilot/pilot"
Price = Callable[[VoteRule], float | None]
"""Rule -> price of asking its judges about a pair; None if unknown."""


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


class PeopleKappa(Record, schema_name="twice"):
    """Agreement of people with each other, at the cut."""

    pairs: int = figure("pairs read by two assessors")
    kappa: float | None = figure("Cohen's kappa")
    low: float | None = figure("lower bound of the 95 % interval")
    high: float | None = figure("upper bound")


class RuleKappa(Record, schema_name="rule"):
    """A rule that makes labels of judges' grades, and its agreement with people."""

    rule: str = figure("the rule in words")
    judges: tuple[str, ...] = figure("judges of the rule")
    votes: int = figure("judges that must give the grade `grade` or a better one")
    cut: int = figure("index of that grade on the scale, 0 for the lowest")
    grade: str = figure("name of that grade")
    calls: int = figure("judges that are asked per pair")
    price: float | None = figure("price per pair of the pool; null if unknown")
    kappa: float | None = figure("Cohen's kappa with assessors; biased upwards for a rule that was chosen by it")
    low: float | None = figure("lower bound of the 95 % interval, which resamples queries")
    high: float | None = figure("upper bound")
    pairs: int = figure("pairs labelled by assessors and by the rule")


class PilotFigures(Record, schema_name="compared"):
    """Rules that make labels of one to five judges' grades, compared with people on a pilot; or the plan (--plan)."""

    sample: str = figure("name of the pilot")
    pairs: int = figure("pairs that were drawn")
    answered: int = figure("pairs that assessors graded and the run still has")
    relevant: int = figure("graded pairs that assessors find relevant")
    queries: int = figure("queries of the graded pairs")
    scale: Mapping[str, Any] = figure("scale of the grades")
    people: PeopleKappa = figure("kappa between assessors, the upper limit for a rule")
    unreadable: Mapping[str, str] = figure("candidate left out because its answers could not be read -> the reason")
    judges: Mapping[str, int] = figure("candidate -> graded pairs")
    rules: tuple[RuleKappa, ...] = figure("rules by kappa, the best first")
    default: RuleKappa | None = figure("the default rule, for comparison; null for a single judge")
    proposal: RuleKappa | None = figure(
        "the cheapest rule within 0.05 of the best rule of several judges; null if no rule has a kappa"
    )
    settings: Any = figure("pipeline settings of the proposal -> value; null without one")
    single: bool = figure("whether a single judge may be proposed")
    warnings: tuple[str, ...] = figure("limits of the comparison", default=())
    currency: str | None = figure("currency of the prices", default=None)
    written: Path | None = figure("pipeline file with the written settings", default=None)

    @property
    def changes(self) -> Changes:
        """Return the settings of the proposal as changes of a pipeline file."""
        return {tuple(name.split(".")): setting for name, setting in self.settings.items()}


def figures(
    sample: str,
    people: PilotAnswers,
    ratings: Mapping[str, pl.DataFrame],
    price: Price,
    seed: int,
    unreadable: Mapping[str, str],
    *,
    single: bool,
) -> PilotFigures:
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

    agreements = [agreement for agreement in all_agreements if agreement.rule not in extra]
    allowed = [
        agreement for agreement in agreements if agreement.rule.calls > 1 or (single and agreement.rule.cut == cut)
    ]
    chosen = proposed(allowed, price)
    comparison = PilotFigures(
        sample=sample,
        pairs=people.drawn,
        answered=len(people.pairs),
        relevant=int(truth.sum()),
        queries=people.pairs["query_id"].n_unique(),
        scale=scale.to_json(),
        people=_human_agreement(people, seed),
        unreadable=dict(unreadable),
        judges={name: int((codes >= 0).sum()) for name, codes in grades.items()},
        rules=tuple(_rule(agreement, price) for agreement in agreements),
        default=next((_rule(agreement, price) for agreement in all_agreements if agreement.rule == plain), None),
        proposal=None if chosen is None else _rule(chosen, price),
        settings=None if chosen is None else settings(chosen.rule),
        single=single,
    )
    return replace(comparison, warnings=tuple(_warnings(people, comparison, silent)))


def settings(rule: VoteRule) -> dict[str, Json]:
    """Return a rule as pipeline settings, which decide every pair that all judges graded."""
    positive, negative = {"at_least": rule.votes, "of": rule.calls}, {"at_least": rule.calls - rule.votes + 1}
    return {"judge.models": list(rule.judges), "consensus.policy": {"positive": positive, "negative": negative}}


def _codes(pairs: pl.DataFrame, rows: pl.DataFrame, scale: Scale) -> Ints:
    """Return a judge's grades of pairs as codes, 0 the lowest, -1 for none."""
    grades = pairs.select(PAIR).join(rows.select(*PAIR, "grade"), on=PAIR, how="left", maintain_order="left")["grade"]
    codes = {label: code for code, label in enumerate(scale.labels[::-1])}
    return np.array([codes.get(grade, -1) for grade in grades], dtype=np.int64)


def _human_agreement(people: PilotAnswers, seed: int) -> PeopleKappa:
    """Return people's kappa with each other at the cut, on pairs read by two."""
    relevant = list(people.scale.relevant)
    first, second = (people.twice[name].is_in(relevant).cast(pl.Int64).to_numpy() for name in ("first", "second"))
    if not len(first):
        return PeopleKappa(0, None, None, None)
    tables = crosstab(first, second, 2, numbered(people.twice["query_id"]))
    kappa = scalar(cohen(Crosstab(tables.table.sum(axis=0))))
    return PeopleKappa(len(first), *_rounded(kappa, interval(tables, cohen, seed=seed)))


def _rule(agreement: RuleAgreement, price: Price) -> RuleKappa:
    rule = agreement.rule
    kappa, low, high = _rounded(agreement.kappa, agreement.interval)
    return RuleKappa(
        rule=rule.name,
        **vars(rule),
        calls=rule.calls,
        price=price(rule),
        kappa=kappa,
        low=low,
        high=high,
        pairs=agreement.pairs,
    )


def _rounded(kappa: float | None, bounds: Interval | None) -> tuple[float | None, float | None, float | None]:
    """Return kappa and the bounds of its interval to four decimals."""
    if kappa is None:
        return None, None, None
    low, high = (round(bounds.low, 4), round(bounds.high, 4)) if bounds else (None, None)
    return round(kappa, 4), low, high


def _warnings(people: PilotAnswers, comparison: PilotFigures, silent: Sequence[str]) -> Iterator[str]:
    say = RecordWords(WORDS)
    for name, reason in comparison.unreadable.items():
        yield say("unreadable", judge=name, reason=reason)
    for name in silent:
        yield say("silent", judge=name, graded=comparison.judges[name], pairs=len(people.pairs))
    if people.gone:
        yield say("gone", answers=people.gone)
    if comparison.people.pairs < TWICE:
        yield say("read_twice", comparison.people, expected=TWICE)
    yield from too_few(comparison.queries)
    chosen, plain = comparison.proposal, comparison.default
    if chosen and chosen.low is not None and chosen.low <= 0:
        yield say("by_chance")
    if chosen and plain and chosen.calls >= plain.calls and chosen.rule != plain.rule:
        yield say("saves_nothing")
