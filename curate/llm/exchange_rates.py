"""Exchange rates: sums in several currencies, converted by rates that the user wrote down."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from curate.core.config import Json, Section

Code = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
"""Of a currency, such as USD."""
Amount = tuple[float | None, str | None]
"""How much, in which currency; None where either is unknown."""


class Worth(Section):
    """What one unit of a currency is worth in others: `{USD: 0.14, date: 2026-11-01}`."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(init=False)
    date: dt.date
    """Day on which that was so."""

    @model_validator(mode="after")
    def _codes(self) -> "Worth":
        wrong = [name for name in self.rates if len(name) != 3 or not name.isupper()]
        if wrong or not self.rates:
            raise ValueError("expected codes of currencies with what one unit is worth, such as USD: 0.14")
        return self

    @property
    def rates(self) -> Mapping[str, float]:
        """Return currency -> what one unit is worth in it."""
        return self.__pydantic_extra__


@dataclass(frozen=True)
class Rate:
    """What one unit of a currency is worth in another one."""

    of: str
    into: str
    value: float
    date: dt.date | None = None
    """None where both are the same currency."""

    def said(self) -> str:
        """Return the rate as a clause, with its day."""
        return f"1 {self.of} = {self.value:.6g} {self.into} ({self.date})"

    def plain(self) -> dict[str, Json]:
        """Return the rate as JSON has it."""
        return {"of": self.of, "into": self.into, "value": self.value, "date": str(self.date)}


@dataclass(frozen=True)
class Total:
    """A sum of money; `amount` is None where a part or a rate is unknown."""

    amount: float | None
    currency: str | None
    """None where nothing was paid, or the sum is unknown."""
    rates: tuple[Rate, ...] = ()
    """By which parts of it were converted."""


@dataclass(frozen=True)
class Rates:
    """All rates that are known: currency -> what one unit of it is worth."""

    table: Mapping[str, Worth] = field(default_factory=dict)

    def over(self, other: "Rates") -> "Rates":
        """Return these rates, and of the others those of further currencies."""
        return Rates({**other.table, **self.table})

    def find(self, of: str, into: str) -> Rate | None:
        """Return a rate as it is written down, or turned round; None if neither is there."""
        if of == into:
            return Rate(of, into, 1.0)
        there, back = self.table.get(of), self.table.get(into)
        if there and into in there.rates:
            return Rate(of, into, there.rates[into], there.date)
        if back and of in back.rates:
            return Rate(of, into, 1 / back.rates[of], back.date)
        return None

    def common(self, currencies: Iterable[str]) -> str | None:
        """Return the one currency that there is, or the one into which all others are to be converted; None for none.

        Rates lead into currencies; of several that all others lead to, the one counts that is in use.
        """
        used = sorted(set(currencies))
        if len(used) == 1:
            return used[0]
        targets = dict.fromkeys(name for worth in self.table.values() for name in worth.rates)
        open_ = [target for target in targets if used and all(self.find(name, target) for name in used)]
        inside = [each for each in open_ if each in used]
        return inside[0] if len(inside) == 1 else open_[0] if len(open_) == 1 else None

    def total(self, amounts: Iterable[Amount], into: str | None = None) -> Total:
        """Return the sum in a currency, by default the common one; amounts of 0 are of any currency."""
        parts = [amount for amount in amounts if amount[0] != 0]
        if not parts:
            return Total(0.0, None)
        known = [(amount, currency) for amount, currency in parts if amount is not None and currency is not None]
        into = into or self.common(currency for _, currency in known)
        found = {currency: self.find(currency, into) for _, currency in known} if into else {}
        used = {currency: rate for currency, rate in found.items() if rate}
        if into is None or len(known) < len(parts) or len(used) < len(found):
            return Total(None, None)
        whole = sum(amount * used[currency].value for amount, currency in known)
        return Total(whole, into, tuple(rate for rate in used.values() if rate.date))


def shown(amount: float, currency: str | None) -> str:
    """Return money for people: two decimals, of less than one unit two digits."""
    number = f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.2g}"
    return f"{number} {currency or ''}".strip()


def line(currencies: Iterable[str], into: str) -> str:
    """Return the line of a pipeline file that says what currencies are worth in another one, to be filled in."""
    each = ", ".join(f"{name}: {{{into}: RATE, date: YYYY-MM-DD}}" for name in sorted(set(currencies) - {into}))
    return f"rates: {{{each}}}"
