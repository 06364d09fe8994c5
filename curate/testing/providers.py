"""What a provider promises: replies in one form, one kind of error, and no secret in either."""

import asyncio
import json
from collections.abc import Callable

from curate.core.errors import ProviderError
from curate.core.messages import Message, Reply, Request
from curate.core.protocols import Provider
from curate.system.egress import understood

REQUEST = Request((Message("system", "You answer in one word."), Message("user", "Is 7,131 odd?")), max_tokens=50)


def check_provider(
    make: Callable[[], Provider], away: Callable[[], Provider], request: Request = REQUEST, *, key: str = ""
) -> None:
    """Check a provider that `make` connects to a server that answers `request`, and `away` to an address without one.

    `key` is what it signs in with: it stands in no identity, reply or error.
    """
    provider = make()
    assert understood(provider), 'egress is "local" for what sends nothing, "remote" for all else'
    identity = json.dumps(provider.identity)
    assert provider.identity, "an identity says what can change an answer"
    assert json.dumps(make().identity) == identity, "made again, it has the same identity"
    replies = asyncio.run(_replies(provider, request))
    for reply in replies:
        _check_reply(reply)
    assert not key or key not in identity + repr(replies) + "".join(reply.raw for reply in replies), "no key comes out"
    error = asyncio.run(_failure(away(), request))
    assert isinstance(error, ProviderError), f"a server that is not there is a ProviderError, found {error!r}"
    said = f"{error} {error!r}"
    assert not key or key not in said, "no error holds the key"
    assert not any(turn.content in said for turn in request.messages), "no error holds a text"


def _check_reply(reply: Reply) -> None:
    assert isinstance(reply, Reply), "a provider gives replies"
    assert (isinstance(reply.text, str), reply.finish) == (True, "stop"), "what was asked is answered, and to its end"
    assert reply.model, "a reply names its model"
    used = reply.usage
    if used is not None:  # unknown is None, not 0
        counts = (used.prompt, used.cached, used.written, used.output, used.reasoning)
        assert all(isinstance(count, int) and count >= 0 for count in counts), "tokens are counted"
        assert used.cached + used.written <= used.prompt, "cached and written tokens are parts of the prompt"
        assert used.reasoning <= used.output, "reasoning is a part of the output"


async def _replies(provider: Provider, request: Request) -> list[Reply]:
    """Return the reply to one call, then to two at the same time."""
    try:
        first = await provider.answer(request)
        return [first, *await asyncio.gather(provider.answer(request), provider.answer(request))]
    finally:
        await provider.close()


async def _failure(provider: Provider, request: Request) -> BaseException | None:
    try:
        await provider.answer(request)
    except Exception as error:  # noqa: BLE001 - any error is looked at
        return error
    finally:
        await provider.close()
    return None
