"""First pass of masking by a local language model, which is asked where personal data is in each text.

The calls go through the LLM client like all others: estimated, permitted, within the budget, and written to the ledger
as they are answered. The ledger stores only offsets, under a keyed hash of the text; so an interrupted or repeated run
reads the earlier answers from the ledger, and the ledger holds no text.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from curate.ask import billing, build, consent, engine
from curate.ask.task import AnswerOrder, failure
from curate.commands.mask import model as reading
from curate.commands.mask.model import STATUSES, MaskingPrompt, Spotted, Status, prompt, windows
from curate.core.config import Json, read_yaml
from curate.core.errors import ConfigError, RunFailed
from curate.core.messages import Reply
from curate.core.records import Span
from curate.ledger import Ledger, default_path
from curate.ledger.store import TimeOrderedIds
from curate.llm import client
from curate.llm.budget import CostEstimate
from curate.llm.client.accounting import SentRequest
from curate.llm.exchange_rates import Total
from curate.llm.providers import beyond, identity, provider
from curate.llm.providers.presets import LanguageModel
from curate.llm.recorded_votes import RecordedAnswers
from curate.pii.pseudonyms import secret
from curate.pipeline.stage import Context
from curate.system import http, resources
from curate.system.egress import outside

PURPOSE = "mask"
VAIN = frozenset(STATUSES) - {"read"}
"""Statuses of an answer that checked nothing."""
Texts = Callable[[], Iterable[str]]


class LlmPassSettings(Protocol):
    """Settings of the stage that concern the model."""

    model: str | None
    allow_remote: bool
    on_failure: Literal["stop", "rules"]


@dataclass(frozen=True)
class Spots:
    """Spans that the model found in all texts, and the cost of the calls."""

    key: Callable[[str], str]
    spans: Mapping[str, tuple[Span, ...]]
    """Key of a window -> its spans; windows without spans are absent."""
    statuses: Mapping[Status, int]
    """Status -> number of distinct windows."""
    facts: Mapping[str, Json]
    """Facts for the report."""
    paid: Total
    """Cost to the run so far; its amount is None if a price is unknown."""
    spent: float
    """Amount spent by this call."""

    def of(self, text: str) -> list[Span]:
        """Return the spans of a text; masking joins those that overlap at the edge of a window."""
        return [
            Span(span.start + offset, span.end + offset, span.kind, span.recogniser)
            for offset, window in windows(text)
            for span in self.spans.get(self.key(window), ())
        ]

    @property
    def unread(self) -> dict[str, int]:
        """Return reason -> number of windows that were not checked."""
        return {status: count for status, count in self.statuses.items() if status != "read" and count}


def asked(config: LlmPassSettings, context: Context) -> tuple[LanguageModel, MaskingPrompt] | None:
    """Return the model and its prompt; None if no model is configured.

    ConfigError if the name is not that of a language model or, without `allow_remote`, if the model is not on this
    machine or its settings lack `local: true`.
    """
    if config.model is None:
        return None
    settings = build.language_model(context, config.model)
    if settings is None:
        raise ConfigError(f"mask.model: {config.model!r} is no language model; `curate models` lists those there are")
    why = None if config.allow_remote else _leaves(f"judges.{config.model}", settings)
    if why is not None:
        raise ConfigError(
            f"mask.model: {config.model}: {why}; unmasked texts stay here unless you say mask.allow_remote=true"
        )
    path = resources.prompt("mask", context.language)
    return settings, prompt(read_yaml(path), str(path))


def _leaves(who: str, settings: LanguageModel) -> str | None:
    """Return why an unmasked text might leave this machine; None if it cannot. Stricter than for masked texts."""
    why = beyond(who, settings)
    if settings.base_url is None:
        return why and "a vendor's own address is not this machine"
    return outside(settings.base_url) or why


def fingerprint(config: LlmPassSettings, context: Context) -> Json:
    """Return the identity of model and prompt; raises the errors of `asked`."""
    asked_model = asked(config, context)
    return None if asked_model is None else {"model": _identity(asked_model[0]), "prompt": asked_model[1].digest}


def preflight(config: LlmPassSettings, context: Context) -> None:
    """Check the key, if the model needs one."""
    asked_model = asked(config, context)
    if asked_model is not None and not context.consent.offline:
        provider(asked_model[0])


def _identity(settings: LanguageModel) -> dict[str, Json]:
    return {"model": dict(identity(settings)), "thinking_tokens": settings.thinking_tokens, "purpose": PURPOSE}


def spot(config: LlmPassSettings, context: Context, texts: Texts) -> Spots | None:
    """Ask about every text without an answer in the ledger; return the spans of all texts, or None without a model.

    A text that could not be checked does not count as one without personal data: RunFailed, unless `on_failure` is
    `rules`. Failed calls are repeated on the next run, refusals and unreadable replies only with `--retry`.
    """
    asked_model = asked(config, context)
    if asked_model is None:
        return None
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        order = MaskOrder.of_texts(str(config.model), *asked_model, ledger, context, texts)
        if order.work:
            engine.refuse_open([order], ledger, context)
            models = {str(config.model): order.settings}

            def rest() -> dict[str, CostEstimate]:
                return {order.label: engine.plan(order.of(order.left(order.work)), ledger, context)}

            consent.permit("masking", models, lambda: {order.label: engine.plan(order, ledger, context)}, rest, context)
            _need_server(str(config.model), order.settings, context)
        spent = engine.settle([order], ledger, context) if order.work or context.consent.batch else 0.0
        spots = _summed(str(config.model), order, ledger, context, spent)
    if spots.unread and config.on_failure == "stop":
        raise RunFailed(
            f"mask: {_unread_sentence(spots)}, so nothing is masked yet; type `curate mask --yes` to ask again what "
            "failed, with --retry also the others; or let the rules alone look at those: mask.on_failure=rules"
        )
    return spots


def planned(config: LlmPassSettings, context: Context, texts: Texts) -> dict[str, CostEstimate]:
    """Return the cost estimate of all texts without an answer in the ledger; empty without a model."""
    asked_model = asked(config, context)
    if asked_model is None:
        return {}
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        order = MaskOrder.of_texts(str(config.model), *asked_model, ledger, context, texts)
        return {order.label: engine.plan(order, ledger, context)}


def notes(spots: Spots | None) -> list[str]:
    """Return notes on texts that only the rules checked, since the model gave no valid answer."""
    return [f"{_unread_sentence(spots)}: there the rules alone looked"] if spots is not None and spots.unread else []


def _unread_sentence(spots: Spots) -> str:
    reasons = ", ".join(f"{status}: {count:,}" for status, count in spots.unread.items())
    return f"the model did not check {sum(spots.unread.values()):,} texts or parts of texts ({reasons})"


@dataclass(frozen=True, kw_only=True)
class MaskOrder(AnswerOrder[Spotted]):
    """The windows of unmasked texts that a model has not checked; equal windows count once.

    Its prompts are keyed hashes, and the ledger keeps offsets alone, so no text is written down.
    """

    prompt: MaskingPrompt
    secret: bytes = field(repr=False)
    texts: Texts = field(repr=False)
    """Read again whenever requests are made: the texts of a corpus need not be in memory at once."""
    keys: Mapping[str, None] = field(repr=False)
    """The keys of all windows, in the order of the texts."""
    _windows: dict[str, str] = field(default_factory=dict, repr=False)
    """Key -> window, of an order whose replies come in batches."""

    @classmethod
    def of_texts(
        cls,
        name: str,
        settings: LanguageModel,
        prompt: MaskingPrompt,
        ledger: Ledger,
        context: Context,
        texts: Texts,
    ) -> "MaskOrder":
        """Return what the ledger lacks of a model's answers about texts."""
        key = secret(context.home)
        account = client.Account(
            ledger.register(_identity(settings)), prompt.digest, run=context.run_id, purpose=PURPOSE
        )
        answers = RecordedAnswers[Spotted](ledger, account.judge_digest, prompt.digest, vain=VAIN)
        order = cls(
            name=f"mask.model={name}",
            label=f"mask.model={name}",
            command="`curate mask --batch`",
            settings=settings,
            account=account,
            work=(),
            unit="texts",
            mixed_models=True,  # whether a span is right does not depend on the model
            private=True,
            answers=answers,
            since=TimeOrderedIds().next() if context.consent.retry else "",
            prompt=prompt,
            secret=key,
            texts=texts,
            keys=dict.fromkeys(keyed(key, window) for text in texts() for _, window in windows(text)),
        )
        return order.of(order.left(list(order.keys)))

    def tasks(self, prompts: Iterable[str]) -> Iterator[client.Task]:
        """Yield the requests; for prompts in the order of the texts these are read once."""
        unread: Iterator[tuple[str, str]] = iter(())
        for wanted in prompts:
            window = next((window for key, window in unread if key == wanted), None)
            if window is None:
                unread = self._keyed()
                window = next(window for key, window in unread if key == wanted)
            request = reading.build(self.prompt, window, self.settings.thinking_tokens)
            yield client.Task(request, partial(_read, window), failure, named=wanted, place=wanted)

    def _keyed(self) -> Iterator[tuple[str, str]]:
        for text in self.texts():
            for _, window in windows(text):
                yield keyed(self.secret, window), window

    def read(self, sent: SentRequest, reply: Reply) -> client.ReplyResult:
        """Return the offsets in a reply of a batch; nothing is kept of a reply about a text that is gone."""
        if not self._windows:
            self._windows.update(self._keyed())
        window = self._windows.get(sent.key)
        return client.ReplyResult(kept="") if window is None else _read(window, reply)

    def read_call(self, key: str, finish: str, raw: str, form: str) -> Spotted | None:
        """Return the spans in a call of the ledger."""
        if key not in self.keys:
            return None
        if finish == "error":
            return Spotted("refused" if form == "refused" else "failed")
        return Spotted.restored(raw) if raw else Spotted("failed")


def keyed(secret: bytes, window: str) -> str:
    """Return the keyed hash of a window; without the secret, one cannot test which text it was."""
    return hmac.new(secret, f"{PURPOSE}\0{window}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _need_server(name: str, settings: LanguageModel, context: Context) -> None:
    """Raise ConfigError if nothing listens at a local address; else the client would retry it like an outage."""
    address = settings.base_url
    if context.consent.offline or address is None or outside(address) or http.listening(address):
        return
    raise ConfigError(
        f"mask.model: {name}: no server listens at {address}; start it there, as `vllm serve {settings.model}` or "
        "`ollama serve` do, or mask by the rules alone: --set mask.model=null"
    )


def _summed(name: str, order: MaskOrder, ledger: Ledger, context: Context, spent: float) -> Spots:
    """Return all answers that the ledger now has about the texts of an order."""
    order.left([])
    account, answers = order.account, order.answers.by_key
    statuses, rejected = Counter(answer.status for answer in answers.values()), Counter[str]()
    for answer in answers.values():
        rejected.update(answer.rejected)
    facts: dict[str, Json] = {
        "name": name,
        "prompt": f"{order.prompt.name} ({order.prompt.digest[:12]})",
        "models": ledger.models(account.judge_digest, account.rubric_digest),
        "texts": {status: statuses[status] for status in STATUSES},
        "rejected_quotations": dict(sorted(rejected.items())),
    }
    spans = {key: answer.spans for key, answer in answers.items() if answer.spans}
    paid = billing.total(billing.bills(ledger, context, {name: (account.judge_digest, order.settings.price)}), context)
    by_status = {status: statuses[status] for status in STATUSES}
    return Spots(partial(keyed, order.secret), spans, by_status, facts, paid, spent)


def _read(window: str, reply: Reply) -> client.ReplyResult:
    spotted = reading.read(reply, window)
    return client.ReplyResult(form=spotted.status, fruitful=spotted.status == "read", kept=spotted.kept)
