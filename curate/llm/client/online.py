"""Client for online requests: several judges side by side under one cap, until all is settled or a stop."""

import asyncio
from collections.abc import Callable, Sequence

from curate.core.errors import Interrupted, ProviderError, RunFailed
from curate.core.protocols import PaidProgress, quiet
from curate.ledger import Ledger
from curate.llm.budget import Budget
from curate.llm.client.dispatcher import JudgeDispatcher
from curate.llm.client.heartbeat import Beat, beating
from curate.llm.client.interrupt import complete, interruptible
from curate.llm.client.judge_tally import Unreadable
from curate.llm.client.purse import Purse
from curate.llm.client.requests import Bill, Job


def ask(
    jobs: Sequence[Job],
    ledger: Ledger,
    *,
    budget: Budget | None = None,
    progress: PaidProgress = quiet,
    tell: Callable[[str], None] = lambda _line: None,
    beat: Beat | None = None,
) -> dict[str, Bill]:
    """Send every task of every job, append each reply with its ratings to the ledger; return job name -> bill.

    A reply is written before its slot is used again, so a kill loses at most the calls in flight. Stopped before they
    pass the cap of the `budget`, all judges together; that needs their prices. A try that was sent and of which nobody
    knows whether it was answered has a row in the ledger and counts at its bound; one that was refused is free.
    `beat` is a function to call every so many seconds while the asking lasts, in a thread.

    A judge that cannot go on ends after its calls in flight are written, and the others finish; `tell` gets the reason
    at once, and in the end it is raised: ProviderError on a fatal answer (quota used up), on MOST_FAILED requests in a
    row without an answer or on an outage, Unreadable after MOST_FRUITLESS answers in a row that settle nothing, or
    MOST_UNREADABLE if none could ever be read (of all such judges, if nothing else ended one), RunFailed if replies
    name another model than before. All end together: with BudgetError at the cap, Interrupted on Ctrl-C, ProviderError
    if a judge's first answer is a fatal one (wrong key), and any unexpected error as itself. Ctrl-C while it is ending
    drops the calls in flight.
    """
    budget = budget or Budget()
    budget.admit({job.name: job.limits.price for job in jobs})
    asking = _Asking(budget, tell)
    complete(asking.all(jobs, ledger, progress, beat), asking.interrupt)
    asking.complain()
    return {lane.job.name: lane.bill for lane in asking.lanes}


class _Asking:
    """The lanes of one asking, and why it ended early."""

    def __init__(self, budget: Budget, tell: Callable[[str], None]) -> None:
        self.budget, self.tell = budget, tell
        self.lanes: list[JudgeDispatcher] = []
        self.stop: BaseException | None = None

    async def all(self, jobs: Sequence[Job], ledger: Ledger, progress: PaidProgress, beat: Beat | None) -> None:
        """Run a lane per job until all have ended; `stop` and the lanes say why if not everything was settled."""
        purse = Purse(self.budget, ledger)
        self.lanes = [JudgeDispatcher(job, ledger, purse, progress, tell=self.tell) for job in jobs]
        with purse.open(self.halt), interruptible(self.interrupt), beating(beat, self.halt):
            ends = await asyncio.gather(*(self._run(lane, purse) for lane in self.lanes), return_exceptions=True)
            self.stop = self.stop or next((end for end in ends if end is not None), None)

    async def _run(self, lane: JudgeDispatcher, purse: Purse) -> None:
        running = asyncio.create_task(lane.run())
        await asyncio.wait((running, halting := asyncio.create_task(lane.halted.wait())), return_when="FIRST_COMPLETED")
        if lane.stop is not None and lane.stop is not self.stop:
            self._stopped(lane, lane.stop)
            async with purse.news:
                purse.news.notify_all()
        halting.cancel()
        await running

    def _stopped(self, lane: JudgeDispatcher, why: BaseException) -> None:
        """End the others too if the reason is not this judge's alone."""
        alone = isinstance(why, RunFailed) or (isinstance(why, ProviderError) and (not why.fatal or lane.bill.calls))
        if not alone:
            self.halt(why)
        elif len(self.lanes) > 1:
            self.tell(f"{lane.job.name}: stopped, the others go on: {why}")

    def halt(self, why: BaseException) -> None:
        """Send nothing more at all; the first reason stands."""
        self.stop = self.stop or why
        for lane in self.lanes:
            lane.halt(self.stop)

    def complain(self) -> None:
        """Raise why not everything was settled, if so."""
        if self.stop is not None:
            raise self.stop
        reasons = [lane.stop for lane in self.lanes if lane.stop is not None]
        if len(reasons) > 1:
            unread = [reason for reason in reasons if isinstance(reason, Unreadable)]
            if len(unread) == len(reasons):
                said = "\n".join(map(str, unread))
                raise Unreadable(said, [job for reason in unread for job in reason.jobs]) from reasons[0]
            raise RunFailed("\n".join(str(reason) for reason in reasons)) from reasons[0]
        if reasons:
            raise reasons[0]

    def interrupt(self) -> None:
        flying = sum(lane.flying for lane in self.lanes)  # others wait for a slot, the pace or the cap
        if self.stop is not None:
            for each in [each for lane in self.lanes for each in lane.running]:
                each.cancel()
        elif flying:
            calls = "1 call is" if flying == 1 else f"{flying} calls are"
            self.tell(
                f"stopping: {calls} in flight and may be paid, so the answers are awaited; Ctrl-C again drops them"
            )
        self.halt(Interrupted("stopped; every answer that arrived is kept, and the same command goes on from there"))
