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
    model: str = figure("as the reply names it")
    json_mode: str = figure("how an answer in JSON is asked for")
    seconds: float = figure("from sending to the reply, including loading and connecting", digits=2)
    finish: str = figure("why the reply ended")
    grades: Mapping[str, str | None] = figure("label of a passage -> grade; null where none could be read")
    usage: Usage | None = figure("tokens of the call")
    cost: float | None = figure("price of the call; null without a price or usage", digits=6)
    currency: str | None = figure("of the cost")
    problem: str = figure("why it cannot judge; empty if it can")


class ModelRow(Record, schema_name="row"):
    """A row per language model that can be named."""

    name: str = figure("name of the judge")
    source: Literal["pipeline", "preset"] = figure("where it is defined")
    kind: str = figure("provider")
    model: str | None = figure("as the vendor names it")
    address: str | None = figure("where requests go")
    key: str | None = figure("variable that the key is read from; null where none is sent")
    egress: str = figure("where texts go")
    set: bool | None = figure("whether the variable holds a key")
    json_mode: str = figure("how an answer in JSON is asked for")
    context: int | None = figure("tokens")
    input: float | None = figure("price of a million tokens")
    output: float | None = figure("price of a million tokens")
    currency: str | None = figure("of the prices")
    date: str | None = figure("of the price")
    batch: bool = figure("whether it can be asked by batches")
    note: str | None = figure("what to know of it")


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
