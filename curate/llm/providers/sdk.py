"""What all providers over a vendor's SDK share: one call, one timeout, one place where foreign errors become ours.

SDK retries and timeouts are off. Who asks retries, and two layers of retries multiply; the timeout here is for a whole
call, where theirs is for each read.
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
from curate.llm.providers.way import SENDING, TooLarge, Way
from curate.system import http
from curate.system.egress import Egress

if TYPE_CHECKING:
    import httpx2

KEPT = 256_000
"""Characters of a reply that are read and kept, at most."""
MOST_SAID = 2_000
"""Characters that are kept of what cannot be read."""
_LONGEST, _LONGEST_NAME, _MOST_PARTS, _DEEPEST = 64_000, 200, 50, 8
JSON: Any = {"headers": {"content-type": "application/json"}}
"""Options of a call whose body is JSON already."""
TEXTS = ("text", "output_text")
"""Types of the parts of an answer that are not thoughts."""
NO_KEY = "none"
"""Sent where a server wants no key, because the SDKs insist on one."""


class Rejected(Exception):
    """A reply with an HTTP status above 299."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        super().__init__(status)
        self.reply = Rejection(status, headers, body)


class Unreachable(Exception):
    """No reply that can be read: the connection failed or broke, or the body is longer than it may be."""

    def __init__(self, error: BaseException) -> None:
        cause = error.__cause__ or error
        super().__init__(type(cause).__name__)
        self.too_large = isinstance(cause.__cause__, TooLarge)


class SdkProvider(ABC):
    """A provider; a subclass says how its vendor wants a request, and how it words a reply."""

    egress: ClassVar[Egress] = "remote"
    sdk: ClassVar[str]
    """Name of the vendor's package."""
    address: ClassVar[str]
    path: ClassVar[str]
    """Where requests go below the address."""
    usual_key: ClassVar[str]
    _client: Any = None
    """The SDK's client, built at the first call: its connections belong to the event loop which uses them."""
    _reached = False
    """Whether the host was ever found."""

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
        """Return the reply; ProviderError says whether asking again is useless and how long to wait.

        An error by which a content filter refuses the prompt is a reply too: a refusal that names no model.
        """
        # `from None`: a foreign error can carry the key or the prompt into a traceback.
        sending = SENDING.set(way := Way())
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
            raise self._unanswerable(fault, way) from None
        except TimeoutError:
            late = f"{self.name}: no answer within {self.config.timeout_s:g} s; raise timeout_s"
            raise ProviderError(late, overloaded=True, unknown=way.sent) from None
        finally:
            SENDING.reset(sending)
        return self._reply(hidden(text, self._secrets), request)

    def _unanswerable(self, fault: Unreachable, way: Way) -> ProviderError:
        if fault.too_large:
            most = f"{self.config.reply_bytes / 1e6:g} MB"
            long = f"{self.name}: {self.base_url} answered with more than {most}; raise reply_bytes if that is right"
            return ProviderError(long, useless=True, unknown=True)
        error = http.silent(self.name, self.base_url, fault, str(fault), reached=self._reached)
        error.unknown = way.sent
        return error

    async def close(self) -> None:
        """Give the connections back; the next answer opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @abstractmethod
    def body(self, request: Request) -> dict[str, Json]:
        """Return the JSON that is sent for a request."""

    @staticmethod
    @abstractmethod
    def read(data: Mapping[str, object], raw: str) -> Reply | None:
        """Return the reply in a vendor's JSON, None if there is none in it."""

    async def _post(self, body: bytes) -> str:
        """Send a JSON body and return the text of the reply; Rejected or Unreachable otherwise."""
        import httpx2

        place = f"{self.base_url}{self.path}"  # the SDK takes longer to join a path than to read an address
        with self._faults():
            response = await self._open().post(place, content=body, options=JSON, cast_to=httpx2.Response)
        text: str = response.text
        return text

    @abstractmethod
    def _open(self) -> Any:  # noqa: ANN401 - of a class of the vendor's package
        """Return the SDK's client, made with `_options` unless there is one."""

    def _options(self) -> dict[str, Any]:
        """Return how the SDK's client is made."""
        return {
            "api_key": self._key or NO_KEY,
            "base_url": self.base_url,
            "timeout": None,  # each call has its own bound
            "max_retries": 0,
            "http_client": self._http(),
        }

    def _http(self) -> "httpx2.AsyncClient":
        """Return what sends a request beneath the SDK."""
        from curate.llm.providers.transport import Client

        return Client(self.base_url, self.config.concurrency, self.config.reply_bytes)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn the SDK's errors into Rejected and Unreachable."""
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
        """Return the reply in a vendor's text, fresh or kept, None if there is none in it."""
        try:
            data = json.loads(raw, parse_int=_whole)
        except (ValueError, RecursionError):
            return None
        return cls.read(data, raw) if isinstance(data, dict) else None

    def _reply(self, raw: str, request: Request | None = None) -> Reply:
        """Return the reply in a text that a vendor sent; of a long one no more is read than can be kept."""
        reply = self.reply(shortened(raw))
        if reply is not None:
            return reply
        if (status := told_status(raw)) is not None:  # an error in the place of an answer, as a proxy passes it on
            rejection = Rejection(status, {}, raw)
            raise rejected(self.name, rejection, request, key_variable(self.config, self.usual_key))
        form = "with a web page" if raw.lstrip()[:1] == "<" else "in an unknown form"
        wrong = f"{self.name}: {self.base_url} answered {form}; check kind and base_url"
        empty = re.search(r'"choices"\s*:\s*(null|\[\s*\])', raw) is not None  # nothing was made that could be billed
        raise ProviderError(
            wrong, unknown=not empty, garbled=True, said="" if request and request.private else raw[:MOST_SAID]
        )


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


def shortened(raw: str) -> str:
    """Return the JSON of a reply as it is, or with its long strings cut and its long lists ended if it is over KEPT.

    What is read is what the ledger keeps, so it gives the same ratings whenever it is read again. Empty if cutting does
    not help, or if there is nothing to cut.
    """
    if len(raw) <= KEPT:
        return raw
    try:
        short = json.dumps(_cut(json.loads(raw, parse_int=_whole), _DEEPEST), ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
    return short if len(short) <= KEPT else ""


def _cut(data: object, depth: int) -> object:
    if isinstance(data, str):
        return data[:_LONGEST]
    if isinstance(data, dict) and depth:
        return {name[:_LONGEST_NAME]: _cut(each, depth - 1) for name, each in islice(data.items(), _MOST_PARTS)}
    if isinstance(data, list) and depth:
        return [_cut(each, depth - 1) for each in data[:_MOST_PARTS]]
    return None if isinstance(data, dict | list) else data


def _whole(digits: str) -> int | float:
    """Read a whole number; one too long for any count stays a number, where `int` would raise."""
    return int(digits) if len(digits) < _LONGEST_NAME else float(digits)


def model_id(data: Mapping[str, object]) -> str:
    """Return the model that a reply names, empty if it names none."""
    model = data.get("model")
    return model[:_LONGEST_NAME] if isinstance(model, str) else ""


def inner(data: object, *names: str) -> object:
    """Return what stands under a path of names in nested mappings, None where a step is missing."""
    for name in names:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def spoken(blocks: Sequence[object]) -> str | None:
    """Return the texts among the parts of an answer, joined, None if there are none; thoughts are no text."""
    texts = [inner(block, "text") for block in blocks if inner(block, "type") in TEXTS]
    return "".join(text for text in texts if isinstance(text, str)) if texts else None


def count(data: object, *names: str) -> int | None:
    """Return the count under a path of names: None where nothing stands there, -1 for what is no count of tokens."""
    value = inner(data, *names)
    if value is None:
        return None
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else -1
