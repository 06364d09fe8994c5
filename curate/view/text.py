"""Plain-text tables and figures, and caveats on small samples."""

import os
import shutil
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

HEURISTIC = "judged by heuristics alone: these figures are for testing only"


def too_few(clusters: int, what: str = "queries") -> list[str]:
    """Return the caveat on intervals that resample few queries or other clusters; [] for `FEW` or more."""
    from curate.stats.bootstrap import FEW

    return [f"under {FEW} {what}: these intervals are too narrow"] if clusters < FEW else []


def caveats(heuristic: bool, queries: int | None) -> list[str]:
    """Return the caveats on figures; `queries` is the number of resampled queries, None if there is no resampling."""
    lines = [HEURISTIC] if heuristic else []
    return lines if queries is None else [*lines, *too_few(queries)]


def as_table(rows: Sequence[Mapping[str, object]], digits: int = 1, *, text_columns: int = 2) -> str:
    """Return rows with the same columns as an aligned text table; floats with `digits` decimals.

    The first `text_columns` columns are aligned on the left, the others on the right.

    Where the terminal is narrower than the table, a row is a paragraph with a line per column.
    """
    names = list(rows[0])
    cells = [names, *[[_cell(row[name], digits) for name in names] for row in rows]]
    widths = [max(width(line[column]) for line in cells) for column in range(len(names))]
    lines = [
        "  ".join(
            f"{cell}{padding}" if column < text_columns else f"{padding}{cell}"
            for column, cell in enumerate(line)
            for padding in [" " * (widths[column] - width(cell))]
        ).rstrip()
        for line in cells
    ]
    room = terminal_width()
    if room is not None and max(map(width, lines)) > room:
        return "\n\n".join("\n".join(_paragraph(names, line, room)) for line in cells[1:])
    return "\n".join(lines)


def terminal_width() -> int | None:
    """Return the columns of the terminal, or of COLUMNS; None for a file or a pipe, which has no width."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdecimal():
        return None
    return shutil.get_terminal_size().columns


def _paragraph(names: Sequence[str], cells: Sequence[str], room: int) -> Iterator[str]:
    """Yield a line per column, name and cell; a cell that is too long goes on below itself."""
    indent = max(map(width, names)) + 2
    for name, cell in zip(names, cells, strict=True):
        head, remainder = _cut(cell, max(room - indent, 8))
        yield f"{name}{' ' * (indent - width(name))}{head}".rstrip()
        while remainder:
            head, remainder = _cut(remainder, max(room - indent, 8))
            yield f"{' ' * indent}{head}"


def wrapped(text: str, room: int) -> Iterator[str]:
    """Yield a text in lines of at most `room` columns, without control characters, which could steer a terminal."""
    for line in text.splitlines():
        rest = "".join(letter for letter in line.expandtabs(4) if unicodedata.category(letter) not in ("Cc", "Cf"))
        while width(rest) > room:
            head, rest = _cut(rest, room)
            yield head
        yield rest


def _cut(text: str, room: int) -> tuple[str, str]:
    """Return as much of the text as takes at most `room` columns, to the last space if there is one, and the rest."""
    if width(text) <= room:
        return text, ""
    fitting = bisect_right(list(accumulate(map(width, text))), room)
    space = text.rfind(" ", 1, fitting + 1)
    end = space if space > 0 else max(fitting, 1)
    return text[:end], text[end:].lstrip()


def width(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for a Chinese character, none for a combining mark."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def _cell(content: object, digits: int) -> str:
    if content is None:
        return "-"
    if isinstance(content, float):
        return f"{content:,.{digits}f}"
    return f"{content:,}" if isinstance(content, int) else str(content)
