"""Budget: rules of a cap, cost estimates before requests are sent, and money spent and reserved while they are."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from curate.core.errors import BudgetError
from curate.core.messages import Request, Usage
from curate.llm.cost import EstimatedUsage, Price, cost, estimate
from curate.llm.exchange_rates import Rate, Rates, Total, bound, line, shown
from curate.llm.token_rate import LEAST, TokenRate

Prices = Mapping[str, Price | None]
"""Setting -> price; None where it is unknown."""
OVERRUN = 1.25
"""Prompt tokens as a multiple of the planned ones, above which a running command gives a notice: more than the error of
an estimate (docs/evidence.md)."""


class CapReached(BudgetError):
    """The next request may exceed the budget."""


@dataclass(frozen=True)
class CapPolicy:
    """Rules of a budget: whether a call is allowed, how its price is converted, and the refusal.

    Amounts are in the currency of the budget; other prices are converted by the rates given to `settled`.
    """

    amount: float | None = None
    """None: no cap."""
    named: str | None = None
    """The currency that was named with the cap."""
    yes: bool = False
    """Calls are allowed without a budget, and with one if their price is unknown."""
    currency: str = ""
    """Currency of the budget, once settled; empty while prices are not converted."""
    rates: Rates = field(default_factory=Rates)

    def remedy(self, prices: Prices) -> str:
        """Return what the user must do before models with these prices may be asked; empty if nothing."""
        if self.yes:
            return ""
        if self.amount is None:
            return "allow it with --max-cost AMOUNT, or with --yes"
        lacking = ", ".join(setting for setting, price in prices.items() if price is None)
        give = f"a cap cannot be kept without prices: give {lacking}, or add --yes to leave those without a cap"
        return give if lacking else ""

    def settled(self, prices: Prices, rates: Rates, usual: str | None) -> "CapPolicy":
        """Return the budget with its currency settled; BudgetError if not all prices can be converted into it.

        It is the one named with the budget, else the `usual` one, else that of the prices, else the one into which all
        rates convert.
        """
        dear = {name: price.currency for name, price in prices.items() if price and not price.free()}
        if self.amount is None or not dear:
            return self
        into = self.named or usual or rates.common(dear.values())
        if into is None or any(rates.find(name, into) is None for name in dear.values()):
            raise _no_rate(dear, rates, into)
        return replace(self, currency=into, rates=rates)

    def rate(self, price: Price | None) -> Rate:
        """Return the rate of a price's currency; BudgetError for a price that was not settled."""
        price_currency = price.currency if price and not price.free() else self.currency
        rate = self.rates.find(price_currency, self.currency or price_currency)
        if rate is None:
            raise BudgetError(
                f"--max-cost: found prices in {price_currency} and {self.currency}, and no rate between them"
            )
        return rate

    def shown(self, amount: float | None = None) -> str:
        """Return an amount, by default the budget's, with its currency."""
        return shown((self.amount or 0.0) if amount is None else amount, self.currency)

    def clause(self, prices: Prices) -> str:
        """Return the budget with the rates of conversion, as a clause."""
        rates = {price.currency: self.rate(price) for price in prices.values() if price and not price.free()}
        return "; ".join([self.shown(), *(rate.said() for rate in rates.values() if rate.date)])

    def exceeded(self, who: str, what: str, spent: float, elsewhere: float) -> CapReached:
        """Return the error for a request that may exceed the budget, given the amounts spent here and elsewhere."""
        others = f" here and {self.shown(elsewhere)} in other processes under this cap" if elsewhere else ""
        return CapReached(
            f"{who}: the next {what} may pass the cap of {self.shown()}, after calls that cost "
            f"{self.shown(spent)}{others}; every answer is kept; raise --max-cost, or give it again: it counts from now"
        )


def _no_rate(dear: Mapping[str, str], rates: Rates, into: str | None) -> BudgetError:
    """Return the error for prices (setting -> currency) without a rate, with the line to write for these.

    If the currency of the budget is open, it is assumed to be the one that most prices convert into.
    """
    used = sorted(set(dear.values()))
    target = into or max(
        used, key=lambda name: (sum(rates.find(currency, name) is not None for currency in used), name)
    )
    lacking = [name for name in used if rates.find(name, target) is None]
    if not lacking:
        names = f"found prices in {' and '.join(used)}, and rates into several currencies"
        return BudgetError(f"--max-cost: {names}; say which one the cap is in, as in --max-cost 50{target}")
    prices = " and ".join(
        f"{name} ({setting})" for name in lacking for setting, currency in dear.items() if currency == name
    )
    shared = next((f" ({setting})" for setting, name in dear.items() if into is None and name == target), "")
    return BudgetError(
        f"--max-cost: found prices in {prices}, and no rate into {target}{shared}; write what they are worth into the "
        f"pipeline file or models.yaml, as in `{line(lacking, target)}`, or give --yes in place of the cap"
    )


# Budget: cost estimates of requests before they are sent, money spent and reserved while they are.


@dataclass(frozen=True)
class CostEstimate:
    """Estimated tokens and cost of requests, answers at their token limit; `cost` is None without a price."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    cost: float | None
    currency: str = "USD"
    """Of the cost, if there is one."""
    note: str = ""
    """What else the user should know of it, as a clause."""

    def plus(self, other: "CostEstimate") -> "CostEstimate":
        """Return the sum of two estimates of one model; the cost is None if one is unknown."""
        total = None if self.cost is None or other.cost is None else self.cost + other.cost
        tokens = self.prompt_tokens + other.prompt_tokens, self.output_tokens + other.output_tokens
        return CostEstimate(self.calls + other.calls, *tokens, total, self.currency, self.note or other.note)

    def said(self) -> str:
        """Return the estimate as a clause for a message."""
        price = "price unknown" if self.cost is None else f"at most {bound(self.cost, self.currency)}"
        tokens = f"about {self.prompt_tokens:,} prompt and at most {self.output_tokens:,} answer tokens"
        return f"{self.calls:,} calls, {tokens}, {price}{self.note and f'; {self.note}'}"


def plan(requests: Iterable[Request], price: Price | None, rate: TokenRate) -> CostEstimate:
    """Return the cost estimate of requests: answers at their token limit, and prompts with their margin.

    Prompts cost at least what the replies so far cost, also if these are too few to expect it of the others.
    """
    calls = estimated = output = 0
    expected = 0.0
    for request in requests:
        guess = estimate(request)
        calls, estimated, output = calls + 1, estimated + guess.prompt, output + guess.output
        expected += rate.expected(guess)
    measured = rate.told / rate.estimated * estimated if rate.answers else 0.0
    most = Usage(prompt=math.ceil(max(expected + rate.margin(calls) * estimated, measured)), output=output)
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
    calls: int = 0
    """Requests that were paid, or may be."""
    paid: dict[str, float] = field(default_factory=dict)
    """Currency of a price -> amount paid in it."""
    overruns: dict[str, str] = field(default_factory=dict)
    """Label -> notice that its prompts have more tokens than planned."""
    rest: Callable[[], tuple[Sequence[str], Sequence[Any]]] | None = None
    """Function that plans what is left to ask, from the token counts reported so far: lines, and rows of a plan."""

    def bill(self, amount: float, currency: str) -> None:
        """Count a request that cost this amount."""
        self.calls, self.paid[currency] = self.calls + 1, self.paid.get(currency, 0.0) + amount

    def said(self) -> str:
        """Return a line with what was paid; empty if nothing was asked."""
        amounts = " and ".join(shown(amount, currency) for currency, amount in sorted(self.paid.items()) if currency)
        price = ", some of them without a known price" if "" in self.paid else ""
        return f"this command paid {amounts or '0.00'} for {self.calls:,} calls{price}" if self.calls else ""

    def stopped(self, error: CapReached) -> CapReached:
        """Return the error of a reached budget with what the rest costs by the tokens of the replies so far."""
        if self.rest is None or error.planned:
            return error
        lines, rows = self.rest()
        left = ["what is left, by the tokens of the replies so far:", *lines] if lines else []
        return CapReached("\n".join([str(error), *self.overruns.values(), *left]), rows)

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
    planned: float = 0.0
    """Prompt tokens of the replies so far, as planned before the first of them."""
    reported: int = 0
    """The same as the vendor reported them."""
    replies: int = 0

    def __post_init__(self) -> None:
        self._plan = replace(self.prompts)

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
        self.planned, self.reported = self.planned + self._plan.expected(guess), self.reported + used.prompt
        self.replies += 1
        self.prompts.learn(guess.prompt, used.prompt)
        self.longest = max(self.longest, used.output / max(guess.output, 1))

    def overrun(self) -> str:
        """Return a notice if prompts have clearly more tokens than planned, from LEAST replies on; empty if not."""
        if self.replies < LEAST or self.reported <= OVERRUN * self.planned:
            return ""
        reported, planned = (round(tokens / self.replies) for tokens in (self.reported, self.planned))
        return f"prompts had {reported:,} tokens each, planned were about {planned:,}: asking costs more than planned"
