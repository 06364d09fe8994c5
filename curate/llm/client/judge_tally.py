"""Tally of one judge's replies, online or in batches: what they cost, who gave them, and when the judge is given up."""

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
"""Answers in a row that nobody can read after which a judge is given up that never gave one which can be read."""
MOST_FRUITLESS = 50
"""Answers in a row that settled nothing after which any judge is: asking in smaller parts costs money too."""


class Unreadable(RunFailed):
    """Judges gave nothing that can be read, so often in a row that they were given up; `jobs` names them."""

    def __init__(self, message: str, jobs: Sequence[str]) -> None:
        super().__init__(message)
        self.jobs = tuple(jobs)


class JudgeTally:
    """What the replies of one judge came to; only the event loop of the asking touches it."""

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
        """Whether a reply settled something; one of before may have, where no rating tells."""
        self.faults = Counter[ReplyFault]()
        """What is wrong with the replies in a row that settled nothing."""
        self.last: dict[ReplyFault, tuple[Reply, Request | None]] = {}
        """The last reply of every fault, and the request, where it is at hand."""
        self.seen = 0
        """Replies that are written down and read."""

    def pay(self, usage: Usage | None, guess: EstimatedUsage | None, most: Callable[[], float], hold: Hold) -> None:
        """Count a reply at what it cost, or at the `most` that it may where the vendor told no usage."""
        paid = cost(usage, self.meter.price)
        if usage and guess:
            self.meter.learn(guess, usage)
        spent = most() if paid is None else paid * self.meter.rate
        self.bill.calls += 1
        self.bill.spent += spent
        hold.turn(spent)

    def forfeit(self, most: float, hold: Hold) -> None:
        """Count a request at its bound: it was sent, and may be billed."""
        self.bill.lost += 1
        self.bill.spent += most
        hold.turn(most)

    def check(self, model: str = "") -> None:
        """Raise RunFailed if this model, or what the ledger holds, makes a mixture; a reply may name no model."""
        if model and model not in self.models:
            self.models.append(model)
        if not self.mixed_models:
            refuse_mixture(self.name, self.models)

    def read(self, reply: Reply, reading: ReplyResult, request: Request | None = None) -> None:
        """Count a reply that is written down; RunFailed if it names another model than those before."""
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
        """Return how many of the replies in a row that settled nothing nobody can read; a refusal is read."""
        return self.faults.total() - self.faults[REFUSED]

    def doubts(self, flying: int) -> bool:
        """Say whether the calls in flight, if nobody can read their replies either, are enough to give a judge up."""
        flying += self.bill.calls - self.seen  # and those that are being written
        return not self.readable and self.unreadable + flying >= MOST_UNREADABLE

    def need_fruit(self, answers: int = MOST_FRUITLESS) -> None:
        """Raise Unreadable if the last `answers` replies, and as many as MOST_FRUITLESS, all settled nothing.

        So do MOST_UNREADABLE of a judge of which nothing could ever be read.
        """
        if not (self.faults.total() >= answers >= MOST_FRUITLESS or self._never_readable()):
            return
        [(wrong, _)] = self.faults.most_common(1)
        reply, request = self.last[wrong]
        shown = sample(reply, request) if request else ""
        raise Unreadable(
            f"{self.name}: {self.faults.total()} answers in a row gave nothing that can be read, and are paid: "
            f"{wrong.said}{f', such as {shown!r}' if shown else ''}; {wrong.remedy}",
            [self.name],
        )

    def _never_readable(self) -> bool:
        """Say whether enough replies cannot be read, and none could be, by the ledger neither."""
        if self.readable or self.unreadable < MOST_UNREADABLE:
            return False
        key = self.account.judge_digest, self.account.rubric_digest, self.account.replicate
        self.readable = "rated" in self.ledger.ratings(*key)["status"]
        return not self.readable


def refuse_unread(who: str, watch: Watch | None) -> None:
    """Raise Unreadable if what a judge's grades follow is not what it was given to read."""
    if watch and (finding := watch.finding()):
        raise Unreadable(
            f"{who} does not read its prompts: {finding}; its grades are kept and are in no consensus. Take it out of "
            "judge.models, or accept it with --set judge.allow_weak_judges=true",
            [who],
        )


def refuse_cut(who: str) -> None:
    """Raise Unreadable for a judge whose server cuts prompts."""
    raise Unreadable(
        f"{who} does not get whole prompts: of one with a code at each end, as long as those of this run, it did not "
        "give both back; its grades are kept and are in no consensus. Give its server a larger context window, or "
        "prompts less text (judge.batch, judge.passage_tokens), and start afresh with another `vendor`; or accept it "
        "with --set judge.allow_weak_judges=true",
        [who],
    )


def refuse_mixture(who: str, models: Sequence[str]) -> None:
    """Raise RunFailed if a judge's replies named several models: their ratings are not those of one judge."""
    if len(models) > 1:
        raise RunFailed(
            f"{who}: its replies name several models ({', '.join(models)}), so its ratings are not those of one judge; "
            "name the version you want as its `model`, start afresh with another `vendor`, or accept the mixture with "
            "judge.mixed_models=true"
        )
