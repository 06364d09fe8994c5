"""What passes between a caller, the ledger and a seat that asks by batches."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from curate.ask import Account, Reading, Task
from curate.config import Json
from curate.cost import Price
from curate.pauses import LONGEST_S
from curate.protocols import BatchProvider, Reply

Reader = Callable[[str, Sequence[str], Reply], Reading]
"""Reads a reply by the digests of its query and of its passages in their order."""


@dataclass(frozen=True)
class Order:
    """What one judge is to be asked by batches."""

    tasks: Callable[[], Iterable[Task]]
    """Gives what the ledger lacks by then, requests without a reply in it; called for every round.

    So no text need be held while a vendor works, and who goes on after a kill asks what the killed one would have.
    """
    read: Reader
    provider: BatchProvider
    account: Account
    price: Price | None = None
    """The online price, of which the `batch` share is paid."""
    mixed_models: bool = False
    """Go on though replies name several models."""


@dataclass(frozen=True)
class Pace:
    """How patiently batches are asked after, and how large they are at most."""

    first_s: float = 5.0
    """First pause between two looks; each is half as long again as the one before."""
    longest_s: float = LONGEST_S
    rounds: int = 2
    """Batches that a request goes into at most; with 0 what is open is collected and nothing is submitted."""
    attempts: int = 6
    """Tries of a step that fails in passing."""
    most_items: int | None = None
    """None: what the vendor allows."""
    most_bytes: int | None = None


@dataclass(frozen=True)
class Item:
    """One request of a batch, without its text."""

    key: str
    """Digest of the request."""
    query_digest: str
    slots: tuple[str, ...]
    guess: float = 0.0
    """What it may cost by estimate."""
    bound: float = 0.0
    """What is held for it against the cap."""

    def said(self, rate: float) -> Mapping[str, Json]:
        """Return what the ledger keeps of it; a unit of the price's currency is worth `rate` of the bound's."""
        return {"query_digest": self.query_digest, "slots": list(self.slots), "bound": self.bound / rate}


@dataclass
class Flight:
    """A batch that a vendor works on."""

    batch_id: str
    run: str
    created: str
    items: Mapping[str, Item]
    """By request digest."""
    answered: set[str] = field(default_factory=set)
    """Requests whose reply is in the ledger."""
    done: int = 0
    """Items that are over, as far as the vendor tells."""


class Group:
    """A batch in the making; its texts are in a nameless file that is gone with the process."""

    def __init__(self, most_items: int, most_bytes: int) -> None:
        self.most_items, self.most_bytes = most_items, most_bytes
        self.file, self.bytes = tempfile.TemporaryFile(), 0  # noqa: SIM115 - `close` does
        self.items: dict[str, Item] = {}

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

    def add(self, item: Item, line: bytes) -> None:
        """Put an item in."""
        self.file.write(line)
        self.items[item.key], self.bytes = item, self.bytes + len(line)
