"""Labelled texts of any everyday table: which columns hold what, and what of their rows can be used."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, DataError, suggestion
from curate.stats.neighbour_recall import Chains
from curate.stats.tally import Ints
from curate.system.resources import data_file
from curate.tables.readers.guess import plain_name as plain
from curate.tables.readers.ratings import column, header, opened, shown, texts

FIELDS = ("id", "title", "text", "group", "order", "label", "style")
_DATE = re.compile(
    r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[T ]+(\d{1,2})[:时](\d{1,2})分?(?:[:.]?(\d{1,2})(?:\.\d+)?)?)?Z?"
)
Place = tuple[float, ...]


@dataclass(frozen=True)
class NotesLayout:
    """Where in a file the fields of a text stand."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Field -> column that is named for it; the others are found by their usual names."""
    delimiter: str | None = None
    sheet: str | None = None


@dataclass(frozen=True)
class NotesTable:
    """Texts, group by group, those of a group in their order."""

    place: str
    columns: Mapping[str, str]
    """Field -> column, of the fields that were found."""
    ids: Sequence[str]
    texts: Sequence[str]
    """Title, newline, text."""
    chains: Chains
    labels: Mapping[str, Sequence[str]]
    """`label` and `style`, as far as they have columns: one per text, empty for none."""
    dropped: Mapping[str, int]
    """Reason -> rows that are left out."""
    notes: Sequence[str]

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return int(self.chains.group[-1]) + 1

    def codes(self, name: str) -> tuple[list[str], Ints]:
        """Return the values of a labelling in their order, and the number of each text's; -1 for none."""
        values = sorted({value for value in self.labels[name] if value})
        number = {value: at for at, value in enumerate(values)} | {"": -1}
        return values, np.array([number[value] for value in self.labels[name]], dtype=np.int64)


@dataclass
class _Rows:
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def named(assignments: Sequence[str]) -> dict[str, str]:
    """Return field -> column of what was typed as FIELD=NAME; ConfigError for another field."""
    found: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not value:
            raise ConfigError(f"--column: found {assignment!r}, expected FIELD=NAME, such as group=patient_id")
        if name not in FIELDS:
            raise ConfigError(f"--column: found the field {name!r}, expected another; {suggestion(name, FIELDS)}")
        if name in found:
            raise ConfigError(f"--column: found {name} twice, expected one column for it; leave one out")
        found[name] = value
    return found


def read(path: Path, layout: NotesLayout) -> NotesTable:
    """Return the texts of a file; DataError names the line, what was found there and what was expected."""
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected a table of texts; check the path")
    source = opened(path, layout.delimiter, layout.sheet)
    columns = _columns(str(path), header(source), layout.columns)
    found, seen = _Rows(), dict[str, int]()
    for line, row in texts(source, set(columns.values())):
        cells = {name: row[at] for name, at in columns.items()}
        if not cells["text"]:
            found.dropped["without a text"] += 1
            continue
        if "id" in cells and (first := seen.setdefault(cells["id"], line)) != line:
            raise DataError(
                f"{path}:{line}: found the id of line {first} again, expected one per row; correct the ids, or give "
                "--column id=NAME with another column"
            )
        found.rows.append((line, cells))
    if len(found.rows) < 2:
        raise DataError(f"{path}: found {len(found.rows)} rows with a text, expected two at least; check the file")
    return _table(str(path), columns, found)


def _columns(place: str, names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return field -> column; DataError names the columns that are there if none holds texts."""
    found = {each: column(place, names, name) for each, name in given.items()}
    known = {plain(name): name for name in reversed(names)}
    for each, choices in _usual().items():
        free = (known[plain(name)] for name in choices if plain(name) in known)
        usual = next((name for name in free if name not in found.values()), None)
        if each not in found and usual is not None:
            found[each] = usual
    if "text" not in found:
        raise DataError(
            f"{place}: found the columns {shown(names) or 'none'}, none of which is called a text; name the one that "
            "holds it with --column text=NAME"
        )
    return {each: found[each] for each in FIELDS if each in found}


def _table(place: str, columns: Mapping[str, str], found: _Rows) -> NotesTable:
    rows, notes = found.rows, list[str]()
    alone = sum(not cells.get("group", "") for _, cells in rows)
    if "group" in columns and alone:
        notes.append(f"{alone:,} texts have no {columns['group']}: each is a group of its own")
    groups: dict[object, int] = {}
    keys = [cells.get("group") or line for line, cells in rows]
    group = [groups.setdefault(key, len(groups)) for key in keys]
    places = _places(place, [(line, cells.get("order", "")) for line, cells in rows])
    notes += [*_alone(columns, group), *_equal([_shown(cells) for _, cells in rows])]
    if "order" in columns:
        notes += _odd_places(columns["order"], group, places)
    order = sorted(range(len(rows)), key=lambda at: (group[at], places[at] is None, places[at] or (), at))
    chosen = [rows[at] for at in order]
    return NotesTable(
        place,
        columns,
        [cells.get("id") or str(line) for line, cells in chosen],
        [_shown(cells) for _, cells in chosen],
        Chains(np.array([group[at] for at in order]), np.array([places[at] is not None for at in order])),
        {name: [cells[name] for _, cells in chosen] for name in ("label", "style") if name in columns},
        dict(found.dropped),
        notes,
    )


def _shown(cells: Mapping[str, str]) -> str:
    return "\n".join(filter(None, (cells.get("title"), cells["text"])))


def _alone(columns: Mapping[str, str], group: Sequence[int]) -> list[str]:
    """Return how many groups of a table with groups have one text, which has nothing to be found."""
    lone = sum(count == 1 for count in Counter(group).values())
    if "group" not in columns or not lone:
        return []
    return [f"{lone:,} groups have one text alone: nothing is to be found for it, so it is a candidate and no query"]


def _equal(shown_texts: Sequence[str]) -> list[str]:
    """Return how many texts stand there several times: copies find one another, whatever they mean."""
    copies = sum(count for count in Counter(shown_texts).values() if count > 1)
    told = f"{copies:,} texts are equal to another: all stay, and each finds its copy first"
    return [told] if copies else []


def _odd_places(name: str, group: Sequence[int], places: Sequence[Place | None]) -> list[str]:
    """Return what must be said of texts without a place in their group, or with that of another one."""
    times = Counter((each, place) for each, place in zip(group, places, strict=True) if place is not None)
    without, shared = sum(place is None for place in places), sum(count for count in times.values() if count > 1)
    notes = [f"{without:,} texts have no {name}: they are in no chain"] if without else []
    return notes + (
        [f"{shared:,} texts share their {name} with another of their group: they stay in the file's order"]
        if shared
        else []
    )


def _places(place: str, cells: Sequence[tuple[int, str]]) -> list[Place | None]:
    """Return numbers or dates as what sorts; DataError names the first cell that is neither, or not like the others."""
    found: list[Place | None] = []
    dates: bool | None = None
    for line, text in cells:
        value = _place(text)
        if text and (value is None or (dates is not None and dates != (len(value) > 1))):
            expected = {None: "a number or a date such as 2024-03-01", True: "a date", False: "a number"}[dates]
            raise DataError(
                f"{place}:{line}: found an order that is not like that of the rows before it, expected {expected}; "
                "correct the cell, or give --column order=NAME with another column"
            )
        dates = dates if value is None else len(value) > 1
        found.append(value)
    return found


def _place(text: str) -> Place | None:
    if date := _DATE.fullmatch(text):
        return tuple(float(group or 0) for group in date.groups())
    try:
        number = float(text)
    except ValueError:
        return None
    return (number,) if np.isfinite(number) else None


@cache
def _usual() -> Mapping[str, list[str]]:
    known: Mapping[str, list[str]] = parse_yaml(data_file("commands/notes/columns.yaml").read_text(encoding="utf-8"))
    return known
