"""Anybody's ratings as a file: CSV, TSV or Parquet, a column a rater or a row a rating, in numbers or in words."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from curate.agreement import Missing
from curate.errors import ConfigError, DataError, suggestion
from curate.measures import Kind, Scale, figures
from curate.readers import Problem, Row
from curate.readers.file import File, Format
from curate.readers.text import shown_names
from curate.tally import Ints

ENDINGS: Mapping[str, Format] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
MOST = 50
"""Different ratings that a scale may have; a column with more holds something else."""


@dataclass(frozen=True)
class Layout:
    """Where in a file items, raters, ratings and clusters stand, and what the ratings are."""

    item: tuple[str, ...] = ()
    """Columns that name an item together; the first column if none is named."""
    raters: tuple[str, ...] = ()
    """Wide: columns of the raters; all others if none is named."""
    rater: str | None = None
    """Long: the column that names the rater; with it, `rating` is the column of the ratings."""
    rating: str | None = None
    cluster: str | None = None
    scale: Scale | None = None
    """nominal if it is not said and there is no order."""
    order: tuple[str, ...] = ()
    """All ratings in the order of the scale; numbers have one of their own."""
    positive: tuple[str, ...] = ()
    """Ratings on one side of a cut, which is measured too."""
    blank: tuple[str, ...] = ()
    """Words that stand for a missing rating, besides an empty cell."""
    missing: Missing = "gwet"
    """How kappa treats missing ratings."""

    def __post_init__(self) -> None:
        if (self.rater is None) != (self.rating is None):
            raise ConfigError("expected --rater and --rating together, found one of them; give both, or neither")
        if self.rater is not None and self.raters:
            raise ConfigError("found --raters (a column each) and --rater (a row each), expected one; give one of them")
        if self.rater is not None and not self.item:
            raise ConfigError("expected --item with --rater, found none; name the column of the items")
        if len(set(self.order)) < len(self.order):
            raise ConfigError("--order: found a rating twice, expected different ones; name each once")


@dataclass(frozen=True)
class Ratings:
    """A file's ratings as codes."""

    codes: Ints
    """Shape (items, raters), -1 for a missing rating."""
    labels: tuple[str, ...]
    """What each code stands for, in the order of the scale."""
    raters: tuple[str, ...]
    clusters: list[str] | None
    """The cluster of each item."""
    kind: Kind
    item: tuple[str, ...]
    """Columns that name an item."""


@dataclass
class _Cells:
    """Ratings as they are read: numbers of items, raters and labels, with the place of each label's first cell."""

    items: dict[tuple[str, ...], int] = field(default_factory=dict)
    raters: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    said: dict[tuple[int, int], int] = field(default_factory=dict)


def measure(path: Path, layout: Layout, seed: int) -> dict[str, Any]:
    """Return the agreement in a file, as `measures.figures` has it: of its `ratings`, and at the `cut` if one is named.

    Beside them stand what was read: `item` (columns), `raters`, `scale`, `labels` (the ratings in their order).
    """
    found = read(path, layout)
    cut = None
    for name in layout.positive:
        if _at(name, found.labels) is None:
            raise ConfigError(f"--positive: no rating {name!r} in {path}; {suggestion(name, found.labels)}")
    if layout.positive:
        sides = np.array([*(_at(label, layout.positive) is None for label in found.labels), -1], dtype=np.int64)
        two = Kind(2, found.kind.scale, missing=layout.missing)
        cut = figures(sides[found.codes], two, found.raters, found.clusters, seed=seed)
    return {
        "item": list(found.item),
        "raters": list(found.raters),
        "scale": found.kind.scale,
        "labels": list(found.labels),
        "ratings": figures(found.codes, found.kind, found.raters, found.clusters, seed=seed),
        "cut": cut,
    }


def read(path: Path, layout: Layout) -> Ratings:
    """Return the ratings of a file; DataError names the line, what was found there and what was expected."""
    source = _open(path)
    header = source.header() or []
    item = layout.item or tuple(header[:1])
    named = [*item, *layout.raters, *(name for name in (layout.rater, layout.rating, layout.cluster) if name)]
    _has(path, header, named)
    others = [name for name in header if name not in (*item, layout.cluster)]
    columns = [] if layout.rater else list(layout.raters or others)
    cells = _Cells(raters={name: at for at, name in enumerate(columns)})
    for row in _rows(source, {*named, *columns}):
        _take(cells, row, layout, item, columns, f"{path}:{row.line}")
    if not cells.items or len(cells.raters) < 2:
        raise DataError(
            f"{path}: found {len(cells.items)} items and {len(cells.raters)} raters, expected an item and two raters "
            "at least; choose the columns with --raters, or with --item, --rater and --rating"
        )
    return _coded(cells, layout, item)


def checked_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield line and the cells of some columns, as text, of every row of a file; DataError as `read` raises it."""
    source = _open(path)
    _has(path, source.header() or [], columns)
    for row in _rows(source, set(columns)):
        yield row.line, [_text(row.values[name]) for name in columns]


def _open(path: Path) -> File:
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{path}: found the ending {path.suffix!r}, expected one of {', '.join(ENDINGS)}; save it so")
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected one of ratings; check the path")
    return File(path, ENDINGS[path.suffix.lower()])


def _has(path: Path, header: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in header:
            known = [shown_names([each]) for each in header]
            raise DataError(f"{path}:1: found no column {name!r}, expected it in the header; {suggestion(name, known)}")


def _rows(source: File, wanted: set[str]) -> Iterator[Row]:
    for row in source.rows(wanted):
        if isinstance(row, Problem):
            raise DataError(f"{source.place}:{row.line}: found {row.found}, expected {row.expected}; correct the line")
        yield row


def _take(cells: _Cells, row: Row, layout: Layout, item: Sequence[str], columns: Sequence[str], place: str) -> None:
    """Add a row's ratings."""
    key = tuple(_text(row.values[name]) for name in item)
    if not any(key):
        raise DataError(f"{place}: found no {' or '.join(item)}, expected the name of an item; fill in the cell")
    new = key not in cells.items
    if not new and not layout.rater:
        raise DataError(f"{place}: found an item for the second time, expected a row an item; leave one of them out")
    number = cells.items.setdefault(key, len(cells.items))
    if layout.cluster:
        _cluster(cells, number, _text(row.values[layout.cluster]), place)
    if layout.rater and layout.rating:
        name = _text(row.values[layout.rater])
        if not name:
            raise DataError(f"{place}: found no {layout.rater}, expected the name of a rater; fill in the cell")
        pairs = [(cells.raters.setdefault(name, len(cells.raters)), layout.rating)]
    else:
        pairs = list(enumerate(columns))
    for rater, column in pairs:
        if (number, rater) in cells.said:
            raise DataError(f"{place}: found a second rating of an item by one rater, expected one; leave one out")
        cells.said[number, rater] = _label(cells, _text(row.values[column]), layout, f"{place}, column {column}")


def _cluster(cells: _Cells, number: int, name: str, place: str) -> None:
    if not name:
        raise DataError(f"{place}: found no cluster, expected one for every item; fill in the cell")
    if number == len(cells.clusters):
        cells.clusters.append(name)
    elif cells.clusters[number] != name:
        raise DataError(f"{place}: found another cluster than before for this item, expected the same; correct one")


def _label(cells: _Cells, text: str, layout: Layout, place: str) -> int:
    """Return the number of a rating, -1 for none."""
    if not text or text in layout.blank:
        return -1
    if text not in cells.labels:
        cells.labels[text] = len(cells.labels)
        cells.places.append(place)
        if layout.order and _at(text, layout.order) is None:
            raise DataError(f"{place}: found {_quoted(text)}, expected one of {', '.join(layout.order)}, or nothing")
        if len(cells.labels) > MOST:
            raise DataError(
                f"{place}: found more than {MOST} different ratings, expected at most {MOST}; choose the columns that "
                "hold ratings with --raters"
            )
    return cells.labels[text]


def _coded(cells: _Cells, layout: Layout, item: tuple[str, ...]) -> Ratings:
    """Return the cells as a matrix of codes in the order of the scale."""
    scale: Scale = layout.scale or ("ordinal" if layout.order else "nominal")
    numbers = [_number(text) for text in (layout.order or cells.labels)]
    odd = next((at for at, number in enumerate(numbers) if number is None), None)
    if odd is not None and (scale == "interval" or (scale == "ordinal" and not layout.order)):
        where = "--order" if layout.order else cells.places[odd]
        remedy = "use --scale ordinal" if layout.order else "give --order with all ratings, or --scale nominal"
        found = _quoted([*(layout.order or cells.labels)][odd])
        raise DataError(f"{where}: found {found}, expected a number on the scale `{scale}`; {remedy}")
    order = layout.order or _sorted(list(cells.labels))
    code = np.array([_at(text, order) for text in cells.labels] + [-1], dtype=np.int64)
    matrix = np.full((len(cells.items), len(cells.raters)), -1, dtype=np.int64)
    at = np.array(list(cells.said), dtype=np.int64).reshape(-1, 2)
    matrix[at[:, 0], at[:, 1]] = code[np.array(list(cells.said.values()), dtype=np.int64)]
    steps = [float(text) for text in order] if scale == "interval" else None
    clusters = cells.clusters if layout.cluster else None
    kind = Kind(max(len(order), 1), scale, steps, layout.missing)
    return Ratings(matrix, tuple(order), tuple(cells.raters), clusters, kind, item)


def _sorted(labels: Sequence[str]) -> list[str]:
    """Return ratings once each, numbers by size, words by name; `1` and `1.0` are one number."""
    numbers = {text: number for text in labels if (number := _number(text)) is not None}
    if len(numbers) < len(labels):
        return sorted(labels)
    first = {number: text for text, number in reversed(numbers.items())}
    return [first[number] for number in sorted(first)]


def _at(text: str, order: Sequence[str]) -> int | None:
    """Return the place of a rating on a scale, by its text, or by its size if it is a number; None if it has none."""
    if text in order:
        return list(order).index(text)
    number = _number(text)
    return next((at for at, each in enumerate(order) if number is not None and _number(each) == number), None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _text(value: object) -> str:
    """Return a cell as text; empty for none, whole numbers without a point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 20 else f"a text of {len(text)} characters"
