"""Questions of a stage to language models: known from the ledger, planned, asked, read.

Answers are kept nowhere but in the replies, so a killed or repeated stage reads what was answered and pays it once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Generic

from curate.ask import billing, build, consent, privacy_guard
from curate.core.config import Json, digest
from curate.core.errors import ConfigError, ProviderError
from curate.core.messages import Reply, Request
from curate.core.model_family import family
from curate.ledger import Ledger
from curate.llm import client, recorded_votes
from curate.llm.budget import CostEstimate, plan
from curate.llm.exchange_rates import Total
from curate.llm.providers import identity, provider, reader
from curate.llm.providers.presets import LanguageModel
from curate.llm.recorded_votes import NONE, Answer, Missing
from curate.llm.token_rate import token_rate
from curate.pipeline.stage import Context


@dataclass(frozen=True)
class AskedModel:
    """A language model, and what it is asked for."""

    name: str
    settings: LanguageModel
    purpose: str

    @classmethod
    def named(cls, context: Context, name: str, key: str, purpose: str) -> "AskedModel":
        """Return the language model that a setting `key` names; ConfigError if the name means no such thing."""
        settings = build.language_model(context, name)
        if settings is None:
            raise ConfigError(f"{key}: {name!r} is no language model; `curate models` lists those that can be asked")
        if reader(settings.kind) is None:
            raise ConfigError(
                f"{key}: the provider {settings.kind!r} cannot read its replies again; give its class a method "
                "`reply(raw)`, or choose another model"
            )
        return cls(name, settings, purpose)

    @property
    def identity(self) -> dict[str, Json]:
        """Return what can change an answer; the purpose keeps these calls out of the bills and figures of judging."""
        thinking = self.settings.thinking_tokens
        return {"model": dict(identity(self.settings)), "thinking_tokens": thinking, "purpose": self.purpose}

    @property
    def family(self) -> str | None:
        """Return the family that is declared, or that of the model's name."""
        return family(self.settings.model, self.settings.family)


@dataclass(frozen=True)
class Ask(Generic[Answer]):
    """One request, and what reads its reply."""

    request: Request
    read: Callable[[Reply], Answer]
    query_digest: str = ""
    slots: tuple[str, ...] = ()
    """Digests of the other texts that it is about."""

    def task(self) -> client.Task:
        """Return it as the door to a model takes it."""
        return client.Task(self.request, self._reading, _failed, query_digest=self.query_digest, slots=self.slots)

    def _reading(self, reply: Reply) -> client.ReplyResult:
        status = self.read(reply).status
        return client.ReplyResult(form=status, fruitful=status not in NONE)


def _failed(_error: ProviderError) -> client.ReplyResult:
    return client.ReplyResult(form="failed", fruitful=False)


@dataclass(frozen=True)
class Talk(Generic[Answer]):
    """All that one model is asked with one prompt."""

    label: str
    model: AskedModel
    digest: str
    """Of the prompt."""
    asks: Mapping[str, Ask[Answer]]
    """Any name -> what is asked; equal requests are sent once."""
    none: Callable[[Missing], Answer]
    """Makes an answer of a status that is none."""
    replicate: int = 0
    """Which time the same is asked: a further one is another question to the ledger."""


@dataclass
class QuestionClient:
    """Where a stage asks: the ledger first, then the models; `dry` plans in place of sending."""

    ledger: Ledger
    context: Context
    dry: bool = False
    mixed_models: bool = False
    plans: dict[str, CostEstimate] = field(default_factory=dict)
    """What would be sent, by label; of a dry desk alone."""
    models: dict[str, AskedModel] = field(default_factory=dict)
    """Who would be asked, by label."""
    used: dict[str, AskedModel] = field(default_factory=dict)
    """Models whose answers were looked for, by name."""
    prompts: dict[str, set[str]] = field(default_factory=dict)
    """The digests of the prompts that they were asked with, by name."""
    spent: float = 0.0

    def answers(self, talks: Sequence[Talk[Answer]]) -> list[dict[str, Answer]]:
        """Return name -> answer for each talk, after asking for what is left to ask; a dry desk leaves that out."""
        for talk in talks:
            self.used[talk.model.name] = talk.model
            self.prompts.setdefault(talk.model.name, set()).add(talk.digest)
        keys = [{name: ask.task().key for name, ask in talk.asks.items()} for talk in talks]
        known = [self._known(talk, key) for talk, key in zip(talks, keys, strict=True)]
        left = [self._left(*each) for each in zip(talks, keys, known, strict=True)]
        if any(left) and not self.dry:
            self._send([(talk, tasks) for talk, tasks in zip(talks, left, strict=True) if tasks])
            known = [self._known(talk, key) for talk, key in zip(talks, keys, strict=True)]
        elif self.dry:
            self._plan([(talk, tasks) for talk, tasks in zip(talks, left, strict=True) if tasks])
            for found, tasks in zip(known, left, strict=True):
                for task in tasks:
                    found.pop(task.key, None)
        return [
            {name: found[key] for name, key in named.items() if key in found}
            for named, found in zip(keys, known, strict=True)
        ]

    def permit(self, verb: str) -> None:
        """Stop with the plan of a dry desk, unless the user allows to spend within a cap that can be kept."""
        models = {model.name: model.settings for model in self.models.values()}
        consent.permit(verb, models, lambda: self.plans, self.context)

    def rows(self) -> list[dict[str, Json]]:
        """Return a row per label of what would be sent: calls, tokens, cost at most (None without a price), minutes."""
        rows: list[dict[str, Json]] = [
            {
                "question": name,
                **asdict(each),
                "currency": None if each.cost is None else each.currency,
                "minutes": self._minutes(self.models[name], each),
            }
            for name, each in self.plans.items()
        ]
        return billing.in_all(rows, self.context, ("cost",))

    def _minutes(self, model: AskedModel, found: CostEstimate) -> float:
        tokens = found.prompt_tokens + found.output_tokens
        return billing.minutes(self.ledger, digest(model.identity), model.settings, found.calls, tokens)

    def cost(self) -> Total:
        """Return what the run has paid for these models."""
        asked = {name: (digest(model.identity), model.settings.price) for name, model in self.used.items()}
        return billing.total(billing.bills(self.ledger, self.context, asked), self.context)

    def named(self) -> dict[str, Json]:
        """Return name -> the models that answered, as their vendors call them."""
        return {
            name: sorted({model for prompt in self.prompts[name] for model in self.ledger.models(judge, prompt)})
            for name, model in sorted(self.used.items())
            for judge in [digest(model.identity)]
        }

    def _known(self, talk: Talk[Answer], named: Mapping[str, str]) -> dict[str, Answer]:
        """Return request digest -> what the ledger has of it: the first answer, else what came last."""
        reads = {key: talk.asks[name].read for name, key in named.items()}
        judge = self.ledger.register(talk.model.identity)
        calls = self.ledger.generations(judge, talk.digest, talk.replicate)
        return recorded_votes.answers(calls, talk.model.settings.kind, reads, talk.none)

    def _left(self, talk: Talk[Answer], named: Mapping[str, str], known: Mapping[str, Answer]) -> list[client.Task]:
        again = NONE if self.context.consent.retry else NONE[:1]
        wanted = {key: talk.asks[name] for name, key in named.items()}
        return [each.task() for key, each in wanted.items() if key not in known or known[key].status in again]

    def _plan(self, left: Sequence[tuple[Talk[Answer], Sequence[client.Task]]]) -> None:
        for talk, tasks in left:
            settings, judge = talk.model.settings, digest(talk.model.identity)
            rate = token_rate(self.ledger, judge, talk.digest, settings.tokens_a_han)
            found = plan((task.request for task in tasks), settings.price, rate)
            self.plans[talk.label] = self.plans[talk.label].plus(found) if talk.label in self.plans else found
            self.models[talk.label] = talk.model

    def _send(self, left: Sequence[tuple[Talk[Answer], Sequence[client.Task]]]) -> None:
        context = self.context
        for talk, _ in left:
            privacy_guard.may_ask(f"judges.{talk.model.name}", talk.model.settings, context)
        jobs = [self._job(talk, tasks) for talk, tasks in left]
        budget = context.consent.budget
        bills = client.ask(jobs, self.ledger, budget=budget, progress=context.progress, tell=context.tell)
        self.spent += sum(bill.spent for bill in bills.values())

    def _job(self, talk: Talk[Answer], tasks: Sequence[client.Task]) -> client.Job:
        model = talk.model
        judge = self.ledger.register(model.identity)
        account = client.Account(judge, talk.digest, talk.replicate, self.context.run_id, model.purpose)
        limits = consent.limits(model.settings, mixed_models=self.mixed_models)
        return client.Job(talk.label, tasks, provider(model.settings), account, limits, len(tasks))
