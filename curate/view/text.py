"""Rows as lines of text, and what must be said of few."""

from collections.abc import Mapping, Sequence
from typing import Any

HEURISTIC = "judged by heuristics alone: these figures show the machinery and are no evidence"


def too_few(clusters: int, what: str = "queries") -> list[str]:
    """Return what must be said of intervals that resample so few queries, or other clusters; nothing of enough."""
    from curate.stats.bootstrap import FEW

    return [f"under {FEW} {what}: these intervals are too narrow"] if clusters < FEW else []


def caveats(figures: Mapping[str, Any], queries: int | None) -> list[str]:
    """Return why figures that resample so many queries should not be trusted blindly; None if nothing is resampled."""
    said = [HEURISTIC] if figures["heuristic"] else []
    return said if queries is None else [*said, *too_few(queries)]


def as_table(rows: Sequence[Mapping[str, object]], digits: int = 1) -> str:
    """Return rows of the same columns as lines of text; numbers that are not whole with so many digits."""
    names = list(rows[0])
    cells = [names, *[[_cell(row[name], digits) for name in names] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join(lines)


def _cell(value: object, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
