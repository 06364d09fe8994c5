"""How a model is reached: the settings of a provider, its key, and its identity in the ledger."""

import os
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, PrivateAttr, field_validator, model_validator

from curate.core.config import Json, Section, canonical
from curate.core.errors import ConfigError
from curate.llm.cost import Price
from curate.system import sealed_values

_OURS = frozenset({"max_completion_tokens", "max_tokens", "messages", "model", "n", "stream", "system", "temperature"})


class ProviderConfig(Section):
    """One model behind one address; the quirks of vendors are settings and are never guessed from a host name."""

    kind: str = "openai"
    """Which API it speaks: openai (and every API compatible with it) or anthropic."""
    model: str = Field(min_length=1)
    base_url: str | None = Field(default=None, repr=False)
    """Address of the API; None is the vendor's own."""
    key_env: str | None = Field(default=None, pattern=f"^{sealed_values.VARIABLE}$", repr=False)
    """Environment variable of the key; None is the usual one at the vendor's own address, and no key elsewhere."""
    local: bool = False
    """The user's word that the server at `base_url` keeps what it is sent; without it every address is remote."""
    vendor: str | None = None
    """Who serves the model, for the ledger; None is the address. Set it if the address may change and the model not."""
    json_mode: Literal["schema", "object", "none"] = "schema"
    """How the form of a reply is enforced: by a JSON schema, as any JSON object, or by the prompt alone."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105 - a field's name
    """Name of the bound of the answer; reasoning models of OpenAI want the second."""
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """None sends none: some models refuse it."""
    extra_body: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    """Further fields of the request's body, as the vendor names them; ${NAME} is read from the environment. Written
    down are names and digests of values."""
    timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    """Seconds for one whole call."""
    reply_bytes: int = Field(default=4_000_000, ge=1_000)
    """Longest body of a reply, compressed or not; a longer one is not read to its end, and its request has failed."""
    concurrency: int = Field(default=8, ge=1)
    """Calls at the same time."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """What the account may send; None is no limit that is known."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Prompt and answer tokens; None is no limit that is known."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Longest prompt and answer together; None is unknown."""
    batch: bool = False
    """Whether the address offers the batch API of its kind."""
    batch_items: int | None = Field(default=None, ge=1)
    """Most requests in a batch; None is what the vendor allows in general, and less once it refuses a whole batch."""
    price: Price | None = None
    """None: the cost is unknown."""
    tokens_a_han: float | None = Field(default=None, gt=0, le=5, allow_inf_nan=False)
    """Tokens that the model's tokenizer makes of a Chinese character; None is unknown. Plans need it until ten answers
    under the same rubric have told."""
    _written: dict[str, JsonValue] | None = PrivateAttr(default=None)
    """What `extra_body` was before its variables were read; None where they were not."""

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        try:
            parts = urlsplit(address)
            whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # its words repeat what may be a password
            whole = False
        if not whole and "@" not in address:
            raise ValueError("expected an address such as https://api.example.com/v1")
        if not whole or "@" in address or parts.query or parts.fragment:
            raise ValueError("an address holds no user, key or query; put the key into the variable of key_env")
        return address.rstrip("/")

    @field_validator("extra_body")
    @classmethod
    def _free_fields(cls, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if taken := sorted(_OURS & fields.keys()):
            raise ValueError(f"{', '.join(taken)} cannot be set here; use the settings of the same purpose")
        if wrong := sealed_values.problem(fields):
            raise ValueError(wrong)
        return fields

    @model_validator(mode="after")
    def _anthropic_limits(self) -> Self:
        if self.kind == "anthropic" and self.json_mode == "object":
            raise ValueError("anthropic has no json_mode `object`; use schema or none")
        if self.kind == "anthropic" and self.price and self.price.written is None:
            raise ValueError("anthropic bills tokens written to its cache apart; give price.written")
        return self


def key(config: ProviderConfig, usual: str) -> str | None:
    """Return the key from the environment, or None where none is wanted.

    ConfigError if it is missing, or stands in the settings themselves, whose identity is written down.

    The vendor's usual variable is read for the vendor's own address alone: a key is never sent to another one unless
    `key_env` says so.
    """
    variable = key_variable(config, usual)
    if variable is None:
        return None
    found, place = os.environ.get(variable, "").strip(), f"{config.kind} model {config.model!r}"
    if not found:
        raise ConfigError(f"{place}: the environment variable {variable} holds no key; type `export {variable}=...`")
    if found in canonical([config.model, config.vendor, config.base_url, written(config)]):
        raise ConfigError(f"{place}: its settings hold the key itself; take it out of them")
    return found


def key_variable(config: ProviderConfig, usual: str) -> str | None:
    """Return the environment variable of the key, None where no key is wanted."""
    return config.key_env or (usual if config.base_url is None else None)


def opened(config: ProviderConfig) -> ProviderConfig:
    """Return settings whose `extra_body` is as it is sent; ConfigError if a value of it is not to be had."""
    if config._written is not None:  # noqa: SLF001
        return config
    sealed_values.need_values(config.extra_body, _body(config))
    made = config.model_copy(update={"extra_body": sealed_values.opened(config.extra_body, _body(config))})
    made._written = config.extra_body  # noqa: SLF001
    return made


def _body(config: ProviderConfig) -> str:
    return f"{config.kind} model {config.model!r}: extra_body"


def written(config: ProviderConfig) -> dict[str, JsonValue]:
    """Return `extra_body` as it was given, with the variables that it names."""
    return config.extra_body if config._written is None else config._written  # noqa: SLF001


def secrets(config: ProviderConfig, key: str | None) -> list[str]:
    """Return what must not be read in a reply, longest first: the key, and private values of an opened `extra_body`."""
    found = [*([key] if key else []), *sealed_values.private(written(config), config.extra_body)]
    return sorted(found, key=len, reverse=True)


def identity(config: ProviderConfig, address: str) -> dict[str, Json]:
    """Return what can change an answer: who serves which model with which parameters, values of `extra_body` sealed."""
    return {
        "kind": config.kind,
        "vendor": config.vendor or address,
        "model": config.model,
        "json_mode": config.json_mode,
        "temperature": config.temperature,
        "extra_body": sealed_values.sealed(sealed_values.opened(written(config), _body(config))),
    }
