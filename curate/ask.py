"""The one door to a model: sends requests, retries, keeps to the budget, and writes each reply down as it arrives."""

import asyncio
import datetime as dt
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace

from curate.budget import Budget
from curate.config import canonical, digest
from curate.cost import Price, cost
from curate.errors import BudgetError, ProviderError, RunFailed
from curate.ledger import Call, Ledger, Rating
from curate.protocols import Progress, Provider, Reply, Request, quiet
from curate.retry import Halted, insist

MOST_FAILED = 5
"""Requests in a row that got no answer, for all their tries, after which an asking ends: then it is not the texts."""
MOST_FRUITLESS = 50
"""Answers in a row that settled nothing after which an asking ends: asking in ever smaller parts costs money too."""


@dataclass(frozen=True)
class Reading:
    """What a reply, or its failure, comes to: ratings to append, and smaller tasks for what is still missing."""

    ratings: tuple[Rating, ...] = ()
    again: tuple["Task", ...] = ()
    foreign_labels: int = 0
    repeated_labels: int = 0
    fruitful: bool = True
    """False if nothing of what was asked is settled by it."""


@dataclass(frozen=True)
class Task:
    """One request, and the pure functions that read its reply or its failure."""

    request: Request
    read: Callable[[Reply], Reading]
    failed: Callable[[ProviderError], Reading]
    weight: int = 1
    """Items that are settled by it, for the progress bar."""
    query_digest: str = ""
    slots: tuple[str, ...] = ()
    """Digests of the texts that it is about, in the order of the prompt."""

    @property
    def key(self) -> str:
        """Return the digest of the request."""
        request = self.request
        return digest([[astuple(turn) for turn in request.messages], request.max_tokens, request.schema])


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
class Limits:
    """How a provider is asked."""

    concurrency: int = 8
    attempts: int = 6
    """Tries a request has before its failure is written down."""
    wait_s: float = 1.0
    """First pause before a retry, in seconds; it doubles, with jitter, up to a minute, unless the vendor names one."""
    price: Price | None = None
    max_cost: float | None = None
    """Stop before the calls of this asking cost more than this; needs a price. Tries without a reply count as free."""
    mixed_models: bool = False
    """Go on though replies name several models."""


@dataclass
class Bill:
    """What an asking came to."""

    calls: int = 0
    """Replies, all of them in the ledger."""
    failed: int = 0
    """Requests that got no reply, in the ledger too."""
    spent: float = 0.0
    """What the replies cost, by the estimate where a vendor told no usage; 0 without a price."""


def ask(
    tasks: Iterable[Task],
    provider: Provider,
    ledger: Ledger,
    account: Account,
    limits: Limits | None = None,
    *,
    total: int | None = None,
    progress: Progress = quiet,
) -> Bill:
    """Send every task and append every reply with its ratings to the ledger; return the bill.

    Tasks are taken one by one as slots become free; `total` is the number of items in them, for the progress bar. A
    reply is written before its slot is used again, so a kill loses at most the calls in flight. The asking ends
    early, after the calls in flight are written: with ProviderError on a fatal answer (wrong key, quota used up) or
    on MOST_FAILED requests in a row without one, BudgetError at the cap, RunFailed on Ctrl-C, after MOST_FRUITLESS
    answers in a row that settle nothing, or if replies name another model than before, and any unexpected error as
    itself. Ctrl-C while it is ending drops the calls in flight.
    """
    limits = limits or Limits()
    if limits.max_cost is not None and limits.price is None:
        raise BudgetError(f"{provider.name}: a cap cannot be kept without a price; give the price of the model")
    asking = _Asking(provider, ledger, account, limits, total, progress)
    asyncio.run(asking.all(tasks))
    if asking.stop is not None:
        raise asking.stop
    return asking.bill


def mixture(who: str, models: Sequence[str]) -> RunFailed | None:
    """Return an error if a judge's replies named several models: their ratings are not those of one judge."""
    if len(models) < 2:
        return None
    return RunFailed(
        f"{who}: its replies name several models ({', '.join(models)}), so its ratings are not those of one judge; "
        "name the version you want as its `model`, start afresh with another `vendor`, or accept the mixture with "
        "judge.mixed_models=true"
    )


@dataclass
class _Asking:
    """The state of one asking; only its event loop touches it."""

    provider: Provider
    ledger: Ledger
    account: Account
    limits: Limits
    total: int | None
    progress: Progress
    done: int = 0
    failed: int = 0
    fruitless: int = 0
    """Refused requests since the last answer; those that were too long do not count."""
    bill: Bill = field(default_factory=Bill)
    stop: BaseException | None = None
    running: set[asyncio.Task[None]] = field(default_factory=set)
    halted: asyncio.Event = field(default_factory=asyncio.Event)
    settled: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.limits.concurrency)
        self.budget = Budget(self.limits.price, self.limits.max_cost)
        self.models = self.ledger.models(self.account.judge_digest, self.account.rubric_digest)

    async def all(self, tasks: Iterable[Task]) -> None:
        """Settle every task; `stop` says why if not all could be."""
        self._check("")
        with self._interruptible():
            try:
                for task in tasks:
                    await self.slots.acquire()
                    if self.stop is not None:
                        break
                    self._start(self._settle(task))
            finally:
                while self.running:
                    await asyncio.wait(self.running)
                await self.provider.close()

    def halt(self, why: BaseException) -> None:
        """Send nothing more; the first reason stands."""
        self.stop = self.stop or why
        self.halted.set()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        running = asyncio.get_running_loop().create_task(work)
        self.running.add(running)
        running.add_done_callback(self._ended)

    def _ended(self, work: asyncio.Task[None]) -> None:
        self.running.discard(work)
        error = None if work.cancelled() else work.exception()
        if error is not None and not isinstance(error, Halted):
            self.halt(error)

    async def _later(self, task: Task) -> None:
        await self.slots.acquire()
        await self._settle(task)

    async def _settle(self, task: Task) -> None:
        """Settle a task in a slot that is already taken, and start the smaller ones that it leaves."""
        bound = None
        try:
            bound = await self._reserve(task.request)
            reading = await self._exchange(task, bound)
            for each in reading.again:
                self._start(self._later(each))
            self.done += task.weight - sum(each.weight for each in reading.again)
            if self.total is not None:
                self.progress(f"ask {self.provider.name}", self.total, self.done)
        finally:
            self.slots.release()
            if bound is not None:
                self.budget.release(bound)
            async with self.settled:
                self.settled.notify_all()

    async def _reserve(self, request: Request) -> float:
        """Hold the most that a request may cost against the cap, and return it.

        Calls in flight mostly come to less than is held for them, so near the cap a request waits for those.
        """
        budget = self.budget
        async with self.settled:
            bound = budget.bound(request)
            await self.settled.wait_for(lambda: self.stop or not budget.flying or budget.fits(bound))
            if not self.stop and not budget.fits(bound):
                raise BudgetError(
                    f"{self.provider.name}: the next call may pass the cap of {budget.cap:g}, after {self.bill.calls} "
                    f"calls that cost {budget.spent:.4g}; every answer is kept; raise --max-cost to go on"
                )
            if self.stop:
                raise Halted
            budget.hold(bound)
            return bound

    async def _exchange(self, task: Task, bound: float) -> Reading:
        """Send a request, and write down the reply or the failure."""
        started, limits = time.monotonic(), self.limits
        try:
            reply = await insist(self.provider, task.request, limits.attempts, limits.wait_s, self.halted)
        except ProviderError as error:
            if error.fatal:  # says nothing of this request: it is sent again on the next run
                raise
            reading = task.failed(error)
            self.ledger.append(reading.ratings, self._failure(task, error, time.monotonic() - started))
            self.bill.failed += 1
            self._count(error)
            return reading
        reading = task.read(reply)
        call = self._reply(task, reply, reading, time.monotonic() - started)
        self.ledger.append(reading.ratings, call)
        self.budget.pay(bound, call.cost)
        self.bill.calls, self.bill.spent = self.bill.calls + 1, self.budget.spent
        self._check(reply.model)
        self.failed, self.fruitless = 0, 0 if reading.fruitful else self.fruitless + 1
        if self.fruitless >= MOST_FRUITLESS:
            self.halt(
                RunFailed(
                    f"{self.provider.name}: {self.fruitless} answers in a row gave nothing that can be read, and are "
                    "paid; try another model, json_mode or rubric"
                )
            )
        return reading

    def _count(self, error: ProviderError) -> None:
        """End the asking if too many requests in a row failed for another reason than their length."""
        self.failed += not error.too_long
        if self.failed >= MOST_FAILED:
            self.halt(ProviderError(f"{self.failed} requests in a row failed, the last one so: {error}"))

    def _check(self, model: str) -> None:
        """End the asking if this model, or what the ledger holds, makes a mixture; a reply may name no model."""
        if model and model not in self.models:
            self.models.append(model)
        mixed = None if self.limits.mixed_models else mixture(self.provider.name, self.models)
        if mixed is not None:
            self.halt(mixed)

    def _call(self, task: Task, seconds: float, model: str, finish: str, raw: str) -> Call:
        return Call(
            **vars(self.account),
            request_digest=task.key,
            model=model,
            finish=finish,
            raw=raw,
            latency_s=round(seconds, 3),
            created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            query_digest=task.query_digest,
            slots=canonical(task.slots),
        )

    def _failure(self, task: Task, error: ProviderError, seconds: float) -> Call:
        reason = canonical({"error": str(error), "too_long": error.too_long})
        return self._call(task, seconds, model="", finish="error", raw=reason)

    def _reply(self, task: Task, reply: Reply, reading: Reading, seconds: float) -> Call:
        usage = reply.usage
        return replace(
            self._call(task, seconds, reply.model, reply.finish, reply.raw),
            prompt_tokens=usage.prompt if usage else None,
            cached_tokens=usage.cached if usage else None,
            written_tokens=usage.written if usage else None,
            output_tokens=usage.output if usage else None,
            reasoning_tokens=usage.reasoning if usage else None,
            cost=cost(usage, self.limits.price),
            foreign_labels=reading.foreign_labels,
            repeated_labels=reading.repeated_labels,
        )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Take Ctrl-C while the block lasts, where this is the main thread: only that one can."""
        loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
        try:
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
        except (NotImplementedError, ValueError, RuntimeError):
            yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)

    def _interrupt(self) -> None:
        if self.stop is not None:
            for each in self.running:
                each.cancel()
        self.halt(RunFailed("stopped; every answer that arrived is kept, and the same command goes on from there"))
