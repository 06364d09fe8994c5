"""What each stage of a pipeline would ask of models: exactly where its input is there, else by forecast."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from curate.ask import settling
from curate.ask.forecast import PoolSize, forecast, times
from curate.ask.quote import quote
from curate.commands.export import Config as ExportConfig
from curate.commands.mask import Config as MaskConfig
from curate.commands.run import embedding
from curate.commands.run.unfiltered import BEFORE, Unfiltered
from curate.core.config import Json
from curate.core.errors import DataError, UserError
from curate.core.records import FIELDS
from curate.llm.budget import CostEstimate
from curate.pipeline import stages
from curate.pipeline.configs import PoolConfig
from curate.pipeline.judge_config import Config as JudgeConfig
from curate.pipeline.judge_config import Gate
from curate.pipeline.stage import Context
from curate.runs.runner import Run

IN_ALL = "in all"
DONE = ("done", "unchecked")


@dataclass(frozen=True)
class PlannedCost:
    """What one model would be asked for one purpose of a stage."""

    stage: str
    asked: str
    """The model, with what it is asked for."""
    estimate: CostEstimate | None
    """None where it cannot be counted."""
    least: float | None
    """What it costs at least, in a cascade; else what it costs. None without a price."""
    exact: bool = False
    """Whether it is counted in the stage's own input."""


Lines = list[PlannedCost]


def asking(work: Run) -> list[str]:
    """Return the stages of a pipeline that may ask a model and have not done it yet."""
    states = work.states()
    return [
        name for name in work.pipeline.head.stages if name in (*_EXACT, *_FORECASTS) and states[name][0] not in DONE
    ]


def exact(work: Run, name: str) -> Lines | None:
    """Return what a stage itself plans; None while it has not got its input, or where it has no plan of its own."""
    plan = _EXACT.get(name) or (_planned(name) if name in stages.KIND_COMMANDS else None)
    try:
        work.need_ancestors(name)
    except UserError:
        return None
    cascade = name == "judge" and cast("JudgeConfig", work.pipeline.sections[name]).cascade is not None
    return _lines(name, work.look(name, plan), exact=True, cascade=cascade) if plan else None


def _planned(name: str) -> Callable[[Any, Context], list[dict[str, Json]]]:
    found: Callable[[Any, Context], list[dict[str, Json]]] = stages.module(name).planned
    return found


def forecasted(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    """Return what a stage would ask of models at most, and what is assumed for it, a sentence each."""
    return _FORECASTS.get(name, _by_itself)(work, name, texts)


def _mask(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    section = cast("MaskConfig", work.pipeline.sections[name])
    factors = {"queries": 1.0, "corpus": texts.documents / max(texts.written, 1)}
    found: dict[str, CostEstimate] = {}
    for table in FIELDS if section.enabled else ():
        for label, each in stages.module("mask").planned(section, texts.context, table).items():
            part = times(each, factors[table])
            found[label] = found[label].plus(part) if label in found else part
    return [PlannedCost(name, label, each, each.cost) for label, each in found.items()], []


def _pool(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    found = embedding.planned(work.pipeline, name, texts)
    said = "embedding models have no price setting: look it up at the vendor" if found else ""
    return [PlannedCost(name, label, each, None) for label, each in found.items()], [said] if said else []


def _judge(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    section, pools = cast("JudgeConfig", work.pipeline.sections[name]), _pools(work, texts)
    found = forecast(section, texts.context, texts.sample(), pools)
    own = _of_reranking(work)
    said = [
        f"{pools.queries:,} queries{own} have pools of {pools.documents:,} documents, asked {section.batch} at a time",
        *(["the controls of the gate fill a prompt each at most"] if section.gate.positives else []),
        *(["a cascade asks every judge for all pairs at most"] if section.cascade else []),
    ]
    return [PlannedCost(name, each.judge, each.estimate, each.cost_least) for each in found], said if found else []


def _of_reranking(work: Run) -> str:
    """Return how many of the judged queries reranking and retrieval get, where reranking has a query set of its own."""
    export = work.pipeline.sections.get("export")
    queries = cast("ExportConfig", export).rerank.queries if export else None
    judged = cast("PoolConfig", work.pipeline.sections["pool"]).queries
    return f" ({judged - queries:,} for retrieval, {queries:,} for reranking)" if queries and judged else ""


def _settle(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    judge = settling.judge_of(texts.context)
    if judge is None:
        return [], []
    alone = settling.settings(judge, texts.context).model_copy(update={"gate": Gate()})
    found = forecast(alone, texts.context, texts.sample(), _pools(work, texts))
    said = "the judge that settles is asked for what the panel contests, which is every pair at most and none at least"
    return [PlannedCost(name, each.judge, each.estimate, each.estimate.cost and 0.0) for each in found], [said]


def _by_itself(work: Run, name: str, texts: Unfiltered) -> tuple[Lines, list[str]]:
    """Return what a stage plans with texts that nothing has filtered; it may need more than these."""
    section: Any = work.pipeline.sections[name]
    try:
        lines = _lines(name, _planned(name)(section, texts.context), exact=False)
    except UserError as error:
        if not isinstance(error, DataError) and {*stages.stage(name).after} <= {*BEFORE}:
            raise  # a wrong name; of a stage behind others it may be that these have not run
        return [PlannedCost(name, "not known yet", None, None)], [str(error)]
    again = getattr(section, "again", 0) if lines else 0
    said = f"what breaks a rule is asked for again, up to {again} times, which is not counted"
    return lines, [said] if again else []


def _pools(work: Run, texts: Unfiltered) -> PoolSize:
    return PoolSize.most(cast("PoolConfig", work.pipeline.sections["pool"]), texts.queries, texts.documents)


def _lines(stage: str, rows: Sequence[Mapping[str, Any]], *, exact: bool, cascade: bool = False) -> Lines:
    """Return the rows of a stage's own plan."""
    found = []
    for row in rows:
        label, answers = row.get("judge", row.get("question")), row.get("answer_tokens", row.get("output_tokens"))
        cost = row.get("online", row.get("cost"))
        if label != IN_ALL:
            estimate = CostEstimate(row["calls"], row["prompt_tokens"], answers, cost, row["currency"] or "USD")
            least = row["cascade_least"] if cascade else cost
            found.append(PlannedCost(stage, label, estimate, least, exact))
    return found


_EXACT: Mapping[str, Callable[..., list[dict[str, Json]]]] = {"judge": quote, "resolve": _planned("resolve")}
_FORECASTS: Mapping[str, Callable[[Run, str, Unfiltered], tuple[Lines, list[str]]]] = {
    "mask": _mask,
    "diversify": _pool,
    "pool": _pool,
    "judge": _judge,
    "resolve": _settle,
    **dict.fromkeys(stages.KIND_COMMANDS, _by_itself),
}
