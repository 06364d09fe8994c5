"""Tasks that are answered by one reply an item: the contract, the packaged kind of question, and their orders.

The answers stand in the ledger alone, as replies, so a killed or repeated command reads them again and pays once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from curate.ask import build
from curate.ask.engine import Order
from curate.core.config import Json
from curate.core.errors import ConfigError, ProviderError
from curate.core.messages import Reply, Request
from curate.core.model_family import family
from curate.core.registry import Registry
from curate.ledger import Ledger
from curate.llm import client, questions
from curate.llm.client.accounting import SentRequest
from curate.llm.providers import identity, reader
from curate.llm.providers.presets import LanguageModel
from curate.llm.questions import Question, Said
from curate.llm.recorded_votes import NONE, Answer, Missing, RecordedAnswers, reader_of, recorded
from curate.pipeline.stage import Context

LEAST_BATCH = 100
"""Requests from which on a batch, which may take a day, is worth its wait: a writer that asks again, and the panel
behind it, wait for several in a row."""
Item = TypeVar("Item")


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


class LLMTask(ABC, Generic[Item, Answer]):
    """One prompt that is sent about each of many items, and the reader of the replies.

    An answer has a `status`: `failed`, `refused` or `unparsed` without a valid answer, any other word with one.
    """

    what: str = "items"
    """What the items are, in the plural: in plans, bills and progress."""

    digest: str
    """SHA-256 of everything in the prompt except the item: part of the ledger key of the answers."""

    @abstractmethod
    def request(self, item: Item, thinking_tokens: int) -> Request:
        """Return the request about an item; `thinking_tokens` come on top of the room for the answer."""

    @abstractmethod
    def read(self, item: Item, reply: Reply) -> Answer:
        """Return the answer in a reply; of a refused, truncated or malformed one an answer with that status."""

    @abstractmethod
    def none(self, status: Missing) -> Answer:
        """Return an answer without content."""

    def label(self, model: str) -> str:
        """Return the name of the task with a model in plans, bills and progress."""
        return f"judges.{model}, {self.what}"

    def digests(self, item: Item) -> tuple[str, tuple[str, ...]]:  # noqa: ARG002 - of most tasks none is recorded
        """Return digests of texts in the request that the ledger records: of the query, and of the others in order."""
        return "", ()


TASKS: "Registry[Callable[[], LLMTask[Any, Any]]]" = Registry("task", {})
"""Tasks of other packages by name, under the entry-point group `curate.tasks`; ours belong to their commands."""


class QuestionTask(LLMTask[tuple[str, ...], Said]):
    """A question with named answers about a query and a passage, or about one text."""

    def __init__(self, question: Question, what: str) -> None:
        self.question, self.what, self.digest = question, what, question.digest

    def request(self, item: tuple[str, ...], thinking_tokens: int) -> Request:
        """Return the question about one or two texts."""
        return questions.build(self.question, *item, thinking_tokens=thinking_tokens)

    def read(self, item: tuple[str, ...], reply: Reply) -> Said:  # noqa: ARG002 - the answers are those of the question
        """Return label and reason."""
        return questions.read(self.question, reply)

    def none(self, status: Missing) -> Said:
        """Return a result without a label."""
        return Said(status)


@dataclass(frozen=True, kw_only=True)
class AnswerOrder(Order[str], Generic[Answer]):
    """An order whose prompts are the keys of requests: one is settled when the ledger has an answer to it."""

    answers: RecordedAnswers[Answer]
    since: str = ""
    """Id of a call: refusals and unparsed replies before it are asked again; empty: none are."""

    def place(self, prompt: str) -> str:
        """Return the key."""
        return prompt

    @property
    def least_batch(self) -> int:
        """Return `LEAST_BATCH`."""
        return LEAST_BATCH

    def left(self, prompts: Sequence[str]) -> list[str]:
        """Return the keys without an answer in the ledger now."""
        self.answers.update(self.read_call)
        return [key for key in prompts if self.answers.open(key, self.since)]

    @abstractmethod
    def read_call(self, key: str, finish: str, raw: str, form: str) -> Answer | None:
        """Return the answer in a call of the ledger; None if the request is not one of this order."""

    def failed(self, sent: SentRequest, error: ProviderError) -> client.ReplyResult:  # noqa: ARG002 - any request's
        """Return a result without an answer."""
        return failure(error)


def failure(error: ProviderError) -> client.ReplyResult:
    """Return a result without an answer; a text that was refused is not sent again, what failed is."""
    form = "refused" if error.refused or error.too_long else "failed"
    return client.ReplyResult(form=form, fruitful=False)


@dataclass(frozen=True, kw_only=True)
class TaskOrder(AnswerOrder[Answer], Generic[Item, Answer]):
    """A task for one model: requests are made from the items when they are sent."""

    task: LLMTask[Item, Answer]
    items: Mapping[str, Item]
    """Digest of a request -> the item that it is about."""

    @classmethod
    def of_task(
        cls,
        task: LLMTask[Item, Answer],
        items: Iterable[Item],
        model: AskedModel,
        ledger: Ledger,
        context: Context,
        *,
        replicate: int = 0,
        since: str = "",
        mixed_models: bool = False,
        command: str = "",
    ) -> "tuple[TaskOrder[Item, Answer], list[str]]":
        """Return what the ledger lacks of a model's answers about items, and the key of each item, in order."""
        keys: list[str] = []
        items_by_key: dict[str, Item] = {}
        for item in items:
            keys.append(task.request(item, model.settings.thinking_tokens).digest)
            items_by_key.setdefault(keys[-1], item)
        account = client.Account(ledger.register(model.identity), task.digest, replicate, context.run_id, model.purpose)
        order = cls(
            name=f"judges.{model.name}",
            label=task.label(model.name),
            command=command or f"`curate {model.purpose} --batch`",
            settings=model.settings,
            account=account,
            work=(),
            mixed_models=mixed_models,
            answers=RecordedAnswers(ledger, account.judge_digest, account.rubric_digest, replicate),
            since=since,
            task=task,
            items=items_by_key,
        )
        return order.of(order.left(list(items_by_key))), keys

    def tasks(self, prompts: Iterable[str]) -> Iterator[client.Task]:
        """Yield the requests, each made anew from its item."""
        for key in prompts:
            item = self.items[key]
            query_digest, slots = self.task.digests(item)
            yield client.Task(
                self.task.request(item, self.settings.thinking_tokens),
                partial(self._result, item),
                failure,
                query_digest=query_digest,
                slots=slots,
                place=key,
            )

    def read(self, sent: SentRequest, reply: Reply) -> client.ReplyResult:
        """Return the result of a reply in a batch; one about an item that is gone is read once it is back."""
        return self._result(self.items[sent.key], reply) if sent.key in self.items else client.ReplyResult()

    def _result(self, item: Item, reply: Reply) -> client.ReplyResult:
        status = self.task.read(item, reply).status
        return client.ReplyResult(form=status, fruitful=status not in NONE)

    def read_call(self, key: str, finish: str, raw: str, form: str) -> Answer | None:
        """Return the answer in a recorded reply."""
        if key not in self.items:
            return None
        read_again, parse = reader_of(self.settings.kind), partial(self.task.read, self.items[key])
        return recorded(read_again, finish, raw, form, parse, self.task.none)
