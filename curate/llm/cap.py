"""Rules of a budget: the prices it covers, its currency, and its error messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from curate.core.errors import BudgetError
from curate.llm.cost import Price
from curate.llm.exchange_rates import Rate, Rates, line, shown

Prices = Mapping[str, Price | None]
"""Setting -> price; None where it is unknown."""


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
        """Return an amount, by default the cap, with its currency."""
        return shown((self.amount or 0.0) if amount is None else amount, self.currency)

    def clause(self, prices: Prices) -> str:
        """Return the budget with the rates of conversion, as a clause."""
        rates = {price.currency: self.rate(price) for price in prices.values() if price and not price.free()}
        return "; ".join([self.shown(), *(rate.said() for rate in rates.values() if rate.date)])

    def exceeded(self, who: str, what: str, spent: float, elsewhere: float) -> BudgetError:
        """Return the error for a request that may exceed the budget, given the amounts spent here and elsewhere."""
        others = f" here and {self.shown(elsewhere)} in other processes under this cap" if elsewhere else ""
        return BudgetError(
            f"{who}: the next {what} may pass the cap of {self.shown()}, after calls that cost "
            f"{self.shown(spent)}{others}; every answer is kept; raise --max-cost to go on"
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
