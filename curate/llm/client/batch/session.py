"""Records of batch requests, and the state that judges in batches share: money, pace, first reason to stop."""

import asyncio
import datetime as dt
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import BatchState, Reply
from curate.core.protocols import BatchProvider, PaidProgress
from curate.ledger import Ledger
from curate.ledger.claims import Batches
from curate.llm.budget import Budget, Hold
from curate.llm.client import Account, ReplyResult, Task, Watch
from curate.llm.client.accounting import Purse, SentRequest
from curate.llm.client.interrupt import Haltable, Halted
from curate.llm.cost import EstimatedUsage, Price
from curate.system.http import LONGEST_S, insist

Reader = Callable[[SentRequest, Reply], ReplyResult]
"""Reads a reply to a request whose text may be gone."""


@dataclass(frozen=True)
class BatchJob:
    """The order of batches for one judge."""

    tasks: Callable[[], Iterable[Task]]
    """Yields the requests without a reply in the ledger; called for every round.

    So texts need not stay in memory while a vendor works, and a resumed process sends what the killed one would have.
    """
    read: Reader
    provider: BatchProvider
    account: Account
    failed: Callable[[SentRequest, ProviderError], ReplyResult]
    """Reads a refusal."""
    price: Price | None = None
    """The online price, of which the `batch` share is paid."""
    mixed_models: bool = False
    """Go on though replies name several models."""
    tokens_a_han: float | None = None
    """Tokens that the model's tokenizer needs for a Han character; None is unknown."""
    most_items: int | None = None
    """Most requests in a batch; None: what the vendor allows."""
    watch: Watch | None = None
    """Stops a judge that does not read its prompts."""
    private: bool = False
    """Whether no text of a request or a reply may be written down."""


@dataclass(frozen=True)
class PollingPolicy:
    """Intervals and attempts of polling, and maximum size of batches."""

    first_s: float = 5.0
    """First pause between polls; grows by half each time."""
    longest_s: float = LONGEST_S
    rounds: int = 2
    """Maximum batches per request, without refused ones; 0 only collects open batches."""
    attempts: int = 6
    """Attempts of a step with transient errors."""
    most_items: int | None = None
    """None: what vendor and order allow."""
    most_bytes: int | None = None


@dataclass(frozen=True)
class BatchItem:
    """One request of a batch, without its text."""

    key: str
    """Digest of the request."""
    query_digest: str
    slots: tuple[str, ...]
    hold: Hold = field(default_factory=lambda: Hold(Budget(), 0.0, over=True))
    """Its reservation in the budget; none for an item that is only stored."""
    guess: EstimatedUsage | None = None
    """Its estimated usage, if this process made it."""

    def said(self, rate: float) -> Mapping[str, Json]:
        """Return the item for the ledger; a unit of the price's currency is worth `rate` of the bound's."""
        return {"query_digest": self.query_digest, "slots": list(self.slots), "bound": self.hold.amount / rate}


@dataclass
class Flight:
    """A batch that a provider works on."""

    batch_id: str
    run: str
    created: str
    items: Mapping[str, BatchItem]
    """By request digest."""
    answered: set[str] = field(default_factory=set)
    """Requests whose reply is in the ledger."""
    done: int = 0
    """Completed items, if the vendor tells."""


def age(flight: Flight) -> dt.timedelta:
    """Return the time since a batch was submitted."""
    return dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(flight.created)


def seconds(flight: Flight, state: BatchState) -> float:
    """Return how long a batch took, by the provider's clock if it reports both times."""
    return age(flight).total_seconds() if state.seconds is None else state.seconds


class BatchDraft:
    """A batch under construction; its texts are in a nameless file that vanishes with the process."""

    def __init__(self, most_items: int, most_bytes: int) -> None:
        self.most_items, self.most_bytes = most_items, most_bytes
        self.file, self.bytes = tempfile.TemporaryFile(), 0  # noqa: SIM115 - `close` does
        self.items: dict[str, BatchItem] = {}

    def close(self) -> None:
        """Close the file, which deletes it."""
        self.file.close()

    def clear(self) -> None:
        """Remove all items."""
        self.file.seek(0)
        self.file.truncate()
        self.items, self.bytes = {}, 0

    def full(self, line: bytes) -> bool:
        """Return whether a line does not fit; the first always does."""
        exceeds = len(self.items) >= self.most_items or self.bytes + len(line) > self.most_bytes
        return exceeds and bool(self.items)

    def add(self, batch_item: BatchItem, line: bytes) -> None:
        """Put an item in."""
        self.file.write(line)
        self.items[batch_item.key], self.bytes = batch_item, self.bytes + len(line)


# Shared state of judges that are asked by batches: money, pace, and the first reason to stop.

Result = TypeVar("Result")


@dataclass(eq=False)
class Session(Haltable):
    """State shared by the judges of one call; not thread-safe, used in one event loop."""

    ledger: Ledger
    batches: Batches
    pace: PollingPolicy
    purse: Purse
    progress: PaidProgress
    tell: Callable[[str], None]

    @property
    def budget(self) -> Budget:
        """Return the budget of the command."""
        return self.purse.budget

    async def breathe(self) -> None:
        """Yield to other tasks during long work; Halted if the session stops."""
        await asyncio.sleep(0)
        if self.stop is not None:
            raise Halted

    async def insist(self, step: Callable[[], Awaitable[Result]], patience: int = 1) -> Result:
        """Return the result of a step; transient errors are retried after growing pauses."""
        return await insist(step, self.pace.attempts * patience, self.pace.first_s, self.pace.longest_s, self.pause)
