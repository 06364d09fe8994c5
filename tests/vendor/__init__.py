"""A vendor of language models on loopback: a real HTTP server that reads our prompts and grades by a script.

    with vendor(lambda query, passage: "S" if query in passage else "D", faults=[error(429, retry_after=1)]) as server:
        config = ProviderConfig(kind="openai", model="m", base_url=server.url)   # kind anthropic: the same address
        ...
    assert len(server.calls) == 2

It speaks OpenAI chat completions, files and batches, and Anthropic messages and message batches; the real SDKs work
against it. The script sees what a model could see: the texts between the markers of the prompt. `faults` are used up
one a call, in the order in which calls arrive; None is no fault; a function `(Call) -> Fault | None` decides a call at
a time instead, such as `chaos(seed)`. `batches` says how batches go, `rate` how much is taken in a window of time.
`elsewhere` runs the same server in a process of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.vendor.batches import Batches, Fate, Rules
from tests.vendor.chaos import KINDS, RARE, Chaos, chaos
from tests.vendor.faults import (
    broken,
    chatty,
    cut,
    dribbled,
    drop,
    edit,
    error,
    extra,
    fenced,
    fenced_and_cut,
    filtered,
    filtered_midway,
    halved,
    limited,
    missing,
    no_money,
    no_usage,
    null_content,
    overloaded,
    page,
    refusal,
    renamed,
    repeated,
    reset_after_head,
    reset_before_head,
    says,
    slow,
    too_long,
    truncated,
    unavailable,
    used,
    wrong,
)
from tests.vendor.http import served
from tests.vendor.process import Remote, elsewhere
from tests.vendor.records import BLOCK, Answer, Call, Fault, Script, tokens
from tests.vendor.scripts import last
from tests.vendor.server import handler
from tests.vendor.state import Arrival, Pairs, Rate, Vendor

__all__ = [
    "BLOCK",
    "KINDS",
    "RARE",
    "Answer",
    "Arrival",
    "Batches",
    "Call",
    "Chaos",
    "Fate",
    "Fault",
    "Pairs",
    "Rate",
    "Remote",
    "Rules",
    "Script",
    "Vendor",
    "broken",
    "chaos",
    "chatty",
    "cut",
    "dribbled",
    "drop",
    "edit",
    "elsewhere",
    "error",
    "extra",
    "fenced",
    "fenced_and_cut",
    "filtered",
    "filtered_midway",
    "halved",
    "last",
    "limited",
    "missing",
    "no_money",
    "no_usage",
    "null_content",
    "overloaded",
    "page",
    "refusal",
    "renamed",
    "repeated",
    "reset_after_head",
    "reset_before_head",
    "says",
    "slow",
    "tokens",
    "too_long",
    "truncated",
    "unavailable",
    "used",
    "vendor",
    "wrong",
]


@contextmanager
def vendor(
    script: Script,
    faults: Sequence[Fault | None] | Callable[[Call], Fault | None] = (),
    key: str | None = None,
    *,
    latency: float = 0.0,
    rate: Rate | None = None,
    batches: Rules | None = None,
    keep: bool = True,
    port: int = 0,
) -> Iterator[Vendor]:
    """Run the server while the `with` block lasts; `key`, if given, is the only one that it accepts."""
    waiting = iter(()) if callable(faults) else iter(faults)
    choose = faults if callable(faults) else lambda _call: next(waiting, None)
    state = Vendor(script, choose, key, latency, rate or Rate(), keep)
    with served(handler(state, Batches(state, batches or Rules())), port) as state.url:
        yield state
