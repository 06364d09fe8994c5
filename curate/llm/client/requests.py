"""Tasks and jobs of online requests, their ledger keys and rate limits, and the bill of a job."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from curate.core.errors import ProviderError
from curate.core.messages import Reply, Request
from curate.core.protocols import Provider
from curate.ledger import Ledger, Rating
from curate.llm.client.limits import RateLimit
from curate.llm.cost import Price


@dataclass(frozen=True)
class ReplyResult:
    """Result of a reply or a failure: ratings to append, and smaller tasks for what is still missing."""

    ratings: tuple[Rating, ...] = ()
    again: tuple["Task", ...] = ()
    form: str = ""
    """Form of the reply: whole, partial, or why it gives no rating."""
    foreign_labels: int = 0
    repeated_labels: int = 0
    fruitful: bool = True
    """False if it settles nothing of its task."""
    kept: str | None = None
    """Text that the ledger keeps instead of the reply's; None keeps the reply's."""


@dataclass(frozen=True)
class Task:
    """One request, and the pure functions that read its reply or its failure."""

    request: Request
    read: Callable[[Reply], ReplyResult]
    failed: Callable[[ProviderError], ReplyResult]
    weight: int = 1
    """Number of items that it settles, for the progress bar."""
    query_digest: str = ""
    slots: tuple[str, ...] = ()
    """Digests of the texts in it, in the order of the prompt."""
    place: str = ""
    """Id of the prompt (or of the one that it is a part of) among those that several processes share."""
    purpose: str = ""
    """Purpose, if another than the account's."""
    named: str = ""
    """Key to use instead of a digest, which would reveal a short text to a search through all numbers."""

    @cached_property
    def key(self) -> str:
        """Return `named` if it is set, else the digest of the request, which is equal for equal prompts."""
        return self.named or self.request.digest


@dataclass(frozen=True)
class Account:
    """Ledger key of calls."""

    judge_digest: str
    rubric_digest: str = ""
    replicate: int = 0
    run: str = ""
    """Id of the run that makes them."""
    purpose: str = "judge"


@dataclass(frozen=True)
class RequestLimits:
    """Concurrency, retries, rate limits and price of a provider."""

    concurrency: int = 8
    """Maximum calls at the same time; fewer while the provider is overloaded."""
    attempts: int = 6
    """Attempts per request before its failure is written to the ledger."""
    wait_s: float = 1.0
    """Seconds before the first retry; doubled each time, with jitter, up to 60, unless the provider names them."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Estimated prompt tokens plus the token limit of the answer."""
    minute_s: float = 60.0
    """Length of that minute, in seconds."""
    price: Price | None = None
    tokens_a_han: float | None = None
    """Tokens that the model's tokenizer needs for a Han character; None is unknown."""
    mixed_models: bool = False
    """Go on though replies name several models."""


def pace(limits: RequestLimits, ledger: Ledger, judge_digest: str) -> RateLimit:
    """Return the rate limit of a judge, with its calls of the last minute in the ledger counted."""
    rate_limit = RateLimit(limits.requests_per_minute, limits.tokens_per_minute, limits.minute_s)
    if rate_limit.limited:
        # the ledger has wall-clock times, RateLimit monotonic ones; max for a clock that was set back
        now, wall_now = time.monotonic(), time.time()
        for sent, tokens in ledger.recent(judge_digest, wall_now - limits.minute_s):
            rate_limit.count(now - max(wall_now - sent, 0.0), tokens)
    return rate_limit


class Watch(Protocol):
    """Checks the ratings of replies for signs that a judge should be stopped."""

    @property
    def undecided(self) -> bool:
        """Return whether there are too few replies for a finding; until then few requests are sent at a time."""
        ...

    def add(self, ratings: Sequence[Rating]) -> None:
        """Add the ratings of one reply."""
        ...

    def finding(self) -> str:
        """Return the reason to stop as a clause; empty without one."""
        ...


async def always(_task: Task) -> bool:
    """Allow every task, for no other process sends them."""
    return True


@dataclass(frozen=True)
class Job:
    """All tasks of one judge."""

    name: str
    """Name in messages and progress."""
    tasks: Iterable[Task]
    """Iterated in a thread, as many at a time as there are slots, for making a task may read the ledger."""
    provider: Provider
    account: Account
    limits: RequestLimits = RequestLimits()
    total: int | None = None
    """Number of items in the tasks, for the progress bar."""
    pace: RateLimit | None = None
    """Rate limit with the requests of an earlier job counted; None starts from the ledger's."""
    ours: Callable[[Task], Awaitable[bool]] = always
    """Called before every attempt: whether the task may still be sent; if not it is dropped."""
    unit: str = "questions"
    """Unit of `total`."""
    watch: Watch | None = None
    """Check that stops a judge which does not read the texts."""
    canary: bool = True
    """Whether a prompt with codes is sent once after a reply with an impossible token count."""


@dataclass
class Bill:
    """Calls and cost of a job."""

    calls: int = 0
    """Number of replies, all of them in the ledger."""
    failed: int = 0
    """Requests without a reply, in the ledger too."""
    lost: int = 0
    """Attempts that were sent and whose outcome is unknown, in the ledger too."""
    spent: float = 0.0
    """Cost of replies and lost attempts in the budget's currency, or their upper bound; 0 if unpriced."""
