"""First pass of masking by a local language model, which is asked where personal data stands in each text.

Through the one door, like every question: planned, allowed, under the cap, and written down as it is answered. Only
where something stands is written down, under a key that says nothing of the text; so a killed or repeated run reads
from the ledger what was answered, and the ledger holds no text.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from curate.ask import billing, build, consent
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
    """What the settings of the stage say of the model."""

    model: str | None
    allow_remote: bool
    on_failure: Literal["stop", "rules"]


@dataclass(frozen=True)
class Spots:
    """What is known of all texts."""

    key: Callable[[str], str]
    spans: Mapping[str, tuple[Span, ...]]
    """Key of a window -> what stands in it; windows without anything are not there."""
    statuses: Mapping[Status, int]
    """How many different windows came to what."""
    facts: Mapping[str, Json]
    """What the report says of it."""
    paid: Total
    """What it cost the run so far, None if a price is unknown."""
    spent: float
    """What it took out of the cap now."""

    def of(self, text: str) -> list[Span]:
        """Return the spans of a text; those that reach over the edge of a window join in masking."""
        return [
            Span(span.start + offset, span.end + offset, span.kind, span.recogniser)
            for offset, window in windows(text)
            for span in self.spans.get(self.key(window), ())
        ]

    @property
    def unread(self) -> dict[str, int]:
        """Return why windows were not checked -> how many."""
        return {status: count for status, count in self.statuses.items() if status != "read" and count}


def asked(config: LlmPassSettings, context: Context) -> tuple[LanguageModel, MaskingPrompt] | None:
    """Return the model and what it is asked; None without one.

    ConfigError if the name means no language model, or without `allow_remote` one that is not on this machine, or whose
    settings do not say `local: true`.
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
    """Return why an unmasked text might leave this machine: more is asked here than of a reader of masked ones."""
    why = beyond(who, settings)
    if settings.base_url is None:
        return why and "a vendor's own address is not this machine"
    return outside(settings.base_url) or why


def fingerprint(config: LlmPassSettings, context: Context) -> Json:
    """Return what identifies model and prompt; raises what `asked` does."""
    found = asked(config, context)
    return None if found is None else {"model": _identity(found[0]), "prompt": found[1].digest}


def preflight(config: LlmPassSettings, context: Context) -> None:
    """Check the key, if the model wants one."""
    found = asked(config, context)
    if found is not None and not context.consent.offline:
        provider(found[0])


def _identity(settings: LanguageModel) -> dict[str, Json]:
    return {"model": dict(identity(settings)), "thinking_tokens": settings.thinking_tokens, "purpose": PURPOSE}


def spot(config: LlmPassSettings, context: Context, texts: Texts) -> Spots | None:
    """Ask about every text that the ledger knows nothing of, and return what is known; None without a model.

    A text that could not be checked is not one in which nothing was found: RunFailed, unless the rules alone are
    allowed for it. What failed is asked again on the next run, what was refused or could not be read on `--retry`.
    """
    found = asked(config, context)
    if found is None:
        return None
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        spotter = _Spotter(str(config.model), *found, secret(context.home), ledger, context)
        spots = spotter.spots(texts)
    if spots.unread and config.on_failure == "stop":
        raise RunFailed(
            f"mask: {_told(spots)}, so nothing is masked yet; type `curate mask --yes` to ask again what failed, with "
            "--retry also the others; or let the rules alone look at those: mask.on_failure=rules"
        )
    return spots


def planned(config: LlmPassSettings, context: Context, texts: Texts) -> dict[str, CostEstimate]:
    """Return what asking about every text that the ledger knows nothing of would come to; empty without a model."""
    found = asked(config, context)
    if found is None:
        return {}
    with Ledger(context.ledger or default_path(context.home)) as ledger:
        spotter = _Spotter(str(config.model), *found, secret(context.home), ledger, context)
        _, _, left = spotter.looked_up(spotter.account(), texts)
        return spotter.planned(texts, left)


def notes(spots: Spots | None) -> list[str]:
    """Return what a user should know of texts that only the rules looked at."""
    return [f"{_told(spots)}: there the rules alone looked"] if spots is not None and spots.unread else []


def _told(spots: Spots) -> str:
    each = ", ".join(f"{status}: {count:,}" for status, count in spots.unread.items())
    return f"the model did not check {sum(spots.unread.values()):,} texts or parts of texts ({each})"


@dataclass(frozen=True)
class _Spotter:
    name: str
    settings: LanguageModel
    prompt: MaskingPrompt
    secret: bytes = field(repr=False)
    ledger: Ledger
    context: Context

    def spots(self, texts: Texts) -> Spots:
        """Ask for what is missing, and return everything that the ledger then knows of the texts."""
        account = self.account()
        known, wanted, left = self.looked_up(account, texts)
        if left:
            self.need_consent(texts, left)
            self.need_server()
        spent = self.send(texts, left, account) if left else 0.0
        return self.summed(self.known(account, wanted) if left else known, account, spent)

    def account(self) -> client.Account:
        """Return what calls are booked on."""
        judge = self.ledger.register(_identity(self.settings))
        return client.Account(judge, self.prompt.digest, run=self.context.run_id, purpose=PURPOSE)

    def looked_up(self, account: client.Account, texts: Texts) -> tuple[dict[str, Spotted], set[str], set[str]]:
        """Return what the ledger has of the windows of all texts, the keys of these, and of those that are left."""
        wanted = {self.key(window) for text in texts() for _, window in windows(text)}
        known, retry = self.known(account, wanted), self.context.consent.retry
        settled = {
            key for key, each in known.items() if each.status != "failed" and not (retry and each.status != "read")
        }
        return known, wanted, wanted - settled

    def key(self, window: str) -> str:
        """Return what a window is known by; without the secret nobody can find out by trying which text it was."""
        return hmac.new(
            self.secret, f"{PURPOSE}\0{window}".encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()

    def known(self, account: client.Account, wanted: set[str]) -> dict[str, Spotted]:
        """Return window -> what the ledger has of it: the first that was read, else what came last."""
        found: dict[str, Spotted] = {}
        for key, finish, raw, _ in self.ledger.generations(account.judge_digest, account.rubric_digest):
            if key in wanted and (key not in found or found[key].status != "read"):
                found[key] = Spotted("failed") if finish == "error" else Spotted.restored(raw)
        return found

    def tasks(self, texts: Texts, left: set[str]) -> Iterator[client.Task]:
        """Yield one task per window that is left, equal ones once."""
        for key, window in self.windows(texts, left):
            request = reading.build(self.prompt, window, self.settings.thinking_tokens)
            yield client.Task(request, partial(_read, window), _failed, named=key)

    def windows(self, texts: Texts, left: set[str]) -> Iterator[tuple[str, str]]:
        """Yield the key and the text of every window that is left, equal ones once."""
        done = set[str]()
        for text in texts():
            for _, window in windows(text):
                key = self.key(window)
                if key in left and key not in done:
                    done.add(key)
                    yield key, window

    def need_server(self) -> None:
        """Raise ConfigError if nothing listens at an address of this machine: it would be waited for like an outage."""
        address = self.settings.base_url
        if self.context.consent.offline or address is None or outside(address) or http.listening(address):
            return
        raise ConfigError(
            f"mask.model: {self.name}: no server listens at {address}; start it there, as `vllm serve "
            f"{self.settings.model}` or `ollama serve` do, or mask by the rules alone: --set mask.model=null"
        )

    def need_consent(self, texts: Texts, left: set[str]) -> None:
        consent.permit("masking", {self.name: self.settings}, lambda: self.planned(texts, left), self.context)

    def planned(self, texts: Texts, left: set[str]) -> dict[str, CostEstimate]:
        requests, account = (task.request for task in self.tasks(texts, left)), self.account()
        rate = token_rate(self.ledger, account.judge_digest, account.rubric_digest, self.settings.tokens_a_han)
        return {f"mask.model={self.name}": plan(requests, self.settings.price, rate)}

    def send(self, texts: Texts, left: set[str], account: client.Account) -> float:
        """Ask for what is left; return what was spent."""
        job = client.Job(
            f"mask.model={self.name}",
            self.tasks(texts, left),
            provider(self.settings),
            account,
            consent.limits(self.settings, mixed_models=True),  # a place is right or wrong for any model
            len(left),
            unit="texts",
        )
        budget, progress, tell = self.context.consent.budget, self.context.progress, self.context.tell
        return client.ask([job], self.ledger, budget=budget, progress=progress, tell=tell)[job.name].spent

    def summed(self, known: Mapping[str, Spotted], account: client.Account, spent: float) -> Spots:
        statuses, rejected = Counter(each.status for each in known.values()), Counter[str]()
        for each in known.values():
            rejected.update(each.rejected)
        facts: dict[str, Json] = {
            "name": self.name,
            "prompt": f"{self.prompt.name} ({self.prompt.digest[:12]})",
            "models": self.ledger.models(account.judge_digest, account.rubric_digest),
            "texts": {status: statuses[status] for status in STATUSES},
            "rejected_quotations": dict(sorted(rejected.items())),
        }
        spans = {key: each.spans for key, each in known.items() if each.spans}
        asked = {self.name: (account.judge_digest, self.settings.price)}
        paid = billing.total(billing.bills(self.ledger, self.context, asked), self.context)
        return Spots(self.key, spans, {status: statuses[status] for status in STATUSES}, facts, paid, spent)


def _read(window: str, reply: Reply) -> client.ReplyResult:
    found = reading.read(reply, window)
    return client.ReplyResult(form=found.status, fruitful=found.status == "read", kept=found.kept)


def _failed(_error: ProviderError) -> client.ReplyResult:
    return client.ReplyResult(form="failed", fruitful=False)
