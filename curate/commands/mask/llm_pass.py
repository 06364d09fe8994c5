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
from curate.commands.mask import model as reading
from curate.commands.mask.model import STATUSES, MaskingPrompt, Spotted, Status, prompt, windows
from curate.core.config import Json, read_yaml
from curate.core.errors import ConfigError, ProviderError, RunFailed
from curate.core.messages import Reply
from curate.core.records import Span
from curate.ledger import Ledger, default_path
from curate.llm import client
from curate.llm.budget import CostEstimate, plan
from curate.llm.exchange_rates import Total
from curate.llm.providers import beyond, identity, provider
from curate.llm.providers.presets import LanguageModel
from curate.llm.token_rate import token_rate
from curate.pii.pseudonyms import secret
from curate.pipeline.stage import Context
from curate.system import http, resources
from curate.system.egress import outside

PURPOSE = "mask"
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
        spotter = _Spotter(str(config.model), *asked_model, secret(context.home), ledger, context)
        spots = spotter.spots(texts)
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
        spotter = _Spotter(str(config.model), *asked_model, secret(context.home), ledger, context)
        _, _, missing = spotter.looked_up(spotter.account(), texts)
        return spotter.planned(texts, missing)


def notes(spots: Spots | None) -> list[str]:
    """Return notes on texts that only the rules checked, since the model gave no valid answer."""
    return [f"{_unread_sentence(spots)}: there the rules alone looked"] if spots is not None and spots.unread else []


def _unread_sentence(spots: Spots) -> str:
    reasons = ", ".join(f"{status}: {count:,}" for status, count in spots.unread.items())
    return f"the model did not check {sum(spots.unread.values()):,} texts or parts of texts ({reasons})"


@dataclass(frozen=True)
class _Spotter:
    name: str
    settings: LanguageModel
    prompt: MaskingPrompt
    secret: bytes = field(repr=False)
    ledger: Ledger
    context: Context

    def spots(self, texts: Texts) -> Spots:
        """Ask about the missing windows; return all answers on the texts that the ledger then contains."""
        account = self.account()
        answers, keys, missing = self.looked_up(account, texts)
        if missing:
            self.need_consent(texts, missing)
            self.need_server()
        spent = self.send(texts, missing, account) if missing else 0.0
        return self.summed(self.answers(account, keys) if missing else answers, account, spent)

    def account(self) -> client.Account:
        """Return the ledger key of the calls."""
        judge = self.ledger.register(_identity(self.settings))
        return client.Account(judge, self.prompt.digest, run=self.context.run_id, purpose=PURPOSE)

    def looked_up(self, account: client.Account, texts: Texts) -> tuple[dict[str, Spotted], set[str], set[str]]:
        """Return the answers in the ledger by key, the keys of all windows, and the keys still to be asked about."""
        keys = {self.key(window) for text in texts() for _, window in windows(text)}
        answers, retry = self.answers(account, keys), self.context.consent.retry
        settled = {
            key
            for key, answer in answers.items()
            if answer.status != "failed" and not (retry and answer.status != "read")
        }
        return answers, keys, keys - settled

    def key(self, window: str) -> str:
        """Return the keyed hash of a window; without the secret, one cannot test which text it was."""
        return hmac.new(
            self.secret, f"{PURPOSE}\0{window}".encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()

    def answers(self, account: client.Account, keys: set[str]) -> dict[str, Spotted]:
        """Return key -> answer in the ledger: the first one that was read, else the last one."""
        answers: dict[str, Spotted] = {}
        for key, finish, raw, _ in self.ledger.generations(account.judge_digest, account.rubric_digest):
            if key in keys and (key not in answers or answers[key].status != "read"):
                answers[key] = Spotted("failed") if finish == "error" else Spotted.restored(raw)
        return answers

    def tasks(self, texts: Texts, missing: set[str]) -> Iterator[client.Task]:
        """Yield one task per missing window; equal windows count once."""
        for key, window in self.windows(texts, missing):
            request = reading.build(self.prompt, window, self.settings.thinking_tokens)
            yield client.Task(request, partial(_read, window), _failed, named=key)

    def windows(self, texts: Texts, missing: set[str]) -> Iterator[tuple[str, str]]:
        """Yield key and text of every missing window; equal windows count once."""
        yielded = set[str]()
        for text in texts():
            for _, window in windows(text):
                key = self.key(window)
                if key in missing and key not in yielded:
                    yielded.add(key)
                    yield key, window

    def need_server(self) -> None:
        """Raise ConfigError if nothing listens at a local address; else the client would retry it like an outage."""
        address = self.settings.base_url
        if self.context.consent.offline or address is None or outside(address) or http.listening(address):
            return
        raise ConfigError(
            f"mask.model: {self.name}: no server listens at {address}; start it there, as `vllm serve "
            f"{self.settings.model}` or `ollama serve` do, or mask by the rules alone: --set mask.model=null"
        )

    def need_consent(self, texts: Texts, missing: set[str]) -> None:
        consent.permit("masking", {self.name: self.settings}, lambda: self.planned(texts, missing), self.context)

    def planned(self, texts: Texts, missing: set[str]) -> dict[str, CostEstimate]:
        requests, account = (task.request for task in self.tasks(texts, missing)), self.account()
        rate = token_rate(self.ledger, account.judge_digest, account.rubric_digest, self.settings.tokens_a_han)
        return {f"mask.model={self.name}": plan(requests, self.settings.price, rate)}

    def send(self, texts: Texts, missing: set[str], account: client.Account) -> float:
        """Ask about the missing windows; return the amount spent."""
        job = client.Job(
            f"mask.model={self.name}",
            self.tasks(texts, missing),
            provider(self.settings),
            account,
            engine.limits(self.settings, mixed_models=True),  # whether a span is right does not depend on the model
            len(missing),
            unit="texts",
        )
        budget, progress, tell = self.context.consent.budget, self.context.progress, self.context.tell
        return client.ask([job], self.ledger, budget=budget, progress=progress, tell=tell)[job.name].spent

    def summed(self, answers: Mapping[str, Spotted], account: client.Account, spent: float) -> Spots:
        statuses, rejected = Counter(answer.status for answer in answers.values()), Counter[str]()
        for answer in answers.values():
            rejected.update(answer.rejected)
        facts: dict[str, Json] = {
            "name": self.name,
            "prompt": f"{self.prompt.name} ({self.prompt.digest[:12]})",
            "models": self.ledger.models(account.judge_digest, account.rubric_digest),
            "texts": {status: statuses[status] for status in STATUSES},
            "rejected_quotations": dict(sorted(rejected.items())),
        }
        spans = {key: answer.spans for key, answer in answers.items() if answer.spans}
        priced = {self.name: (account.judge_digest, self.settings.price)}
        paid = billing.total(billing.bills(self.ledger, self.context, priced), self.context)
        return Spots(self.key, spans, {status: statuses[status] for status in STATUSES}, facts, paid, spent)


def _read(window: str, reply: Reply) -> client.ReplyResult:
    spotted = reading.read(reply, window)
    return client.ReplyResult(form=spotted.status, fruitful=spotted.status == "read", kept=spotted.kept)


def _failed(_error: ProviderError) -> client.ReplyResult:
    return client.ReplyResult(form="failed", fruitful=False)
