"""Which request goes where."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.vendor import anthropic_batches, openai_batches
from tests.vendor.batches import Batches
from tests.vendor.http import Asked, Handler
from tests.vendor.records import Answer, call
from tests.vendor.refused import Refused
from tests.vendor.state import Vendor
from tests.vendor.wording import worded

Route = Callable[..., Mapping[str, Any] | bytes]


def handler(state: Vendor, batches: Batches) -> Handler:
    """Return what answers a request: by the script online, from the kept batches, or with the counters."""

    async def handle(asked: Asked) -> tuple[Answer, bytes]:
        if asked.path in ("/counters", "/pressed"):
            found = state.counters() if asked.path == "/counters" else state.pressed()
            return Answer(None), json.dumps(found, ensure_ascii=False).encode()
        if asked.method != "POST" or not asked.path.endswith(("/chat/completions", "/messages")):
            answer, body = _around_batches(state, batches, asked)
            await asyncio.sleep(answer.delay)
            return answer, body
        with state.open():
            answer = state.answer(call(_api(asked), json.loads(asked.body), asked.headers))
            await asyncio.sleep(answer.delay)
        return answer, _body(_api(asked), answer)

    return handle


def _around_batches(state: Vendor, batches: Batches, asked: Asked) -> tuple[Answer, bytes]:
    fault = batches.rules.trouble(asked.method, asked.path)
    answer = state.denied(asked.headers) or (fault or replace)(Answer(None))
    if answer.status != 200 or answer.page is not None:  # refused before anything is done
        return answer, _body(_api(asked), answer)
    try:
        with state.lock:
            said = _done(batches, asked)
    except Refused as no:
        answer = Answer(None, status=no.status, code=no.code, message=no.message)
        return answer, _body(_api(asked), answer)
    return answer, said if isinstance(said, bytes) else json.dumps(said, ensure_ascii=False).encode()


def _done(batches: Batches, asked: Asked) -> Mapping[str, Any] | bytes:
    routes: Mapping[tuple[str, str], Route] = {**openai_batches.ROUTES, **anthropic_batches.ROUTES}
    for (method, pattern), route in routes.items():
        found = re.fullmatch(rf"(?:/v1)?{pattern}", asked.path)
        if found and method == asked.method:
            return route(batches, asked, *found.groups())
    raise Refused(404, "not_found_error", f"{asked.method} {asked.path} is not known here")


def _api(asked: Asked) -> str:
    return "anthropic" if "/messages" in asked.path else "openai"


def _body(api: str, answer: Answer) -> bytes:
    page = answer.page
    return (json.dumps(worded(api, answer), ensure_ascii=False) if page is None else page).encode()
