"""Tally of one judge's replies, online or in batches: cost, models, and unreadable replies that stop the judge."""

from collections import Counter
from collections.abc import Callable, Sequence

from curate.core.errors import RunFailed
from curate.core.messages import Reply, Request, Usage
from curate.ledger import Ledger
from curate.llm.budget import Budget, Hold, Meter
from curate.llm.client.requests import Account, Bill, ReplyResult, Watch
from curate.llm.cost import EstimatedUsage, Price, cost
from curate.llm.reply_faults import REFUSED, ReplyFault, fault, sample
from curate.llm.token_rate import token_rate

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
        self.mixed_models = mixed_models
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
        """Bill a reply at its cost, or at the bound `most` if the vendor reported no usage."""
        paid = cost(usage, self.meter.price)
        if usage and guess:
            self.meter.learn(guess, usage)
        spent = most() if paid is None else paid * self.meter.rate
        self.bill.calls += 1
        self.bill.spent += spent
        hold.turn(spent)

    def forfeit(self, most: float, hold: Hold) -> None:
        """Bill a request at its bound: it was sent, and may be billed."""
        self.bill.lost += 1
        self.bill.spent += most
        hold.turn(most)

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
