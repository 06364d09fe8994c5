"""Money: what an asking would cost before it is sent, and the cap while it is."""

from collections.abc import Iterable
from dataclasses import dataclass

from curate.cost import Price, cost, estimate
from curate.protocols import Request, Usage


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
        price = "price unknown" if self.cost is None else f"at most {self.cost:.2f} {self.currency}"
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


@dataclass
class Budget:
    """A cap over all judges, held against what replies cost and against the most that calls in flight may cost."""

    cap: float | None = None
    """None: no cap."""
    spent: float = 0.0
    """What replies cost, by the bound of their request where a vendor told no usage."""
    held: float = 0.0
    """The most that calls in flight may cost."""
    flying: int = 0
    """Calls in flight."""

    def fits(self, amount: float) -> bool:
        """Say whether the cap leaves room for an amount beside all that is spent or in flight."""
        return self.cap is None or self.spent + self.held + amount <= self.cap

    def hold(self, amount: float) -> None:
        """Set an amount aside for a call that is about to be sent."""
        self.held, self.flying = self.held + amount, self.flying + 1

    def release(self, amount: float) -> None:
        """Give back what was set aside for a call that is over."""
        self.held, self.flying = self.held - amount if self.flying > 1 else 0.0, self.flying - 1


@dataclass
class Meter:
    """The most that a call to one judge may use, corrected by what its replies used: estimates can be short."""

    price: Price | None = None
    dearest: float = 1.0
    """Most that a reply cost, as a multiple of its estimate."""
    longest: float = 1.0
    """Most tokens that a reply used, as a multiple of its estimate."""

    def bound(self, usage: Usage) -> float:
        """Return the most that a request of this estimate may cost, as far as is known; 0 without a price."""
        return (cost(usage, self.price) or 0.0) * self.dearest

    def tokens(self, usage: Usage) -> float:
        """Return the most tokens, prompt and answer together, that a request of this estimate may use."""
        return (usage.prompt + usage.output) * self.longest

    def learn(self, estimated: Usage, used: Usage) -> None:
        """Believe a vendor that used more than was estimated."""
        guess, paid = cost(estimated, self.price), cost(used, self.price)
        if guess and paid is not None:
            self.dearest = max(self.dearest, paid / guess)
        self.longest = max(self.longest, (used.prompt + used.output) / max(estimated.prompt + estimated.output, 1))
