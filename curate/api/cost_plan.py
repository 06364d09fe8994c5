"""Cost estimates of judging, and the error for spending without consent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from curate.ask.billing import PlanRow
from curate.core.errors import BudgetError
from curate.llm.exchange_rates import bound
from curate.runs.python_errors import python_errors
from curate.view import html


@dataclass(frozen=True)
class CostPlan:
    """Cost estimate: calls of language models that are left to send, and their maximum cost; empty if none are left."""

    rows: Sequence[PlanRow]
    """One row per model and, for several models, a last row with their total (`judge` is "in all").

    Those of an error lack `prefix_tokens`, `batches`, `cascade_least` and `minutes`.
    """

    @property
    def calls(self) -> int:
        """Return the number of calls of all models together."""
        return self.rows[-1].calls if self.rows else 0

    @property
    def cost(self) -> float | None:
        """Return the maximum cost of all calls, in `currency`; 0 without calls, None if a price is unknown."""
        return self.rows[-1].online if self.rows else 0.0

    @property
    def currency(self) -> str | None:
        """Return the currency of `cost`, such as USD; None if there are no calls or no price is known."""
        return self.rows[-1].currency if self.rows else None

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Return the rows as a frame; empty without columns if there are no calls."""
        return pl.DataFrame([row.to_json() for row in self.rows], infer_schema_length=None)

    def __repr__(self) -> str:
        return f"CostPlan({self._sentence()})"

    def _sentence(self) -> str:
        if not self.rows:
            return "nothing is left to send"
        price = "price unknown" if self.cost is None else f"at most {bound(self.cost, self.currency)}"
        return f"{self.calls:,} calls, {price}"

    def _repr_html_(self) -> str:
        return html.block(f"Plan: {self._sentence()}", html.table([row.printed() for row in self.rows], digits=2))


class ConsentNeeded(BudgetError):
    """Language models would be called without consent to the cost; `plan` is the cost estimate."""

    def __init__(self, message: str, plan: CostPlan) -> None:
        super().__init__(message)
        self.plan = plan

    def _repr_html_(self) -> str:
        return html.block("Nothing was sent", html.lines(str(self).splitlines()[-1:]), self.plan._repr_html_())


@contextmanager
def consenting() -> Iterator[None]:
    """Name arguments instead of options in errors; turn a BudgetError with a cost estimate into ConsentNeeded."""
    try:
        with python_errors():
            yield
    except BudgetError as error:
        if not error.planned:
            raise
        raise ConsentNeeded(str(error), CostPlan(error.planned)) from None
