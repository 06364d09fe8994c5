"""`curate check judge`: controls, position bias, repeatability, rubrics, strictness and shared errors of judges.

By default nothing is sent: figures are computed from the ledger, which also contains the replies to earlier checks.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

import polars as pl

from curate.ask import billing, collection, consent, gate, quote, rating, seating
from curate.ask.panel_run import PanelRun
from curate.commands.check import judge_lines, panel, repeat
from curate.commands.check.leniency import Prevalence
from curate.commands.check.panel import GateFigures, JudgeFigures, JudgesFigures
from curate.commands.check.repeat import Asking
from curate.core.errors import CheckFailed, ConfigError
from curate.core.figures import ABSENT
from curate.core.scale import Scale
from curate.ledger import Ledger, default_path
from curate.llm.providers.presets import families
from curate.panel import position_bias
from curate.panel.controls import SHORT, Accuracy
from curate.panel.position_bias import Changes
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.facts import made_from, rated
from curate.pipeline.stage import Context
from curate.review.desk import known, settled
from curate.runs.checks import CHECKS
from curate.runs.command import Names, option, setting
from curate.runs.options import LedgerFirst, OnPipeline, Plannable
from curate.runs.runner import Run
from curate.stats.sample_estimates import Estimate
from curate.system.run_lock import enough_space, locked
from curate.view.answers import Result
from curate.view.text import too_few


class CheckJudgeCommand(OnPipeline, Plannable, LedgerFirst):
    """Measure the judges.

    Controls, position bias, repeatability, strictness, shared errors; nothing is sent unasked.
    """

    words = "check judge"
    examples = ("check judge", "check judge --controls --again reversed,alone --plan")

    controls: bool = option("Have every judge answer pairs of known grade.", False)
    positives: Path | None = option(
        "Those pairs: query_id, doc_id, grade; default: the run's reviews.", None, metavar="FILE"
    )
    again: Names = option("Repeat prompts in other forms.", (), metavar="reversed,alone,repeat")
    rubric: tuple[str, ...] = option("Repeat prompts under another rubric; may be repeated.", (), metavar="NAME")
    allow_weak_judges: bool = option("Continue with judges that did not pass their controls.", False)
    prompts: int = setting("Prompts per judge that are repeated.", 50, ge=1)

    def result(self) -> Result[JudgesFigures]:
        """Return the figures of every judge and of the panel; with `plan`, what the judges would be asked."""
        work = self.open_run()
        work.consent = self.consent()
        if self.plan:
            return self.cost_estimate(planned(work, self))
        figures = check(work, self)
        warnings = [*figures.warnings, *too_few(figures.queries)]
        gate, failed = figures.gate, None
        if gate.failed and not (self.allow_weak_judges or gate.allow_weak_judges):
            states = {name: controls.state for name in gate.failed if (controls := figures.judges[name].controls)}
            short = [name for name, state in states.items() if state == SHORT]
            weak = [name for name in gate.failed if name not in short]
            findings = [f"judges did not pass the gate: {', '.join(weak)}"] if weak else []
            findings += [f"too few controls to tell whether these pass the gate: {', '.join(short)}"] if short else []
            failed = CheckFailed(f"{'; '.join(findings)}; take other judges, or go on with --allow-weak-judges")
        lines = [*judge_lines.tables(figures), *judge_lines.effective(figures), *warnings]
        return Result(figures, lines, warnings, failed)


@dataclass(frozen=True)
class Bench:
    """Inputs that all diagnostics of a run share: command, settings, context, ledger, and the panel's state."""

    command: CheckJudgeCommand
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
        path = self.command.positives or self.config.gate.positives
        if path is None:
            return settled(self.context.run)
        return gate.known_pairs(path, self.context, self.scale).with_columns(weight=pl.lit(1.0))

    @cached_property
    def trial(self) -> gate.ControlTrial | None:
        """Return the panel with its control pairs; None if assessors graded no pair and `--controls` is not given."""
        path = self.command.positives or self.config.gate.positives
        pairs = (self.people if path else known(self.context.run)).select("query_id", "doc_id", "grade")
        if pairs.is_empty() and not self.command.controls:
            return None
        trial = gate.before(pairs, self.seated)
        if self.command.controls:
            trial.need_positives(len(pairs))
            trial.tell_untested(len(pairs))
            if not trial.panel.seats:
                raise ConfigError("--controls: all judges replay grades, expected one to ask; leave the option out")
        return trial

    @cached_property
    def askings(self) -> list[Asking]:
        """Return the samples of prompts to repeat, grouped by kind."""
        rubrics = [repeat.load_rubric(name) for name in self.command.rubric]
        kinds = repeat.checked(self.command.again)
        if not kinds and not rubrics:
            return []
        if not self.seated.paid():
            raise ConfigError("--again, --rubric: found no language model to ask, expected one; leave the options out")
        askings = repeat.askings(self.seated, kinds, rubrics, self.command.prompts)
        order = list(dict.fromkeys(asking.kind for asking in askings))
        return sorted(askings, key=lambda asking: order.index(asking.kind))

    def rounds(self) -> list[PanelRun]:
        """Return the rounds of requests, in order: controls, then one per kind; a round's judges run concurrently."""
        trial = self.trial if self.command.controls else None
        by_kind = [list(group) for _, group in groupby(self.askings, key=lambda asking: asking.kind)]
        return [
            *([trial.asked()] if trial else []),
            *(
                replace(self.seated, table=askings[0].table, seats=[asking.asked() for asking in askings])
                for askings in by_kind
            ),
        ]


def planned(run: Run, command: CheckJudgeCommand) -> list[billing.PlanRow]:
    """Return the cost estimate of the checks, one row per check and judge; nothing is sent."""
    with _bench(run, command) as bench:
        rows = [quote.row(panel_run.table, judge) for panel_run in bench.rounds() for judge in panel_run.asked()]
        plan = billing.in_all(rows, bench.context, ("online", "batches"))
    return [replace(row, batches=ABSENT) for row in plan]


def check(run: Run, command: CheckJudgeCommand) -> JudgesFigures:
    """Return the figures of the diagnostics, and write them to `checks/judge.json`.

    Requests that the command wants are sent first, within the run's consent to spend.
    """
    with locked(run.folder), enough_space(run.folder), _bench(run, command) as bench:
        _ask(bench)
        figures = _figures(bench)
        CHECKS["judge"].write(run.folder, figures.to_json())
    return figures


@contextmanager
def _bench(run: Run, command: CheckJudgeCommand) -> Iterator[Bench]:
    config, context = run.pipeline.sections["judge"], run.beside("judge")
    assert isinstance(config, JudgeConfig)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        yield Bench(command, config, context, ledger)


def _ask(bench: Bench) -> None:
    """Send the requests without a reply in the ledger, after checking that texts are masked and the cost is allowed."""
    rounds = bench.rounds()
    panel_run = bench.seated.at(*(judge for panel_round in rounds for judge in panel_round.seats))
    consent.need_masked(panel_run.seats, bench.context)
    consent.need_consent(panel_run)
    for panel_round in rounds:
        bench.ledger.note(rating.noted(panel_round.table.pool))
        collection.rate(panel_round)


def _figures(bench: Bench) -> JudgesFigures:
    table, members = bench.seated.table, bench.seated.seats
    base = {member.name: table.snapshot(member) for member in members}
    accuracies = bench.trial.measured(bench.config.gate) if bench.trial else {}
    if not bench.command.controls:
        accuracies = {name: accuracy for name, accuracy in accuracies.items() if accuracy.value is not None}
    qrels, seed = bench.context.legacy_positives(), bench.context.seed
    judges: dict[str, JudgeFigures] = {}
    for member in members:
        others = [rows for name, rows in base.items() if name != member.name]
        askings = [asking for asking in bench.askings if asking.seat.name == member.name]
        judges[member.name] = replace(
            panel.judge(base[member.name], others, bench.people, qrels, seed, bench.scale),
            heuristic="heuristic" in member.judge.identity,
            controls=accuracies.get(member.name),
            prevalence=_prevalence(base[member.name], accuracies.get(member.name), bench),
            again=_repeat_changes(base[member.name], askings, bench),
        )
    family_by_judge = families(
        {member.name: member.judge.identity for member in members}, bench.context.definitions.get("judges", {})
    )
    ratings = pl.concat(base.values())
    panel_figures = panel.panel(ratings, list(base), bench.people, family_by_judge, seed, bench.scale)
    if bench.config.cascade is not None:  # every judge was to rate the pairs of the cascade's sample alone
        ratings = ratings.join(bench.seated.sample(), on=["query_id", "doc_id"], how="semi")
    kappa, kappa_cut = panel.kappas(ratings, list(base), bench.scale)
    figures = JudgesFigures(
        judges=judges,
        panel=replace(panel_figures, kappa=kappa, kappa_cut=kappa_cut),
        gate=GateFigures(
            floor=bench.config.gate.floor,
            least=bench.config.gate.least,
            failed=tuple(gate.weak(accuracies)) if accuracies else None,
            allow_weak_judges=bench.config.allow_weak_judges,
            untested=tuple(gate.untested(accuracies, bench.config)),
        ),
        people=len(bench.people),
        queries=table.pool.pairs["query_id"].n_unique(),
        made_from=made_from(bench.context, *rated(bench.context)),
    ).rounded()
    return replace(figures, warnings=tuple(judge_lines.warnings(figures)))


def _prevalence(base: pl.DataFrame, accuracy: Accuracy | None, bench: Bench) -> Prevalence | None:
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
        if estimate := panel.prevalence(base, sensitivity, specificity, bench.scale):
            return replace(estimate, source=source)
    return None


def _repeat_changes(base: pl.DataFrame, askings: Sequence[Asking], bench: Bench) -> dict[str, Changes]:
    """Return kind of repetition -> changes between a judge's grades and those of the repeated prompts."""
    changes = {
        asking.kind: position_bias.changes(base, asking.said(), bench.context.seed, bench.scale) for asking in askings
    }
    if "reversed" in changes:
        biased = position_bias.turned(changes["reversed"], changes.get("repeat"), bench.config.batch)
        changes["reversed"] = replace(changes["reversed"], biased=biased)
    return changes
