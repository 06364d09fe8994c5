"""What all providers over a vendor's SDK share: one call, one timeout, one place where foreign errors become ours.

SDK retries and timeouts are off. Who asks retries, and two layers of retries multiply; the timeout here is for a whole
call, where theirs is for each read.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from curate import servers
from curate.config import Json
from curate.errors import ProviderError
from curate.protocols import Reply, Request
from curate.providers.faults import Rejection, filtered, hidden, rejected
from curate.providers.settings import ProviderConfig, identity, key, key_variable

JSON: Any = {"headers": {"content-type": "application/json"}}
"""Options of a call whose body is JSON already."""
NO_KEY = "none"
"""Sent where a server wants no key, because the SDKs insist on one."""


class Rejected(Exception):
    """A reply with an HTTP status above 299."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        super().__init__(status)
        self.reply = Rejection(status, headers, body)


class Unreachable(Exception):
    """No reply: the connection failed, broke, or was too slow."""


class SdkProvider(ABC):
    """A provider; a subclass says how its vendor wants a request, and how it words a reply."""

    address: ClassVar[str]
    usual_key: ClassVar[str]
    _reached = False
    """Whether the host was ever found."""

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config
        self.name = f"{config.kind}:{config.model}"
        self.base_url = config.base_url or self.address
        self._key = key(config, self.usual_key)
        self.identity = self.identify(config)

    @classmethod
    def identify(cls, config: ProviderConfig) -> Mapping[str, Json]:
        """Return the identity of the provider of these settings; needs no key."""
        return identity(config, config.base_url or cls.address)

    async def answer(self, request: Request) -> Reply:
        """Return the reply; ProviderError says whether asking again is useless and how long to wait.

        An error by which a content filter refuses the prompt is a reply too: a refusal that names no model.
        """
        # `from None`: a foreign error can carry the key or the prompt into a traceback.
        try:
            async with asyncio.timeout(self.config.timeout_s):
                text = await self._post(encoded(self.body(request)))
            self._reached = True
        except Rejected as no:
            self._reached = True
            rejection = replace(no.reply, body=hidden(no.reply.body, self._key))
            if filtered(rejection):
                return Reply(None, "refusal", model="", usage=None, raw=rejection.body)
            raise rejected(self.name, rejection, request, key_variable(self.config, self.usual_key)) from None
        except Unreachable as fault:
            raise servers.silent(self.name, self.base_url, fault, str(fault), reached=self._reached) from None
        except TimeoutError:
            late = f"{self.name}: no answer within {self.config.timeout_s:g} s; raise timeout_s"
            raise ProviderError(late, overloaded=True) from None
        return self._reply(hidden(text, self._key))

    @abstractmethod
    async def close(self) -> None:
        """Give the connections back; the next answer opens new ones."""

    @abstractmethod
    def body(self, request: Request) -> dict[str, Json]:
        """Return the JSON that is sent for a request."""

    @staticmethod
    @abstractmethod
    def read(data: Mapping[str, object], raw: str) -> Reply | None:
        """Return the reply in a vendor's JSON, None if there is none in it."""

    @abstractmethod
    async def _post(self, body: bytes) -> str:
        """Send a JSON body and return the text of the reply; Rejected or Unreachable otherwise."""

    @classmethod
    def reply(cls, raw: str) -> Reply | None:
        """Return the reply in a vendor's text, fresh or kept, None if there is none in it."""
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        return cls.read(data, raw) if isinstance(data, dict) else None

    def _reply(self, raw: str) -> Reply:
        reply = self.reply(raw)
        if reply is None:
            raise ProviderError(f"{self.name}: {self.base_url} answered in an unknown form; check kind and base_url")
        return reply


def encoded(body: Mapping[str, Json]) -> bytes:
    """Return the body as JSON; faster than the SDKs' own way, which allows for types that ours never holds."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def merged(body: dict[str, Json], extra: Mapping[str, Json]) -> dict[str, Json]:
    """Return the body with further fields; where both hold a mapping, the mappings are joined."""
    whole = dict(body)
    for name, value in extra.items():
        ours = whole.get(name)
        both = isinstance(ours, Mapping) and isinstance(value, Mapping)
        whole[name] = {**ours, **value} if both else value  # type: ignore[dict-item]
    return whole


def inner(data: object, *names: str) -> object:
    """Return what stands under a path of names in nested mappings, None where a step is missing."""
    for name in names:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def count(data: object, *names: str) -> int | None:
    """Return the count under a path of names; None where there is none."""
    value = inner(data, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
