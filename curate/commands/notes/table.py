"""Reading of labelled texts from a table: finds the columns of the fields, checks rows, and sorts each group's texts.

A chain is the sequence of a group's texts, such as a patient's notes, in their order.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from curate.core.errors import ConfigError, DataError, TableError, suggestion
from curate.stats.neighbour_recall import Chains
from curate.stats.tally import Ints
from curate.tables.readers.encoding import OWN, Bounds
from curate.tables.readers.file import File
from curate.tables.readers.ratings import header, opened, texts
from curate.tables.readers.roles import roles

ROLES = replace(roles("notes"), needed=("text",), remedy="name another with --column {role}=NAME")
_DATE = re.compile(
    r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[T ]+(\d{1,2})[:时](\d{1,2})分?(?:[:.]?(\d{1,2})(?:\.\d+)?)?)?Z?"
)
Place = tuple[float, ...]


@dataclass(frozen=True)
class NotesLayout:
    """Columns, delimiter and sheet of a file of texts."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Field -> column given by the user; other fields are found by their usual names."""
    delimiter: str | None = None
    sheet: str | None = None
    bounds: Bounds = OWN


@dataclass(frozen=True)
class NotesTable:
    """Texts sorted by group, then by order within the group."""

    location: str
    columns: Mapping[str, str]
    """Field -> column, for fields that have one."""
    ids: Sequence[str]
    texts: Sequence[str]
    """Title, newline, text."""
    chains: Chains
    labels: Mapping[str, Sequence[str]]
    """`label` and `style`, if they have columns -> one string per text, empty without one."""
    dropped: Mapping[str, int]
    """Reason -> number of rows left out."""
    notes: Sequence[str]

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return int(self.chains.group[-1]) + 1

    def codes(self, name: str) -> tuple[list[str], Ints]:
        """Return the sorted values of a labelling, and each text's index into them, -1 for none."""
        values = sorted({label for label in self.labels[name] if label})
        number = {label: code for code, label in enumerate(values)} | {"": -1}
        return values, np.array([number[label] for label in self.labels[name]], dtype=np.int64)


@dataclass
class _Rows:
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def named(assignments: Sequence[str]) -> dict[str, str]:
    """Return field -> column from arguments `FIELD=NAME`; ConfigError for an unknown or repeated field."""
    columns: dict[str, str] = {}
    for assignment in assignments:
        name, sign, column_name = assignment.partition("=")
        if not sign or not column_name:
            raise ConfigError(f"--column: found {assignment!r}, expected FIELD=NAME, such as group=patient_id")
        if name not in ROLES.names:
            raise ConfigError(f"--column: found the field {name!r}, expected another; {suggestion(name, ROLES.names)}")
        if name in columns:
            raise ConfigError(f"--column: found {name} twice, expected one column for it; leave one out")
        columns[name] = column_name
    return columns


def read(path: Path, layout: NotesLayout) -> NotesTable:
    """Return the texts of a file.

    DataError for a repeated id, an invalid cell of the column `order`, or fewer than two texts.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected a table of texts; check the path")
    source = opened(path, layout.delimiter, layout.sheet, layout.bounds)
    columns = ROLES.resolve(str(path), header(source), layout.columns)
    kept_rows, seen = _Rows(), dict[str, int]()
    for line, row in texts(source, set(columns.values())):
        cells = {name: row[position] for name, position in columns.items()}
        if not cells["text"]:
            kept_rows.dropped["without a text"] += 1
            continue
        if "id" in cells and (first := seen.setdefault(cells["id"], line)) != line:
            raise TableError.at(
                f"{path}:{line}, column {columns['id']}",
                f"the id of line {first} again",
                "one per row",
                "correct the ids, or give --column id=NAME with another column",
                [["--column", f"id={name}"] for name in _distinct(source, columns)],
            )
        kept_rows.rows.append((line, cells))
    if len(kept_rows.rows) < 2:
        raise TableError.at(path, f"{len(kept_rows.rows)} rows with a text", "two at least", "check the file")
    return _table(str(path), columns, kept_rows)


def _distinct(source: File, columns: Mapping[str, str]) -> list[str]:
    """Return the columns without a field that have another cell in every row, none of them empty."""
    cells: dict[str, set[str]] = {name: set() for name in header(source) if name not in columns.values()}
    for number, (_, row) in enumerate(texts(source, set(cells)), start=1):
        for name in list(cells):
            cells[name].add(row[name])
            if not row[name] or len(cells[name]) < number:
                del cells[name]
    return list(cells)


def _table(source: str, columns: Mapping[str, str], table_rows: _Rows) -> NotesTable:
    rows, notes = table_rows.rows, list[str]()
    ungrouped = sum(not cells.get("group", "") for _, cells in rows)
    if "group" in columns and ungrouped:
        notes.append(f"{ungrouped:,} texts have no {columns['group']}: each is a group of its own")
    groups: dict[object, int] = {}
    keys = [cells.get("group") or line for line, cells in rows]
    group = [groups.setdefault(key, len(groups)) for key in keys]
    orders = [(f"{source}:{line}, column {columns.get('order')}", cells.get("order", "")) for line, cells in rows]
    positions = _positions(orders)
    singles = sum(count == 1 for count in Counter(group).values())
    if "group" in columns and singles:
        notes.append(
            f"{singles:,} groups have one text alone: nothing is to be found for it, so it is a candidate and no query"
        )
    copies = sum(count for count in Counter(_full_text(cells) for _, cells in rows).values() if count > 1)
    if copies:
        notes.append(f"{copies:,} texts are equal to another: all stay, and each finds its copy first")
    if "order" in columns:
        notes += _position_notes(columns["order"], group, positions)
    order = sorted(range(len(rows)), key=lambda row: (group[row], positions[row] is None, positions[row] or (), row))
    chosen = [rows[row] for row in order]
    return NotesTable(
        source,
        columns,
        [cells.get("id") or str(line) for line, cells in chosen],
        [_full_text(cells) for _, cells in chosen],
        Chains(np.array([group[row] for row in order]), np.array([positions[row] is not None for row in order])),
        {name: [cells[name] for _, cells in chosen] for name in ("label", "style") if name in columns},
        dict(table_rows.dropped),
        notes,
    )


def _full_text(cells: Mapping[str, str]) -> str:
    return "\n".join(filter(None, (cells.get("title"), cells["text"])))


def _position_notes(name: str, group: Sequence[int], positions: Sequence[Place | None]) -> list[str]:
    """Return notes on texts without an order, and on texts with the same order as another of their group."""
    times = Counter(
        (group_id, position) for group_id, position in zip(group, positions, strict=True) if position is not None
    )
    without, shared = (
        sum(position is None for position in positions),
        sum(count for count in times.values() if count > 1),
    )
    notes = [f"{without:,} texts have no {name}: they are in no chain"] if without else []
    return notes + (
        [f"{shared:,} texts share their {name} with another of their group: they stay in the file's order"]
        if shared
        else []
    )


def _positions(cells: Sequence[tuple[str, str]]) -> list[Place | None]:
    """Return orders as sortable tuples, from (location, cell) with all numbers or all dates; None for an empty cell.

    DataError at the first cell that is neither, or of the other kind.
    """
    positions: list[Place | None] = []
    dates: bool | None = None
    for location, text in cells:
        position = _position(text)
        if text and (position is None or (dates is not None and dates != (len(position) > 1))):
            expected = {None: "a number or a date such as 2024-03-01", True: "a date", False: "a number"}[dates]
            raise TableError.at(
                location,
                "an order that is not like that of the rows before it",
                expected,
                "correct the cell, or give --column order=NAME with another column",
            )
        dates = dates if position is None else len(position) > 1
        positions.append(position)
    return positions


def _position(text: str) -> Place | None:
    if date := _DATE.fullmatch(text):
        return tuple(float(group or 0) for group in date.groups())
    try:
        number = float(text)
    except ValueError:
        return None
    return (number,) if np.isfinite(number) else None
