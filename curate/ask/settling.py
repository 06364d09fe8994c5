"""Tie-breaker judge, validation of panel settings before anything is paid, and provenance of panel labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from curate.ask import billing, build, collection, consent, engine, rating, seating
from curate.ask.billing import PlanRow
from curate.ask.judges.heuristic import Config as Heuristic
from curate.ask.judges.heuristic import Thresholds
from curate.ask.panel_run import PanelRun
from curate.ask.panel_state import described
from curate.ask.seating import load_rubric
from curate.core.config import Json, check, digest
from curate.core.errors import ConfigError, DataError
from curate.core.protocols import Benchmark
from curate.core.scale import FIVE
from curate.ledger import Ledger, default_path
from curate.llm import client
from curate.llm.exchange_rates import Total
from curate.llm.prompts import Rubric
from curate.llm.providers import provider
from curate.panel import cascade, voting
from curate.panel.rules import ConsensusRule
from curate.panel.voting import FITTED, PAIR
from curate.pipeline.configs import ConsensusConfig, JudgeConfig
from curate.pipeline.stage import Context
from curate.system.files import read_json
from curate.tables.exporters.ids import AS_THEY_ARE, PublishedIds


def made_by_panel(
    context: Context, benchmark: Benchmark, judged: pl.DataFrame, ids: PublishedIds = AS_THEY_ARE
) -> dict[str, Json]:
    """Return judges, prompt settings and consensus rule of a run; `judged` are all its verdicts."""
    panel, facts = read_json(context.folder("judge") / "panel.json"), context.done("judge").facts
    policies = judged.filter(voting.by_policy())["policy"].unique().sort().to_list()
    if len(policies) > 1:
        raise DataError(f"export: found verdicts by the policies {', '.join(policies)}; run `curate consensus` again")
    return {
        "panel": {name: ledger_key(identity) for name, identity in panel.items()},
        "shown": facts["shown"],
        "cascade": facts["cascade"] is not None,
        "policy": voting.dumped(context.policy),
        "outside": _outside(judged, benchmark, ids) if FITTED.keys() & policies else [],
        "experts": 0,
        **({} if context.scale == FIVE else {"scale": context.scale.to_json()}),
        "seed": context.seed,
        "prefixed": ids.prefixed,
        **({} if ids.key is None else {"ids": "new"}),
    }


def ledger_key(identity: Mapping[str, Json]) -> dict[str, Json]:
    """Return the ledger key of a judge's ratings; recorded grades are in no ledger."""
    read = identity.get("rubric")
    judge = digest({name: parameter for name, parameter in identity.items() if name != "rubric"})
    rubric = read["digest"] if isinstance(read, Mapping) else ""
    recorded = {"assessor": identity["assessor"]} if "replay" in identity else None
    return {"judge": judge, "rubric": rubric, "recorded": recorded}


def _outside(judged: pl.DataFrame, benchmark: Benchmark, ids: PublishedIds) -> list[Json]:
    """Return the vote patterns of pairs that were judged but not exported, each with its number of pairs."""
    votes_outside = ids.of(judged).join(benchmark.verdicts, on=PAIR, how="anti")["votes"]
    patterns = Counter(tuple((vote["judge"], vote["grade"]) for vote in votes) for votes in votes_outside)
    return [{"votes": dict(votes), "pairs": count} for votes, count in sorted(patterns.items(), key=str)]


# Tie-breaker judge: a judge outside of the panel grades the contested pairs; planned and paid like judging.

PLACE = "consensus.settle"


@dataclass(frozen=True)
class Settled:
    """Grades of a tie-breaker judge for contested pairs."""

    judge: str
    grades: pl.DataFrame
    """query_id, doc_id, grade (None where it gave none) and status."""
    key: Json
    """Ledger key of its ratings."""
    paid: Total

    @property
    def unfinished(self) -> str:
        """Return why the judge must be asked again; empty if no rating failed."""
        failed = int((self.grades["status"] == "failed").sum())
        return f"{failed:,} ratings of {self.judge} failed; run `curate resolve` again to retry them" if failed else ""


def judge_of(context: Context) -> str | None:
    """Return the judge named by `consensus.settle`; None without one."""
    return check(ConsensusConfig, context.settings.get("consensus") or {}, "consensus").settle


def settings(name: str, context: Context) -> JudgeConfig:
    """Return the panel's settings with this judge as the only one; ConfigError if it is a member of the panel."""
    panel_config = check(JudgeConfig, context.settings.get("judge") or {}, "judge")
    refuse_voter(name, panel_config.models)
    return panel_config.model_copy(update={"models": (name,), "cascade": None})


def refuse_voter(name: str | None, panel: Sequence[str]) -> None:
    """Raise ConfigError for a judge of the panel, which has voted already."""
    if name in panel:
        raise ConfigError(
            f"{PLACE}: {name!r} has voted already, as a judge of the panel ({', '.join(panel)}); name another "
            "judge, or have people settle: `curate review export --contested`"
        )


def identity(name: str, context: Context) -> dict[str, Json]:
    """Return all that can change a judge's grades; ConfigError for an unknown judge."""
    config = settings(name, context)
    rubric = seating.load_rubric(config, context)
    try:
        judge, _ = build.judge(context, name, rubric)
    except ConfigError as error:
        raise ConfigError(f"{PLACE}: {error}", error.choices) from error
    return {**judge.identity, "rubric": {"digest": rubric.digest}}


def preflight(name: str, context: Context) -> None:
    """Check the rubric's language and the API key of a language model; ConfigError names the remedy."""
    if context.consent.offline:
        return
    seating.check_language(settings(name, context), context)
    model = build.language_model(context, name)
    if model is not None:
        provider(model)


def refuse_spared(verdicts: pl.DataFrame) -> None:
    """Raise ConfigError if a cascade skipped ratings that decide which pairs are contested."""
    if hidden := voting.spared(verdicts):
        raise ConfigError(
            f"{PLACE}: a `positives` cascade gave up {hidden:,} pairs, and which of them are contested is not known; "
            "judge them in full first: `curate judge --set judge.cascade=null`"
        )


def settle(name: str, contested: pl.DataFrame, context: Context) -> Settled:
    """Return a judge's grades for contested pairs; ratings in the ledger are reused."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        run = _seated(name, contested, context, ledger)
        for state in run.paid():
            models = ledger.models(state.key.judge_digest, state.key.rubric_digest)
            if not run.config.mixed_models:
                client.refuse_mixture(f"judges.{name}", models)
        engine.refuse_open(run.orders(), ledger, context)
        consent.need_masked(run.seats, context)
        consent.need_consent(run)
        ledger.note(rating.noted(run.table.pool))
        collection.rate(run)
        grades = run.ratings().join(contested, on=PAIR, how="semi").select(*PAIR, "grade", "status").sort(PAIR)
        digests = {state.name: (state.key.judge_digest, state.settings.price) for state in run.paid()}
        paid = billing.total(billing.bills(ledger, context, digests), context)
        return Settled(name, grades, ledger_key(described(run.seats[0])), paid)


def planned(name: str, contested: pl.DataFrame, context: Context) -> list[PlanRow]:
    """Return the planned calls and their maximum cost, one row; none if no rating is missing."""
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        return consent.planned_rows(_seated(name, contested, context, ledger))


def _seated(name: str, contested: pl.DataFrame, context: Context, ledger: Ledger) -> PanelRun:
    """Return the judge's run over the pool, restricted to missing ratings of the contested pairs."""
    run = seating.seated(settings(name, context), context, ledger)
    return run.of(run.table.pool.pairs.join(contested, on=PAIR, how="semi"))


# Validation of rubric, scale, consensus rule and judges against one another, before anything is sent or paid.


def validated(config: JudgeConfig, context: Context) -> Rubric:
    """Return the rubric; ConfigError unless the consensus rule yields verdicts from its grades for this panel.

    Needs no model, API key or file of recorded grades, so that any stage can call it.
    """
    if not config.models or len(set(config.models)) < len(config.models):
        raise ConfigError("judge.models: expected one or more different names")
    rubric = load_rubric(config, context)
    if rubric.order == "nominal":
        raise ConfigError(
            f"judge.rubric: {rubric.name} is nominal, and its labels have no order and no cut, so no document is "
            "relevant by them; give a rubric with `order: ordinal` and `relevant_from`"
        )
    if isinstance(context.policy, ConsensusRule):
        context.policy.bound(config.models)
    elif len(config.models) < voting.FITTED.get(context.policy, 1):
        least = voting.FITTED[context.policy]
        raise ConfigError(f"consensus.policy: {context.policy} needs {least} judges, and judge.models names fewer")
    cascade.refuse(config.cascade, context.policy)
    refuse_voter(judge_of(context), config.models)
    for name in config.models:
        bounds = context.definitions.get("judges", {}).get(name, {}).get("thresholds")
        if bounds is not None:
            Thresholds(
                check(Heuristic, {"thresholds": bounds}, f"judges.{name}").thresholds or {},
                rubric.scale,
                f"judges.{name}.thresholds",
            )
    return rubric
