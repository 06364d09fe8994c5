"""Put a question to a model about sampled pairs, through the one door: planned, paid once, read again from the ledger.

Labels are kept nowhere but in the replies themselves: `said` reads them from the ledger's calls, today's as well as
those of years ago, so an analysis is repeated without a call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from curate import ask, questions
from curate.budget import Plan, plan
from curate.config import Json, text_digest
from curate.context import Context
from curate.errors import ConfigError, ProviderError
from curate.ledger import Ledger
from curate.protocols import Reply, Request
from curate.providers import identity, provider, reader
from curate.providers.presets import LanguageModel
from curate.questions import Question, Said
from curate.stages import build, leaving
from curate.stages.spending import limits

PURPOSE = "analyze"


@dataclass(frozen=True)
class Item:
    """A pair that is asked about, with its texts as they are shown."""

    query_id: str
    doc_id: str
    query: str
    passage: str
    grades: tuple[str, ...] = ()
    """What the judges gave, nameless."""


@dataclass(frozen=True)
class Inquiry:
    """One question about a sample."""

    question: Question
    items: tuple[Item, ...]
    population: int
    """From how many pairs or queries the sample was drawn."""


@dataclass(frozen=True)
class Model:
    """Who is asked."""

    name: str
    settings: LanguageModel

    @classmethod
    def named(cls, context: Context, name: str) -> "Model":
        """Return a language model of the pipeline or a preset; ConfigError if the name means no such thing."""
        settings = build.language_model(context, name)
        if settings is None:
            raise ConfigError(f"--model: {name!r} is no language model; `curate models` lists those that can be asked")
        if reader(settings.kind) is None:
            raise ConfigError(
                f"--model: the provider {settings.kind!r} cannot read its replies again; give its class a method "
                "`reply(raw)`, or choose another model"
            )
        return cls(name, settings)

    @property
    def identity(self) -> dict[str, Json]:
        """Return what can change an answer; the purpose keeps these calls out of the bills and figures of judging."""
        thinking = self.settings.thinking_tokens
        return {"model": dict(identity(self.settings)), "thinking_tokens": thinking, "purpose": PURPOSE}

    def request(self, inquiry: Inquiry, item: Item) -> Request:
        """Return the request about an item."""
        thinking = self.settings.thinking_tokens
        return questions.build(inquiry.question, item.query, item.passage, item.grades, thinking)

    def read(self, inquiry: Inquiry, finish: str, raw: str) -> Said:
        """Return what a call of the ledger came to."""
        if finish == "error":
            return Said("failed")
        read = reader(self.settings.kind)
        assert read is not None  # `named` takes no other model
        reply = read(raw)
        if reply is None:  # a content filter's words are in no form of replies
            return Said("refused" if finish == "refusal" else "unparsed")
        return questions.read(inquiry.question, reply)


def task(model: Model, inquiry: Inquiry, item: Item) -> ask.Task:
    """Return the task of asking about an item; its key is the digest of the request."""
    return ask.Task(
        model.request(inquiry, item),
        partial(_reading, inquiry.question),
        _failed,
        query_digest=text_digest(item.query),
        slots=(text_digest(item.passage),),
    )


def said(model: Model, inquiry: Inquiry, ledger: Ledger) -> dict[str, Said]:
    """Return request digest -> what the ledger has of it: the first label, else what came last."""
    found: dict[str, Said] = {}
    for key, finish, raw in ledger.generations(ledger.register(model.identity), inquiry.question.digest):
        if key not in found or found[key].status != "labelled":
            found[key] = model.read(inquiry, finish, raw)
    return found


def left(model: Model, inquiry: Inquiry, ledger: Ledger, *, retry: bool) -> list[ask.Task]:
    """Return what still has to be asked: what was never answered, and with `retry` what gave no label."""
    known = said(model, inquiry, ledger)
    settled = {
        key for key, each in known.items() if each.status == "labelled" or not (retry or each.status == "failed")
    }
    wanted = {each.key: each for each in (task(model, inquiry, item) for item in inquiry.items)}
    return [each for key, each in wanted.items() if key not in settled]  # equal texts are asked about once


def plans(model: Model, inquiries: Sequence[Inquiry], ledger: Ledger, *, retry: bool) -> dict[str, Plan]:
    """Return question -> what asking for all that is left would use; questions with nothing left are not there."""
    found = {each.question.name: left(model, each, ledger, retry=retry) for each in inquiries}
    price = model.settings.price
    return {name: plan((each.request for each in open_), price) for name, open_ in found.items() if open_}


def collect(
    model: Model, inquiries: Sequence[Inquiry], ledger: Ledger, context: Context, *, mixed_models: bool = False
) -> None:
    """Ask for all that is left, one question after the other, under one cap."""
    money = context.consent.max_cost
    for inquiry in inquiries:
        open_ = left(model, inquiry, ledger, retry=context.consent.retry)
        if not open_:
            continue
        leaving.may_ask(f"judges.{model.name}", model.settings.base_url, context)
        account = ask.Account(
            ledger.register(model.identity), inquiry.question.digest, run=context.run_id, purpose=PURPOSE
        )
        job = ask.Job(
            inquiry.question.name,
            open_,
            provider(model.settings),
            account,
            limits(model.settings, mixed_models=mixed_models),
            len(open_),
        )
        bills = ask.ask([job], ledger, max_cost=money, progress=context.progress, tell=context.tell)
        money = None if money is None else money - bills[job.name].spent


def _reading(asked: Question, reply: Reply) -> ask.Reading:
    found = questions.read(asked, reply)
    return ask.Reading(form=found.status, fruitful=found.status == "labelled")


def _failed(_error: ProviderError) -> ask.Reading:
    return ask.Reading(form="failed", fruitful=False)
