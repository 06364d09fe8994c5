"""Settings of a provider, its key, and its identity in the ledger."""

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
    """One model at one address; quirks of providers are settings, never guessed from a host name."""

    kind: str = "openai"
    """API: openai (and every API compatible with it) or anthropic."""
    model: str = Field(min_length=1)
    base_url: str | None = Field(default=None, repr=False)
    """Address of the API; None is the provider's own."""
    key_env: str | None = Field(default=None, pattern=f"^{sealed_values.VARIABLE}$", repr=False)
    """Environment variable of the key; None is the usual one at the provider's own address, and no key elsewhere."""
    local: bool = False
    """The user declares that the server at `base_url` keeps what it is sent; without it any address is remote."""
    vendor: str | None = None
    """Provider of the model, for the ledger; None is the address. Set it if the address may change, the model not."""
    json_mode: Literal["schema", "object", "none"] = "schema"
    """How the form of a reply is enforced: by a JSON schema, as any JSON object, or only by the prompt."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105 - a field's name
    """Field with the token limit of the answer; reasoning models of OpenAI require the second."""
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """None sends no temperature, which some models refuse."""
    extra_body: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    """Further fields of the request's body, as the provider names them; ${NAME} is read from the environment. Run
    folder and ledger store names, and digests of values."""
    timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    """Maximum seconds of a complete call."""
    reply_bytes: int = Field(default=4_000_000, ge=1_000)
    """Maximum bytes of a reply's body, compressed or not; a request with a longer one fails."""
    concurrency: int = Field(default=8, ge=1)
    """Maximum calls at the same time."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Rate limit of the account; None if no limit is known."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Rate limit of prompt and answer tokens together; None if no limit is known."""
    context_tokens: int | None = Field(default=None, ge=1)
    """Maximum tokens of prompt and answer together; None is unknown."""
    batch: bool = False
    """Whether the address offers the batch API of its kind."""
    batch_items: int | None = Field(default=None, ge=1)
    """Maximum requests in a batch; None is the provider's usual limit, lowered when it refuses a batch."""
    price: Price | None = None
    """None: the cost is unknown."""
    tokens_a_han: float | None = Field(default=None, gt=0, le=5, allow_inf_nan=False)
    """Tokens that the model's tokenizer needs for a Chinese character; None is unknown. Plans use it until there are
    ten answers under the same rubric to estimate it from."""
    _written: dict[str, JsonValue] | None = PrivateAttr(default=None)
    """`extra_body` with its ${NAME}; None until they are read."""

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        try:
            url = urlsplit(address)
            is_valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:  # its message may quote a password
            is_valid = False
        if not is_valid and "@" not in address:
            raise ValueError("expected an address such as https://api.example.com/v1")
        if not is_valid or "@" in address or url.query or url.fragment:
            raise ValueError("an address holds no user, key or query; put the key into the variable of key_env")
        return address.rstrip("/")

    @field_validator("extra_body")
    @classmethod
    def _free_fields(cls, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if reserved := sorted(_OURS & fields.keys()):
            raise ValueError(f"{', '.join(reserved)} cannot be set here; use the settings of the same purpose")
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

    ConfigError if it is missing, or if the settings contain it, for their identity is stored in the ledger.

    The provider's usual variable is read only for the provider's own address: no key is sent to another one unless
    `key_env` is set.
    """
    variable = key_variable(config, usual)
    if variable is None:
        return None
    secret, where = os.environ.get(variable, "").strip(), f"{config.kind} model {config.model!r}"
    if not secret:
        raise ConfigError(f"{where}: the environment variable {variable} holds no key; type `export {variable}=...`")
    if secret in canonical([config.model, config.vendor, config.base_url, written(config)]):
        raise ConfigError(f"{where}: its settings hold the key itself; take it out of them")
    return secret


def key_variable(config: ProviderConfig, usual: str) -> str | None:
    """Return the environment variable of the key, None where no key is wanted."""
    return config.key_env or (usual if config.base_url is None else None)


def opened(config: ProviderConfig) -> ProviderConfig:
    """Return settings with the variables of `extra_body` read; ConfigError if a value is missing or only a digest."""
    if config._written is not None:  # noqa: SLF001
        return config
    sealed_values.need_values(config.extra_body, _body(config))
    with_values = config.model_copy(update={"extra_body": sealed_values.opened(config.extra_body, _body(config))})
    with_values._written = config.extra_body  # noqa: SLF001
    return with_values


def _body(config: ProviderConfig) -> str:
    return f"{config.kind} model {config.model!r}: extra_body"


def written(config: ProviderConfig) -> dict[str, JsonValue]:
    """Return `extra_body` as configured, with its ${NAME} in place."""
    return config.extra_body if config._written is None else config._written  # noqa: SLF001


def secrets(config: ProviderConfig, key: str | None) -> list[str]:
    """Return the texts to hide in replies, longest first: the key, and private values of an opened `extra_body`."""
    hidden_texts = [*([key] if key else []), *sealed_values.private(written(config), config.extra_body)]
    # longest first, so that a text within a longer one does not leave the rest of that to be seen
    return sorted(hidden_texts, key=len, reverse=True)


def identity(config: ProviderConfig, address: str) -> dict[str, Json]:
    """Return all settings that can change an answer, with values of `extra_body` sealed."""
    return {
        "kind": config.kind,
        "vendor": config.vendor or address,
        "model": config.model,
        "json_mode": config.json_mode,
        "temperature": config.temperature,
        "extra_body": sealed_values.sealed(sealed_values.opened(written(config), _body(config))),
    }
