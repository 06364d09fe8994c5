"""Questions of a stage to language models: looked up in the ledger, planned, sent, parsed.

Answers are stored only as replies in the ledger, so a killed or repeated stage reads them again and pays once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Generic

from curate.ask import billing, build, consent, engine, privacy_guard
from curate.core.config import Json, digest, read_yaml
from curate.core.errors import ConfigError, ProviderError
from curate.core.messages import Reply, Request
from curate.core.model_family import family
from curate.ledger import Ledger
from curate.llm import client, recorded_votes
from curate.llm.budget import CostEstimate, plan
from curate.llm.exchange_rates import Total
from curate.llm.providers import identity, provider, reader
from curate.llm.providers.presets import LanguageModel
from curate.llm.questions import Question, question
from curate.llm.recorded_votes import NONE, Answer, Missing
from curate.llm.token_rate import token_rate
from curate.pipeline.stage import Context
from curate.system import resources


def packaged_question(context: Context, name: str) -> Question:
    """Return the question `name` in the language of the texts, in English where there is none in it."""
    path = resources.prompt(name, context.language)
    return question(read_yaml(path), str(path))


@dataclass(frozen=True)
class AskedModel:
    """A language model and the purpose of its calls."""

    name: str
    settings: LanguageModel
    purpose: str

    @classmethod
    def named(cls, context: Context, name: str, key: str, purpose: str) -> "AskedModel":
        """Return the language model `name`, the value of the setting `key`; ConfigError if it is not one."""
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
        """Return all that can change an answer; `purpose` separates these calls from those of judging."""
        thinking = self.settings.thinking_tokens
        return {"model": dict(identity(self.settings)), "thinking_tokens": thinking, "purpose": self.purpose}

    @property
    def family(self) -> str | None:
        """Return the declared family, else the one that the model's name implies."""
        return family(self.settings.model, self.settings.family)


@dataclass(frozen=True)
class Ask(Generic[Answer]):
    """One request and the reader of its reply."""

    request: Request
    read: Callable[[Reply], Answer]
    query_digest: str = ""
    slots: tuple[str, ...] = ()
    """Digests of the other texts in the request."""

    def task(self) -> client.Task:
        """Return the task for `client.ask`, which records no rating."""

        def read(reply: Reply) -> client.ReplyResult:
            status = self.read(reply).status
            return client.ReplyResult(form=status, fruitful=status not in NONE)

        def failed(_error: ProviderError) -> client.ReplyResult:
            return client.ReplyResult(form="failed", fruitful=False)

        return client.Task(self.request, read, failed, query_digest=self.query_digest, slots=self.slots)


@dataclass(frozen=True)
class Talk(Generic[Answer]):
    """All requests to one model with one prompt."""

    label: str
    model: AskedModel
    digest: str
    """Of the prompt."""
    asks: Mapping[str, Ask[Answer]]
    """Any name -> request; equal requests are sent once."""
    none: Callable[[Missing], Answer]
    """Makes an answer of a status without one."""
    replicate: int = 0
    """Number of the repetition; the ledger keeps repetitions apart."""


@dataclass
class QuestionClient:
    """Client of a stage: asks the ledger first, then the models; if `dry`, plans instead of sending."""

    ledger: Ledger
    context: Context
    dry: bool = False
    mixed_models: bool = False
    plans: dict[str, CostEstimate] = field(default_factory=dict)
    """Label -> cost estimate; of a dry client only."""
    models: dict[str, AskedModel] = field(default_factory=dict)
    """Label -> model of that plan."""
    used: dict[str, AskedModel] = field(default_factory=dict)
    """Name -> model whose answers were requested."""
    prompts: dict[str, set[str]] = field(default_factory=dict)
    """Name -> digests of the prompts used."""
    spent: float = 0.0

    def answers(self, talks: Sequence[Talk[Answer]]) -> list[dict[str, Answer]]:
        """Return name -> answer for each talk, after asking for missing ones; a dry client leaves those out."""
        for talk in talks:
            self.used[talk.model.name] = talk.model
            self.prompts.setdefault(talk.model.name, set()).add(talk.digest)
        keys = [{name: ask.task().key for name, ask in talk.asks.items()} for talk in talks]
        answers = [self._from_ledger(talk, key) for talk, key in zip(talks, keys, strict=True)]
        missing = [self._missing(*arguments) for arguments in zip(talks, keys, answers, strict=True)]
        if any(missing) and not self.dry:
            self._send([(talk, tasks) for talk, tasks in zip(talks, missing, strict=True) if tasks])
            answers = [self._from_ledger(talk, key) for talk, key in zip(talks, keys, strict=True)]
        elif self.dry:
            self._plan([(talk, tasks) for talk, tasks in zip(talks, missing, strict=True) if tasks])
            for by_key, tasks in zip(answers, missing, strict=True):
                for task in tasks:
                    by_key.pop(task.key, None)  # an old status that would be asked again
        return [
            {name: by_key[key] for name, key in key_by_name.items() if key in by_key}
            for key_by_name, by_key in zip(keys, answers, strict=True)
        ]

    def permit(self, verb: str) -> None:
        """Raise BudgetError or UserError with the plan of a dry client, unless the user set a valid budget."""
        models = {model.name: model.settings for model in self.models.values()}
        consent.permit(verb, models, lambda: self.plans, self.context)

    def rows(self) -> list[dict[str, Json]]:
        """Return a row per label of the plan: calls, tokens, maximum cost (None without a price), minutes."""
        rows: list[dict[str, Json]] = [
            {
                "question": name,
                **asdict(estimate),
                "currency": None if estimate.cost is None else estimate.currency,
                "minutes": billing.minutes(
                    self.ledger,
                    digest(self.models[name].identity),
                    self.models[name].settings,
                    estimate.calls,
                    estimate.prompt_tokens + estimate.output_tokens,
                ),
            }
            for name, estimate in self.plans.items()
        ]
        return billing.in_all(rows, self.context, ("cost",))

    def cost(self) -> Total:
        """Return the amount that the run paid for these models."""
        judges = {name: (digest(model.identity), model.settings.price) for name, model in self.used.items()}
        return billing.total(billing.bills(self.ledger, self.context, judges), self.context)

    def named(self) -> dict[str, Json]:
        """Return name -> the models that answered, as named in the providers' replies."""
        return {
            name: sorted({model for prompt in self.prompts[name] for model in self.ledger.models(judge, prompt)})
            for name, model in sorted(self.used.items())
            for judge in [digest(model.identity)]
        }

    def _from_ledger(self, talk: Talk[Answer], key_by_name: Mapping[str, str]) -> dict[str, Answer]:
        """Return request digest -> the first valid answer in the ledger, else the last status."""
        reads = {key: talk.asks[name].read for name, key in key_by_name.items()}
        judge = self.ledger.register(talk.model.identity)
        calls = self.ledger.generations(judge, talk.digest, talk.replicate)
        return recorded_votes.answers(calls, talk.model.settings.kind, reads, talk.none)

    def _missing(
        self, talk: Talk[Answer], key_by_name: Mapping[str, str], answers: Mapping[str, Answer]
    ) -> list[client.Task]:
        retried = NONE if self.context.consent.retry else NONE[:1]
        asks = {key: talk.asks[name] for name, key in key_by_name.items()}
        return [ask.task() for key, ask in asks.items() if key not in answers or answers[key].status in retried]

    def _plan(self, talks_with_tasks: Sequence[tuple[Talk[Answer], Sequence[client.Task]]]) -> None:
        for talk, tasks in talks_with_tasks:
            settings, judge = talk.model.settings, digest(talk.model.identity)
            rate = token_rate(self.ledger, judge, talk.digest, settings.tokens_a_han)
            estimate = plan((task.request for task in tasks), settings.price, rate)
            self.plans[talk.label] = self.plans[talk.label].plus(estimate) if talk.label in self.plans else estimate
            self.models[talk.label] = talk.model

    def _send(self, talks_with_tasks: Sequence[tuple[Talk[Answer], Sequence[client.Task]]]) -> None:
        context = self.context
        for talk, _ in talks_with_tasks:
            privacy_guard.may_ask(f"judges.{talk.model.name}", talk.model.settings, context)
        jobs = [self._job(talk, tasks) for talk, tasks in talks_with_tasks]
        budget = context.consent.budget
        bills = client.ask(jobs, self.ledger, budget=budget, progress=context.progress, tell=context.tell)
        self.spent += sum(bill.spent for bill in bills.values())

    def _job(self, talk: Talk[Answer], tasks: Sequence[client.Task]) -> client.Job:
        model = talk.model
        judge = self.ledger.register(model.identity)
        account = client.Account(judge, talk.digest, talk.replicate, self.context.run_id, model.purpose)
        limits = engine.limits(model.settings, mixed_models=self.mixed_models)
        return client.Job(talk.label, tasks, provider(model.settings), account, limits, len(tasks))
