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


def ranged(figure: Mapping[str, Any], digits: int = 3) -> str:
    """Return a figure with its interval, such as `0.731 (0.700 to 0.760)`; `not defined` for None."""
    if figure["value"] is None:
        return "not defined"
    shown = f"{figure['value']:,.{digits}f}"
    return shown if figure["low"] is None else f"{shown} ({figure['low']:,.{digits}f} to {figure['high']:,.{digits}f})"


def leaking(found: Mapping[str, Any]) -> str:
    """Return what a leak check found, as one sentence."""
    return (
        f"leaks: {found['leaking_queries']:,} queries (above {found['queries']:g} by {found['encoder']}) and "
        f"{found['leaking_pairs']:,} positives of queries near to a test query (above {found['related']:g}); "
        f"{found['shared_pairs']:,} more positives are documents of the test set too"
    )
