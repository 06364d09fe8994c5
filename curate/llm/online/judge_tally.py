"""Tally of one judge's replies, online or in batches: what they cost, who gave them, and when the judge is given up."""

from collections.abc import Callable, Sequence

from curate.core.errors import RunFailed
from curate.core.messages import Usage
from curate.ledger import Ledger
from curate.llm.budget import Budget, Hold, Meter
from curate.llm.cost import EstimatedUsage, Price, cost
from curate.llm.online.tasks import Account, Bill
from curate.llm.token_rate import token_rate

MOST_FRUITLESS = 50
"""Answers in a row that settled nothing after which a judge is given up: asking in smaller parts costs money too."""


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
        *,
        mixed_models: bool,
    ) -> None:
        self.name, self.mixed_models = name, mixed_models
        prompts = token_rate(ledger, account.judge_digest, account.rubric_digest, tokens_a_han)
        self.meter = Meter(price, budget.policy.rate(price).value, prompts)
        self.models = ledger.models(account.judge_digest, account.rubric_digest)
        self.bill = Bill()
        self.fruitless = 0
        """Replies in a row that settled nothing."""

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

    def read(self, model: str, *, fruitful: bool) -> None:
        """Count a reply that is written down; RunFailed if it names another model than those before."""
        self.fruitless = 0 if fruitful else self.fruitless + 1
        self.check(model)

    def need_fruit(self, answers: int = MOST_FRUITLESS) -> None:
        """Raise Unreadable if the last `answers` replies, and as many as MOST_FRUITLESS, all settled nothing."""
        if self.fruitless >= answers >= MOST_FRUITLESS:
            raise Unreadable(
                f"{self.name}: {self.fruitless} answers in a row gave nothing that can be read, and are paid; "
                "try another model, json_mode or rubric",
                [self.name],
            )


def refuse_mixture(who: str, models: Sequence[str]) -> None:
    """Raise RunFailed if a judge's replies named several models: their ratings are not those of one judge."""
    if len(models) > 1:
        raise RunFailed(
            f"{who}: its replies name several models ({', '.join(models)}), so its ratings are not those of one judge; "
            "name the version you want as its `model`, start afresh with another `vendor`, or accept the mixture with "
            "judge.mixed_models=true"
        )
