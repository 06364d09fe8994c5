"""List of the available language models, and a tiny call that tests whether a model can judge."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from curate.ask.judges.llm import named_model
from curate.core.config import Settings
from curate.core.errors import ConfigError, ProviderError
from curate.core.figures import Record, figure
from curate.core.messages import Reply, Request, Usage
from curate.llm.cost import cost
from curate.llm.providers import beyond, identity, key_variable, provider
from curate.llm.providers.presets import LanguageModel, presets

if TYPE_CHECKING:  # the list does without them, and they take longer than the list
    from curate.ask.judges.llm import LlmJudge
    from curate.pipeline.pipeline import Pipeline
    from curate.pipeline.stage import Context

QUERY = "What is the capital of France?"
PASSAGES = ("Paris is the capital of France.", "Tea is grown in the hills of Fujian.")
"""Passages of the test call: the first answers its query, the second does not; no text of a user is sent."""


class ModelTest(Record, schema_name="test"):
    """What one tiny call to a model came to; an error if it cannot judge as it is set."""

    name: str = figure("name of the judge")
    model: str = figure("model name in the reply")
    json_mode: str = figure("method by which answers in JSON are requested")
    seconds: float = figure("from sending to the reply, including loading and connecting", digits=2)
    finish: str = figure("finish reason of the reply")
    grades: Mapping[str, str | None] = figure("label of a passage -> grade; null if it could not be read")
    usage: Usage | None = figure("tokens of the call")
    cost: float | None = figure("price of the call; null without a price or usage", digits=6)
    currency: str | None = figure("currency of the cost")
    problem: str = figure("reason why the model cannot judge; empty if it can")


class ModelRow(Record, schema_name="row"):
    """A row per language model that can be named."""

    name: str = figure("name of the judge")
    source: Literal["pipeline", "preset"] = figure("definition of the judge")
    kind: str = figure("provider")
    model: str | None = figure("model name at the provider")
    address: str | None = figure("address that requests are sent to")
    key: str | None = figure("environment variable of the key; null if none is sent")
    egress: str = figure("destination of the texts")
    set: bool | None = figure("whether the environment variable holds a key")
    json_mode: str = figure("method by which answers in JSON are requested")
    context: int | None = figure("context window in tokens")
    input: float | None = figure("price of a million input tokens")
    output: float | None = figure("price of a million output tokens")
    currency: str | None = figure("currency of the prices")
    date: str | None = figure("date of the prices")
    batch: bool = figure("whether the provider's batches can be used")
    note: str | None = figure("remark on the model")


def listed(own: Mapping[str, Settings]) -> list[ModelRow]:
    """Return one row per language model, sorted by name: presets, and `own` definitions of a pipeline."""
    models = {name: named_model(own, name) for name in sorted({*own, *presets()})}
    return [
        _row(name, "pipeline" if name in own else "preset", config)
        for name, config in models.items()
        if config is not None
    ]


def tried(name: str, pipeline: "Pipeline | None" = None, tell: Callable[[str], None] = lambda _line: None) -> ModelTest:
    """Return the result of one tiny call to a model, without retries; the call is recorded in the ledger.

    `tell` is called with each notice, such as that Ctrl-C waits for the reply. ConfigError if the key is missing,
    AccessError if it is wrong, ProviderError on any other failure.
    """
    from curate.ask import build
    from curate.ask.judges.llm import LlmJudge
    from curate.ask.rating import form
    from curate.ask.seating import load_rubric
    from curate.llm.reply_faults import fault
    from curate.pipeline.configs import JudgeConfig

    context = _context(pipeline)
    section = cast("JudgeConfig", pipeline.sections["judge"] if pipeline else JudgeConfig())
    judge, config = build.judge(context, name, load_rubric(section, context))
    if config is None:
        raise ConfigError(f"{name}: no language model, so there is nothing to send; `curate models` lists those")
    assert isinstance(judge, LlmJudge)
    reply, seconds = _exchange(judge, config, judge.build(QUERY, PASSAGES), replace(context, tell=tell))
    parsed = judge.read(reply, len(PASSAGES))
    wrong = fault(reply, form(reply, parsed)) if parsed.missing or reply.finish == "refusal" else None
    return ModelTest(
        name,
        reply.model,
        config.json_mode,
        seconds,
        reply.finish,
        parsed.grades,
        reply.usage,
        cost(reply.usage, config.price),
        config.price.currency if config.price else None,
        f"{name}: {wrong.said} in reply to two harmless sentences; {wrong.remedy}" if wrong else "",
    )


def _exchange(judge: "LlmJudge", config: LanguageModel, request: Request, context: "Context") -> tuple[Reply, float]:
    from curate.ledger import Ledger, default_path
    from curate.llm.client import Account, Job, ReplyResult, RequestLimits, Task, ask

    replies: list[Reply] = []
    errors: list[ProviderError] = []

    def read(reply: Reply) -> ReplyResult:
        replies.append(reply)
        return ReplyResult()

    def failed(error: ProviderError) -> ReplyResult:
        errors.append(error)
        return ReplyResult()

    endpoint, limits = provider(config), RequestLimits(concurrency=1, attempts=1, price=config.price, mixed_models=True)
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        account = Account(ledger.register(judge.identity), purpose="test")
        started = time.monotonic()
        ask([Job(judge.name, [Task(request, read, failed)], endpoint, account, limits)], ledger, tell=context.tell)
        seconds = round(time.monotonic() - started, 2)
    if errors:
        raise errors[0]
    return replies[0], seconds


def _context(pipeline: "Pipeline | None") -> "Context":
    """Return a context without a run folder, with the pipeline's language and definitions."""
    from curate.pipeline.stage import Context, home

    folder = home()
    if pipeline is None:
        return Context(folder, folder, folder)
    head = pipeline.head
    definitions = {"encoders": head.encoders, "retrievers": head.retrievers, "judges": head.judges}
    typed_definitions = cast("Mapping[str, Mapping[str, Settings]]", definitions)
    return Context(folder, folder, folder, language=head.language, definitions=typed_definitions)


def _row(name: str, source: Literal["pipeline", "preset"], config: LanguageModel) -> ModelRow:
    variable = key_variable(config)
    price = config.price.model_dump(mode="json") if config.price else {}
    unnamed = config.model_copy(update={"vendor": None, "extra_body": {}})  # its identity names the address instead
    return ModelRow(
        name=name,
        source=source,
        kind=config.kind,
        model=config.model,
        address=str(identity(unnamed)["vendor"]),
        key=variable,
        egress="remote" if beyond("", config) else "local",
        set=None if variable is None else bool(os.environ.get(variable, "").strip()),
        json_mode=config.json_mode,
        context=config.context_tokens,
        **{name: price.get(name) for name in ("input", "output", "currency", "date")},
        batch=config.batch,
        note=config.note,
    )
