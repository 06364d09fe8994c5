"""Cost caps: which prices a cap covers, in which currency it counts, and the sentences of its refusals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from curate.core.errors import BudgetError
from curate.llm.cost import Price
from curate.llm.exchange_rates import Rate, Rates, line, shown

Prices = Mapping[str, Price | None]
"""Place of the setting -> price; None where it is unknown."""


@dataclass(frozen=True)
class CapPolicy:
    """The rules of a cost cap: whether a call may be planned, what its price counts, how it is refused.

    Amounts are in the currency of the cap; prices in others count by the rates that `settled` was given.
    """

    amount: float | None = None
    """None: no cap."""
    named: str | None = None
    """The currency that was named with the cap."""
    yes: bool = False
    """Calls are allowed without a cap, and beside one if their price is unknown."""
    currency: str = ""
    """Of the cap, once that is settled; empty while all prices count as they are."""
    rates: Rates = field(default_factory=Rates)

    def remedy(self, prices: Prices) -> str:
        """Return what a user has to do before models of these prices may be asked; empty if they may."""
        if self.yes:
            return ""
        if self.amount is None:
            return "allow it with --max-cost AMOUNT, or with --yes"
        lacking = ", ".join(place for place, price in prices.items() if price is None)
        give = f"a cap cannot be kept without prices: give {lacking}, or add --yes to leave those without a cap"
        return give if lacking else ""

    def settled(self, prices: Prices, rates: Rates, usual: str | None) -> "CapPolicy":
        """Return the cap with its currency, in which all prices can be counted; BudgetError if they cannot.

        It is the one that was named with the cap, else the `usual` one, else that of the prices, else the one that the
        rates lead to.
        """
        dear = {name: price.currency for name, price in prices.items() if price and not price.free()}
        if self.amount is None or not dear:
            return self
        into = self.named or usual or rates.common(dear.values())
        if into is None or any(rates.find(name, into) is None for name in dear.values()):
            raise _no_rate(dear, rates, into)
        return replace(self, currency=into, rates=rates)

    def rate(self, price: Price | None) -> Rate:
        """Return what one unit of a price's currency counts; BudgetError for a price that was not settled."""
        own = price.currency if price and not price.free() else self.currency
        rate = self.rates.find(own, self.currency or own)
        if rate is None:
            raise BudgetError(f"--max-cost: found prices in {own} and {self.currency}, and no rate between them")
        return rate

    def shown(self, amount: float | None = None) -> str:
        """Return an amount, by default the cap, with its currency."""
        return shown((self.amount or 0.0) if amount is None else amount, self.currency)

    def clause(self, prices: Prices) -> str:
        """Return the cap with the rates by which prices count."""
        rates = {price.currency: self.rate(price) for price in prices.values() if price and not price.free()}
        return "; ".join([self.shown(), *(rate.said() for rate in rates.values() if rate.date)])

    def exceeded(self, who: str, what: str, spent: float, elsewhere: float) -> BudgetError:
        """Return the error of a request that may pass the cap, after what was spent here and by other processes."""
        others = f" here and {self.shown(elsewhere)} in other processes under this cap" if elsewhere else ""
        return BudgetError(
            f"{who}: the next {what} may pass the cap of {self.shown()}, after calls that cost "
            f"{self.shown(spent)}{others}; every answer is kept; raise --max-cost to go on"
        )


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
    prices = " and ".join(f"{name} ({place})" for name in lacking for place, each in dear.items() if each == name)
    shared = next((f" ({place})" for place, name in dear.items() if into is None and name == target), "")
    return BudgetError(
        f"--max-cost: found prices in {prices}, and no rate into {target}{shared}; write what they are worth into the "
        f"pipeline file or models.yaml, as in `{line(lacking, target)}`, or give --yes in place of the cap"
    )
