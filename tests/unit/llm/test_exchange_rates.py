"""What one currency is worth in another: stated, turned round, unknown; and the cap that counts by it."""

from datetime import date
from typing import Any

import pytest

from curate.core.config import check
from curate.core.errors import BudgetError, ConfigError
from curate.llm.budget import Budget, CapPolicy
from curate.llm.cost import Price
from curate.llm.exchange_rates import Rates, bound
from curate.pipeline.pipeline import Head

DAY = "2026-11-01"


def rates(**table: Any) -> Rates:
    return Rates(check(Head, {"version": 1, "rates": table}, "t.yaml").rates)


def price(currency: str, amount: float = 1.0) -> Price:
    return Price(input=amount, output=amount, currency=currency, date=date(2026, 11, 1))


YUAN = rates(CNY={"USD": 0.14, "date": DAY})


def test_a_rate_holds_both_ways_and_says_its_day() -> None:
    there, back = YUAN.find("CNY", "USD"), YUAN.find("USD", "CNY")
    assert there is not None
    assert back is not None
    assert there.said() == "1 CNY = 0.14 USD (2026-11-01)"
    assert there.value * back.value == pytest.approx(1)
    assert YUAN.find("CNY", "EUR") is None


def test_a_sum_is_unknown_without_a_rate_and_never_guessed() -> None:
    paid = [(10.0, "CNY"), (1.0, "USD"), (0.0, "GBP")]
    total = YUAN.total(paid)
    assert total.currency == "USD"
    assert total.amount == pytest.approx(2.4)
    assert [rate.said() for rate in total.rates] == ["1 CNY = 0.14 USD (2026-11-01)"]
    assert YUAN.total(paid, "CNY").amount == pytest.approx(10 + 1 / 0.14)
    assert Rates().total(paid).amount is None
    assert YUAN.total([*paid, (None, "USD")]).amount is None
    assert (Rates().total(paid[:1]).amount, Rates().total([]).amount) == (10.0, 0.0)


@pytest.mark.parametrize(
    ("named", "usual", "prices", "expected"),
    [
        (None, None, ["EUR"], "EUR"),
        (None, None, ["CNY", "USD"], "USD"),
        (None, None, ["CNY"], "CNY"),
        (None, "USD", ["CNY"], "USD"),
        ("CNY", "USD", ["CNY", "USD"], "CNY"),
    ],
)
def test_which_currency_a_cap_is_in(named: str | None, usual: str | None, prices: list[str], expected: str) -> None:
    budget = Budget(CapPolicy(50.0, named))
    budget.settle({f"judges.{name}.price": price(name) for name in prices}, YUAN, usual)
    assert budget.policy.currency == expected
    assert budget.policy.shown() == f"50.00 {expected}"


def test_a_cap_without_the_rate_names_the_line_to_write() -> None:
    prices = {"judges.a.price": price("CNY"), "judges.b.price": price("USD"), "judges.free.price": price("GBP", 0)}
    with pytest.raises(BudgetError, match=r"`rates: \{CNY: \{USD: RATE, date: YYYY-MM-DD\}\}`"):
        Budget(CapPolicy(50.0)).settle(prices, Rates(), None)
    with pytest.raises(BudgetError, match=r"no rate into EUR.*`rates: \{CNY: \{EUR: .*USD: \{EUR: "):
        Budget(CapPolicy(50.0, "EUR")).settle(prices, YUAN, None)


def test_a_refusal_names_only_what_has_no_rate() -> None:
    prices = {f"judges.{name}.price": price(name) for name in ("CNY", "EUR", "USD")}
    for named in ("USD", None):  # without a name most prices lead to USD
        with pytest.raises(BudgetError) as caught:
            Budget(CapPolicy(50.0, named)).settle(prices, YUAN, None)
        said = str(caught.value)
        assert "found prices in EUR (judges.EUR.price), and no rate into USD" in said
        assert "`rates: {EUR: {USD: RATE, date: YYYY-MM-DD}}`" in said
        assert "CNY" not in said
    both = rates(CNY={"USD": 0.14, "date": DAY}, USD={"CNY": 7, "date": DAY})
    with pytest.raises(BudgetError, match=r"prices in CNY and USD, and rates into several .* --max-cost 50USD"):
        Budget(CapPolicy(50.0)).settle({name: price(name) for name in ("CNY", "USD")}, both, None)


def test_what_was_spent_keeps_its_currency() -> None:
    """Masking by a model in CNY came first: the cap that it counted in is that of judging, too."""
    budget = Budget(CapPolicy(50.0))
    budget.settle({"judges.mask.price": price("CNY")}, YUAN, None)
    budget.spent = 1.0
    budget.settle({"judges.a.price": price("USD"), "judges.b.price": price("CNY")}, YUAN, None)
    assert budget.policy.currency == "CNY"
    assert budget.policy.rate(price("USD")).value == pytest.approx(1 / 0.14)


@pytest.mark.parametrize("wrong", [{"USD": 0.14}, {"date": DAY}, {"USD": 0, "date": DAY}, {"usd": 1, "date": DAY}])
def test_a_rate_that_is_none_is_a_mistake(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"t\.yaml: rates\.CNY"):
        rates(CNY=wrong)


@pytest.mark.parametrize(
    ("amount", "expected"), [(0.504, "0.51"), (1.5703, "1.58"), (1.1, "1.10"), (0.5, "0.50"), (1234.561, "1,234.57")]
)
def test_an_upper_bound_is_rounded_up(amount: float, expected: str) -> None:
    assert bound(amount, "CNY") == f"{expected} CNY"
