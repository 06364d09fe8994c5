"""Check the judges of a run: controls, position, repeatability, rubrics, strictness, and what they have in common.

Without an order nothing is sent: all that the ledger holds is read, answers to earlier checks too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from curate.ask import billing, collection, consent, gate, quote, rating, seating
from curate.ask.panel_run import PanelRun
from curate.commands.check import panel, repeat
from curate.commands.check.repeat import Asking
from curate.commands.check.warnings import warnings
from curate.core.config import Json
from curate.core.errors import ConfigError
from curate.core.scale import Scale
from curate.ledger import Ledger, default_path
from curate.llm.providers.presets import families
from curate.panel import position_bias
from curate.panel.controls import Accuracy
from curate.pipeline.freshness import MADE_FROM, made_from, rated
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.stage import Context
from curate.review.desk import known, settled
from curate.runs.runner import Run
from curate.stats.sample_estimates import Estimate
from curate.system.files import write_json
from curate.system.run_lock import enough_space, locked


@dataclass(frozen=True)
class JudgeOptions:
    """What is asked; nothing by default."""

    controls: bool = False
    """Ask for the controls."""
    positives: Path | None = None
    """Known grades: query_id, doc_id, grade; without it those of the gate, else what people said in reviews."""
    again: Sequence[str] = ()
    """reversed, alone, repeat."""
    rubrics: Sequence[str] = ()
    """Files, or names of packaged ones."""
    prompts: int = 50
    """How many of each judge's prompts are asked again."""


@dataclass(frozen=True)
class Bench:
    """Everything that a check works with."""

    order: JudgeOptions
    config: JudgeConfig
    context: Context
    ledger: Ledger

    @cached_property
    def seated(self) -> PanelRun:
        """Return the panel at the pool."""
        return replace(seating.seated(self.config, self.context, self.ledger), watched=False)

    @property
    def scale(self) -> Scale:
        """Return the scale of the grades."""
        return self.seated.table.rubric.scale

    @cached_property
    def people(self) -> pl.DataFrame:
        """Return what people said: query_id, doc_id, grade, weight; empty if they said nothing."""
        path = self.order.positives or self.config.gate.positives
        if path is None:
            return settled(self.context.run)
        return gate.known_pairs(path, self.context, self.scale).with_columns(weight=pl.lit(1.0))

    @cached_property
    def trial(self) -> gate.ControlTrial | None:
        """Return the panel before its controls; None without any."""
        given = self.order.positives or self.config.gate.positives
        pairs = (self.people if given else known(self.context.run)).select("query_id", "doc_id", "grade")
        if pairs.is_empty() and not self.order.controls:
            return None
        found = gate.before(pairs, self.seated)
        if self.order.controls:
            found.need_positives(len(pairs))
            if not found.panel.seats:
                raise ConfigError("--controls: all judges replay grades, expected one to ask; leave the option out")
        return found

    @cached_property
    def askings(self) -> list[Asking]:
        """Return what is asked again, kind by kind."""
        rubrics = [repeat.load_rubric(name) for name in self.order.rubrics]
        kinds = repeat.checked(self.order.again)
        if not kinds and not rubrics:
            return []
        if not self.seated.paid():
            raise ConfigError("--again, --rubric: found no language model to ask, expected one; leave the options out")
        found = repeat.askings(self.seated, kinds, rubrics, self.order.prompts)
        order = list(dict.fromkeys(each.kind for each in found))
        return sorted(found, key=lambda each: order.index(each.kind))

    def rounds(self) -> list[PanelRun]:
        """Return who is asked, one after the other: within a round the judges are asked side by side."""
        trial = self.trial if self.order.controls else None
        by_kind = [list(group) for _, group in groupby(self.askings, key=lambda asking: asking.kind)]
        return [
            *([trial.asked()] if trial else []),
            *(replace(self.seated, table=each[0].table, seats=[one.asked() for one in each]) for each in by_kind),
        ]


def planned(run: Run, order: JudgeOptions) -> list[quote.Row]:
    """Return what the checks would send and cost, one row per check and judge; nothing is sent."""
    with _bench(run, order) as bench:
        rows = [quote.row(each.table, seat) for each in bench.rounds() for seat in each.asked()]
        rows = billing.in_all(rows, bench.context, ("online", "batches"))
    return [{name: cell for name, cell in row.items() if name != "batches"} for row in rows]


def check(run: Run, order: JudgeOptions) -> dict[str, Any]:
    """Ask what is ordered, within the run's consent, and return and write all figures (checks/judge.json)."""
    with locked(run.folder), enough_space(run.folder), _bench(run, order) as bench:
        _ask(bench)
        figures = _figures(bench)
        bench.context.out.mkdir(exist_ok=True)
        write_json(bench.context.out / "judge.json", figures)
    return figures


@contextmanager
def _bench(run: Run, order: JudgeOptions) -> Iterator[Bench]:
    config, context = run.pipeline.sections["judge"], run.beside("judge")
    assert isinstance(config, JudgeConfig)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        yield Bench(order, config, context, ledger)


def _ask(bench: Bench) -> None:
    """Have everybody answer what is ordered and not in the ledger, once that is allowed."""
    rounds = bench.rounds()
    asked = bench.seated.at(*(seat for each in rounds for seat in each.seats))
    consent.need_masked(asked.seats, bench.context)
    consent.need_consent(asked)
    for each in rounds:
        bench.ledger.note(rating.noted(each.table.pool))
        collection.rate(each)


def _figures(bench: Bench) -> dict[str, Any]:
    table, seats = bench.seated.table, bench.seated.seats
    base = {seat.name: table.snapshot(seat) for seat in seats}
    passed = _controls(bench)
    qrels, seed = bench.context.legacy_positives(), bench.context.seed
    judges: dict[str, dict[str, Json]] = {}
    for seat in seats:
        others = [rows for name, rows in base.items() if name != seat.name]
        found = panel.judge(base[seat.name], others, bench.people, qrels, seed, bench.scale)
        found["heuristic"] = "heuristic" in seat.judge.identity
        found["controls"] = _plain(passed.get(seat.name))
        found["prevalence"] = _prevalence(base[seat.name], passed.get(seat.name), bench)
        found["again"] = _again(base[seat.name], [e for e in bench.askings if e.seat.name == seat.name], bench)
        judges[seat.name] = found
    kin = families({seat.name: seat.judge.identity for seat in seats}, bench.context.definitions.get("judges", {}))
    ratings = pl.concat(base.values())
    both = panel.panel(ratings, list(base), bench.people, kin, seed, bench.scale)
    both |= panel.kappas(_in_full(ratings, bench), list(base), bench.scale)
    plain: dict[str, Json] = {
        "judges": judges,
        "panel": both,
        "gate": {
            "floor": bench.config.gate.floor,
            "least": bench.config.gate.least,
            "failed": gate.weak(passed) if passed else None,
            "allow_weak_judges": bench.config.allow_weak_judges,
            "untested": gate.untested(passed, bench.config),
        },
        "people": len(bench.people),
        "queries": table.pool.pairs["query_id"].n_unique(),
    }
    plain[MADE_FROM] = made_from(bench.context, *rated(bench.context))
    written = _plain({**plain, "warnings": warnings(plain)})
    assert isinstance(written, dict)
    return written


def _in_full(ratings: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Return the ratings of pairs that everybody was to rate: after a cascade, those of its sample."""
    if bench.config.cascade is None:
        return ratings
    return ratings.join(bench.seated.sample(), on=["query_id", "doc_id"], how="semi")


def _controls(bench: Bench) -> dict[str, Accuracy]:
    """Return the accuracy on controls of each judge that answered some."""
    found = bench.trial.measured(bench.config.gate) if bench.trial else {}
    return {name: each for name, each in found.items() if bench.order.controls or each.value is not None}


def _prevalence(base: pl.DataFrame, passed: Accuracy | None, bench: Bench) -> Json:
    """Return the corrected share of relevant pairs, and whose grades the correction comes from."""
    by_people = panel.against_people(base, bench.people, bench.context.seed, bench.scale)
    rates: dict[str, tuple[Estimate | None, Estimate | None]] = {}
    if by_people is not None:
        rates["people"] = by_people.sensitivity, by_people.specificity
    if passed is not None:
        rates["controls"] = passed.positives, passed.negatives
    for source, (sensitivity, specificity) in rates.items():
        found = panel.prevalence(base, sensitivity, specificity, bench.scale)
        if isinstance(found, Mapping):
            return {**found, "source": source}
    return None


def _again(base: pl.DataFrame, mine: Sequence[Asking], bench: Bench) -> dict[str, Json]:
    """Return what changed when a judge was asked again, by kind."""
    found = {each.kind: position_bias.changes(base, each.said(), bench.context.seed, bench.scale) for each in mine}
    kinds: dict[str, Json] = {kind: asdict(each) for kind, each in found.items()}
    if "reversed" in found:
        biased = position_bias.turned(found["reversed"], found.get("repeat"), bench.config.batch)
        kinds["reversed"] = {**asdict(found["reversed"]), "biased": biased}
    return kinds


def _plain(value: object) -> Json:
    """Return figures as JSON has them, rounded so that a last bit cannot make two runs differ."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    assert value is None or isinstance(value, bool | int | str)
    return value
