"""A judge outside of the panel, asked about contested pairs alone: planned, permitted and paid as judging is."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from curate.ask import batching, billing, build, collection, consent, rating, seating
from curate.ask.judged_labels import ledger_key
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import described
from curate.core.config import Json, check
from curate.core.errors import ConfigError
from curate.ledger import Ledger, default_path
from curate.llm import client
from curate.llm.exchange_rates import Total
from curate.llm.providers import provider
from curate.panel import grade_sums
from curate.panel.voting import PAIR
from curate.pipeline.configs import ConsensusConfig
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.stage import Context

PLACE = "consensus.settle"


@dataclass(frozen=True)
class Settled:
    """What a judge said of the pairs that it was to settle."""

    judge: str
    grades: pl.DataFrame
    """query_id, doc_id, grade (None where it gave none) and status."""
    key: Json
    """Under what the ledger keeps its ratings."""
    paid: Total

    @property
    def unfinished(self) -> str:
        """Return why the judge must be asked again; empty if it said something of every pair."""
        failed = int((self.grades["status"] == "failed").sum())
        return f"{failed:,} ratings of {self.judge} failed; run `curate resolve` again to retry them" if failed else ""


def judge_of(context: Context) -> str | None:
    """Return the judge that `consensus.settle` names; None if it names none."""
    return check(ConsensusConfig, context.settings.get("consensus") or {}, "consensus").settle


def settings(name: str, context: Context) -> JudgeConfig:
    """Return how a judge is asked: as the panel is, but alone; ConfigError if it is of the panel."""
    asked = check(JudgeConfig, context.settings.get("judge") or {}, "judge")
    refuse_voter(name, asked.models)
    return asked.model_copy(update={"models": (name,), "cascade": None})


def refuse_voter(name: str | None, panel: Sequence[str]) -> None:
    """Raise ConfigError for a judge of the panel, whose vote is known."""
    if name in panel:
        raise ConfigError(
            f"{PLACE}: {name!r} has voted already, as a judge of the panel ({', '.join(panel)}); name another "
            "judge, or have people settle: `curate review export --contested`"
        )


def identity(name: str, context: Context) -> dict[str, Json]:
    """Return what changes what a judge says; ConfigError if there is no such judge."""
    config = settings(name, context)
    rubric = seating.load_rubric(config, context)
    try:
        judge, _ = build.judge(context, name, rubric)
    except ConfigError as error:
        raise ConfigError(f"{PLACE}: {error}", error.choices) from error
    return {**judge.identity, "rubric": {"digest": rubric.digest}}


def preflight(name: str, context: Context) -> None:
    """Check the rubric's language and the key of a language model; ConfigError says what to type."""
    if context.consent.offline:
        return
    seating.check_language(settings(name, context), context)
    model = build.language_model(context, name)
    if model is not None:
        provider(model)


def refuse_spared(verdicts: pl.DataFrame) -> None:
    """Raise ConfigError where a cascade left open which pairs are contested."""
    if hidden := grade_sums.spared(verdicts):
        raise ConfigError(
            f"{PLACE}: a `positives` cascade gave up {hidden:,} pairs, and which of them are contested is not known; "
            "judge them in full first: `curate judge --set judge.cascade=null`"
        )


def settle(name: str, contested: pl.DataFrame, context: Context) -> Settled:
    """Return what a judge says of contested pairs; what the ledger holds is not asked again."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        run = _seated(name, contested, context, ledger)
        for seat in run.paid():
            models = ledger.models(seat.key.judge_digest, seat.key.rubric_digest)
            if not run.config.mixed_models:
                client.refuse_mixture(f"judges.{name}", models)
        batching.refuse_open(run)
        consent.need_masked(run.seats, context)
        consent.need_consent(run)
        ledger.note(rating.noted(run.table.pool))
        collection.rate(run)
        grades = run.ratings().join(contested, on=PAIR, how="semi").select(*PAIR, "grade", "status").sort(PAIR)
        digests = {seat.name: (seat.key.judge_digest, seat.settings.price) for seat in run.paid()}
        paid = billing.total(billing.bills(ledger, context, digests), context)
        said = described(run.seats[0])
        assert isinstance(said, dict)
        return Settled(name, grades, ledger_key(said), paid)


def planned(name: str, contested: pl.DataFrame, context: Context) -> list[dict[str, Json]]:
    """Return a row for what would be sent to a judge, and what that costs at most; none if nothing is left to send."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        return consent.planned_rows(_seated(name, contested, context, ledger))


def _seated(name: str, contested: pl.DataFrame, context: Context, ledger: Ledger) -> PanelRun:
    """Return the judge at the pool, with what it has not rated of the contested pairs."""
    run = seating.seated(settings(name, context), context, ledger)
    return run.of(run.table.pool.pairs.join(contested, on=PAIR, how="semi"))
