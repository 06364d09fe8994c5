"""Dispatcher of one judge's requests: slots, rate limit, circuit breaker, retries, billing, and handling of replies."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import replace
from itertools import islice

from curate.core.errors import ProviderError
from curate.core.messages import Reply, Usage
from curate.core.progress import StepLabel
from curate.core.protocols import PaidProgress
from curate.ledger import Ledger
from curate.llm.budget import Hold
from curate.llm.client.accounting import (
    JudgeTally,
    Purse,
    failure_row,
    lost_row,
    read,
    refuse_cut,
    refuse_unread,
    reply_row,
)
from curate.llm.client.canary import CANARY, CUT, READ, canary
from curate.llm.client.interrupt import Haltable, Halted
from curate.llm.client.limits import Breaker, ConcurrencyLimit
from curate.llm.client.requests import Account, Job, ReplyResult, Task, pace
from curate.llm.cost import EstimatedUsage, believed, estimate
from curate.llm.exchange_rates import shown
from curate.system import http
from curate.system.http import LONGEST_S

LONGEST_PAUSE_S = 60.0
"""Longest pause of our own; a vendor may name a longer one, up to `retry_after.LONGEST_S`."""


async def insist(
    send: Callable[[], Awaitable[Reply]],
    attempts: int,
    first_s: float,
    sleep: Callable[[float], Awaitable[None]],
) -> Reply:
    """Return the reply to a request that is sent at most `attempts` times, with pauses as in `http.insist`.

    If the provider asks for a pause above `LONGEST_S`, the error is marked `useless`; if the host's name cannot be
    resolved, it is marked `fatal`.
    """

    async def answer() -> Reply:
        try:
            return await send()
        except ProviderError as error:
            if error.fatal or error.retry_after is None or error.retry_after <= LONGEST_S:
                raise
            wait = f"it asks to wait {error.retry_after:,.0f} s, and nothing waits over {LONGEST_S:g} s"
            raise ProviderError(f"{error}; {wait}", useless=True) from None

    try:
        return await http.insist(answer, attempts, first_s, LONGEST_PAUSE_S, sleep, jitter_s=first_s)
    except ProviderError as error:
        if error.unresolved:
            raise ProviderError(str(error), fatal=True) from None
        raise


# Dispatcher of one judge's requests: slots, rate limit, circuit breaker, billing, and handling of replies.

MOST_REFUSED = 10
"""Refusals after which a judge that never answered counts as misconfigured: it is not the texts."""
MOST_REFUSED_IN_A_ROW = 40
"""Refusals in a row that are for the texts: ten passages that are all refused one by one are 19. More are failures."""
FIRST = 5
"""Concurrent calls until it is known whether a judge reads its prompts."""
MOST_FAILED = 5
"""Requests in a row without an answer, after all attempts, that stop a judge: it is not the texts."""
DOUBT_S = 0.05
"""Pause between checks whether enough replies arrived to know that a judge is readable, or answers at all."""
COOL = 10
"""First pause of the breaker, as a multiple of the first pause before a retry."""


class JudgeDispatcher(Haltable):
    """State of one judge's requests; not thread-safe, used in one event loop."""

    def __init__(
        self, job: Job, ledger: Ledger, shared_budget: Purse, progress: PaidProgress, tell: Callable[[str], None]
    ) -> None:
        super().__init__()
        self.tell, self.waited = tell, False
        limits = job.limits
        self.job, self.ledger, self.purse, self.progress = job, ledger, shared_budget, progress
        self.gate = ConcurrencyLimit(limits.concurrency, FIRST if job.watch and job.watch.undecided else None)
        self.pace = job.pace or pace(limits, ledger, job.account.judge_digest)
        self.breaker = Breaker(limits.wait_s * COOL)
        self.tally = JudgeTally(
            job.name,
            job.account,
            limits.price,
            ledger,
            shared_budget.budget,
            limits.tokens_a_han,
            job.watch,
            mixed_models=limits.mixed_models,
        )
        self.meter, self.bill = self.tally.meter, self.tally.bill
        self.done = self.failed = self.refused = self.flying = 0
        self.doubted = False
        self.label = StepLabel(f"asking {job.name}", job.unit)
        self.running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run every task; if some could not be run, `stop` holds the reason."""
        try:
            self.tally.check()
            self._progress()
            async for task in self._tasks():
                entry = await self.gate.enter()
                if self.stop is not None:
                    self.gate.leave()
                    break
                self._start(self._settle(task, entry))
        except Exception as error:  # noqa: BLE001 - a bug in the tasks is raised once what is in flight is written
            self.halt(error)
        finally:
            while self.running:
                await asyncio.wait(self.running)
            await self.job.provider.close()

    async def _tasks(self) -> AsyncIterator[Task]:
        """Yield the tasks, made in a thread, since a claim may have to wait for the ledger."""
        tasks = iter(self.job.tasks)
        while chunk := await asyncio.to_thread(list, islice(tasks, self.job.limits.concurrency)):
            for task in chunk:
                yield task

    def _start(self, work: Coroutine[None, None, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self.running.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, Halted):
                self.halt(error)

        running = asyncio.get_running_loop().create_task(work)
        self.running.add(running)
        running.add_done_callback(ended)

    async def _later(self, task: Task, *, after_an_answer: bool = False) -> None:
        while after_an_answer and self.gate.open and not self.bill.calls:  # a quick refusal would use up all attempts
            await self.pause(DOUBT_S)
        await self._settle(task, await self.gate.enter())

    async def _settle(self, task: Task, entry: int) -> None:
        """Run a task in its slot, and start the smaller tasks that remain."""
        try:
            reading = await self._exchange(task, entry)
        finally:
            self.gate.leave()
        for smaller in reading.again:
            self._start(self._later(smaller, after_an_answer=smaller is task))
        self.done += task.weight - sum(smaller.weight for smaller in reading.again)
        self._progress()

    def _progress(self) -> None:
        """Report progress and the amount spent on this judge in its currency, with a budget also that of all judges."""
        if self.job.total is None:
            return
        price, budget = self.meter.price, self.purse.budget
        spent = shown(self.bill.spent / self.meter.rate, price.currency) if price else ""
        cap = "" if budget.policy.amount is None else f"all {shown(budget.spent, None)} of {budget.policy.shown()}"
        self.progress(self.label, self.job.total, self.done, ", ".join(filter(None, (spent, cap))))

    async def _exchange(self, task: Task, entry: int) -> ReplyResult:
        """Send a request, and write the reply or the failure to the ledger."""
        started, limits = time.monotonic(), self.job.limits
        guess = estimate(task.request)
        try:
            reply = await insist(lambda: self._try(task, entry, guess), limits.attempts, limits.wait_s, self.pause)
        except ProviderError as error:
            if self._is_text(error) or self._stays_garbled(error):
                return await self._refused(task, error, started)
            if error.broke:  # after all its attempts, which take about a minute
                raise ProviderError(f"{self.job.name}: {error}", fatal=True) from None
            if error.fatal:  # says nothing of this request: it is sent again on the next run
                raise type(error)(f"{self.job.name}: {error}", fatal=True) from None
            reading = task.failed(error)
            row = failure_row(task, self._account(task), reading.form, error, time.monotonic() - started)
            await self.ledger.write(reading.ratings, row)
            self.bill.failed += 1
            self.failed += not (error.too_long or error.refused)  # these two are for the text
            if self.failed >= MOST_FAILED:
                self.halt(ProviderError(f"{self.failed} requests in a row failed, the last one so: {error}"))
            return reading
        reading, broken = read(task.read, reply, private=task.request.private)
        most = self.meter.bound(guess) / self.meter.rate
        row = reply_row(
            task, self._account(task), reply, reading, limits.price, most, time.monotonic() - started, guess
        )
        await self.ledger.write(reading.ratings, row)
        if broken is not None:
            raise broken
        self.failed = self.refused = 0
        if not task.purpose:
            self.tally.read(reply, reading, task.request)
        self.tally.need_fruit()
        refuse_unread(self.job.name, self.job.watch)
        if self.gate.most < limits.concurrency and not (self.job.watch and self.job.watch.undecided):
            self.gate.widen(limits.concurrency)
        return reading

    def _doubt(self, task: Task, reported: Usage, guess: EstimatedUsage) -> None:
        """Notify once that a token count is impossibly low, and send a canary to see whether prompts are cut."""
        if self.doubted:
            return
        self.doubted = True
        self.tell(
            f"{self.job.name}: {reported.prompt:,} tokens cannot be the count of a prompt of about "
            f"{guess.prompt:,}; replies with such a count are charged at the most that they may cost"
        )
        if self.job.canary and self.ledger.last_form(self.job.account.judge_digest, CANARY) != READ:
            self._start(self._need_read(canary(task.request)))

    async def _need_read(self, task: Task) -> None:
        """Send a canary; Unreadable if its codes do not come back: the server cuts prompts."""
        await self._later(task)
        if self.ledger.last_form(self.job.account.judge_digest, CANARY) == CUT:
            refuse_cut(self.job.name)

    def _is_text(self, error: ProviderError) -> bool:
        """Return whether a refusal is due to the request's text; raise it as fatal if every request was refused."""
        if not error.refused:
            return False
        self.refused += 1
        if not (self.bill.calls or self.tally.models) and self.refused >= MOST_REFUSED:
            raise type(error)(f"{self.job.name}: {error}", fatal=True) from None
        return self.refused <= MOST_REFUSED_IN_A_ROW

    def _stays_garbled(self, error: ProviderError) -> bool:
        """Return whether an unreadable reply is due to the request's text, since others were answered.

        False for two in a row without an answer in between, which indicates an outage.
        """
        error.refused = error.garbled and bool(self.bill.calls) and not self.failed
        self.failed += error.refused
        return error.refused

    async def _refused(self, task: Task, error: ProviderError, started: float) -> ReplyResult:
        """Write a refusal to the ledger and return the parts to ask for; a single passage is refused for good.

        Before the first answer of this call, the refusal may have another cause: a single passage is then sent again,
        once a call in flight was answered or none is left, if the judge has never answered before, else it counts as
        failed.
        """
        reading = task.failed(error)
        if not (self.bill.calls or reading.again):
            if not self.tally.models:
                return ReplyResult(again=(task,), form=reading.form, fruitful=False)
            error.refused = False
            reading = task.failed(error)
        row = failure_row(task, self._account(task), reading.form, error, time.monotonic() - started)
        await self.ledger.write(reading.ratings, row)
        self.bill.failed += 1
        return reading

    async def _try(self, task: Task, entry: int, guess: EstimatedUsage) -> Reply:
        """Send a request once, when breaker and rate limit allow it; its cost bound is reserved meanwhile."""
        hold = await self.purse.hold(self.meter.bound(guess), self.job.name, lambda: self.stop)
        try:
            tokens = self.meter.tokens(guess)
            await self._turn(task, tokens)
            return await self._send(task, entry, guess, tokens, hold)
        finally:
            await self.purse.release(hold)

    async def _send(self, task: Task, entry: int, guess: EstimatedUsage, tokens: float, hold: Hold) -> Reply:
        """Send a request; update breaker, rate limit, slots and bill by the reply, the error or the unknown outcome."""
        started = time.monotonic()
        sent, reply = self.pace.sent(tokens, started), None
        self.flying += 1
        try:
            answer = await self.job.provider.answer(task.request)
            reply = replace(answer, usage=believed(answer.usage, guess.fewest))
            self._need_whole(task, reply)
            if answer.usage and not reply.usage:
                self._doubt(task, answer.usage, guess)
            self.tally.pay(reply.usage, guess, lambda: self.meter.bound(guess), hold)
            if notice := self.tally.overrun():
                self.tell(notice)
        except ProviderError as error:
            self._turned_away(error, entry)
            if error.unknown:
                await self._forfeit(task, guess, error, started, hold)
            raise
        except BaseException as error:  # a bug, or a second Ctrl-C: the request was sent and may be billed
            if reply is None:
                await self._forfeit(task, guess, error, started, hold)
            raise
        finally:
            self.flying -= 1
            self.breaker.spared()
            used = reply.usage if reply else None
            self.pace.replied(sent, max(tokens, used.prompt + used.output if used else 0), time.monotonic())
        self.breaker.good()
        self.gate.good()
        return reply

    def _need_whole(self, task: Task, reply: Reply) -> None:
        """Raise ProviderError for a reply without an answer that ended for an unknown reason: a retry may succeed.

        A reply with at least some answers counts as complete, since many servers give no reason at all.
        """
        if reply.finish != "other":
            return
        reading, broken = read(task.read, reply, private=task.request.private)
        if broken is None and not reading.fruitful:
            why = f"{self.job.name}: a reply broke off for an unknown reason"
            raise ProviderError(why, unknown=bool(reply.usage), garbled=True)

    async def _turn(self, task: Task, tokens: float) -> None:
        while task.purpose or await self.job.ours(task):
            now = time.monotonic()
            doubt = DOUBT_S if self.tally.doubts(self.flying) else 0.0
            pause = (
                doubt or self.pace.pause(tokens, now) or self.breaker.pause(now)
            )  # last: a breaker that returns 0 has admitted its one probe
            if self.stop:
                raise Halted
            if not pause:
                return
            await self.pause(pause)
        raise Halted

    def _turned_away(self, error: ProviderError, entry: int) -> None:
        now = time.monotonic()
        if error.overloaded:
            self.gate.overloaded(entry)
            if error.retry_after is not None and error.retry_after <= LONGEST_S:
                self.breaker.hold(error.retry_after, now)
        if error.fatal or error.useless:
            self.breaker.good()  # the vendor is there
            return
        if not (self.waited or self.bill.calls or error.overloaded):  # the server may be down: one notice
            self.waited = True
            self.tell(f"{self.job.name}: {error}; trying again, for some minutes at most")
        self.breaker.bad(now, int(self.gate.limit))
        if self.breaker.broken:
            self.halt(
                ProviderError(f"{self.job.name}: {self.breaker.failed} tries in a row failed, the last so: {error}")
            )

    async def _forfeit(
        self, task: Task, guess: EstimatedUsage, error: BaseException, started: float, hold: Hold
    ) -> None:
        """Count a request at its cost bound, and write it to the ledger: it was sent, so the provider may bill it."""
        most = self.meter.bound(guess)
        self.tally.forfeit(most, hold)
        seconds, price = time.monotonic() - started, self.meter.price
        row = lost_row(task, self._account(task), error, price, most / self.meter.rate, seconds)
        await asyncio.shield(self.ledger.write((), row))

    def _account(self, task: Task) -> Account:
        return replace(self.job.account, purpose=task.purpose or self.job.account.purpose)
