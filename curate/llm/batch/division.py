"""What a vendor refuses of one judge's batches: whole batches are made smaller, requests are asked in parts."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from curate.core.errors import ProviderError
from curate.core.messages import BatchState
from curate.llm.batch.records import BatchJob, Flight
from curate.llm.batch.session import Session
from curate.llm.online import Task
from curate.llm.online.call_rows import failure_row
from curate.llm.providers.faults import quotes, worded

MOST_HALVED = 10
"""Times that batches are made half as large because the vendor refused one as a whole: from 50,000 requests to 49."""


class Division:
    """How small the batches of an order are by now, and which of its requests are asked in parts."""

    def __init__(self, session: Session, order: BatchJob) -> None:
        self.session, self.order = session, order
        most = order.most_items, session.pace.most_items, order.provider.most_items
        self.most_items = min(each for each in most if each)
        self.refused: dict[str, ProviderError] = {}
        """Requests that were refused, or too long, by their key."""
        self.halved = 0
        self.steps = 0
        """Batches and requests that were made smaller."""

    def tasks(self) -> Iterator[Task]:
        """Yield what is left; of what was refused its parts."""
        for task in self.order.tasks():
            yield from self._parts(task)

    def _parts(self, task: Task) -> Iterator[Task]:
        error = self.refused.get(task.key)
        if error is None:
            yield task
        else:
            for part in task.failed(error).again:
                yield from self._parts(part)

    def halve(self, requests: int, why: str) -> bool:
        """Make batches half as large as one that was refused as a whole; False if that helps no more."""
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
        """Return why a batch was refused as a whole; the vendor's words only where they quote no request."""
        quoting = not state.said or any(quotes(state.said, task.request) for task in self._asked(flight.items))
        return state.fault if quoting else f"{state.fault}: {state.said}"

    def _asked(self, keys: Container[str]) -> list[Task]:
        return [task for task in self.tasks() if task.key in keys]

    def useless(self, batch_id: str, refused: Mapping[str, ProviderError]) -> ProviderError:
        """Return why a judge of which nothing ever passed is not asked any more, by the first refusal."""
        errors = [worded(refused[task.key], task.request) for task in self._asked(refused)]
        name = self.order.provider.name
        return ProviderError(
            f"{name}: the vendor refused {len(refused):,} requests of batch {batch_id}, and answered "
            f"none: {next(iter(errors or refused.values()))}; nothing was asked online, at the full price: the same "
            "command without --batch does that",
            fatal=True,
        )

    def divide(self, flight: Flight, refused: Mapping[str, ProviderError], seconds: float) -> int:
        """Write down what was refused or too long, and return how much; its parts are asked, the last is given up."""
        account = replace(self.order.account, run=flight.run)
        tasks = self._asked(refused) if refused else []
        for task in tasks:
            error = worded(refused[task.key], task.request)
            reading = task.failed(error)
            row = failure_row(task, account, reading.form, error, seconds)
            self.session.ledger.append(reading.ratings, row)
            self.steps += bool(reading.again)
        self.refused |= refused
        return len(tasks)
