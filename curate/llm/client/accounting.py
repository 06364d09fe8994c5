"""Accounting of requests: tally per judge, rows of `calls`, and money reserved under a cap shared by processes."""

import asyncio
import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Protocol, cast

from curate.core.config import canonical
from curate.core.errors import DataError, ProviderError, RunFailed
from curate.core.messages import Reply, Request, Usage
from curate.ledger import Call, Ledger
from curate.ledger.claims import LEASE_S, Caps
from curate.ledger.rows import LOST
from curate.llm.budget import Budget, CapReached, Hold, Meter
from curate.llm.client.interrupt import Halted, beating
from curate.llm.client.requests import Account, Bill, ReplyResult, Watch
from curate.llm.cost import EstimatedUsage, Price, cost
from curate.llm.reply_faults import REFUSED, ReplyFault, fault, sample
from curate.llm.token_rate import token_rate
from curate.system.processes import gone, owner

MOST_UNREADABLE = 10
"""Unreadable replies in a row that stop a judge which never gave a readable one."""
MOST_FRUITLESS = 50
"""Replies in a row without a result that stop any judge: asking in smaller parts costs money too."""


class Unreadable(RunFailed):
    """Judges were stopped after too many unreadable replies in a row; `jobs` names them."""

    def __init__(self, message: str, jobs: Sequence[str]) -> None:
        super().__init__(message)
        self.jobs = tuple(jobs)


class JudgeTally:
    """Tally of one judge's replies; not thread-safe, used in one event loop."""

    def __init__(
        self,
        name: str,
        account: Account,
        price: Price | None,
        ledger: Ledger,
        budget: Budget,
        tokens_a_han: float | None = None,
        watch: Watch | None = None,
        *,
        mixed_models: bool,
    ) -> None:
        self.name, self.account, self.ledger, self.watch = name, account, ledger, watch
        self.mixed_models, self.budget = mixed_models, budget
        prompts = token_rate(ledger, account.judge_digest, account.rubric_digest, tokens_a_han)
        self.meter = Meter(price, budget.policy.rate(price).value, prompts)
        self.models = ledger.models(account.judge_digest, account.rubric_digest)
        self.bill = Bill()
        self.readable = account.purpose != "judge" and bool(self.models)
        """Whether a reply gave a result; earlier ones may have, where the ledger has no ratings of the purpose."""
        self.faults = Counter[ReplyFault]()
        """Faults of the current row of replies without a result."""
        self.last: dict[ReplyFault, tuple[Reply, Request | None]] = {}
        """Fault -> its last reply, and the request if known."""
        self.seen = 0
        """Replies written to the ledger and read."""

    def pay(self, usage: Usage | None, guess: EstimatedUsage | None, most: Callable[[], float], hold: Hold) -> None:
        """Bill a reply at its cost, or at the bound `most` if the provider reported no usage."""
        paid = cost(usage, self.meter.price)
        if usage and guess:
            self.meter.learn(guess, usage)
        spent = most() if paid is None else paid * self.meter.rate
        self.bill.calls += 1
        self._count(spent, hold)

    def forfeit(self, most: float, hold: Hold) -> None:
        """Bill a request at its bound: it was sent, and may be billed."""
        self.bill.lost += 1
        self._count(most, hold)

    def _count(self, spent: float, hold: Hold) -> None:
        self.bill.spent += spent
        hold.turn(spent)
        price = self.meter.price
        self.budget.bill(spent / self.meter.rate, price.currency if price else "")

    def overrun(self) -> str:
        """Return once that prompts have more tokens than planned; empty if they have not."""
        if self.name in self.budget.overruns or not (notice := self.meter.overrun()):
            return ""
        return self.budget.overruns.setdefault(self.name, f"{self.name}: {notice}")

    def check(self, model: str = "") -> None:
        """Raise RunFailed if this model differs from those in the ledger; a reply need not name a model."""
        if model and model not in self.models:
            self.models.append(model)
        if not self.mixed_models:
            refuse_mixture(self.name, self.models)

    def read(self, reply: Reply, reading: ReplyResult, request: Request | None = None) -> None:
        """Count a reply in the ledger; RunFailed if it names another model than earlier ones."""
        self.seen += 1
        if reading.fruitful:
            self.readable = True
            self.faults.clear()
        else:
            wrong = fault(reply, reading.form)
            self.faults[wrong] += 1
            self.last[wrong] = reply, request
        if self.watch:
            self.watch.add(reading.ratings)
        self.check(reply.model)

    @property
    def unreadable(self) -> int:
        """Return the number of unreadable replies since the last result; refusals are readable."""
        return self.faults.total() - self.faults[REFUSED]

    def doubts(self, flying: int) -> bool:
        """Return whether the judge would be stopped if all calls in flight turned out unreadable."""
        flying += self.bill.calls - self.seen  # and those that are being written
        return not self.readable and self.unreadable + flying >= MOST_UNREADABLE

    def need_fruit(self, answers: int = MOST_FRUITLESS) -> None:
        """Raise Unreadable if the last `answers` replies, at least MOST_FRUITLESS, had no result.

        For a judge without any readable reply, MOST_UNREADABLE replies are enough.
        """
        if not (self.faults.total() >= answers >= MOST_FRUITLESS or self._never_readable()):
            return
        [(wrong, _)] = self.faults.most_common(1)
        reply, request = self.last[wrong]
        excerpt = sample(reply, request) if request else ""
        raise Unreadable(
            f"{self.name}: {self.faults.total()} answers in a row gave nothing that can be read, and are paid: "
            f"{wrong.said}{f', such as {excerpt!r}' if excerpt else ''}; {wrong.remedy}",
            [self.name],
        )

    def _never_readable(self) -> bool:
        """Return whether enough replies are unreadable, and none was ever readable, the ledger included."""
        if self.readable or self.unreadable < MOST_UNREADABLE:
            return False
        key = self.account.judge_digest, self.account.rubric_digest, self.account.replicate
        self.readable = "rated" in self.ledger.ratings(*key)["status"]
        return not self.readable


def refuse_unread(who: str, watch: Watch | None) -> None:
    """Raise Unreadable if a judge's grades do not depend on its prompts."""
    if watch and (finding := watch.finding()):
        raise Unreadable(
            f"{who} does not read its prompts: {finding}; its grades are kept and are in no consensus. Take it out of "
            "judge.models, or accept it with --set judge.allow_weak_judges=true",
            [who],
        )


def refuse_cut(who: str) -> None:
    """Raise Unreadable for a judge whose server truncates prompts."""
    raise Unreadable(
        f"{who} does not get whole prompts: of one with a code at each end, as long as those of this run, it did not "
        "give both back; its grades are kept and are in no consensus. Give its server a larger context window, or "
        "prompts less text (judge.batch, judge.passage_tokens), and start afresh with another `vendor`; or accept it "
        "with --set judge.allow_weak_judges=true",
        [who],
    )


def refuse_mixture(who: str, models: Sequence[str]) -> None:
    """Raise RunFailed if a judge's replies named several models."""
    if len(models) > 1:
        raise RunFailed(
            f"{who}: its replies name several models ({', '.join(models)}), so its ratings are not those of one judge; "
            "name the version you want as its `model`, start afresh with another `vendor`, or accept the mixture with "
            "judge.mixed_models=true"
        )


# Rows of `calls` for replies and failures, the same online and in batches.


class SentRequest(Protocol):
    """A request without its text: a task, or an item of a batch."""

    @property
    def key(self) -> str:
        """Return the digest of the request."""
        ...

    @property
    def query_digest(self) -> str:
        """Return the digest of the query."""
        ...

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the digests of the passages, in the order of the prompt."""
        ...


def reply_row(
    task: SentRequest,
    account: Account,
    reply: Reply,
    reading: ReplyResult,
    price: Price | None,
    most: float,
    seconds: float,
    guess: EstimatedUsage | None,
) -> Call:
    """Return the row of a reply; its cost is `most` without usage, None without a price."""
    usage, raw = reply.usage, reply.raw if reading.kept is None else reading.kept
    return replace(
        _row(task, account, reading.form, seconds, reply.model, reply.finish, raw),
        prompt_tokens=usage.prompt if usage else None,
        cached_tokens=usage.cached if usage else None,
        written_tokens=usage.written if usage else None,
        output_tokens=usage.output if usage else None,
        reasoning_tokens=usage.reasoning if usage else None,
        cost=cost(usage, price) if usage else most if price else None,
        currency=price.currency if price else None,
        foreign_labels=reading.foreign_labels,
        repeated_labels=reading.repeated_labels,
        estimated_tokens=guess.prompt if guess else None,
    )


def failure_row(task: SentRequest, account: Account, form: str, error: ProviderError, seconds: float) -> Call:
    """Return the row of a request without a reply; it holds the reason instead."""
    divisible = error.too_long or error.refused  # older ledgers have only too_long, hence the name
    reason = canonical({"error": error.cause if divisible else str(error), "too_long": divisible})
    return _row(task, account, form, seconds, model="", finish="error", raw=reason)


def lost_row(
    task: SentRequest, account: Account, error: BaseException, price: Price | None, most: float, seconds: float
) -> Call:
    """Return the row of an attempt with unknown outcome; its cost is the upper bound `most`."""
    provider_error = error if isinstance(error, ProviderError) else None
    reason = f"{provider_error or type(error).__name__}"  # any other error's words may repeat the prompt
    raw = canonical({"error": reason, "too_long": False, "said": provider_error.said if provider_error else ""})
    row = _row(task, account, LOST, seconds, model="", finish="error", raw=raw)
    return replace(row, cost=most, currency=price.currency) if price else row


def read(
    reader: Callable[[Reply], ReplyResult], reply: Reply, *, private: bool = False
) -> tuple[ReplyResult, Exception | None]:
    """Return the result of a reply; a bug in the reader is returned, so that the paid reply is written first.

    The text of a `private` reply is then not stored.
    """
    try:
        return reader(reply), None
    except Exception as error:  # noqa: BLE001 - raised once the reply is written
        return ReplyResult(form="broken", fruitful=False, kept="" if private else None), error


def _row(task: SentRequest, account: Account, form: str, seconds: float, model: str, finish: str, raw: str) -> Call:
    return Call(
        **vars(account),
        request_digest=task.key,
        model=model,
        finish=finish,
        form=form,
        raw=raw,
        latency_s=round(seconds, 3),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        query_digest=task.query_digest,
        slots=canonical(task.slots),
    )


# Money of a set of requests: reserved before anything is sent, shared with other processes under the same cap.

PAUSE_S = 0.25
"""First pause in seconds between checks whether others released money; doubles up to LONGEST_S."""
LONGEST_S = 5.0


class Purse:
    """Budget shared with other processes; not thread-safe, used in one event loop."""

    def __init__(self, budget: Budget, ledger: Ledger) -> None:
        self.budget = budget
        self.news = asyncio.Condition()
        """Notified when money is released, and when a judge stops."""
        self.elsewhere = 0.0
        """Amount spent or reserved by other processes under this budget."""
        self.returning = False
        """Whether another process may release some of its reservation."""
        self._allowed = self._again = 0.0
        self._pause = PAUSE_S
        self._taking = asyncio.Lock()
        self._ledger, self._caps = ledger, cast("Caps | None", None)

    @contextmanager
    def open(self, halt: Callable[[BaseException], None]) -> Iterator[None]:
        """Take part in the shared budget within the block; unspent reservations are released at its end."""
        budget, cap = self.budget, self.budget.policy
        if cap.amount is None:
            yield
            return
        budget.member = budget.member or owner()
        scope = f"{budget.shared}:{cap.amount!r}:{cap.currency}"
        self._caps = caps = Caps(self._ledger, budget.member, scope, gone, budget.began)
        try:
            with beating((LEASE_S / 8, caps.stay), halt):
                yield
        finally:
            budget.began = caps.began
            if caps.began is not None:
                with suppress(DataError):  # an unreleased amount counts until this process ends
                    caps.leave(budget.spent)

    async def fits(self, amount: float) -> bool:
        """Return whether the budget covers an amount on top of what this and other processes have spent or reserved."""
        budget, cap = self.budget, self.budget.policy.amount
        if self._caps is None or cap is None or not amount:  # a model without a price does not count
            return True
        async with self._taking:
            if budget.spent + budget.held + amount <= self._allowed:
                return True
            if not budget.fits(amount):
                self.returning = False
                return False
            if time.monotonic() < self._again:
                return False
            room = await asyncio.to_thread(self._caps.take, cap, budget.spent, budget.held, amount)
            self._allowed, self.elsewhere, self.returning = room.allowed, room.elsewhere, room.returning
            if budget.spent + budget.held + amount <= self._allowed:
                self._pause = PAUSE_S
                return True
            self._again, self._pause = time.monotonic() + self._pause, min(2 * self._pause, LONGEST_S)
            return False

    async def hold(self, amount: float, who: str, stopped: Callable[[], object]) -> Hold:
        """Reserve an amount; near the limit wait for calls in flight, which mostly cost less than reserved.

        CapReached, with `who` as subject, if nothing can be released any more; Halted if `stopped` meanwhile.
        """
        budget = self.budget
        async with self.news:
            while not stopped() and not await self.fits(amount):
                if not budget.flying and not self.returning:
                    raise self.exceeded(who, "call")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.news.wait(), self._pause if self.returning else None)
        if stopped():
            raise Halted
        return budget.hold(amount)

    async def release(self, hold: Hold) -> None:
        """Release the reservation of a completed call, and wake calls that wait for room in the budget."""
        hold.turn(0.0)
        self._again = 0.0
        async with self.news:
            self.news.notify_all()

    def exceeded(self, who: str, what: str) -> CapReached:
        """Return the error for a request that may exceed the budget."""
        return self.budget.policy.exceeded(who, what, self.budget.spent, self.elsewhere)
