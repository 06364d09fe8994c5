"""Figures as JSON, and rows as lines of text."""

import json
from collections.abc import Iterable, Mapping, Sequence

from curate.cli import output_mode


def print_figures(figures: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print figures as indented JSON, Chinese readable; or as lines of text, which are taken only then."""
    text = "" if output_mode.json_lines() or as_json else "\n".join(lines)
    output_mode.put({"data": figures}, json.dumps(figures, ensure_ascii=False, indent=1) if as_json else text)


def too_few(clusters: int, what: str = "queries") -> list[str]:
    """Return what must be said of intervals that resample so few queries, or other clusters; nothing of enough."""
    from curate.stats.bootstrap import FEW

    return [f"under {FEW} {what}: these intervals are too narrow"] if clusters < FEW else []


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
