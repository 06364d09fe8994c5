"""Division of refused work: batches refused as a whole are halved, refused requests are split."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from curate.core.errors import ProviderError
from curate.core.messages import BatchState, Request
from curate.llm.client import Task
from curate.llm.client.accounting import failure_row
from curate.llm.client.batch.session import BatchJob, Flight, Session
from curate.llm.providers.errors import quotes, worded

MOST_HALVED = 10
"""Maximum halvings of the batch size after a batch was refused as a whole: from 50,000 requests to 49."""
_REFUSED = ProviderError("refused", refused=True)


class Division:
    """Current batch size of an order, and its requests that are split."""

    def __init__(self, session: Session, order: BatchJob) -> None:
        self.session, self.order = session, order
        limits = order.most_items, session.pace.most_items, order.provider.most_items
        self.most_items = min(limit for limit in limits if limit)
        self._sizes: dict[tuple[str, str], int] = {}
        """Digests of query and passage -> maximum passages of its prompt, after one was refused or too long."""
        self.halved = 0
        self.steps = 0
        """Number of batches and requests made smaller."""

    def tasks(self) -> Iterator[Task]:
        """Yield the remaining tasks, refused ones split."""
        for task in self.order.tasks():
            yield from self._parts(task)

    def _parts(self, task: Task) -> Iterator[Task]:
        size = len(task.slots)
        if all(size <= self._sizes.get((task.query_digest, slot), size) for slot in task.slots):
            yield task
        else:
            for smaller in task.failed(_REFUSED).again:
                yield from self._parts(smaller)

    def halve(self, requests: int, why: str) -> bool:
        """Halve the batch size after a batch was refused as a whole; return False at the limit."""
        if requests <= self.most_items:  # others of its size may have been refused before
            if requests < 2 or self.halved >= MOST_HALVED:
                return False
            self.most_items = (requests + 1) // 2
            self.halved += 1
        self.steps += 1
        self.session.tell(
            f"{self.order.provider.name}: the vendor refused a batch of {requests:,} requests as a whole ({why}); "
            f"going on in batches of {self.most_items:,}, one after the other"
        )
        return True

    def why(self, flight: Flight, state: BatchState) -> str:
        """Return why a batch was refused as a whole; the vendor's message only if it quotes no request."""
        queries = {batch_item.query_digest for batch_item in flight.items.values()}
        requests = [task.request for task in self.order.tasks() if task.query_digest in queries]
        return state.fault if not state.said or quotes(state.said, requests) else f"{state.fault}: {state.said}"

    def useless(self, flight: Flight, refused: Mapping[str, ProviderError]) -> ProviderError:
        """Return the error that stops a judge without any accepted request; quotes one refusal."""
        error = next(iter(self._worded(flight, refused).values()))
        return ProviderError(
            f"{self.order.provider.name}: the vendor refused {len(refused):,} requests of batch {flight.batch_id}, and "
            f"answered none: {error}; nothing was asked online, at the full price: the same command without --batch "
            "does that",
            fatal=True,
        )

    def divide(self, flight: Flight, refused: Mapping[str, ProviderError], seconds: float) -> None:
        """Write refused or too long requests to the ledger; they are split, and a single passage is given up."""
        account = replace(self.order.account, run=flight.run)
        for key, error in self._worded(flight, refused).items():
            batch_item = flight.items[key]
            reading = self.order.failed(batch_item.query_digest, batch_item.slots, error)
            self.session.ledger.append(reading.ratings, failure_row(batch_item, account, reading.form, error, seconds))
            if not reading.ratings:
                self.steps += 1
                self._sizes |= {
                    (batch_item.query_digest, slot): (len(batch_item.slots) + 1) // 2 for slot in batch_item.slots
                }

    def _worded(self, flight: Flight, refused: Mapping[str, ProviderError]) -> dict[str, ProviderError]:
        """Return the refusals with the vendor's message, unless that quotes their query's texts."""
        requests: dict[str, list[Request]] = {}
        for task in self.order.tasks():
            requests.setdefault(task.query_digest, []).append(task.request)
        queries = {key: flight.items[key].query_digest for key in refused if key in flight.items}
        return {key: worded(refused[key], requests.get(query, ())) for key, query in queries.items()}
