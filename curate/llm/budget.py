"""Budget: what requests would cost before they are sent, and what is spent and held while they are."""

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
    """What sending requests would use: tokens by estimate, answers at their bound, `cost` None without a price."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    cost: float | None
    currency: str = "USD"
    """Of the cost, if there is one."""

    def plus(self, other: "CostEstimate") -> "CostEstimate":
        """Return the plan of both, of one model; the cost is None if one is unknown."""
        total = None if self.cost is None or other.cost is None else self.cost + other.cost
        tokens = self.prompt_tokens + other.prompt_tokens, self.output_tokens + other.output_tokens
        return CostEstimate(self.calls + other.calls, *tokens, total, self.currency)

    def said(self) -> str:
        """Return the plan as a clause for a user."""
        price = "price unknown" if self.cost is None else f"at most {shown(self.cost, self.currency)}"
        tokens = f"about {self.prompt_tokens:,} prompt and at most {self.output_tokens:,} answer tokens"
        return f"{self.calls:,} calls, {tokens}, {price}"


def plan(requests: Iterable[Request], price: Price | None, rate: TokenRate) -> CostEstimate:
    """Return what sending the requests would use, each answer at its bound, and the cost with the prompts' margin."""
    calls = estimated = output = 0
    expected = 0.0
    for request in requests:
        guess = estimate(request)
        calls, estimated, output = calls + 1, estimated + guess.prompt, output + guess.output
        expected += rate.expected(guess)
    most = Usage(prompt=math.ceil(expected + rate.margin(calls) * estimated), output=output)
    return CostEstimate(calls, round(expected), output, cost(most, price), price.currency if price else "USD")


def together(plans: Sequence[CostEstimate], total: Total) -> CostEstimate:
    """Return the plan of several models together, of which the total is known."""
    calls, prompt, output = (
        sum(getattr(each, name) for each in plans) for name in ("calls", "prompt_tokens", "output_tokens")
    )
    return CostEstimate(calls, prompt, output, total.amount, total.currency or plans[0].currency)


@dataclass
class Budget:
    """The money of a command: what replies cost and the most that calls in flight may, in the currency of its cap."""

    policy: CapPolicy = field(default_factory=CapPolicy)
    shared: str = ""
    """Commands under the same cap and this name that ask at the same time share the cap: one pipeline's do."""
    member: str = ""
    """Name of this command among those that share the cap."""
    began: float | None = None
    """When it asked first, by the ledger's clock."""
    spent: float = 0.0
    """What replies cost, by their bound where that is unknown, and what requests of unknown outcome may cost."""
    held: float = 0.0
    """The most that calls in flight may cost."""
    flying: int = 0
    """Calls in flight."""

    def settle(self, prices: Prices, rates: Rates, usual: str | None) -> None:
        """Settle the currency of the cap by `CapPolicy.settled`; once something was spent it stays."""
        kept = self.policy.currency if self.spent else ""
        self.policy = self.policy.settled(prices, rates, kept or usual)

    def admit(self, prices: Prices) -> None:
        """Check in front of an asking that the cap can count what it costs; BudgetError says what to do if not."""
        policy = self.policy
        if policy.amount is not None and (remedy := policy.remedy(prices)):
            raise BudgetError(remedy)
        self.policy = policy.settled(prices, policy.rates, policy.currency)

    def fits(self, amount: float) -> bool:
        """Say whether the cap leaves room for an amount beside all that is spent or in flight."""
        return self.policy.amount is None or self.spent + self.held + amount <= self.policy.amount

    def hold(self, amount: float) -> "Hold":
        """Set an amount aside for a call that is about to be sent."""
        self.held, self.flying = self.held + amount, self.flying + 1
        return Hold(self, amount)


@dataclass
class Hold:
    """What is held for one call, until it is known what the call costs."""

    budget: Budget
    amount: float
    over: bool = False

    def turn(self, paid: float) -> None:
        """Turn what is held into what was paid; never are both counted, nor neither. Once over, it stays as it is."""
        if not self.over:
            budget, self.over = self.budget, True
            budget.held, budget.flying = budget.held - self.amount if budget.flying > 1 else 0.0, budget.flying - 1
            budget.spent += paid


@dataclass
class Meter:
    """The most that a call to one judge may use, corrected by what its replies used."""

    price: Price | None = None
    rate: float = 1.0
    """What one unit of the price's currency counts in the budget."""
    prompts: TokenRate = field(default_factory=TokenRate)
    longest: float = 1.0
    """Most tokens that an answer had, as a multiple of its bound: a vendor may ignore it."""

    def most(self, guess: EstimatedUsage) -> Usage:
        """Return the most that a request may use, as far as is known, all written to a cache where that is dear."""
        prompt, price = self.prompts.most(guess), self.price
        dear = price is not None and (price.written or 0.0) > price.input
        return Usage(prompt, written=prompt if dear else 0, output=math.ceil(guess.output * self.longest))

    def bound(self, guess: EstimatedUsage) -> float:
        """Return the most that a request of this estimate may cost, as far as is known; 0 without a price."""
        return (cost(self.most(guess), self.price) or 0.0) * self.rate

    def tokens(self, guess: EstimatedUsage) -> int:
        """Return the most tokens, prompt and answer together, that a request of this estimate may use."""
        most = self.most(guess)
        return most.prompt + most.output

    def learn(self, guess: EstimatedUsage, used: Usage) -> None:
        """Take into account what a request used."""
        self.prompts.learn(guess.prompt, used.prompt)
        self.longest = max(self.longest, used.output / max(guess.output, 1))
