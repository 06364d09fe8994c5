"""A server that speaks the OpenAI embeddings protocol: a vendor, vLLM, Ollama, text-embeddings-inference."""

import datetime as dt
import os
from collections.abc import Sequence

import httpx
import numpy as np
from pydantic import Field
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from curate import pauses
from curate.config import Section, digest
from curate.errors import AccessError, ConfigError, ProviderError
from curate.protocols import Vectors
from curate.records import Role
from curate.search import unit


class Config(Section):
    """Where the server is and how it is asked."""

    base_url: str = Field(pattern=r"^https?://[^/@?#]+[^@?#]*$")
    """Address that `/embeddings` is added to, for example https://api.example.com/v1."""
    model: str = Field(min_length=1)
    dim: int = Field(ge=1)
    """Length of a vector."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; None for a server without keys."""
    query_prompt: str = ""
    """Put in front of every query."""
    document_prompt: str = ""
    """Put in front of every document."""
    batch_size: int = Field(default=64, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    attempts: int = Field(default=5, ge=1)
    """How often a batch is sent before its error stands."""


class Api:
    """Encode texts by POST {base_url}/embeddings."""

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config, self.dim = name, config, config.dim
        self.revision = digest(config.model_dump(exclude={"key_env", "batch_size", "timeout_s", "attempts"}))[:16]
        self._url = f"{config.base_url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {_key(name, config.key_env)}"} if config.key_env else {}

    def __reduce__(self) -> tuple[type["Api"], tuple[str, Config]]:
        return type(self), (self.name, self.config)  # a copy in another process reads its key from there

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised row a text, shape (len(texts), dim).

        ProviderError if the server fails, ConfigError if its vectors have another length than `dim`.
        """
        prompt = self.config.query_prompt if role == "query" else self.config.document_prompt
        rows = np.empty((len(texts), self.dim), dtype=np.float32)
        with httpx.Client(headers=self._headers, timeout=self.config.timeout_s) as client:
            for start in range(0, len(texts), self.config.batch_size):
                part = [prompt + text for text in texts[start : start + self.config.batch_size]]
                rows[start : start + len(part)] = self._batch(client, part)
        return unit(rows)

    def _batch(self, client: httpx.Client, texts: Sequence[str]) -> Vectors:
        retrying = Retrying(
            stop=stop_after_attempt(self.config.attempts),
            wait=_wait,
            retry=retry_if_exception(lambda error: isinstance(error, ProviderError) and not error.fatal),
            reraise=True,
        )
        rows: Vectors = retrying(self._post, client, texts)
        return rows

    def _post(self, client: httpx.Client, texts: Sequence[str]) -> Vectors:
        # `from None`: a foreign error can carry the key or a text into a traceback.
        try:
            response = client.post(self._url, json={"model": self.config.model, "input": list(texts)})
        except httpx.HTTPError as error:
            raise ProviderError(f"encoders.{self.name}: no answer from {self._url} ({type(error).__name__})") from None
        status = response.status_code
        if status != httpx.codes.OK:
            fatal = not pauses.may_pass(status)
            denied = status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
            kind = AccessError if denied else ProviderError
            remedy = f"; {_remedy(denied, self.config.key_env)}" if fatal else ""
            raise kind(
                f"encoders.{self.name}: {self._url} answered HTTP {status}{remedy}",
                fatal=fatal,
                retry_after=pauses.asked(response.headers, dt.datetime.now(dt.UTC)),
            )
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, count: int) -> Vectors:
        try:
            items = sorted(response.json()["data"], key=lambda item: item["index"])
            places = [item["index"] for item in items]
            rows = np.asarray([item["embedding"] for item in items], dtype=np.float32)
        except (ValueError, KeyError, TypeError):
            places, rows = [], np.empty(0, dtype=np.float32)
        if rows.ndim != 2 or places != list(range(count)) or not np.isfinite(rows).all():
            raise ProviderError(
                f"encoders.{self.name}: the reply of {self._url} does not hold {count} embeddings; check base_url",
                fatal=True,
            )
        if rows.shape[1] != self.dim:
            raise ConfigError(f"encoders.{self.name}.dim: found vectors of length {rows.shape[1]}, expected {self.dim}")
        return rows


def _key(name: str, variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"encoders.{name}.key_env: no key in ${variable}; set it with: export {variable}=...")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"encoders.{name}.key_env: ${variable} holds characters that no key has; set it again")
    return key


def _remedy(denied: bool, variable: str | None) -> str:
    if not denied:
        return "check base_url, model and key"
    return f"check the key in ${variable}" if variable else "it wants a key: name its environment variable with key_env"


def _wait(state: RetryCallState) -> float:
    """Return the seconds the server asked for, 300 at most, else a random time that doubles with each attempt."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ProviderError) else None
    return wait_exponential_jitter(multiplier=0.5, max=30)(state) if asked is None else min(asked, pauses.LONGEST_S)
