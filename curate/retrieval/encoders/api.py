"""Encoder by a server with OpenAI's embeddings API: a provider, vLLM, Ollama, text-embeddings-inference."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import httpx
import numpy as np
from pydantic import Field

from curate.core.config import Section, digest
from curate.core.errors import ConfigError, ProviderError
from curate.core.protocols import Vectors
from curate.core.records import Role
from curate.retrieval.similarity.exact_search import unit
from curate.system import http
from curate.system import http as retries
from curate.system.egress import Egress, forwarded

_SHORTEST = 1e-18
"""Minimum of a vector's largest absolute entry, and inverse of its maximum: else squares under- or overflow float32."""

_NO_MATTER = {"key_env", "batch_size", "local", "timeout_s", "attempts"}
"""Settings that vectors do not depend on, left out of the cache key."""


class Config(Section):
    """Address, model and limits of the server."""

    base_url: str = Field(pattern=http.ADDRESS, repr=False)
    """Address that `/embeddings` is added to, for example https://api.example.com/v1."""
    model: str = Field(min_length=1)
    dim: int = Field(ge=1)
    """Length of a vector."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; None for a server without keys."""
    query_prompt: str = ""
    """Prefix of every query."""
    document_prompt: str = ""
    """Prefix of every document."""
    batch_size: int = Field(default=64, ge=1)
    local: bool = False
    """The user declares that the server at `base_url` keeps what it is sent; without it every address is remote."""
    timeout_s: float = Field(default=60.0, gt=0)
    attempts: int = Field(default=5, ge=1)
    """Attempts per batch before its error is raised."""


class Api:
    """Encoder of texts by requests `POST {base_url}/embeddings`."""

    egress: ClassVar[Egress] = "remote"

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config, self.dim = name, config, config.dim
        self.revision = digest(config.model_dump(exclude=_NO_MATTER))[:16]
        self._url = f"{config.base_url.rstrip('/')}/embeddings"
        key = http.key(f"encoders.{name}", config.key_env)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def __reduce__(self) -> tuple[type["Api"], tuple[str, Config]]:
        return type(self), (self.name, self.config)  # a copy in another process reads its key from there

    @property
    def prompts(self) -> Mapping[Role, str]:
        """Return role -> prefix that is put before its texts."""
        return {"query": self.config.query_prompt, "document": self.config.document_prompt}

    @property
    def address(self) -> str:
        """Return the address that texts are sent to."""
        return self.config.base_url

    def beyond(self, who: str) -> str | None:
        """Return why texts may leave the user's control; None if `local` is set and there is no proxy."""
        return forwarded(who, self.config.base_url, local=self.config.local)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one normalised row per text, shape (len(texts), dim).

        ProviderError if the server fails, ConfigError if its vectors have another length than `dim`.
        """
        prompt = self.config.query_prompt if role == "query" else self.config.document_prompt
        rows = np.empty((len(texts), self.dim), dtype=np.float32)
        with httpx.Client(headers=self._headers, timeout=self.config.timeout_s) as client:
            for start in range(0, len(texts), self.config.batch_size):
                batch = [prompt + text for text in texts[start : start + self.config.batch_size]]
                rows[start : start + len(batch)] = retries.again(self.config.attempts)(self._post, client, batch)
        return unit(rows)

    def _post(self, client: httpx.Client, texts: Sequence[str]) -> Vectors:
        # `from None`: a foreign error can carry the key or a text into a traceback.
        try:
            response = client.post(self._url, json={"model": self.config.model, "input": list(texts)})
        except httpx.HTTPError as error:
            raise http.silent(f"encoders.{self.name}", self._url, error, type(error).__name__) from None
        if response.status_code != httpx.codes.OK:
            raise http.refused(
                f"encoders.{self.name}",
                self._url,
                response.status_code,
                response.headers,
                self.config.key_env,
                "base_url, model and key",
            )
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, count: int) -> Vectors:
        try:
            entries = sorted(response.json()["data"], key=lambda entry: entry["index"])
            indices = [entry["index"] for entry in entries]
            rows = np.asarray([entry["embedding"] for entry in entries], dtype=np.float32)
        except (ValueError, KeyError, TypeError):
            indices, rows = [], np.empty(0, dtype=np.float32)
        if rows.ndim != 2 or indices != list(range(count)) or not np.isfinite(rows).all():
            raise ProviderError(
                f"encoders.{self.name}: the reply of {self._url} does not hold {count} embeddings; check base_url",
                fatal=True,
            )
        if rows.shape[1] != self.dim:
            raise ConfigError(f"encoders.{self.name}.dim: found vectors of length {rows.shape[1]}, expected {self.dim}")
        # such rows cannot be divided by their length in float32
        largest = np.abs(rows).max(axis=1)
        if empty := int(((largest < _SHORTEST) | (largest > 1 / _SHORTEST)).sum()):
            raise ProviderError(
                f"encoders.{self.name}: {empty} of {count} embeddings of {self._url} have the length 0, or one that "
                "nothing can be divided by, and say nothing of their texts; check the model",
                fatal=True,
            )
        return rows
