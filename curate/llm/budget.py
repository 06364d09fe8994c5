"""Budget: cost estimates of requests before they are sent; money spent and reserved during the calls."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from curate.core.errors import BudgetError
from curate.core.messages import Request, Usage
from curate.llm.cap import CapPolicy, Prices
from curate.llm.cost import EstimatedUsage, Price, cost, estimate
from curate.llm.exchange_rates import Rates, Total, shown
from curate.llm.token_rate import TokenRate


@dataclass(frozen=True)
class CostEstimate:
    """Estimated tokens and cost of requests, answers at their token limit; `cost` is None without a price."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    cost: float | None
    currency: str = "USD"
    """Of the cost, if there is one."""

    def plus(self, other: "CostEstimate") -> "CostEstimate":
        """Return the sum of two estimates of one model; the cost is None if one is unknown."""
        total = None if self.cost is None or other.cost is None else self.cost + other.cost
        tokens = self.prompt_tokens + other.prompt_tokens, self.output_tokens + other.output_tokens
        return CostEstimate(self.calls + other.calls, *tokens, total, self.currency)

    def said(self) -> str:
        """Return the estimate as a clause for a message."""
        price = "price unknown" if self.cost is None else f"at most {shown(self.cost, self.currency)}"
        tokens = f"about {self.prompt_tokens:,} prompt and at most {self.output_tokens:,} answer tokens"
        return f"{self.calls:,} calls, {tokens}, {price}"


def plan(requests: Iterable[Request], price: Price | None, rate: TokenRate) -> CostEstimate:
    """Return the cost estimate of requests: answers at their token limit, and prompts with their margin."""
    calls = estimated = output = 0
    expected = 0.0
    for request in requests:
        guess = estimate(request)
        calls, estimated, output = calls + 1, estimated + guess.prompt, output + guess.output
        expected += rate.expected(guess)
    most = Usage(prompt=math.ceil(expected + rate.margin(calls) * estimated), output=output)
    return CostEstimate(calls, round(expected), output, cost(most, price), price.currency if price else "USD")


def together(plans: Sequence[CostEstimate], total: Total) -> CostEstimate:
    """Return the sum of estimates of several models; `total` is their summed cost."""
    calls, prompt, output = (
        sum(getattr(estimate, name) for estimate in plans) for name in ("calls", "prompt_tokens", "output_tokens")
    )
    return CostEstimate(calls, prompt, output, total.amount, total.currency or plans[0].currency)


@dataclass
class Budget:
    """The money of a command: cost of replies and upper bounds of calls in flight, in the currency of its budget."""

    policy: CapPolicy = field(default_factory=CapPolicy)
    shared: str = ""
    """Name of the pipeline: concurrent commands with the same budget and name share it."""
    member: str = ""
    """Name of this command among those that share the budget."""
    began: float | None = None
    """Time of the first request, by the ledger's clock."""
    spent: float = 0.0
    """Cost of replies, and upper bounds where the cost or the outcome is unknown."""
    held: float = 0.0
    """Upper bound of the cost of calls in flight."""
    flying: int = 0
    """Calls in flight."""

    def settle(self, prices: Prices, rates: Rates, usual: str | None) -> None:
        """Choose the budget's currency with `CapPolicy.settled`; it does not change once money was spent."""
        settled_currency = self.policy.currency if self.spent else ""
        self.policy = self.policy.settled(prices, rates, settled_currency or usual)

    def admit(self, prices: Prices) -> None:
        """Check before requests that the budget can count their cost; BudgetError names the remedy if not."""
        policy = self.policy
        if policy.amount is not None and (remedy := policy.remedy(prices)):
            raise BudgetError(remedy)
        self.policy = policy.settled(prices, policy.rates, policy.currency)

    def fits(self, amount: float) -> bool:
        """Return whether the budget covers an amount in addition to all that is spent or reserved."""
        return self.policy.amount is None or self.spent + self.held + amount <= self.policy.amount

    def hold(self, amount: float) -> "Hold":
        """Reserve an amount for a call that is about to be sent."""
        self.held, self.flying = self.held + amount, self.flying + 1
        return Hold(self, amount)


@dataclass
class Hold:
    """Reservation for one call, until its cost is known."""

    budget: Budget
    amount: float
    over: bool = False

    def turn(self, paid: float) -> None:
        """Replace the reservation by the amount paid, in one step, so that one of them counts; only once."""
        if not self.over:
            budget, self.over = self.budget, True
            budget.held, budget.flying = budget.held - self.amount if budget.flying > 1 else 0.0, budget.flying - 1
            budget.spent += paid


@dataclass
class Meter:
    """Upper bounds of the usage and cost of calls to one judge, corrected by the usage of its replies."""

    price: Price | None = None
    rate: float = 1.0
    """Worth of one unit of the price's currency in the budget's."""
    prompts: TokenRate = field(default_factory=TokenRate)
    longest: float = 1.0
    """Longest answer as a multiple of its token limit, which a vendor may ignore."""

    def most(self, guess: EstimatedUsage) -> Usage:
        """Return the upper bound of a request's usage; the prompt counts as a cache write if writing costs extra."""
        prompt, price = self.prompts.most(guess), self.price
        dear = price is not None and (price.written or 0.0) > price.input
        return Usage(prompt, written=prompt if dear else 0, output=math.ceil(guess.output * self.longest))

    def bound(self, guess: EstimatedUsage) -> float:
        """Return the upper bound of the cost of a request, in the budget's currency; 0 without a price."""
        return (cost(self.most(guess), self.price) or 0.0) * self.rate

    def tokens(self, guess: EstimatedUsage) -> int:
        """Return the upper bound of a request's tokens, prompt and answer together."""
        most = self.most(guess)
        return most.prompt + most.output

    def learn(self, guess: EstimatedUsage, used: Usage) -> None:
        """Update the bounds from the reported usage of a request."""
        self.prompts.learn(guess.prompt, used.prompt)
        self.longest = max(self.longest, used.output / max(guess.output, 1))
