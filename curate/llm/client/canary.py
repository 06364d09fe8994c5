"""A canary prompt: as long as a prompt whose token count was impossibly low, with a code at each end to repeat.

A server whose context window is too small cuts prompts silently, and the model grades texts that it never saw.
"""

from curate.core.config import digest
from curate.core.errors import ProviderError
from curate.core.messages import Message, Reply, Request
from curate.llm.client.requests import ReplyResult, Task
from curate.llm.cost import estimate, tokens
from curate.llm.prompts import json_object

CANARY = "canary"
"""Purpose of such a call in the ledger."""
READ, CUT = "read", "cut"
"""Forms of its reply: with both codes, or not."""
_RULE = (
    "A code stands in the first line of the text and another one in its last line. "
    'Reply with one JSON object and nothing else: {"first": "...", "last": "..."}'
)
_ROOM = 200
"""Minimum token limit of the answer."""


def canary(request: Request) -> Task:
    """Return a canary of the estimated length and the script of a request."""
    key = digest(["canary", request.digest])
    first, last = key[:8], key[8:16]
    size = estimate(request)
    line = "第{}行：这里没有要回答的内容。" if 3 * size.han > size.prompt else "Line {}: there is no answer here."
    count = max(round((size.prompt - tokens(_RULE)) / tokens(line.format(1000) + "\n")), 1)
    text = "\n".join([f"CODE {first}", *(line.format(1000 + number) for number in range(count)), f"CODE {last}"])
    form = json_object({name: {"type": "string"} for name in ("first", "last")})
    canary_request = Request((Message("system", _RULE), Message("user", text)), max(request.max_tokens, _ROOM), form)

    def read(reply: Reply) -> ReplyResult:
        returned = all(code in (reply.text or "") for code in (first, last))
        return ReplyResult(form=READ if returned else CUT)

    def failed(_error: ProviderError) -> ReplyResult:
        return ReplyResult(form="failed")

    return Task(canary_request, read, failed, weight=0, purpose=CANARY)
