"""Client for online requests: sends the tasks of several judges at once, under one budget."""

import asyncio
from collections.abc import Callable, Sequence

from curate.core.errors import Interrupted, ProviderError, RunFailed
from curate.core.protocols import PaidProgress, quiet
from curate.ledger import Ledger
from curate.llm.budget import Budget
from curate.llm.client.accounting import Purse, Unreadable
from curate.llm.client.dispatcher import JudgeDispatcher
from curate.llm.client.interrupt import Beat, beating, complete, interruptible
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

    A reply is written before its slot is used again, so a kill loses at most the calls in flight. All judges together
    stop before they exceed the `budget`, which needs their prices. An attempt that was sent and may or may not have
    been answered has a row in the ledger and counts at its upper cost bound; a refused one is free. `beat` is a
    function to call in a thread, and the seconds between its calls.

    A judge that cannot go on stops after its calls in flight are written, and the others finish; `tell` gets the reason
    at once, and it is raised at the end: ProviderError on a fatal answer (quota used up), on MOST_FAILED requests in a
    row without an answer or on an outage; Unreadable after MOST_FRUITLESS answers in a row that settle nothing, or
    MOST_UNREADABLE if none was ever readable (for all such judges, if no other reason stopped one); RunFailed if
    replies name another model than before. All judges stop on BudgetError (budget reached), Interrupted (Ctrl-C),
    ProviderError if a judge's first answer is fatal (wrong key), and any unexpected error. A second Ctrl-C drops the
    calls in flight.
    """
    budget = budget or Budget()
    budget.admit({job.name: job.limits.price for job in jobs})
    asking = _Asking(budget, tell)
    complete(asking.all(jobs, ledger, progress, beat), asking.interrupt)
    asking.complain()
    return {worker.job.name: worker.bill for worker in asking.workers}


class _Asking:
    """One call of `ask`: its workers, a dispatcher per job, and why all of them stopped early."""

    def __init__(self, budget: Budget, tell: Callable[[str], None]) -> None:
        self.budget, self.tell = budget, tell
        self.workers: list[JudgeDispatcher] = []
        self.stop: BaseException | None = None

    async def all(self, jobs: Sequence[Job], ledger: Ledger, progress: PaidProgress, beat: Beat | None) -> None:
        """Run a worker per job until all have ended; `stop` is why all stopped early, a worker's `stop` why it did."""
        shared_budget = Purse(self.budget, ledger)
        self.workers = [JudgeDispatcher(job, ledger, shared_budget, progress, tell=self.tell) for job in jobs]
        with shared_budget.open(self.halt), interruptible(self.interrupt), beating(beat, self.halt):
            ends = await asyncio.gather(
                *(self._run(worker, shared_budget) for worker in self.workers), return_exceptions=True
            )
            self.stop = self.stop or next((end for end in ends if end is not None), None)

    async def _run(self, worker: JudgeDispatcher, shared_budget: Purse) -> None:
        running = asyncio.create_task(worker.run())
        await asyncio.wait(
            (running, halting := asyncio.create_task(worker.halted.wait())), return_when="FIRST_COMPLETED"
        )
        if worker.stop is not None and worker.stop is not self.stop:
            self._stopped(worker, worker.stop)
            async with shared_budget.news:
                shared_budget.news.notify_all()
        halting.cancel()
        await running

    def _stopped(self, worker: JudgeDispatcher, why: BaseException) -> None:
        """Stop all workers, unless the reason concerns this judge alone: then notify if others go on."""
        alone = isinstance(why, RunFailed) or (isinstance(why, ProviderError) and (not why.fatal or worker.bill.calls))
        if not alone:
            self.halt(why)
        elif len(self.workers) > 1:
            self.tell(f"{worker.job.name}: stopped, the others go on: {why}")

    def halt(self, why: BaseException) -> None:
        """Stop sending, with all workers; the first reason is the one that is raised."""
        self.stop = self.stop or why
        for worker in self.workers:
            worker.halt(self.stop)

    def complain(self) -> None:
        """Raise the reason if not everything was settled; if several judges stopped, all reasons in one."""
        if self.stop is not None:
            raise self.stop
        reasons = [worker.stop for worker in self.workers if worker.stop is not None]
        if len(reasons) > 1:
            unreadable = [reason for reason in reasons if isinstance(reason, Unreadable)]
            if len(unreadable) == len(reasons):
                reason_lines = "\n".join(map(str, unreadable))
                raise Unreadable(reason_lines, [job for reason in unreadable for job in reason.jobs]) from reasons[0]
            raise RunFailed("\n".join(str(reason) for reason in reasons)) from reasons[0]
        if reasons:
            raise reasons[0]

    def interrupt(self) -> None:
        flying = sum(worker.flying for worker in self.workers)  # others wait for a slot, the pace or the cap
        if self.stop is not None:
            for call in [call for worker in self.workers for call in worker.running]:
                call.cancel()
        elif flying:
            calls = "1 call is" if flying == 1 else f"{flying} calls are"
            self.tell(
                f"stopping: {calls} in flight and may be paid, so the answers are awaited; Ctrl-C again drops them"
            )
        self.halt(Interrupted("stopped; every answer that arrived is kept, and the same command goes on from there"))
