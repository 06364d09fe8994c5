"""Validation of rubric, scale, consensus rule and judges against one another, before anything is sent or paid."""

from curate.ask import settling
from curate.ask.judges.heuristic import Config as Heuristic
from curate.ask.judges.heuristic import Thresholds
from curate.ask.seating import load_rubric
from curate.core.config import check
from curate.core.errors import ConfigError
from curate.llm.prompts import Rubric
from curate.panel import cascade, voting
from curate.panel.rules import ConsensusRule
from curate.pipeline.configs import JudgeConfig
from curate.pipeline.stage import Context


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
    settling.refuse_voter(settling.judge_of(context), config.models)
    for name in config.models:
        bounds = context.definitions.get("judges", {}).get(name, {}).get("thresholds")
        if bounds is not None:
            Thresholds(
                check(Heuristic, {"thresholds": bounds}, f"judges.{name}").thresholds or {},
                rubric.scale,
                f"judges.{name}.thresholds",
            )
    return rubric
