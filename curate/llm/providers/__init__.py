"""Providers by name: they send requests to a model and return its replies."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from curate.core.config import Json
from curate.core.messages import Reply
from curate.core.registry import Registry
from curate.llm.providers.settings import ProviderConfig, opened
from curate.system import egress

if TYPE_CHECKING:  # brings polars, which a list of models does without
    from curate.core.protocols import Provider

Reader = Callable[[str], Reply | None]
"""Function that reads the reply in a provider's text; None if it contains none."""


class Maker(Protocol):
    """A registered class of providers, whose `identify` needs no key."""

    def __call__(self, config: ProviderConfig, /) -> "Provider":
        """Return a provider; ConfigError if its key is missing."""
        ...

    def identify(self, config: ProviderConfig, /) -> Mapping[str, Json]:
        """Return the identity of the provider with these settings; needs no key."""
        ...


PROVIDERS: Registry[Maker] = Registry(
    "provider",
    {
        "anthropic": "curate.llm.providers.anthropic:AnthropicProvider",
        "openai": "curate.llm.providers.openai:OpenAIProvider",
    },
)
"""`openai` speaks chat completions to any compatible address, `anthropic` speaks messages."""


def provider(config: ProviderConfig) -> "Provider":
    """Return the provider of `config.kind`; nothing is sent, but ConfigError if its key is missing."""
    return PROVIDERS.load(config.kind)(opened(config))


def identity(config: ProviderConfig) -> Mapping[str, Json]:
    """Return all settings that can change answers of the provider of `config.kind`; needs no key."""
    return PROVIDERS.load(config.kind).identify(config)


def reader(kind: str) -> Reader | None:
    """Return the function that reads a stored reply; None for a kind of provider whose class has no `reply`."""
    return getattr(PROVIDERS.load(kind), "reply", None)


def beyond(who: str, config: ProviderConfig) -> str | None:
    """Return why texts sent to a model may leave; None if its kind sends nothing, or `local` is set without a proxy."""
    if egress.declared(PROVIDERS.load(config.kind)) == "local":
        return None
    return egress.forwarded(who, config.base_url, local=config.local)


def addresses(config: ProviderConfig) -> tuple[str, ...] | None:
    """Return the addresses that a model is asked at; empty if its kind sends nothing, None if it does not tell."""
    usual = egress.addresses(PROVIDERS.load(config.kind))
    return (config.base_url,) if config.base_url is not None and usual != () else usual


def key_variable(config: ProviderConfig) -> str | None:
    """Return the environment variable of the key; None where no key is sent."""
    if config.key_env is not None or config.base_url is not None:
        return config.key_env
    return getattr(PROVIDERS.load(config.kind), "usual_key", None)
