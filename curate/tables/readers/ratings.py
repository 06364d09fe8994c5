"""Files of ratings (CSV, TSV, Excel, JSON, Parquet or Arrow): detection of their columns, and their cells as text."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations
from math import isnan
from pathlib import Path
from typing import Literal

import numpy as np

from curate.core.errors import ConfigError, DataError, TableError, suggestion
from curate.core.model_family import begins_as
from curate.panel.agreement_figures import Level
from curate.stats.agreement import Missing
from curate.stats.tally import Ints
from curate.tables.readers import LONG, Problem, encoding, listed
from curate.tables.readers.encoding import Bounds
from curate.tables.readers.file import BINARY, ENDINGS, File
from curate.tables.readers.forms import answer_of
from curate.tables.readers.roles import alike, column, plain_name, roles
from curate.tables.readers.text_rows import named

FORMATS = ("csv", "tsv", "xlsx", "parquet", "arrow", "jsonl")
"""Supported formats; the columns of JSON are the keys of the first rows."""
_FIRST = 200
_QUOTED = re.compile(r'"([^"\\]*)"')
_CHOICES = re.compile(rf'\{{"choices": ?\[{_QUOTED.pattern}(?:, ?{_QUOTED.pattern})*\]\}}')
"""A cell with several choices in a CSV file of Label Studio."""


def opened(path: Path, delimiter: str | None = None, sheet: str | None = None, bounds: Bounds = encoding.FIXED) -> File:
    """Return a file of ratings as a source; the delimiter is detected if None."""
    ending, packing = encoding.ending(path)
    format_of_file = ENDINGS.get(ending)
    if format_of_file not in FORMATS or (packing and format_of_file in BINARY):
        endings = ", ".join(ending for ending, format_ in ENDINGS.items() if format_ in FORMATS)
        raise ConfigError(f"{path}: found the ending {f'{ending}{packing}'!r}, expected one of {endings}; save it so")
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected one of ratings; check the path")
    try:
        sign = None if delimiter is None else named(delimiter)
    except ValueError as error:
        raise ConfigError(f"delimiter: {error}, found {delimiter!r}; correct it") from error
    return File(path, format_of_file, option=None, delimiter=sign, sheet=sheet, bounds=bounds)


def header(source: File) -> list[str]:
    """Return the names of the columns; for JSON, the keys of the first objects, in order of occurrence."""
    names = source.header()
    if names is not None:
        return names
    first_rows = (row for row in islice(source.rows(), _FIRST) if not isinstance(row, Problem))
    return list(dict.fromkeys(key for row in first_rows for key in row.values))


def texts(source: File, columns: Collection[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, column -> cell as text) of every row; DataError at the first unreadable row."""
    for row in source.rows(columns):
        if isinstance(row, Problem):
            raise row.error(source.location)
        yield row.line, {name: _text(row.values.get(name)) for name in columns}


def _text(cell: object) -> str:
    """Return a cell as text: empty for None and NaN, whole floats without a decimal point, of an object its choices."""
    if cell is None or (isinstance(cell, float) and isnan(cell)):
        return ""
    if isinstance(cell, str) and _CHOICES.fullmatch(cell):
        return " + ".join(sorted(_QUOTED.findall(cell.partition(":")[2])))
    if isinstance(cell, Mapping) and "choices" in cell:
        return answer_of(cell)
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


# Which columns of a user's ratings hold items, raters and ratings, by their names: wide, long, or counts.

_WITHIN = ("rater", "people", "truth", "judges", "annotators")
"""Roles whose words are also recognised within a longer column name."""
Form = Literal["wide", "long", "counts"]
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_ACCENT = re.compile("[\u0300-\u036f]")
_STROKES = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "ß": "ss", "æ": "ae"})
"""Translation of letters that Unicode decomposition does not split into a base letter and an accent."""


@dataclass(frozen=True)
class Layout:
    """Options on a file of ratings: columns of items, raters, ratings and clusters, and the rating scale."""

    item: tuple[str, ...] = ()
    """Columns that together identify an item; default: columns with known names, else the first column."""
    raters: tuple[str, ...] = ()
    """Raters to measure: columns of a wide file, names in a long one.

    Default: all, without humans if there are models.
    """
    rater: str | None = None
    """Column of the rater's name in a long file; `rating` is then the column of the ratings."""
    rating: str | None = None
    truth: str | None = None
    """Column, or rater in a long file, with human ratings, against which errors are counted."""
    counts: bool = False
    """Whether there is one column per category with the number of raters who chose it."""
    cluster: str | None = None
    scale: Level | None = None
    """Level of measurement; default: nominal unless there is an order."""
    order: tuple[str, ...] = ()
    """All ratings in the order of the scale; numbers are ordered by value without this option."""
    positive: tuple[str, ...] = ()
    """Ratings that count as positive; agreement on positive against negative is then measured too."""
    blank: tuple[str, ...] = ()
    """Words for a missing rating, besides an empty cell."""
    missing: Missing = "gwet"
    """How kappa treats missing ratings."""
    delimiter: str | None = None
    """Delimiter of a CSV or TSV file; detected if None."""
    sheet: str | None = None
    """Name of the sheet of an Excel file; None to choose it."""
    bounds: Bounds = encoding.OWN

    def __post_init__(self) -> None:
        if (self.rater is None) != (self.rating is None):
            raise ConfigError("expected --rater and --rating together, found one of them; give both, or neither")
        if self.counts and (self.rater or self.raters or self.truth):
            raise ConfigError("found --counts and an option that names raters, expected one; counts have none")
        if len(set(self.order)) < len(self.order):
            raise ConfigError("--order: found a rating twice, expected different ones; name each once")


@dataclass(frozen=True)
class RatingsLayout:
    """Columns of a file of ratings, after names and defaults are resolved."""

    form: Form
    item: tuple[str, ...]
    columns: tuple[str, ...]
    """Columns of ratings or counts; a single one in a long file."""
    rater: str | None
    cluster: str | None
    pair: tuple[str, ...]
    """Columns of the query and of the document, as far as present."""
    notes: tuple[str, ...] = ()
    """One sentence per assumption made about the layout."""

    @property
    def needed(self) -> set[str]:
        """Return all columns that are read."""
        return {*self.item, *self.columns, *(name for name in (self.rater, self.cluster) if name)}

    @property
    def hint(self) -> str:
        """Return the option that identifies items by query and document if only one of them was named; else empty."""
        partial = self.item != self.pair and len(self.pair) == 2 and set(self.item) < set(self.pair)
        return f"--item {','.join(self.pair)}" if partial else ""


def planned(source: File, layout: Layout) -> RatingsLayout:
    """Return the resolved columns of a file.

    DataError if a column named by an option is missing, or if several columns may have a role.
    """
    path, names = source.location, header(source)
    column_of = {role: roles("ratings").first(names, role) for role in ("query", "document", "item", "rater", "rating")}
    pair = tuple(name for name in (column_of["query"], column_of["document"]) if name)
    usual = pair if len(pair) == 2 else tuple(name for name in (column_of["item"], *pair) if name)[:1]
    item = tuple(column(path, names, name, "--item") for name in layout.item)
    cluster, notes = layout.cluster and column(path, names, layout.cluster, "--set cluster"), list[str]()
    by_name = {role: tuple(filter(None, [column_of[role]])) for role in ("rater", "rating")}
    if not (layout.rater or layout.raters or layout.counts):
        column_of |= _by_content(
            source, [name for name in names if name not in pair], {"item": item or usual, **by_name}
        )
        usual = usual or tuple(filter(None, [column_of["item"]]))
    if layout.rater and not (item or usual):
        raise ConfigError("expected --item with --rater, found none; name the column of the items")
    rater, columns = _long(path, names, layout, column_of) if item or usual else (None, ())
    if rater:
        notes.append(f"long form, a row per rating: raters in {rater}, ratings in {columns[0]}")
    if not (item or cluster) and len(pair) == 2:
        cluster = pair[0]
        notes.append(f"intervals resample {cluster}")
    item = item or usual or tuple(names[:1])
    if not rater:
        keys = (*item, *pair, cluster, "")
        columns = _wide(path, [name for name in names if name not in keys], names, layout)
        columns = columns if layout.raters or layout.counts else _without_texts(source, columns)
        if not (layout.item or usual or layout.counts) and _rates(source, item, columns):
            item, columns = (), tuple(dict.fromkeys((*item, *columns)))
    plan = RatingsLayout(
        "counts" if layout.counts else "long" if rater else "wide", item, columns, rater, cluster, pair
    )
    if plan.hint:
        notes.append(f"items by {', '.join(item)} alone; give {plan.hint} if a pair of query and document is one")
    spare = [name for name in names if name and name not in plan.needed]
    if spare and (rater or not layout.raters):
        notes.append(f"not read: {listed(spare)}")
    return replace(plan, notes=tuple(notes))


def _by_content(source: File, names: Sequence[str], columns: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return role -> column for those of item, rater and rating that no name tells, by content; empty if none fit.

    Columns of `names` fit if items repeat, each with another rater, and raters and ratings recur; the first column is
    that of the items unless it is the only unknown one. DataError if several choices of columns fit.
    """
    unknown = [role for role in columns if not columns[role]]
    if len(unknown) > 1 and not columns["item"]:
        columns, unknown = {**columns, "item": tuple(names[:1])}, unknown[1:]
    if not unknown:
        return {}
    used = {name for of_role in columns.values() for name in of_role}
    rows = [cells for _, cells in islice(texts(source, {*names, *used}), LOOKED)]
    if columns["item"] and len({tuple(cells[name] for name in columns["item"]) for cells in rows}) == len(rows):
        return {}  # a row per item
    free = [
        name
        for name in names
        if name not in used and (unknown == ["item"] or (not is_named(name, "other") and _recurs(rows, name)))
    ]
    choices = [
        {**columns, **{role: (name,) for role, name in zip(unknown, chosen, strict=True)}}
        for chosen in permutations(free, len(unknown))
    ]
    fitting = [choice for choice in choices if _fits(choice, rows, unknown)]
    if len(fitting) > 1:
        several = listed(list(dict.fromkeys(choice[role][0] for choice in fitting for role in unknown)))
        raise TableError.at(
            source.location,
            f"a row per rating, and as its {' and '.join(unknown)} several columns, {several}",
            "one column for each",
            "name them with --item, --rater and --rating",
            options=[[word for role in choice for word in (f"--{role}", ",".join(choice[role]))] for choice in fitting],
        )
    return {role: of_role[0] for role, of_role in fitting[0].items()} if fitting else {}


def _recurs(rows: Sequence[Mapping[str, str]], name: str) -> bool:
    """Return whether a column has few values, and short ones, as have raters and ratings."""
    values = {cells[name] for cells in rows}
    return 1 < len(values) <= len(rows) / 2 and max(map(len, values)) <= LONG


def _fits(columns: Mapping[str, tuple[str, ...]], rows: Sequence[Mapping[str, str]], guessed: Sequence[str]) -> bool:
    """Return whether columns of item, rater and rating, some of them `guessed`, make ratings of the rows."""
    items, raters, ratings = ([tuple(cells[name] for name in columns[key]) for cells in rows] for key in columns)
    once = guessed == ["rating"] or len({*zip(items, raters, strict=True)}) == len(rows)
    return len(set(items)) < len(rows) and once and not {*raters} & {*ratings}


def _without_texts(source: File, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns without those of which each cell differs from every other, as texts beside ratings do."""
    rows = [cells for _, cells in islice(texts(source, columns), LOOKED)]
    times = Counter(cells[name] for cells in rows for name in columns if cells[name])
    shared = tuple(name for name in columns if any(times[cells[name]] > 1 for cells in rows))
    return shared if len(shared) > 1 else tuple(columns)


def _rates(source: File, first: Sequence[str], columns: Sequence[str]) -> bool:
    """Return whether the first column, which no name makes that of the items, holds ratings as the others do."""
    if {*first} & {*columns}:
        return True
    rows = [cells for _, cells in islice(texts(source, {*first, *columns}), LOOKED)]
    values = [cells[name] for name in first for cells in rows]
    return len(set(values)) < len(values) and {*values} <= {cells[name] for name in columns for cells in rows}


def _long(
    path: str, header: Sequence[str], layout: Layout, column_of: Mapping[str, str | None]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of the rater and that of the rating; (None, ()) if the file is not long."""
    if layout.rater and layout.rating:
        return column(path, header, layout.rater, "--rater"), (column(path, header, layout.rating, "--rating"),)
    wide = layout.counts or any(alike(name, header) for name in layout.raters)
    rater, rating = column_of["rater"], column_of["rating"]
    return (None, ()) if wide or not (rater and rating) else (rater, (rating,))


def _wide(path: str, names: Sequence[str], header: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the columns of ratings in a wide file: `layout.raters`, `layout.truth` and human raters.

    Without `layout.raters`, all `names` except those of other known columns.
    """
    if not layout.raters:
        return tuple(name for name in names if not is_named(name, "other"))
    selected = (*layout.raters, *((layout.truth,) if layout.truth else ()))
    people = [name for name in names if is_named(name, "truth") or is_named(name, "people")]
    return tuple(dict.fromkeys((*(column(path, header, name, "--raters") for name in selected), *people)))


@dataclass(frozen=True)
class RaterGroups:
    """Raters whose agreement is measured, and the human rater whose ratings count as the truth, if any."""

    raters: tuple[str, ...]
    truth: str | None
    notes: tuple[str, ...]


def panel(names: Sequence[str], layout: Layout, persons: Callable[[Sequence[str]], bool], *, wide: bool) -> RaterGroups:
    """Return the raters to measure: `layout.raters`, else all non-human ones if there are two or more, else all.

    A single human rater becomes the truth, unless humans are measured. `persons` returns whether the words of a name
    are personal names.
    """
    truth = _rater(names, layout.truth, "--truth") if layout.truth else None
    selected = [_rater(names, name, "--raters") for name in layout.raters]
    others = [name for name in names if name not in (truth, *selected)]
    people = [name for name in others if is_person(name, names, persons, wide=wide)]
    measured = selected or [name for name in others if name not in people]
    if len(measured) < 2:
        return RaterGroups(tuple(selected or others), truth, ())
    if truth is None and len(people) == 1 and not any(is_person(name, names, persons, wide=wide) for name in measured):
        truth = people[0]
    notes = [f"{truth} is no rater here, but the truth that errors are counted against"] if truth else []
    left_out = ", ".join(name for name in people if name != truth)
    if left_out and not selected:
        notes.append(
            f"left out as people: {left_out}; --raters names who is measured, --truth whose ratings are the truth"
        )
    return RaterGroups(tuple(measured), truth, tuple(notes))


def is_person(name: str, names: Sequence[str], persons: Callable[[Sequence[str]], bool], *, wide: bool) -> bool:
    """Return whether a rater is human: by its name, or by a personal name or title if other raters are named as models.

    In a wide file a title is enough; in a long one it is not, because raters are usually people there.
    """
    if is_named(name, "truth") or (wide and is_named(name, "people")):
        return True
    if not any(is_named(name, "judges") or kin(name) for name in names):
        return False
    if is_named(name, "annotators") and not (is_named(name, "judges") or kin(name)):
        return True
    model = kin(name) and len(_words(name)) == 1  # Claude and Yi are names of people too
    return is_named(name, "people") or (persons(_parted(name)) and not model)


def kin(name: str) -> str | None:
    """Return the model family with which a rater's name begins; None for other names."""
    return begins_as(name)


def is_named(name: str, role: str) -> bool:
    """Return whether a name is, or has a word that is, a known name of a role: `human` in human_1, 医生 in 王医生."""
    names_of_role = roles("ratings").names[role]
    if plain_name(name).rstrip("0123456789" if role == "category" else "") in names_of_role:
        return True
    words = _words(name) if role in _WITHIN else []
    return any(word in names_of_role for word in words) or any(
        role_word in word
        for word in words
        if not word.isascii()
        for role_word in names_of_role
        if not role_word.isascii()
    )


def _rater(names: Sequence[str], name: str, option: str) -> str:
    match = alike(name, names)
    if match is None:
        raise ConfigError(f"{option}: found no rater {name!r}, expected one of the file's; {suggestion(name, names)}")
    return match


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _parted(name)]


def _parted(name: str) -> list[str]:
    """Return the words of a name with their case but without accents."""
    return _WORD.findall(_ACCENT.sub("", unicodedata.normalize("NFD", name.translate(_STROKES))))


# Tables of counts, a column per category: what tells them from ratings, and what their columns are.

LOOKED = 1_000
"""Number of first rows that are examined."""
APART = 0.25
FEW = 6
"""Number of rows below which equal row sums are required to recognise counts, because similar sums may be chance.

Not required if all columns are named like categories, or if a number exceeds `GRADE`.
"""
GRADE = 9
"""Highest number that is usual as a grade; a larger one is a count."""
_COUNT = re.compile(r"[0-9]{1,9}(?:\.0+)?")
MOST = 1_000
"""Maximum number of ratings per item."""


def looks_like_counts(names: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Return whether columns look like counts per category: at least two, none named like a rater, row sums similar."""
    if (
        len(names) < 2
        or any(is_named(name, role) for name in names for role in ("rater", "truth", "people", "annotators"))
        or any(map(kin, names))
    ):
        return False
    table = _integers(rows)
    if table is None:
        return False
    if any(is_sum(table, index) for index, name in enumerate(names) if is_named(name, "total")):
        return True
    sums, spread = table.sum(axis=1), float(table.var(axis=0).sum())
    clear = len(table) > 2 or bool((table == 0).any())
    grades = int(table.max()) <= GRADE and not all(is_named(name, "category") for name in names)
    must_be_equal = len(table) < FEW and grades
    return (
        clear and spread > 0 and int(sums.max()) > 1 and float(sums.var()) <= (0 if must_be_equal else APART * spread)
    )


def is_sum(table: Ints, column: int) -> bool:
    """Return whether a column equals the sum of all others in every row; False with under three columns."""
    return table.shape[1] > 2 and bool((table[:, column] * 2 == table.sum(axis=1)).all())


def is_count(first: Ints, others: Ints) -> bool:
    """Return whether the first column of whole numbers, not named like ids, holds the counts of another category.

    True if its values repeat, or if the row sums are equal with this column but not without it.
    """
    sums = others.sum(axis=1)
    return len(set(first.tolist())) < len(first) or bool(np.ptp(sums) > 0 and np.ptp(sums + first) == 0)


def counted(cells: Sequence[str], names: Sequence[str], path: str) -> list[int]:
    """Return the counts in a row, an empty cell as 0; DataError for another cell, or for over `MOST` ratings."""
    for cell, name in zip(cells, names, strict=True):
        if cell and not _COUNT.fullmatch(cell):
            raise TableError.at(f"{path}, column {name}", "no whole number", "a count of ratings", "correct it")
    numbers = [int(float(cell or 0)) for cell in cells]
    if sum(numbers) > MOST:
        raise TableError.at(path, f"over {MOST:,} ratings of an item", f"at most {MOST:,}", "leave the row out")
    return numbers


def ask(source: File, plan: RatingsLayout) -> None:
    """Raise DataError if a table may hold counts or a cross table, which only the user can decide."""
    names, ids = plan.columns, plan.item
    rows = [cells for _, cells in islice(texts(source, plan.needed), LOOKED)]
    square = len(ids) == 1 and len(rows) == len(names) > 1 and {cells[ids[0]] for cells in rows} == set(names)
    if square and not all(map(str.isdigit, names)):
        raise TableError.at(
            source.location,
            "the same names in its rows as in its columns, as in a cross table of two raters",
            "a row per item",
            "write the items out, each with its two ratings",
        )
    for columns in (names, (*ids, *names)) if _first(source, plan) else (names,):
        if looks_like_counts(columns, ([cells[name] for name in columns] for cells in rows)):
            raise TableError.at(
                source.location,
                f"whole numbers that look like counts, how many raters chose each of {listed(columns)}",
                "--counts or --raters",
                f"give --counts if they are, or --raters {','.join(names)} if every column is a rater",
                options=[["--counts"], ["--raters", ",".join(names)]],
            )


def categories(source: File, plan: RatingsLayout, layout: Layout) -> tuple[RatingsLayout, list[str]]:
    """Return the plan limited to the category columns of a table of counts, and notes on omitted columns of sums.

    DataError if a sum differs from the counts of its row.
    """
    if layout.order:
        names = header(source)
        return replace(
            plan, columns=tuple(column(source.location, names, name, "--order") for name in layout.order)
        ), []
    if not layout.item and _first(source, plan):
        plan = replace(plan, item=(), columns=(*plan.item, *plan.columns))
    sums = [name for name in plan.columns if len(plan.columns) > 2 and is_named(name, "total")][:1]
    categories_read = tuple(name for name in plan.columns if name not in sums)
    for line, cells in texts(source, plan.columns) if sums else ():
        row_path = f"{source.location}:{line}"
        numbers = counted([cells[name] for name in categories_read], categories_read, row_path)
        if [sum(numbers)] != counted([cells[name] for name in sums], sums, row_path):
            raise TableError.at(
                f"{row_path}, column {sums[0]}",
                "another number than the sum of the other counts",
                "their sum",
                "correct it, or name the categories with --order",
            )
    return replace(plan, columns=categories_read), [f"not read: {name}, the sum of the others" for name in sums]


def _first(source: File, plan: RatingsLayout) -> bool:
    """Return whether the first column, used as ids because no option names others, looks like counts."""
    if len(plan.item) != 1 or is_named(plan.item[0], "item") or not plan.item[0]:
        return False
    rows = islice(texts(source, plan.needed), LOOKED)
    table = _integers([cells[name] for name in (*plan.item, *plan.columns)] for _, cells in rows)
    return table is not None and is_count(table[:, 0], table[:, 1:])


def _integers(rows: Iterable[Sequence[str]]) -> Ints | None:
    """Return the cells as an array of whole numbers; None if a cell is not one, or with fewer than two rows."""
    table = []
    for cells in rows:
        if not all(map(_COUNT.fullmatch, cells)):
            return None
        table.append([int(float(cell)) for cell in cells])
    return np.array(table, dtype=np.int64) if len(table) > 1 else None
