"""Panel of language models that answers the tasks of a command, each model separately.

Asking twice with equal texts pays once: the ledger returns the first answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from curate.ask import billing, consent, engine, privacy_guard
from curate.ask.task import AskedModel, Item, LLMTask, QuestionTask, TaskOrder
from curate.core.config import Json, digest, read_yaml
from curate.core.errors import ConfigError
from curate.ledger import Ledger
from curate.ledger.store import TimeOrderedIds
from curate.llm import recorded_votes
from curate.llm.budget import CostEstimate
from curate.llm.exchange_rates import Total
from curate.llm.questions import Question, question
from curate.llm.recorded_votes import Answer, Answers, Verdict, verdict
from curate.pipeline.stage import Context
from curate.system import resources

__all__ = [
    "ASKED",
    "Answers",
    "AskedModel",
    "Panel",
    "Verdict",
    "asked_facts",
    "packaged_question",
    "refuse_one_family",
    "verdict",
]

ASKED = "asked.json"
"""File next to a stage's tables with its questions and panels, for the manifest of an export."""
Made = TypeVar("Made")


def packaged_question(context: Context, name: str) -> Question:
    """Return the question `name` in the language of the texts, in English where there is none in it."""
    path = resources.prompt(name, context.language)
    return question(read_yaml(path), str(path))


@dataclass
class Panel:
    """The models that a command asks: those that answer its questions, and one that writes, if it has any.

    It reads the ledger first and has what is lacking asked by the engine; if `dry`, it plans that instead.
    """

    ledger: Ledger
    context: Context
    models: Sequence[AskedModel] = ()
    writer: AskedModel | None = None
    mixed_models: bool = False
    command: str = ""
    """What collects open batches; empty: the command of the models' purpose, with `--batch`."""
    dry: bool = False
    plans: dict[str, CostEstimate] = field(default_factory=dict)
    """Label -> cost estimate of what a dry panel would send."""
    spent: float = 0.0
    """Amount taken from the budget."""
    orders: "dict[str, engine.AnyOrder]" = field(default_factory=dict)
    """Label -> the last order with something to send, of a dry panel."""
    _prompts: dict[str, set[str]] = field(default_factory=dict)
    """Name of a model that was asked -> digests of its prompts."""
    _since: str = ""
    """Id of a call: refusals and unparsed replies before it are asked again; one for the whole command."""

    def __post_init__(self) -> None:
        if self.context.consent.retry and not self._since:
            self._since = TimeOrderedIds().next()

    def permitted(self, verb: str, make: "Callable[[Panel], Made]") -> Made:
        """Plan what `make` asks for, have it permitted (or BudgetError, UserError), and return what it makes."""
        if self._asked():
            plan = self._planning()
            make(plan)
            engine.refuse_open(plan.orders.values(), self.ledger, self.context)
            models = {order.name.removeprefix("judges."): order.settings for order in plan.orders.values()}

            def rest() -> Mapping[str, CostEstimate]:
                again = self._planning()
                make(again)
                return again.plans

            consent.permit(verb, models, lambda: plan.plans, rest, self.context)
        return make(self)

    def planned(self, make: "Callable[[Panel], object]") -> list[billing.PlanRow]:
        """Return a row per label of what `make` would send now, without what is asked again after a broken rule."""
        plan = self._planning()
        make(plan)
        rows = []
        for label, estimate in plan.plans.items():
            order, figures = plan.orders[label], asdict(estimate)
            if note := figures.pop("note"):
                self.context.tell(f"{label}: {note}")
            tokens = estimate.prompt_tokens + estimate.output_tokens
            judge = order.account.judge_digest
            minutes = billing.minutes(self.ledger, judge, order.settings, estimate.calls, tokens)
            currency = None if estimate.cost is None else estimate.currency
            rows.append(billing.PlanRow(**figures | {"question": label, "currency": currency, "minutes": minutes}))
        return billing.in_all(rows, self.context, ("cost",))

    def ask(
        self,
        task: LLMTask[Item, Answer],
        items: Mapping[str, Item],
        models: Sequence[AskedModel] | None = None,
        replicate: int = 0,
    ) -> dict[str, dict[str, Answer]]:
        """Return name -> model -> answer, of the given models or all of the panel.

        Equal requests are sent once. `replicate` is the number of a repetition, which the ledger keeps apart. Items
        that a dry panel would still ask a model about are absent.
        """
        models = self.models if models is None else models
        keys: dict[str, list[str]] = {}
        orders: dict[str, TaskOrder[Item, Answer]] = {}
        for model in models:
            self._prompts.setdefault(model.name, set()).add(task.digest)
            orders[model.name], keys[model.name] = TaskOrder.of_task(
                task,
                items.values(),
                model,
                self.ledger,
                self.context,
                replicate=replicate,
                since=self._since,
                mixed_models=self.mixed_models,
                command=self.command,
            )
        if self.dry:
            self._plan(list(orders.values()))
        elif any(order.work for order in orders.values()) or self.context.consent.batch:
            self._settle(list(orders.values()))
        answers: dict[str, dict[str, Answer]] = {name: {} for name in items}
        for model_name, order in orders.items():
            lacking = set(order.work) if self.dry else set[str]()
            for name, key in zip(items, keys[model_name], strict=True):
                if key not in lacking and key in order.answers.by_key:
                    answers[name][model_name] = order.answers.by_key[key]
        return {name: by_model for name, by_model in answers.items() if len(by_model) == len(models)}

    def vote(self, question: Question, texts: Mapping[str, tuple[str, ...]], what: str) -> dict[str, dict[str, str]]:
        """Return name -> judge -> label, or the status without one.

        `texts` are those in the question: query and passage, or one text; `what` names them in plans, in the plural.
        """
        answers = self.ask(QuestionTask(question, what), texts)
        return {
            name: {judge: answer.label or answer.status for judge, answer in by_judge.items()}
            for name, by_judge in answers.items()
        }

    def write(
        self,
        task: LLMTask[Item, Answer],
        items: Mapping[str, Item],
        again: int,
        take: Callable[[Item, Answer, int], Item | None],
        draft: Callable[[Item], None],
    ) -> None:
        """Have the writer write about every item, and again, up to `again` times, where `take` says so.

        `take` gets an item, its answer and the number of the attempt, from 1, in the order of the items; it returns
        what to ask next about the item, such as the item with the rules that were broken, or None. A dry panel calls
        `draft` for every item that is not written yet, so that what depends on it can be planned.
        """
        assert self.writer is not None
        for attempt in range(1, again + 2):
            if not items:
                return
            answers = self.ask(task, items, [self.writer], attempt - 1)
            next_items: dict[str, Item] = {}
            for name, item in items.items():
                if name not in answers:
                    draft(item)
                elif (next_item := take(item, answers[name][self.writer.name], attempt)) is not None:
                    next_items[name] = next_item
            items = next_items

    def cost(self) -> Total:
        """Return the amount that the run paid for these models."""
        judges = {model.name: (digest(model.identity), model.settings.price) for model in self._asked()}
        used_judges = {name: judge for name, judge in judges.items() if name in self._prompts}
        return billing.total(billing.bills(self.ledger, self.context, used_judges), self.context)

    def named(self) -> dict[str, Json]:
        """Return name -> the models that answered, as named in the providers' replies."""
        judges = {model.name: digest(model.identity) for model in self._asked()}
        return {
            name: sorted({model for prompt in prompts for model in self.ledger.models(judges[name], prompt)})
            for name, prompts in sorted(self._prompts.items())
        }

    def _asked(self) -> list[AskedModel]:
        return [*([self.writer] if self.writer else []), *self.models]

    def _planning(self) -> "Panel":
        return replace(self, dry=True, plans={}, orders={}, _prompts={})

    def _plan(self, orders: "Sequence[engine.AnyOrder]") -> None:
        for order in orders:
            if order.work:
                estimate = engine.plan(order, self.ledger, self.context)
                if order.label in self.plans:
                    estimate = self.plans[order.label].plus(estimate)
                self.plans[order.label] = estimate
                self.orders[order.label] = order

    def _settle(self, orders: "Sequence[engine.AnyOrder]") -> None:
        for order in orders:
            if order.work:
                privacy_guard.may_ask(order.name, order.settings, self.context)
        self.spent += engine.settle(orders, self.ledger, self.context)
        for order in orders:
            order.left([])


def refuse_one_family(setting: str, panel: Sequence[AskedModel], writer: AskedModel | None) -> None:
    """Raise ConfigError for an empty panel, a judge named twice, or one of the writer's family only."""
    names = [model.name for model in panel]
    if len(set(names)) < len(names):
        raise ConfigError(f"{setting}: found a name twice; a panel needs different judges")
    if writer is None:
        return
    if not panel:
        raise ConfigError(f"{setting}: found nobody; name judges of another family than the generator's")
    if writer.family is not None and {model.family for model in panel} == {writer.family}:
        raise ConfigError(
            f"{setting}: all judges are of the generator's family ({writer.family}), and what it writes must not "
            "be judged by it alone; add one of another, or say judges.NAME.family"
        )


def asked_facts(asked: Mapping[str, tuple[Question, Sequence[AskedModel]]]) -> dict[str, Json]:
    """Return question name -> the question and its panel, from which `curate verify` rebuilds every request."""
    return {
        name: {
            "question": recorded_votes.written(question),
            "panel": {
                model.name: {
                    "judge": digest(model.identity),
                    "provider": model.settings.kind,
                    "thinking_tokens": model.settings.thinking_tokens,
                }
                for model in panel
            },
        }
        for name, (question, panel) in asked.items()
    }
