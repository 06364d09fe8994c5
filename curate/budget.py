"""Money: what an asking would cost before it is sent, and the cap while it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from curate.cost import Price, cost, estimate
from curate.errors import BudgetError
from curate.protocols import Request, Usage
from curate.rates import Rate, Rates, Total, line, shown


@dataclass(frozen=True)
class Plan:
    """What sending requests would use: tokens by estimate, answers at their bound, `cost` None without a price."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    cost: float | None
    currency: str = "USD"
    """Of the cost, if there is one."""

    def plus(self, other: "Plan") -> "Plan":
        """Return the plan of both, of one model; the cost is None if one is unknown."""
        total = None if self.cost is None or other.cost is None else self.cost + other.cost
        tokens = self.prompt_tokens + other.prompt_tokens, self.output_tokens + other.output_tokens
        return Plan(self.calls + other.calls, *tokens, total, self.currency)

    def said(self) -> str:
        """Return the plan as a clause for a user."""
        price = "price unknown" if self.cost is None else f"at most {shown(self.cost, self.currency)}"
        tokens = f"about {self.prompt_tokens:,} prompt and at most {self.output_tokens:,} answer tokens"
        return f"{self.calls:,} calls, {tokens}, {price}"


def plan(requests: Iterable[Request], price: Price | None) -> Plan:
    """Return what sending the requests would use, each answer at its bound."""
    calls = prompt = output = 0
    total = None if price is None else 0.0
    for request in requests:
        usage = estimate(request)
        calls, prompt, output = calls + 1, prompt + usage.prompt, output + usage.output
        total = None if total is None else total + (cost(usage, price) or 0.0)
    return Plan(calls, prompt, output, total, price.currency if price else "USD")


def together(plans: Sequence[Plan], total: Total) -> Plan:
    """Return the plan of several models together, of which the total is known."""
    calls, prompt, output = (
        sum(getattr(each, name) for each in plans) for name in ("calls", "prompt_tokens", "output_tokens")
    )
    return Plan(calls, prompt, output, total.amount, total.currency or plans[0].currency)


@dataclass
class Budget:
    """The money of a command: a cap over all that it asks, held against replies and the most that calls may cost.

    Everything is counted in the currency of the cap. Prices in others count by the rates that `settle` was given.
    """

    cap: float | None = None
    """None: no cap."""
    named: str | None = None
    """The currency that was named with the cap."""
    currency: str = ""
    """Of the cap, once that is settled; empty while all prices count as they are."""
    rates: Rates = field(default_factory=Rates)
    shared: str = ""
    """Commands under the same cap and this name that ask at the same time share the cap: one pipeline's do."""
    member: str = ""
    """Name of this command among those that share the cap."""
    began: float | None = None
    """When it asked first, by the ledger's clock."""
    spent: float = 0.0
    """What replies cost, by their bound where that is unknown, and what requests may whose outcome nobody knows."""
    held: float = 0.0
    """The most that calls in flight may cost."""
    flying: int = 0
    """Calls in flight."""

    def settle(self, prices: Mapping[str, Price], rates: Rates, usual: str | None) -> None:
        """Decide which currency the cap is in, and that all prices can be counted in it; BudgetError if they cannot.

        It is the one that was named with the cap, else the `usual` one, else that of the prices, else the one that the
        rates lead to. Once something was spent it stays.
        """
        dear = {name: price.currency for name, price in prices.items() if not price.free()}
        if self.cap is None or not dear:
            return
        into = self.named or usual or rates.common(dear.values())
        into = self.currency if self.spent and self.currency else into
        if into is None or any(rates.find(name, into) is None for name in dear.values()):
            raise _no_rate(dear, rates, into)
        self.currency, self.rates = into, rates

    def rate(self, price: Price | None) -> Rate:
        """Return what one unit of a price's currency counts."""
        own = price.currency if price and not price.free() else self.currency
        self.currency = self.currency or (own if self.cap is not None else "")
        found = self.rates.find(own, self.currency or own)
        if found is None:
            raise BudgetError(f"--max-cost: found prices in {own} and {self.currency}, and no rate between them")
        return found

    def said(self, amount: float | None = None) -> str:
        """Return an amount, by default the cap, with its currency."""
        return shown((self.cap or 0.0) if amount is None else amount, self.currency)

    def fits(self, amount: float) -> bool:
        """Say whether the cap leaves room for an amount beside all that is spent or in flight."""
        return self.cap is None or self.spent + self.held + amount <= self.cap

    def hold(self, amount: float) -> None:
        """Set an amount aside for a call that is about to be sent."""
        self.held, self.flying = self.held + amount, self.flying + 1

    def release(self, amount: float) -> None:
        """Give back what was set aside for a call that is over."""
        self.held, self.flying = self.held - amount if self.flying > 1 else 0.0, self.flying - 1


def _no_rate(dear: Mapping[str, str], rates: Rates, into: str | None) -> BudgetError:
    """Return the refusal of prices (place -> currency) without a rate, and the line to write for these alone.

    Where nothing says which currency the cap is in it is taken to be the one that most prices have a rate into.
    """
    used = sorted(set(dear.values()))
    target = into or max(used, key=lambda name: (sum(rates.find(each, name) is not None for each in used), name))
    lacking = [name for name in used if rates.find(name, target) is None]
    if not lacking:
        names = f"found prices in {' and '.join(used)}, and rates into several currencies"
        return BudgetError(f"--max-cost: {names}; say which one the cap is in, as in --max-cost 50{target}")
    found = " and ".join(f"{name} ({place})" for name in lacking for place, each in dear.items() if each == name)
    shared = next((f" ({place})" for place, name in dear.items() if into is None and name == target), "")
    return BudgetError(
        f"--max-cost: found prices in {found}, and no rate into {target}{shared}; write what they are worth into the "
        f"pipeline file or models.yaml, as in `{line(lacking, target)}`, or give --yes in place of the cap"
    )


@dataclass
class Meter:
    """The most that a call to one judge may use, corrected by what its replies used: estimates can be short."""

    price: Price | None = None
    rate: float = 1.0
    """What one unit of the price's currency counts in the budget."""
    dearest: float = 1.0
    """Most that a reply cost, as a multiple of its estimate."""
    longest: float = 1.0
    """Most tokens that a reply used, as a multiple of its estimate."""

    def bound(self, usage: Usage) -> float:
        """Return the most that a request of this estimate may cost, as far as is known; 0 without a price."""
        return (cost(usage, self.price) or 0.0) * self.dearest * self.rate

    def tokens(self, usage: Usage) -> float:
        """Return the most tokens, prompt and answer together, that a request of this estimate may use."""
        return (usage.prompt + usage.output) * self.longest

    def learn(self, estimated: Usage, used: Usage) -> None:
        """Believe a vendor that used more than was estimated."""
        guess, paid = cost(estimated, self.price), cost(used, self.price)
        if guess and paid is not None:
            self.dearest = max(self.dearest, paid / guess)
        self.longest = max(self.longest, (used.prompt + used.output) / max(estimated.prompt + estimated.output, 1))
