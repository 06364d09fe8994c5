"""What passes between a caller, the ledger and a seat that asks by batches."""

import datetime as dt
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from curate.core.config import Json
from curate.core.errors import ProviderError
from curate.core.messages import BatchState, Reply
from curate.core.protocols import BatchProvider
from curate.llm.budget import Budget, Hold
from curate.llm.client import Account, ReplyResult, Task, Watch
from curate.llm.cost import EstimatedUsage, Price
from curate.system.retry_after import LONGEST_S

Reader = Callable[[str, Sequence[str], Reply], ReplyResult]
"""Reads a reply by the digests of its query and of its passages in their order."""


@dataclass(frozen=True)
class BatchJob:
    """What one judge is to be asked by batches."""

    tasks: Callable[[], Iterable[Task]]
    """Gives what the ledger lacks by then, requests without a reply in it; called for every round.

    So no text need be held while a vendor works, and who goes on after a kill asks what the killed one would have.
    """
    read: Reader
    provider: BatchProvider
    account: Account
    failed: Callable[[str, Sequence[str], ProviderError], ReplyResult]
    """Says what a refusal settles, by the digests of its query and of its passages."""
    price: Price | None = None
    """The online price, of which the `batch` share is paid."""
    mixed_models: bool = False
    """Go on though replies name several models."""
    tokens_a_han: float | None = None
    """What the model's tokenizer makes of a Han character; None is unknown."""
    most_items: int | None = None
    """Most requests in a batch; None: what the vendor allows."""
    watch: Watch | None = None
    """Ends the asking of a judge that does not read what it is asked."""


@dataclass(frozen=True)
class PollingPolicy:
    """How patiently batches are asked after, and how large they are at most."""

    first_s: float = 5.0
    """First pause between two looks; each is half as long again as the one before."""
    longest_s: float = LONGEST_S
    rounds: int = 2
    """Batches that a request goes into at most, without refused ones; with 0 what is open is collected, no more."""
    attempts: int = 6
    """Tries of a step that fails in passing."""
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
    """What is held for it against the cap; nothing of an item that is only written down."""
    guess: EstimatedUsage | None = None
    """What it may use by estimate, where this process made it."""

    def said(self, rate: float) -> Mapping[str, Json]:
        """Return what the ledger keeps of it; a unit of the price's currency is worth `rate` of the bound's."""
        return {"query_digest": self.query_digest, "slots": list(self.slots), "bound": self.hold.amount / rate}


@dataclass
class Flight:
    """A batch that a vendor works on."""

    batch_id: str
    run: str
    created: str
    items: Mapping[str, BatchItem]
    """By request digest."""
    answered: set[str] = field(default_factory=set)
    """Requests whose reply is in the ledger."""
    done: int = 0
    """Items that are over, as far as the vendor tells."""


def age(flight: Flight) -> dt.timedelta:
    """Return the time since a batch was submitted."""
    return dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(flight.created)


def seconds(flight: Flight, state: BatchState) -> float:
    """Return how long a batch took, by the vendor's clock where it tells."""
    return age(flight).total_seconds() if state.seconds is None else state.seconds


class BatchDraft:
    """A batch in the making; its texts are in a nameless file that is gone with the process."""

    def __init__(self, most_items: int, most_bytes: int) -> None:
        self.most_items, self.most_bytes = most_items, most_bytes
        self.file, self.bytes = tempfile.TemporaryFile(), 0  # noqa: SIM115 - `close` does
        self.items: dict[str, BatchItem] = {}

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def clear(self) -> None:
        """Start anew; the items were taken over."""
        self.file.seek(0)
        self.file.truncate()
        self.items, self.bytes = {}, 0

    def full(self, line: bytes) -> bool:
        """Say whether a line has no place in it; the first always has."""
        much = len(self.items) >= self.most_items or self.bytes + len(line) > self.most_bytes
        return much and bool(self.items)

    def add(self, item: BatchItem, line: bytes) -> None:
        """Put an item in."""
        self.file.write(line)
        self.items[item.key], self.bytes = item, self.bytes + len(line)
