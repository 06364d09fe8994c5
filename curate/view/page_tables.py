"""Markdown tables, and figures in them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from curate.core.figures import decimal


class Ranged(Protocol):
    """An estimate with bounds, which are None where it has none."""

    @property
    def value(self) -> float | None:
        """Return the estimate; None where it is not defined."""
        ...

    @property
    def low(self) -> float | None:
        """Return the lower bound."""
        ...

    @property
    def high(self) -> float | None:
        """Return the upper bound."""
        ...


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows with the same columns as a Markdown table; None is shown as a dash."""
    heads = list(rows[0])
    cells = [["–" if row[head] is None else str(row[head]) for head in heads] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def points(score: float | None) -> str | None:
    """Return a score in points of 100; None stays None."""
    return None if score is None else decimal(100 * score, 2)


def ranged(figure: Ranged | None, factor: float = 100, digits: int = 2) -> str | None:
    """Return a figure times `factor` with its interval, such as `87.60 (80.12 to 93.40)`, or one of both; else None."""
    if figure is None:
        return None
    text = None if figure.value is None else decimal(factor * figure.value, digits)
    if figure.low is None or figure.high is None:
        return text
    bounds = f"{decimal(factor * figure.low, digits)} to {decimal(factor * figure.high, digits)}"
    return bounds if text is None else f"{text} ({bounds})"
