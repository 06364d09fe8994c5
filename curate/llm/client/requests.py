"""What is asked, under what it is written down, how a vendor is treated, and what it came to."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from curate.core.errors import ProviderError
from curate.core.messages import Reply, Request
from curate.core.protocols import Provider
from curate.ledger import Ledger, Rating
from curate.llm.client.rate_limit import RateLimit
from curate.llm.cost import Price


@dataclass(frozen=True)
class ReplyResult:
    """What a reply, or its failure, comes to: ratings to append, and smaller tasks for what is still missing."""

    ratings: tuple[Rating, ...] = ()
    again: tuple["Task", ...] = ()
    form: str = ""
    """In which form the reply came: whole, partial, or why it gives nothing."""
    foreign_labels: int = 0
    repeated_labels: int = 0
    fruitful: bool = True
    """False if nothing of what was asked is settled by it."""
    kept: str | None = None
    """What the ledger keeps in place of the reply's words; None keeps them as they came."""


@dataclass(frozen=True)
class Task:
    """One request, and the pure functions that read its reply or its failure."""

    request: Request
    read: Callable[[Reply], ReplyResult]
    failed: Callable[[ProviderError], ReplyResult]
    weight: int = 1
    """Items that are settled by it, for the progress bar."""
    query_digest: str = ""
    slots: tuple[str, ...] = ()
    """Digests of the texts that it is about, in the order of the prompt."""
    place: str = ""
    """Names the prompt that it is, or is a part of, among those that several processes share."""
    purpose: str = ""
    """What it is sent for, if not for what the account says."""
    named: str = ""
    """Its key, where a digest would give a short text away to a search through all numbers."""

    @cached_property
    def key(self) -> str:
        """Return the digest of the request, or what it is named: the same prompt has the same one."""
        return self.named or self.request.digest


@dataclass(frozen=True)
class Account:
    """Under what calls are written down."""

    judge_digest: str
    rubric_digest: str = ""
    replicate: int = 0
    run: str = ""
    """Id of the run that they are made for."""
    purpose: str = "judge"


@dataclass(frozen=True)
class RequestLimits:
    """How a provider is asked."""

    concurrency: int = 8
    """Most calls at the same time; fewer while the vendor is overloaded."""
    attempts: int = 6
    """Tries a request has before its failure is written down."""
    wait_s: float = 1.0
    """First pause before a retry, in seconds; it doubles, with jitter, up to a minute, unless the vendor names one."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Prompt tokens by estimate and the bound of the answer, together."""
    minute_s: float = 60.0
    """Length of that minute, in seconds."""
    price: Price | None = None
    tokens_a_han: float | None = None
    """What the model's tokenizer makes of a Han character; None is unknown."""
    mixed_models: bool = False
    """Go on though replies name several models."""


def pace(limits: RequestLimits, ledger: Ledger, judge_digest: str) -> RateLimit:
    """Return what keeps to the limits, with the calls counted that the ledger has of a judge's last minute."""
    found = RateLimit(limits.requests_per_minute, limits.tokens_per_minute, limits.minute_s)
    if found.limited:
        now, ago = time.monotonic(), time.time()
        for at, tokens in ledger.recent(judge_digest, ago - limits.minute_s):
            found.count(now - max(ago - at, 0.0), tokens)
    return found


class Watch(Protocol):
    """Looks at the ratings of replies, for signs that asking on is worth nothing."""

    @property
    def undecided(self) -> bool:
        """Say whether too few replies were seen for any finding; until then few are asked at a time."""
        ...

    def add(self, ratings: Sequence[Rating]) -> None:
        """Take the ratings of one reply."""
        ...

    def finding(self) -> str:
        """Return as a clause why asking should end; empty if nothing shows."""
        ...


async def always(_task: Task) -> bool:
    """Allow every task: no other process asks them."""
    return True


@dataclass(frozen=True)
class Job:
    """All that one judge is to be asked."""

    name: str
    """What messages and progress call it."""
    tasks: Iterable[Task]
    """Taken by a thread, as many as there are slots at a time: to make one may take a look at the ledger."""
    provider: Provider
    account: Account
    limits: RequestLimits = RequestLimits()
    total: int | None = None
    """Items in the tasks, for the progress bar."""
    pace: RateLimit | None = None
    """Counts requests and tokens per minute, where an earlier asking has sent some; None begins from the ledger."""
    ours: Callable[[Task], Awaitable[bool]] = always
    """Whether a task may still be sent, asked in front of every try; one that may not is dropped."""
    unit: str = "questions"
    """What `total` counts."""
    watch: Watch | None = None
    """Ends the asking of a judge that does not read what it is asked."""
    canary: bool = True
    """Whether a prompt with codes is sent once after tokens that cannot be true."""


@dataclass
class Bill:
    """What an asking came to."""

    calls: int = 0
    """Replies, all of them in the ledger."""
    failed: int = 0
    """Requests that got no reply, in the ledger too."""
    lost: int = 0
    """Tries that were sent and whose outcome is unknown, in the ledger too."""
    spent: float = 0.0
    """What replies and lost tries cost in the cap's currency, at their bound where that is unknown; 0 if unpriced."""
