"""Batches of judges: open ones are collected, missing requests submitted, refused ones divided; one shared budget."""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from curate.core.config import digest
from curate.core.errors import BatchGone, Interrupted, ProviderError, RunFailed
from curate.core.messages import BatchState, Reply, Request
from curate.core.progress import StepLabel
from curate.core.protocols import PaidProgress, quiet
from curate.ledger import Ledger
from curate.ledger.claims import Batches
from curate.llm.budget import Budget, Hold
from curate.llm.client import Bill, JudgeTally, Task, refuse_unread
from curate.llm.client.accounting import Purse, SentRequest, failure_row, lost_row, read, reply_row
from curate.llm.client.batch.session import (
    BatchDraft,
    BatchItem,
    BatchJob,
    Flight,
    PollingPolicy,
    Session,
    age,
    seconds,
)
from curate.llm.client.interrupt import Beat, Halted, beating, complete, interruptible
from curate.llm.cost import batch_price, believed, estimate
from curate.llm.exchange_rates import shown
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
        """Return why a batch was refused as a whole; the provider's message only if it quotes no request."""
        requests = [request for sent in self._requests(flight.items.values()).values() for request in sent]
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
            reading = self.order.failed(batch_item, error)
            self.session.ledger.append(reading.ratings, failure_row(batch_item, account, reading.form, error, seconds))
            if len(batch_item.slots) > 1 and not reading.ratings:
                self.steps += 1
                self._sizes |= {
                    (batch_item.query_digest, slot): (len(batch_item.slots) + 1) // 2 for slot in batch_item.slots
                }

    def _worded(self, flight: Flight, refused: Mapping[str, ProviderError]) -> dict[str, ProviderError]:
        """Return the refusals with the provider's message, unless that quotes their query's texts."""
        items = {key: flight.items[key] for key in refused if key in flight.items}
        requests = self._requests(items.values())
        return {key: worded(refused[key], requests.get(_about(sent), ())) for key, sent in items.items()}

    def _requests(self, items: Iterable[BatchItem]) -> dict[str, list[Request]]:
        """Return what items are about -> the requests on it that are left, without the parts of split prompts."""
        requests: dict[str, list[Request]] = {_about(sent): [] for sent in items}
        for task in self.order.tasks():
            if _about(task) in requests:
                requests[_about(task)].append(task.request)
        return requests


def _about(sent: SentRequest) -> str:
    """Return the digest of a request's query, or its own where it has none."""
    return sent.query_digest or sent.key


# Batches of one judge: open ones are collected, then the missing requests are submitted and collected.

KEPT = dt.timedelta(days=29)
"""How long vendors keep the results of a batch."""
_WHOLE = frozenset({"completed", "ended"})
"""Vendors' states of a completed batch: an item without a result may have been answered and billed."""
_LOOKS = 10
"""Factor on the attempts of polling, since a batch may take a day."""


class JudgeBatches:
    """State of one order; not thread-safe, used in one event loop."""

    def __init__(self, session: Session, order: BatchJob) -> None:
        self.session, self.order, self.provider = session, order, order.provider
        self.price = batch_price(order.price)
        account, mixed = order.account, order.mixed_models
        self.tally = JudgeTally(
            self.provider.name,
            account,
            self.price,
            session.ledger,
            session.budget,
            order.tokens_a_han,
            order.watch,
            mixed_models=mixed,
        )
        self.rate, self.bill = self.tally.meter.rate, self.tally.bill
        self.flights: list[Flight] = []
        self.hopeless: set[str] = set()
        """Requests that a further batch would not answer."""
        self.smaller = Division(session, order)
        self.total = self.over = 0
        self.key = (account.judge_digest, account.rubric_digest, account.replicate)
        self.mark = digest(self.key)

    async def fill(self) -> Bill:
        """Collect and submit until batches can do no more; Halted if the session stops."""
        self.tally.check()
        await self._adopt()
        for batch in self.session.batches.open(*self.key):
            answered = self.session.ledger.replied(*self.key, since=batch.created)
            answered &= batch.items.keys()
            items = {
                key: self._restored(key, stored_item, held=key not in answered)
                for key, stored_item in batch.items.items()
            }
            unanswered = len(items) - len(answered)
            self.flights.append(Flight(batch.batch_id, batch.run, batch.created, items, answered))
            self.total += len(items)
            self.session.tell(f"{self.provider.name}: collecting batch {batch.batch_id}, {unanswered:,} requests")
        await self._finish()
        rounds = self.session.pace.rounds
        while rounds:
            calls, smaller = self.bill.calls, self.smaller.steps
            if not await self._submit_all():
                break
            await self._finish()
            self.tally.need_fruit(self.bill.calls - calls)
            refuse_unread(self.provider.name, self.order.watch)
            rounds -= self.smaller.steps == smaller  # split requests were in no batch yet, so the round does not count
        return self.bill

    async def _adopt(self) -> None:
        """Add batches with missing requests that the ledger lacks: their submitter died before it wrote them."""
        is_known = self.session.batches.known
        orphans = await self.session.insist(lambda: self.provider.orphans(self.mark, is_known))
        for batch_id, keys in orphans.items():
            tasks = (task for task in self.order.tasks() if task.key in keys)
            items = {task.key: BatchItem(task.key, task.query_digest, tuple(task.slots)) for task in tasks}
            if items:
                self._add(batch_id, items)

    async def _submit_all(self) -> bool:
        """Submit missing requests in batches as large as provider and budget allow; return whether there were any."""
        seen, most_bytes = set[str](), self.session.pace.most_bytes or self.provider.most_bytes
        with closing(BatchDraft(self.smaller.most_items, most_bytes)) as group:
            try:
                for task in self.smaller.tasks():
                    if task.key not in seen and task.key not in self.hopeless:
                        seen.add(task.key)
                        await self.session.breathe()
                        await self._put(task, group)
                await self._submit(group)
            finally:
                _release(group.items.values())
        return bool(seen)

    async def _put(self, task: Task, group: BatchDraft) -> None:
        """Add a task to a group, which is submitted first if it is full or the budget does not cover both."""
        budget, line = self.session.budget, self.provider.item(task.key, task.request)
        group.most_items = self.smaller.most_items
        if group.full(line):
            await self._submit(group)
        guess = estimate(task.request)
        bound = self.tally.meter.bound(guess)
        if not await self.session.purse.fits(bound):
            await self._submit(group)
            await self._make_room(bound)
        group.add(BatchItem(task.key, task.query_digest, tuple(task.slots), budget.hold(bound), guess), line)

    async def _make_room(self, bound: float) -> None:
        """Wait until batches in flight, which mostly cost less than reserved, leave room in the budget."""
        await self._finish()
        shared_budget = self.session.purse
        while not await shared_budget.fits(bound):
            if not shared_budget.budget.flying and not shared_budget.returning:
                raise shared_budget.exceeded(self.provider.name, "request")
            await self.session.pause(self.session.pace.first_s)

    async def _submit(self, group: BatchDraft) -> None:
        """Submit a group and write it to the ledger at once; the group is empty afterwards."""
        if not group.items:
            return
        try:
            batch_id = await self.session.insist(lambda: self.provider.submit(group.file, self.mark))
        except ProviderError as error:
            if not (error.refused or error.too_long) or not self.smaller.halve(len(group.items), error.cause):
                raise
            _release(group.items.values())
            group.clear()
            return
        self._add(batch_id, group.items)
        created = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.flights.append(Flight(batch_id, self.order.account.run, created, group.items))
        self.total += len(group.items)
        self.session.tell(f"{self.provider.name}: submitted batch {batch_id}, {len(group.items):,} requests")
        group.clear()
        if self.smaller.halved:  # one at a time: the limit may be on all batches together
            await self._finish()

    def _add(self, batch_id: str, items: dict[str, BatchItem]) -> None:
        stored = {key: batch_item.said(self.rate) for key, batch_item in items.items()}
        self.session.batches.add(batch_id, self.provider.name, *self.key, self.order.account.run, stored)

    async def _finish(self) -> None:
        """Poll the batches in flight until all are collected."""
        pause = self.session.pace.first_s
        while self.flights:
            for flight in tuple(self.flights):
                try:
                    state = await self.session.insist(lambda: self.provider.poll(flight.batch_id), _LOOKS)  # noqa: B023
                    flight.done = state.done or 0
                    if state.ended:
                        await self._collect(flight, state)
                except BatchGone as gone:
                    self._lose(flight, gone)
                over = self.over + sum(flight.done for flight in self.flights)
                money = shown(self.bill.spent / self.rate, self.price.currency) if self.price else ""
                label = StepLabel(f"waiting for batches, {self.provider.name}", "requests")
                self.session.progress(label, self.total, min(over, self.total), money)
            if self.flights:
                await self.session.pause(pause)
                pause = min(1.5 * pause, self.session.pace.longest_s)

    async def _collect(self, flight: Flight, state: BatchState) -> None:
        """Write all answers of an ended batch to the ledger."""
        fatal: list[ProviderError] = []
        lost: dict[str, ProviderError] = {}
        refused: dict[str, ProviderError] = {}
        unheard = set(flight.items) if state.word in _WHOLE else set[str]()

        async def step() -> None:
            async with aclosing(self.provider.collect(flight.batch_id)) as results:
                async for key, result in results:
                    await self.session.breathe()
                    unheard.discard(key)
                    if isinstance(result, ProviderError):
                        lost.update({key: result} if result.unknown else {})
                        self.hopeless |= {key} if result.useless else set()
                        parted = key in flight.items and (result.refused or result.too_long)
                        refused.update({key: result} if parted else {})
                        fatal.extend([result] if result.fatal else [])
                    elif key in flight.items and key not in flight.answered:
                        self._take(flight, state, key, result)

        if not state.fault:
            await self.session.insist(step)
            lost |= dict.fromkeys(
                unheard, ProviderError(f"{self.provider.name}: no result in a batch that was completed")
            )
            self._forfeit(flight, state, lost)
            if refused and not (self.bill.calls or self.tally.models):  # nothing was ever accepted: it is not the texts
                self._close(flight, state.word)
                raise self.smaller.useless(flight, refused)
            self.bill.failed += len(refused)
            self.smaller.divide(flight, refused, seconds(flight, state))
        self._close(flight, state.word)
        lacking = len(flight.items) - len(flight.answered)
        self.session.tell(
            f"{self.provider.name}: batch {flight.batch_id} {state.word}, {len(flight.answered):,} answers"
            + (f", {lacking:,} requests without one" if lacking else "")
        )
        if state.fault and not self.smaller.halve(len(flight.items), why := self.smaller.why(flight, state)):
            raise ProviderError(
                f"{self.provider.name}: the vendor refused batch {flight.batch_id} as a whole ({why}); check model, "
                "account, its limits of batches and batch_items, or ask online",
                fatal=True,
            )
        if fatal:
            raise fatal[0]

    def _take(self, flight: Flight, state: BatchState, key: str, reply: Reply) -> None:
        """Write a reply and its ratings to the ledger."""
        batch_item = flight.items[key]
        reply = replace(reply, usage=believed(reply.usage, batch_item.guess.fewest if batch_item.guess else 0.0))
        reading, broken = read(partial(self.order.read, batch_item), reply, private=self.order.private)
        account = replace(self.order.account, run=flight.run)
        most = batch_item.hold.amount / self.rate
        row = reply_row(batch_item, account, reply, reading, self.price, most, seconds(flight, state), batch_item.guess)
        self.session.ledger.append(reading.ratings, row)
        flight.answered.add(key)
        self.tally.pay(reply.usage, batch_item.guess, lambda: batch_item.hold.amount, batch_item.hold)
        if notice := self.tally.overrun():
            self.session.tell(notice)
        if broken is not None:
            raise broken
        self.tally.read(reply, reading)

    def _forfeit(self, flight: Flight, state: BatchState, lost: Mapping[str, ProviderError]) -> None:
        """Bill items that the provider may have answered at their bound, and write them; they are sent again."""
        account = replace(self.order.account, run=flight.run)
        for key, error in sorted(lost.items()):
            batch_item = flight.items.get(key)
            if batch_item is not None and key not in flight.answered:
                most = batch_item.hold.amount / self.rate
                row = lost_row(batch_item, account, error, self.price, most, seconds(flight, state))
                self.session.ledger.append((), row)
                self.tally.forfeit(batch_item.hold.amount, batch_item.hold)

    def _lose(self, flight: Flight, gone: BatchGone) -> None:
        """Give up a batch whose results have expired; RunFailed for a younger one."""
        if age(flight) < KEPT:
            raise RunFailed(f"{gone}; give the key and the base_url that it was submitted with") from None
        self._close(flight, "gone")
        self.session.tell(f"{gone}, and too old to have results; its requests are sent again")

    def _close(self, flight: Flight, word: str) -> None:
        self.session.batches.close(flight.batch_id, word)
        self.flights.remove(flight)
        self.over += len(flight.items)
        _release(flight.items.values())

    def _restored(self, key: str, stored: Mapping[str, Any], *, held: bool) -> BatchItem:
        """Return an item from the ledger; its bound is reserved if it is not answered yet."""
        bound, budget = stored.get("bound", 0.0) * self.rate, self.session.budget
        hold = budget.hold(bound) if held else Hold(budget, bound, over=True)
        return BatchItem(key, stored["query_digest"], tuple(stored["slots"]), hold)


def _release(items: Iterable[BatchItem]) -> None:
    for batch_item in items:
        batch_item.hold.turn(0.0)


# Client for the vendors' batch APIs: several judges concurrently under one budget.

_NAMED = 5
"""Maximum batches that a message names."""


def ask_batches(
    orders: Sequence[BatchJob],
    ledger: Ledger,
    *,
    budget: Budget | None = None,
    pace: PollingPolicy | None = None,
    progress: PaidProgress = quiet,
    tell: Callable[[str], None] = lambda _line: None,
    beat: Beat | None = None,
) -> list[Bill]:
    """Run every order by batches, all judges concurrently; return their bills in order.

    Open batches of the judges are collected first, including those of other processes. The `budget` holds for all
    orders together. `tell` gets one line per event, `beat` is as in `ask`. Errors: ProviderError on a fatal answer or a
    batch that its provider refuses as a whole, BudgetError at the budget, Interrupted on Ctrl-C, RunFailed if replies
    name another model than before, Unreadable if a round gave nothing readable. Batches then continue at the providers,
    and the next call collects them. A second Ctrl-C drops the step in flight.
    """
    budget = budget or Budget()
    budget.admit({order.provider.name: order.price for order in orders})
    session = Session(ledger, Batches(ledger), pace or PollingPolicy(), Purse(budget, ledger), progress, tell)
    asking = _Asking(session)
    return complete(asking.all(orders, beat), asking.interrupt)


def no_batch(name: str) -> str:
    """Return the line for a judge that is asked online because its address offers no batch API."""
    return f"judges.{name}: its address offers no batch API (set batch: true if it does); asked online"


@dataclass
class _Asking:
    """One call of `ask_batches`: all judges of a session."""

    session: Session
    running: list[asyncio.Task[Bill]] = field(default_factory=list)

    async def all(self, orders: Sequence[BatchJob], beat: Beat | None) -> list[Bill]:
        """Get an answer for every batch job, or raise the reason why one has none."""
        judges, session = [JudgeBatches(self.session, order) for order in orders], self.session
        with session.purse.open(session.halt), interruptible(self.interrupt), beating(beat, session.halt):
            self.running = [asyncio.create_task(self._fill(judge)) for judge in judges]
            filled = await asyncio.gather(*self.running, return_exceptions=True)
        for order in orders:
            await order.provider.close()
        if session.stop is not None:
            batch_ids = [flight.batch_id for judge in judges for flight in judge.flights]
            if batch_ids:
                names = ", ".join(batch_ids[:_NAMED]) + (", ..." if len(batch_ids) > _NAMED else "")
                session.tell(f"{len(batch_ids)} batches go on at the vendors ({names}); the same command collects them")
            raise session.stop
        return [bill for bill in filled if isinstance(bill, Bill)]

    async def _fill(self, judge: JudgeBatches) -> Bill:
        try:
            return await judge.fill()
        except Halted:
            raise
        except BaseException as error:
            self.session.halt(error)
            raise

    def interrupt(self) -> None:
        if self.session.stop is not None:
            for task in self.running:
                task.cancel()
        self.session.halt(
            Interrupted(
                "stopped; every answer that was collected is kept, batches go on at the vendors, and the same command "
                "collects them"
            )
        )
