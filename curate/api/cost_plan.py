"""Cost plans of judging, and the error for spending without consent."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import polars as pl

from curate.core.config import Json
from curate.core.errors import BudgetError
from curate.llm.exchange_rates import shown
from curate.view import html

WORDS = {"--max-cost AMOUNT": "max_cost=AMOUNT", "--yes": "yes=True"}
"""Options of the commands -> arguments of the API."""


@dataclass(frozen=True)
class CostPlan:
    """Planned calls of language models and their maximum cost; empty if nothing is left to send."""

    rows: Sequence[Mapping[str, Json]]
    """A row per model, and after several of them their total (`judge` is "in all").

    `calls`; `prompt_tokens`, an estimate; `answer_tokens`, at most; `online`, what that costs at most in `currency`,
    None without a price. A plan that was made before asking also has `prefix_tokens`, `batches`, `cascade_least` and
    `minutes`, as `curate judge --plan` prints them.
    """

    @property
    def calls(self) -> int:
        """Return the number of calls of all models together."""
        return cast("int", self.rows[-1]["calls"]) if self.rows else 0

    @property
    def cost(self) -> float | None:
        """Return what all calls cost at most, in `currency`; 0 if there are none, None if a price is unknown."""
        return cast("float | None", self.rows[-1]["online"]) if self.rows else 0.0

    @property
    def currency(self) -> str | None:
        """Return the currency of `cost`, such as USD; None where no price is known."""
        return cast("str | None", self.rows[-1]["currency"]) if self.rows else None

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows as a frame."""
        return pl.DataFrame(cast("Sequence[dict[str, Any]]", self.rows), infer_schema_length=None)

    def __repr__(self) -> str:
        return f"CostPlan({self._sentence()})"

    def _sentence(self) -> str:
        if not self.rows:
            return "nothing is left to send"
        price = "price unknown" if self.cost is None else f"at most {shown(self.cost, self.currency)}"
        return f"{self.calls:,} calls, {price}"

    def _repr_html_(self) -> str:
        return html.block(f"Plan: {self._sentence()}", html.table(self.rows, digits=2))


class ConsentNeeded(BudgetError):
    """Language models would be asked without consent to the cost; `plan` holds it."""

    def __init__(self, message: str, plan: CostPlan) -> None:
        super().__init__(message)
        self.plan = plan

    def _repr_html_(self) -> str:
        return html.block("Nothing was sent", html.lines(str(self).splitlines()[-1:]), self.plan._repr_html_())


@contextmanager
def consenting() -> Iterator[None]:
    """Convert a BudgetError with a plan into ConsentNeeded."""
    try:
        yield
    except BudgetError as error:
        if not error.planned:
            raise
        message = str(error)
        for option, argument in WORDS.items():
            message = message.replace(option, argument)
        raise ConsentNeeded(message, CostPlan(error.planned)) from None
