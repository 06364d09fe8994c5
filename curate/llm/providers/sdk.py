"""Base of providers that use an SDK: one call, one timeout, and conversion of its errors to ProviderError.

SDK retries and timeouts are off. The caller retries, and two layers of retries multiply; the timeout here is for a
complete call, where the SDK's is for each read.
"""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import Reply, Request
from curate.llm.cost import MOST_TOKENS
from curate.llm.providers.errors import Rejection, filtered, hidden, rejected, told_status
from curate.llm.providers.settings import ProviderConfig, identity, key, key_variable, opened, secrets
from curate.llm.providers.transport import SENDING, TooLarge, Way
from curate.system import http
from curate.system.egress import Egress

if TYPE_CHECKING:
    import httpx2

KEPT = 256_000
"""Maximum characters of a reply that are parsed and stored."""
MOST_SAID = 2_000
"""Maximum characters of an unreadable reply that are stored."""
_LONGEST, _LONGEST_NAME, _MOST_PARTS, _DEEPEST = 64_000, 200, 50, 8
JSON: Any = {"headers": {"content-type": "application/json"}}
"""Options of a call whose body is encoded already."""
TEXTS = ("text", "output_text")
"""Types of content blocks that are the answer, not reasoning."""
NO_KEY = "none"
"""Placeholder for a server without keys, because the SDKs require one."""


class Rejected(Exception):
    """A reply with an HTTP status above 299."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        super().__init__(status)
        self.reply = Rejection(status, headers, body)


class Unreachable(Exception):
    """No readable reply: the connection failed or broke, or the body exceeds `reply_bytes`."""

    def __init__(self, error: BaseException) -> None:
        cause = error.__cause__ or error
        super().__init__(type(cause).__name__)
        self.too_large = isinstance(cause.__cause__, TooLarge)


class SdkProvider(ABC):
    """A provider; subclasses define the JSON of requests and replies."""

    egress: ClassVar[Egress] = "remote"
    sdk: ClassVar[str]
    """Name of the SDK's package."""
    address: ClassVar[str]
    path: ClassVar[str]
    """Path of requests below the address."""
    usual_key: ClassVar[str]
    _client: Any = None
    """The SDK's client, made at the first call, for its connections belong to that event loop."""
    _reached = False
    """Whether the host ever answered."""

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config = opened(config)
        self.name = f"{config.kind}:{config.model}"
        self.base_url = config.base_url or self.address
        self._key = key(config, self.usual_key)
        self._secrets = secrets(config, self._key)
        self.identity = self.identify(config)

    @classmethod
    def identify(cls, config: ProviderConfig) -> Mapping[str, Json]:
        """Return the identity of the provider of these settings; needs no key."""
        return identity(config, config.base_url or cls.address)

    async def answer(self, request: Request) -> Reply:
        """Return the reply; ProviderError tells whether a retry is useless and how long to wait.

        The error of a content filter is a reply too: a refusal without the name of a model.
        """
        # `from None`: the SDK's error can carry the key or the prompt into a traceback
        sending = SENDING.set(transfer := Way())
        try:
            async with asyncio.timeout(self.config.timeout_s):
                text = await self._post(encoded(self.body(request)))
            self._reached = True
        except Rejected as no:
            self._reached = True
            rejection = replace(no.reply, body=hidden(no.reply.body, self._secrets))
            if filtered(rejection):
                return Reply(None, "refusal", model="", usage=None, raw=rejection.body)
            raise rejected(self.name, rejection, request, key_variable(self.config, self.usual_key)) from None
        except Unreachable as fault:
            raise self._unanswerable(fault, transfer) from None
        except TimeoutError:
            late = f"{self.name}: no answer within {self.config.timeout_s:g} s; raise timeout_s"
            raise ProviderError(late, overloaded=True, unknown=transfer.sent) from None
        finally:
            SENDING.reset(sending)
        return self._reply(hidden(text, self._secrets), request)

    def _unanswerable(self, fault: Unreachable, transfer: Way) -> ProviderError:
        if fault.too_large:
            most = f"{self.config.reply_bytes / 1e6:g} MB"
            message = f"{self.name}: {self.base_url} answered with more than {most}; raise reply_bytes if that is right"
            return ProviderError(message, useless=True, unknown=True)
        error = http.silent(self.name, self.base_url, fault, str(fault), reached=self._reached)
        error.unknown = transfer.sent
        return error

    async def close(self) -> None:
        """Close the connections; the next answer opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @abstractmethod
    def body(self, request: Request) -> dict[str, Json]:
        """Return the JSON body of a request."""

    @staticmethod
    @abstractmethod
    def read(answer: Mapping[str, object], raw: str) -> Reply | None:
        """Return the reply in a provider's JSON, None if it contains none."""

    async def _post(self, body: bytes) -> str:
        """Send a JSON body and return the text of the reply; Rejected or Unreachable otherwise."""
        import httpx2

        url = f"{self.base_url}{self.path}"  # joining a path in the SDK takes longer than parsing a complete URL
        with self._faults():
            response = await self._open().post(url, content=body, options=JSON, cast_to=httpx2.Response)
        text: str = response.text
        return text

    @abstractmethod
    def _open(self) -> Any:  # noqa: ANN401 - of a class of the vendor's package
        """Return the SDK's client, made with `_options` unless there is one."""

    def _options(self) -> dict[str, Any]:
        return {
            "api_key": self._key or NO_KEY,
            "base_url": self.base_url,
            "timeout": None,  # each call has its own bound
            "max_retries": 0,
            "http_client": self._http(),
        }

    def _http(self) -> "httpx2.AsyncClient":
        """Return the HTTP client for the SDK; the clients of batches have another one."""
        from curate.llm.providers.transport import Client

        return Client(self.base_url, self.config.concurrency, self.config.reply_bytes)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Convert the SDK's errors to Rejected and Unreachable."""
        import httpx2

        vendor = import_module(self.sdk)
        try:
            yield
        except vendor.APIStatusError as error:
            raise Rejected(error.status_code, error.response.headers, error.response.text) from error
        except (vendor.APIError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise Unreachable(error) from error

    @classmethod
    def reply(cls, raw: str) -> Reply | None:
        """Return the reply in a provider's text, new or from the ledger; None if it contains none."""
        try:
            parsed = json.loads(raw, parse_int=_parsed_integer)
        except (ValueError, RecursionError):
            return None
        return cls.read(parsed, raw) if isinstance(parsed, dict) else None

    def _reply(self, raw: str, request: Request | None = None) -> Reply:
        """Return the reply in a provider's text, shortened as in the ledger; ProviderError if it contains none."""
        reply = self.reply(shortened(raw))
        if reply is not None:
            return reply
        if (status := told_status(raw)) is not None:  # an error with status 200, as some proxies send it
            rejection = Rejection(status, {}, raw)
            raise rejected(self.name, rejection, request, key_variable(self.config, self.usual_key))
        form = "with a web page" if raw.lstrip()[:1] == "<" else "in an unknown form"
        message = f"{self.name}: {self.base_url} answered {form}; check kind and base_url"
        # without a choice no answer was generated that could be charged
        has_no_choice = re.search(r'"choices"\s*:\s*(null|\[\s*\])', raw) is not None
        raise ProviderError(
            message,
            unknown=not has_no_choice,
            garbled=True,
            said="" if request and request.private else raw[:MOST_SAID],
        )


def encoded(body: Mapping[str, Json]) -> bytes:
    """Return the body as JSON; faster than the SDKs' encoder, which supports types that no body contains."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def merged(body: dict[str, Json], extra: Mapping[str, Json]) -> dict[str, Json]:
    """Return the body with the fields of `extra`; where both have a mapping, these are merged, one level deep."""
    fields = dict(body)
    for name, extra_field in extra.items():
        field = fields.get(name)
        are_mappings = isinstance(field, Mapping) and isinstance(extra_field, Mapping)
        fields[name] = {**field, **extra_field} if are_mappings else extra_field  # type: ignore[dict-item]
    return fields


def shortened(raw: str) -> str:
    """Return the JSON of a reply unchanged, or, if it is longer than `KEPT`, with long strings and lists cut.

    The ledger stores the same text, so reading it again gives the same ratings. Empty if it is too long after cutting
    too, or if it is no JSON.
    """
    if len(raw) <= KEPT:
        return raw
    try:
        short = json.dumps(_cut(json.loads(raw, parse_int=_parsed_integer), _DEEPEST), ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
    return short if len(short) <= KEPT else ""


def _cut(content: object, depth: int) -> object:
    if isinstance(content, str):
        return content[:_LONGEST]
    if isinstance(content, dict) and depth:
        return {name[:_LONGEST_NAME]: _cut(child, depth - 1) for name, child in islice(content.items(), _MOST_PARTS)}
    if isinstance(content, list) and depth:
        return [_cut(child, depth - 1) for child in content[:_MOST_PARTS]]
    return None if isinstance(content, dict | list) else content


def _parsed_integer(digits: str) -> int | float:
    # `int` raises for too many digits
    return int(digits) if len(digits) < _LONGEST_NAME else float(digits)


def model_id(answer: Mapping[str, object]) -> str:
    """Return the model that a reply names, at most `_LONGEST_NAME` characters; empty if it names none."""
    model = answer.get("model")
    return model[:_LONGEST_NAME] if isinstance(model, str) else ""


def inner(content: object, *names: str) -> object:
    """Return the value at a path of names in nested mappings, None where a step is missing."""
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def spoken(blocks: Sequence[object]) -> str | None:
    """Return the joined texts of an answer's content blocks, without reasoning; None if there are none."""
    texts = [inner(block, "text") for block in blocks if inner(block, "type") in TEXTS]
    return "".join(text for text in texts if isinstance(text, str)) if texts else None


def count(content: object, *names: str) -> int | None:
    """Return the token count at a path of names: None where it is missing, -1 for an impossible one."""
    number = inner(content, *names)
    if number is None:
        return None
    return number if type(number) is int and 0 <= number <= MOST_TOKENS else -1
