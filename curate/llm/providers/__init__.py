"""Providers by name: what moves text to a model and back, and knows nothing of relevance."""

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
"""Reads a reply in a vendor's text; None if there is none in it."""


class Maker(Protocol):
    """What is registered: a class of providers, which knows its identity before it is opened."""

    def __call__(self, config: ProviderConfig, /) -> "Provider":
        """Return a provider; ConfigError if its key is missing."""
        ...

    def identify(self, config: ProviderConfig, /) -> Mapping[str, Json]:
        """Return the identity of the provider of these settings; needs no key."""
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
    """Return the provider that `config.kind` names; nothing is sent, but its key must be there."""
    return PROVIDERS.load(config.kind)(opened(config))


def identity(config: ProviderConfig) -> Mapping[str, Json]:
    """Return what can change the answers of the provider that `config.kind` names; needs no key."""
    return PROVIDERS.load(config.kind).identify(config)


def reader(kind: str) -> Reader | None:
    """Return what reads a reply that was kept; None for a kind of provider whose class has no function `reply`."""
    return getattr(PROVIDERS.load(kind), "reply", None)


def beyond(who: str, config: ProviderConfig) -> str | None:
    """Return why what a model is sent may leave; None if its kind sends nothing, or its settings say that it stays."""
    if egress.declared(PROVIDERS.load(config.kind)) == "local":
        return None
    return egress.forwarded(who, config.base_url, local=config.local)


def key_variable(config: ProviderConfig) -> str | None:
    """Return the environment variable that the key is read from; None where none is sent."""
    if config.key_env is not None or config.base_url is not None:
        return config.key_env
    return getattr(PROVIDERS.load(config.kind), "usual_key", None)
