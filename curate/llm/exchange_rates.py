"""Exchange rates: sums in several currencies, converted by rates from the user's settings."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from curate.core.config import Json, Section

Code = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
"""Code of a currency, such as USD."""
Amount = tuple[float | None, str | None]
"""Amount and currency; None where either is unknown."""


class Worth(Section):
    """Worth of one unit of a currency in others: `{USD: 0.14, date: 2026-11-01}`."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(init=False)
    date: dt.date
    """Day of the rates."""

    @model_validator(mode="after")
    def _codes(self) -> "Worth":
        wrong = [name for name in self.rates if len(name) != 3 or not name.isupper()]
        if wrong or not self.rates:
            raise ValueError("expected codes of currencies with what one unit is worth, such as USD: 0.14")
        return self

    @property
    def rates(self) -> Mapping[str, float]:
        """Return currency -> worth of one unit in it."""
        return self.__pydantic_extra__


@dataclass(frozen=True)
class Rate:
    """Worth of one unit of a currency in another one."""

    of: str
    into: str
    value: float
    date: dt.date | None = None
    """Day of the rate; None where both are the same currency."""

    def said(self) -> str:
        """Return the rate as a clause, with its day."""
        return f"1 {self.of} = {self.value:.6g} {self.into} ({self.date})"

    def plain(self) -> dict[str, Json]:
        """Return the rate for JSON."""
        return {"of": self.of, "into": self.into, "value": self.value, "date": str(self.date)}


@dataclass(frozen=True)
class Total:
    """A sum of money; `amount` is None where a part or a rate is unknown."""

    amount: float | None
    currency: str | None
    """None where nothing was paid, or the sum is unknown."""
    rates: tuple[Rate, ...] = ()
    """Rates used in the conversion."""


@dataclass(frozen=True)
class Rates:
    """All known rates: currency -> worth of one unit."""

    table: Mapping[str, Worth] = field(default_factory=dict)

    def over(self, other: "Rates") -> "Rates":
        """Return these rates, completed by those of `other` for further currencies."""
        return Rates({**other.table, **self.table})

    def find(self, of: str, into: str) -> Rate | None:
        """Return a rate from the settings, or the inverse of one; None if there is neither."""
        if of == into:
            return Rate(of, into, 1.0)
        forth, back = self.table.get(of), self.table.get(into)
        if forth and into in forth.rates:
            return Rate(of, into, forth.rates[into], forth.date)
        if back and of in back.rates:
            return Rate(of, into, 1 / back.rates[of], back.date)
        return None

    def common(self, currencies: Iterable[str]) -> str | None:
        """Return the only currency, or the one into which all can be converted; None if it is ambiguous.

        If all can be converted into several, the only one of these among `currencies` counts.
        """
        used = sorted(set(currencies))
        if len(used) == 1:
            return used[0]
        targets = dict.fromkeys(name for worth in self.table.values() for name in worth.rates)
        open_ = [target for target in targets if used and all(self.find(name, target) for name in used)]
        inside = [target for target in open_ if target in used]
        return inside[0] if len(inside) == 1 else open_[0] if len(open_) == 1 else None

    def total(self, amounts: Iterable[Amount], into: str | None = None) -> Total:
        """Return the sum in a currency, by default the common one; amounts of 0 need no rate."""
        nonzero = [amount for amount in amounts if amount[0] != 0]
        if not nonzero:
            return Total(0.0, None)
        complete = [(amount, currency) for amount, currency in nonzero if amount is not None and currency is not None]
        into = into or self.common(currency for _, currency in complete)
        rates = {currency: self.find(currency, into) for _, currency in complete} if into else {}
        used = {currency: rate for currency, rate in rates.items() if rate}
        if into is None or len(complete) < len(nonzero) or len(used) < len(rates):
            return Total(None, None)
        total = sum(amount * used[currency].value for amount, currency in complete)
        return Total(total, into, tuple(rate for rate in used.values() if rate.date))


def shown(amount: float, currency: str | None) -> str:
    """Return an amount to be read: with two decimals, or two significant digits below one unit."""
    number = f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.2g}"
    return f"{number} {currency or ''}".strip()


def rounded_up(amount: float, digits: int = 2) -> float:
    """Return an upper bound with a number of decimals, rounded up, so that a budget of this amount covers it."""
    return math.ceil(round(amount * 10.0**digits, 6)) / 10.0**digits  # 1.1 * 100 is a little over 110


def bound(amount: float, currency: str | None) -> str:
    """Return an upper bound to be read: with two decimals, rounded up."""
    return f"{rounded_up(amount):,.2f} {currency or ''}".strip()


def line(currencies: Iterable[str], into: str) -> str:
    """Return a template line of `rates` for a pipeline file, from currencies into another one."""
    entries = ", ".join(f"{name}: {{{into}: RATE, date: YYYY-MM-DD}}" for name in sorted(set(currencies) - {into}))
    return f"rates: {{{entries}}}"
