"""Diagnostics of the judges of a run: controls, position bias, repeatability, rubrics, strictness, shared errors.

By default nothing is sent: figures are computed from the ledger, which also contains the replies to earlier checks.
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
from curate.core.figures import ABSENT
from curate.core.scale import Scale
from curate.ledger import Ledger, default_path
from curate.llm.providers.presets import families
from curate.panel import position_bias
from curate.panel.controls import Accuracy
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import MADE_FROM, made_from, rated
from curate.pipeline.stage import Context
from curate.review.desk import known, settled
from curate.runs.checks import CHECKS
from curate.runs.runner import Run
from curate.stats.sample_estimates import Estimate
from curate.system.run_lock import enough_space, locked


@dataclass(frozen=True)
class JudgeOptions:
    """Checks for which requests are sent to the judges; none by default."""

    controls: bool = False
    """Whether the judges grade the control pairs."""
    positives: Path | None = None
    """File of known grades (query_id, doc_id, grade); None for that of `judge.gate`, else grades from reviews."""
    again: Sequence[str] = ()
    """Kinds of repeated prompts: `reversed`, `alone`, `repeat`."""
    rubrics: Sequence[str] = ()
    """Rubrics under which prompts are repeated: files, or names of packaged ones."""
    prompts: int = 50
    """Number of prompts per judge that are repeated."""


@dataclass(frozen=True)
class Bench:
    """Inputs that all diagnostics of a run share: options, settings, context, ledger, and the panel's state."""

    order: JudgeOptions
    config: JudgeConfig
    context: Context
    ledger: Ledger

    @cached_property
    def seated(self) -> PanelRun:
        """Return the panel with the state of each judge for the pairs of the pool: which are graded, which are left."""
        return replace(seating.seated(self.config, self.context, self.ledger), watched=False)

    @property
    def scale(self) -> Scale:
        """Return the scale of the grades."""
        return self.seated.table.rubric.scale

    @cached_property
    def people(self) -> pl.DataFrame:
        """Return assessors' grades, from a file or else from reviews: query_id, doc_id, grade, weight; may be empty."""
        path = self.order.positives or self.config.gate.positives
        if path is None:
            return settled(self.context.run)
        return gate.known_pairs(path, self.context, self.scale).with_columns(weight=pl.lit(1.0))

    @cached_property
    def trial(self) -> gate.ControlTrial | None:
        """Return the panel with its control pairs; None if assessors graded no pair and `--controls` is not given."""
        path = self.order.positives or self.config.gate.positives
        pairs = (self.people if path else known(self.context.run)).select("query_id", "doc_id", "grade")
        if pairs.is_empty() and not self.order.controls:
            return None
        trial = gate.before(pairs, self.seated)
        if self.order.controls:
            trial.need_positives(len(pairs))
            if not trial.panel.seats:
                raise ConfigError("--controls: all judges replay grades, expected one to ask; leave the option out")
        return trial

    @cached_property
    def askings(self) -> list[Asking]:
        """Return the samples of prompts to repeat, grouped by kind."""
        rubrics = [repeat.load_rubric(name) for name in self.order.rubrics]
        kinds = repeat.checked(self.order.again)
        if not kinds and not rubrics:
            return []
        if not self.seated.paid():
            raise ConfigError("--again, --rubric: found no language model to ask, expected one; leave the options out")
        askings = repeat.askings(self.seated, kinds, rubrics, self.order.prompts)
        order = list(dict.fromkeys(asking.kind for asking in askings))
        return sorted(askings, key=lambda asking: order.index(asking.kind))

    def rounds(self) -> list[PanelRun]:
        """Return the rounds of requests, in order: controls, then one per kind; a round's judges run concurrently."""
        trial = self.trial if self.order.controls else None
        by_kind = [list(group) for _, group in groupby(self.askings, key=lambda asking: asking.kind)]
        return [
            *([trial.asked()] if trial else []),
            *(
                replace(self.seated, table=askings[0].table, seats=[asking.asked() for asking in askings])
                for askings in by_kind
            ),
        ]


def planned(run: Run, order: JudgeOptions) -> list[billing.PlanRow]:
    """Return the cost estimate of the checks, one row per check and judge; nothing is sent."""
    with _bench(run, order) as bench:
        rows = [quote.row(panel_run.table, judge) for panel_run in bench.rounds() for judge in panel_run.asked()]
        plan = billing.in_all(rows, bench.context, ("online", "batches"))
    return [replace(row, batches=ABSENT) for row in plan]


def check(run: Run, order: JudgeOptions) -> dict[str, Any]:
    """Return the figures of the diagnostics, and write them to `checks/judge.json`.

    Requests for `order` are sent first, within the run's consent to spend.
    """
    with locked(run.folder), enough_space(run.folder), _bench(run, order) as bench:
        _ask(bench)
        figures = _figures(bench)
        CHECKS["judge"].write(run.folder, figures)
    return figures


@contextmanager
def _bench(run: Run, order: JudgeOptions) -> Iterator[Bench]:
    config, context = run.pipeline.sections["judge"], run.beside("judge")
    assert isinstance(config, JudgeConfig)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        yield Bench(order, config, context, ledger)


def _ask(bench: Bench) -> None:
    """Send the requests without a reply in the ledger, after checking that texts are masked and the cost is allowed."""
    rounds = bench.rounds()
    panel_run = bench.seated.at(*(judge for panel_round in rounds for judge in panel_round.seats))
    consent.need_masked(panel_run.seats, bench.context)
    consent.need_consent(panel_run)
    for panel_round in rounds:
        bench.ledger.note(rating.noted(panel_round.table.pool))
        collection.rate(panel_round)


def _figures(bench: Bench) -> dict[str, Any]:
    table, members = bench.seated.table, bench.seated.seats
    base = {member.name: table.snapshot(member) for member in members}
    accuracies = bench.trial.measured(bench.config.gate) if bench.trial else {}
    if not bench.order.controls:
        accuracies = {name: accuracy for name, accuracy in accuracies.items() if accuracy.value is not None}
    qrels, seed = bench.context.legacy_positives(), bench.context.seed
    judges: dict[str, dict[str, Json]] = {}
    for member in members:
        others = [rows for name, rows in base.items() if name != member.name]
        judge = panel.judge(base[member.name], others, bench.people, qrels, seed, bench.scale)
        judge["heuristic"] = "heuristic" in member.judge.identity
        judge["controls"] = _rounded_json(accuracies.get(member.name))
        judge["prevalence"] = _prevalence(base[member.name], accuracies.get(member.name), bench)
        judge["again"] = _repeat_changes(
            base[member.name], [asking for asking in bench.askings if asking.seat.name == member.name], bench
        )
        judges[member.name] = judge
    family_by_judge = families(
        {member.name: member.judge.identity for member in members}, bench.context.definitions.get("judges", {})
    )
    ratings = pl.concat(base.values())
    panel_figures = panel.panel(ratings, list(base), bench.people, family_by_judge, seed, bench.scale)
    if bench.config.cascade is not None:  # every judge was to rate the pairs of the cascade's sample alone
        ratings = ratings.join(bench.seated.sample(), on=["query_id", "doc_id"], how="semi")
    panel_figures |= panel.kappas(ratings, list(base), bench.scale)
    plain: dict[str, Json] = {
        "judges": judges,
        "panel": panel_figures,
        "gate": {
            "floor": bench.config.gate.floor,
            "least": bench.config.gate.least,
            "failed": gate.weak(accuracies) if accuracies else None,
            "allow_weak_judges": bench.config.allow_weak_judges,
            "untested": gate.untested(accuracies, bench.config),
        },
        "people": len(bench.people),
        "queries": table.pool.pairs["query_id"].n_unique(),
    }
    plain[MADE_FROM] = made_from(bench.context, *rated(bench.context))
    written = _rounded_json({**plain, "warnings": warnings(plain)})
    assert isinstance(written, dict)
    return written


def _prevalence(base: pl.DataFrame, accuracy: Accuracy | None, bench: Bench) -> Json:
    """Return the share of pairs that are relevant, corrected for the judge's errors; None if these are unknown.

    Errors are measured by assessors' grades, else by controls.
    """
    by_people = panel.against_people(base, bench.people, bench.context.seed, bench.scale)
    rates: dict[str, tuple[Estimate | None, Estimate | None]] = {}
    if by_people is not None:
        rates["people"] = by_people.sensitivity, by_people.specificity
    if accuracy is not None:
        rates["controls"] = accuracy.positives, accuracy.negatives
    for source, (sensitivity, specificity) in rates.items():
        estimate = panel.prevalence(base, sensitivity, specificity, bench.scale)
        if isinstance(estimate, Mapping):
            return {**estimate, "source": source}
    return None


def _repeat_changes(base: pl.DataFrame, askings: Sequence[Asking], bench: Bench) -> dict[str, Json]:
    """Return kind of repetition -> changes between a judge's grades and those of the repeated prompts."""
    changes = {
        asking.kind: position_bias.changes(base, asking.said(), bench.context.seed, bench.scale) for asking in askings
    }
    kinds: dict[str, Json] = {kind: asdict(change) for kind, change in changes.items()}
    if "reversed" in changes:
        biased = position_bias.turned(changes["reversed"], changes.get("repeat"), bench.config.batch)
        kinds["reversed"] = {**asdict(changes["reversed"]), "biased": biased}
    return kinds


def _rounded_json(figure: object) -> Json:
    """Return figures as JSON types, rounded so that floating-point noise changes no output."""
    if is_dataclass(figure) and not isinstance(figure, type):
        return _rounded_json(asdict(figure))
    if isinstance(figure, Mapping):
        return {str(key): _rounded_json(entry) for key, entry in figure.items()}
    if isinstance(figure, list | tuple):
        return [_rounded_json(entry) for entry in figure]
    if isinstance(figure, float):
        return round(figure, 6) if math.isfinite(figure) else None
    assert figure is None or isinstance(figure, bool | int | str)
    return figure
