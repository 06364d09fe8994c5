"""One engine under everything that is asked: by batches, then online, shared between processes, under one cap.

Its product is a ledger without gaps; the caller reads the answers there. What one model is asked is an `Order`: the
ratings of a judge (`panel_run`), or a task of other kinds (`panel`).
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

from curate.core.errors import ProviderError, RunFailed, UserError
from curate.core.messages import Reply
from curate.core.sampling import chunks
from curate.ledger import Ledger
from curate.ledger.claims import Batch, Batches, Claims
from curate.llm import client
from curate.llm.budget import CapReached, CostEstimate
from curate.llm.budget import plan as estimated
from curate.llm.client import batch
from curate.llm.client.accounting import SentRequest
from curate.llm.client.limits import RateLimit
from curate.llm.cost import Price, batch_price
from curate.llm.providers import provider
from curate.llm.providers.batch import batch_provider
from curate.llm.providers.presets import LanguageModel
from curate.llm.token_rate import token_rate
from curate.pipeline.stage import Context
from curate.system.processes import gone, owner

LEASE_S = 120.0
"""Seconds until a claim expires that is not renewed: the longest wait for a killed process."""
AT_ONCE = 200
"""Prompts that are claimed together."""
PAUSE_S = 1.0
"""Seconds between polls of other processes' claims."""
Prompt = TypeVar("Prompt")


@dataclass(frozen=True, kw_only=True)
class Order(ABC, Generic[Prompt]):
    """What one model is asked with one prompt text, in one repetition: prompts, and how they are sent and read."""

    name: str
    """Name in messages, such as `judges.a`."""
    label: str
    """Name and purpose, as progress and bills show it."""
    command: str
    """What collects its open batches, such as `curate judge --batch` in backquotes."""
    settings: LanguageModel
    account: client.Account
    """Ledger key of its calls."""
    work: Sequence[Prompt]
    """Prompts that the ledger lacked when the order was made."""
    unit: str = "questions"
    """What a prompt settles, in the plural."""
    mixed_models: bool = False
    """Go on though replies name several models."""
    private: bool = False
    """Whether no text of a request or a reply may be written down."""
    canary: bool = True
    """Whether a prompt with codes is sent after a reply with an impossible token count."""

    @abstractmethod
    def place(self, prompt: Prompt) -> str:
        """Return the name of a prompt among all of the order, the same in every process."""

    def weight(self, prompt: Prompt) -> int:  # noqa: ARG002 - of most orders a prompt settles one item
        """Return how many items a prompt settles."""
        return 1

    @abstractmethod
    def left(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Return what the ledger lacks of these prompts now, in their order."""

    @abstractmethod
    def tasks(self, prompts: Iterable[Prompt]) -> Iterator[client.Task]:
        """Yield the requests of prompts, made one by one."""

    @abstractmethod
    def read(self, sent: SentRequest, reply: Reply) -> client.ReplyResult:
        """Return the result of a reply in a batch, whose text may be gone."""

    @abstractmethod
    def failed(self, sent: SentRequest, error: ProviderError) -> client.ReplyResult:
        """Return the result of a refusal in a batch."""

    @property
    def least_batch(self) -> int:
        """Return the least number of requests for which batches are worth their wait; fewer are asked online."""
        return 1

    def watch(self) -> client.Watch | None:
        """Return the test that stops a model which does not read its prompts; None if there is none."""
        return None

    def of(self, work: Sequence[Prompt]) -> Self:
        """Return the order with these prompts alone."""
        return replace(self, work=work)


AnyOrder = Order[Any]


def settle(orders: Sequence[AnyOrder], ledger: Ledger, context: Context) -> float:
    """Have every prompt of the orders answered, or recorded as failed, in the ledger; return the amount spent.

    With consent to batches, open batches of the orders are collected first, also if nothing else is left to ask, for
    they are paid. Errors are those of `client.ask` and `batch.ask_batches`; that of a reached budget says what the rest
    costs.
    """
    try:
        return _settled(orders, ledger, context)
    except CapReached as error:
        raise context.consent.budget.stopped(error) from None


def _settled(orders: Sequence[AnyOrder], ledger: Ledger, context: Context) -> float:
    bills: list[client.Bill] = []
    if context.consent.batch:
        bills += _by_batches(list(_waiting(orders, ledger, context)), ledger, context)
        orders = [order.of(order.left(order.work)) for order in orders]
    bills += _online([order for order in orders if order.work], ledger, context)
    return sum(bill.spent for bill in bills)


def _waiting(orders: Iterable[AnyOrder], ledger: Ledger, context: Context) -> Iterator[AnyOrder]:
    """Yield the orders with what they send in batches: nothing of a small one, which only collects open batches."""
    for order in orders:
        if why_online := too_few(order, context):
            context.tell(f"{order.label}: {why_online}")
        in_batches = order.of([]) if why_online else order
        if in_batches.work or open_batches(order, ledger):
            yield in_batches


def too_few(order: AnyOrder, context: Context) -> str:
    """Return why an order is asked online although batches are wanted, as a clause; empty if it is not."""
    if not (context.consent.batch and order.settings.batch and 0 < len(order.work) < order.least_batch):
        return ""
    return f"{len(order.work)} requests are too few to wait for a batch (from {order.least_batch} on); asked online"


def plan(order: AnyOrder, ledger: Ledger, context: Context) -> CostEstimate:
    """Return the cost estimate of an order's prompts, at the price of batches if they are sent so."""
    account, settings = order.account, order.settings
    note = too_few(order, context)
    price = settings.price if note else price_of(settings, context)
    if context.consent.batch and not settings.batch:
        note = "its address offers no batch API; asked online"
    rate = token_rate(ledger, account.judge_digest, account.rubric_digest, settings.tokens_a_han)
    return replace(estimated((task.request for task in order.tasks(order.work)), price, rate), note=note)


def price_of(settings: LanguageModel, context: Context) -> Price | None:
    """Return the price of a model: that of batches, if they are wanted and it has them; None if it is unknown."""
    return batch_price(settings.price) if context.consent.batch and settings.batch else settings.price


def open_batches(order: AnyOrder, ledger: Ledger) -> list[Batch]:
    """Return the batches of an order that are not collected yet."""
    return Batches(ledger).open(order.account.judge_digest, order.account.rubric_digest, order.account.replicate)


def refuse_open(orders: Iterable[AnyOrder], ledger: Ledger, context: Context) -> None:
    """Raise UserError if batches of these orders are open and this run would ask online: that would pay twice."""
    if not (context.consent.batch or context.consent.offline):
        for order in orders:
            if order.work:
                _refuse(order, open_batches(order, ledger))


def _refuse(order: AnyOrder, batches: Sequence[Batch]) -> None:
    if batches:
        raise UserError(
            f"{order.name}: its vendor still works on {len(batches)} batches ({batches[0].batch_id}, ...); "
            f"collect them with {order.command}"
        )


# Work sharing: each process claims prompts before it sends them and leaves others' claims alone.


def bury(claims: Claims) -> None:
    """Release claims of dead processes on this machine, so that nobody waits for their leases to expire."""
    for process in claims.owners():
        if gone(process):
            claims.forget(process)


@dataclass
class Share(Generic[Prompt]):
    """Iterator over the prompts of an order that this process may send: not claimed or answered by other processes."""

    order: Order[Prompt]
    claims: Claims
    check: Callable[[], None] = lambda: None
    """Called when prompts have been claimed; raises if they must not be sent."""
    taken: dict[str, Prompt] = field(default_factory=dict)
    """Name of the claim -> prompt that this process claimed."""
    elsewhere: list[Prompt] = field(default_factory=list)
    """Prompts that other processes had claimed."""
    waited: bool = False
    """Whether these prompts were `elsewhere` in an earlier share."""

    def __iter__(self) -> Iterator[Prompt]:
        """Yield the prompts that may be sent, claimed `AT_ONCE` at a time; the others go to `elsewhere`."""
        for chunk in chunks(self.order.work, AT_ONCE):
            by_claim = {self._name(self.order.place(prompt)): prompt for prompt in chunk}
            granted = self.claims.take(by_claim)
            claimed = {name: prompt for name, prompt in by_claim.items() if name in granted}
            self.taken |= claimed
            self.elsewhere += [prompt for name, prompt in by_claim.items() if name not in granted]
            if claimed:
                self.check()
            yield from self.order.left(list(claimed.values()))

    async def keeps(self, task: client.Task) -> bool:
        """Return whether a task may still be sent.

        False if another process took its prompt over while this machine slept; the prompt moves to `elsewhere`.
        """
        if not self.claims.sure():
            await asyncio.to_thread(self.claims.renew)
        name = self._name(task.place)
        if name in self.claims.held:
            return True
        lost = self.taken.pop(name, None)
        self.elsewhere += [] if lost is None else [lost]
        return False

    def _name(self, place: str) -> str:
        account = self.order.account
        return ":".join([account.judge_digest[:16], account.rubric_digest[:16], str(account.replicate), place])


def rest(shares: Sequence[Share[Any]], tell: Callable[[str], None]) -> list[Share[Any]]:
    """Pause, then return shares of the prompts that other processes had claimed; [] if there are none.

    First releases the claims of this process, whose prompts have been sent, so that others need not wait for them.
    """
    for share in shares:
        share.claims.release(share.taken)
    waiting = sum(len(share.elsewhere) for share in shares)
    if not waiting:
        return []
    if not any(share.waited for share in shares):
        tell(f"other processes are asking {waiting:,} of these prompts; waiting for them")
    time.sleep(PAUSE_S)
    bury(shares[0].claims)
    return [
        replace(share, order=share.order.of(share.elsewhere), taken={}, elsewhere=[], waited=True) for share in shares
    ]


# Online


def _online(orders: Sequence[AnyOrder], ledger: Ledger, context: Context) -> list[client.Bill]:
    """Ask concurrently, sharing the prompts with other processes until none is left."""
    bills: list[client.Bill] = []
    with Claims(ledger, owner(), LEASE_S) as claims:
        bury(claims)
        shares: list[Share[Any]] = [
            Share(order, claims, partial(_refuse_abandoned, claims, ledger, order)) for order in orders
        ]
        paces = [client.pace(_limits(order), ledger, order.account.judge_digest) for order in orders]
        watches = [order.watch() for order in orders]
        while shares:
            jobs = [_job(*arguments) for arguments in zip(shares, paces, watches, strict=True)]
            bill_by_label = client.ask(
                jobs,
                ledger,
                budget=context.consent.budget,
                progress=context.progress,
                tell=context.tell,
                beat=(LEASE_S / 4, claims.renew),
            )
            bills += bill_by_label.values()
            shares = rest(shares, context.tell)
    return bills


def _refuse_abandoned(claims: Claims, ledger: Ledger, order: AnyOrder) -> None:
    """Raise UserError if batches of an order are open and the process that would collect them is gone."""
    batches = open_batches(order, ledger)
    if batches and claims.take([_turn(order)]):
        _refuse(order, batches)


def _job(share: Share[Any], pace: RateLimit, watch: client.Watch | None) -> client.Job:
    order = share.order
    return client.Job(
        name=order.label,
        tasks=order.tasks(share),
        provider=provider(order.settings),
        account=order.account,
        limits=_limits(order),
        total=sum(map(order.weight, order.work)),
        pace=pace,
        ours=share.keeps,
        unit=order.unit,
        watch=watch,
        canary=order.canary,
    )


def _limits(order: AnyOrder) -> client.RequestLimits:
    settings = order.settings
    return client.RequestLimits(
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        price=settings.price,
        tokens_a_han=settings.tokens_a_han,
        mixed_models=order.mixed_models,
    )


# Batches: one process per order, which first collects the batches that other processes left open.


def _by_batches(orders: Sequence[AnyOrder], ledger: Ledger, context: Context) -> list[client.Bill]:
    """Ask by the vendors' batch APIs, where there are any: cheaper, slower.

    If another process is asking an order by batches, wait for it, then collect the batches that it left open.
    """
    notified, bills = set[str](), list[client.Bill]()
    waiting = [order for order in orders if _able(order, context)]
    while waiting:
        with Claims(ledger, owner(), LEASE_S) as claims:
            bury(claims)
            claimed = claims.take([_turn(order) for order in waiting])
            own_orders = [order for order in waiting if _turn(order) in claimed]
            waiting = [order for order in waiting if _turn(order) not in claimed]
            for name in {order.name for order in waiting} - notified:
                context.tell(f"{name}: another process asks it by batches; waiting for that one")
                notified.add(name)
            if own_orders:
                bills += _submitted(own_orders, claims, ledger, context)
        if not own_orders:
            time.sleep(PAUSE_S)
    return bills


def _able(order: AnyOrder, context: Context) -> bool:
    """Return whether an order can be sent in batches; notify the reason if not."""
    if batch_provider(order.settings) is None:
        context.tell(batch.no_batch(order.name))
        return False
    if context.consent.max_cost is not None and order.settings.price is None:
        context.tell(f"{order.name}: without a price no cap can be kept for a batch; asked online")
        return False
    return True


def _submitted(orders: Sequence[AnyOrder], claims: Claims, ledger: Ledger, context: Context) -> list[client.Bill]:
    """Ask what this process claimed, without prompts that another process is asking; return the bills."""
    jobs = []
    for order in orders:
        jobs.append(_batch_job(order.of(list(Share(order, claims)))))
        claims.renew()
    return batch.ask_batches(
        jobs,
        ledger,
        budget=context.consent.budget,
        progress=context.progress,
        tell=context.tell,
        beat=(LEASE_S / 4, partial(_renew, claims, {_turn(order) for order in orders})),
    )


def _batch_job(order: AnyOrder) -> batch.BatchJob:
    batch_client = batch_provider(order.settings)
    assert batch_client is not None
    return batch.BatchJob(
        tasks=lambda: order.tasks(order.left(order.work)),
        read=order.read,
        provider=batch_client,
        account=order.account,
        failed=order.failed,
        price=order.settings.price,
        mixed_models=order.mixed_models,
        tokens_a_han=order.settings.tokens_a_han,
        most_items=order.settings.batch_items,
        watch=order.watch(),
        private=order.private,
    )


def _renew(claims: Claims, turns: set[str]) -> None:
    """Renew the claims; RunFailed if another process took one over while this one slept."""
    if turns - claims.renew():
        raise RunFailed("this process stood still until another one took its batches over; the same command goes on")


def _turn(order: AnyOrder) -> str:
    """Return the name of the claim that a process holds while it asks an order by batches."""
    account = order.account
    return f"batch:{account.judge_digest}:{account.rubric_digest}:{account.replicate}"
