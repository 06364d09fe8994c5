"""The cells of any table of ratings, as text: CSV, TSV, Excel, JSON, Parquet or Arrow, packed or not."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Literal

import numpy as np

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.model_family import begins_as
from curate.panel.agreement_figures import Level
from curate.stats.agreement import Missing
from curate.stats.tally import Ints
from curate.system.resources import data_file
from curate.tables.readers import Problem, encoding
from curate.tables.readers.file import BINARY, ENDINGS, File
from curate.tables.readers.guess import plain_name as plain
from curate.tables.readers.text_rows import named

FORMATS = ("csv", "tsv", "xlsx", "parquet", "arrow", "jsonl")
"""Those of tables; the columns of JSON are the keys of its first rows."""
_FIRST = 200


def opened(path: Path, delimiter: str | None = None, sheet: str | None = None) -> File:
    """Return a file of ratings; what stands between its cells is found if it is not said."""
    ending, packing = encoding.ending(path)
    found = ENDINGS.get(ending)
    if found not in FORMATS or (packing and found in BINARY):
        known = ", ".join(ending for ending, format_ in ENDINGS.items() if format_ in FORMATS)
        raise ConfigError(f"{path}: found the ending {f'{ending}{packing}'!r}, expected one of {known}; save it so")
    if not path.is_file():
        raise DataError(f"{path}: no such file, expected one of ratings; check the path")
    try:
        sign = None if delimiter is None else named(delimiter)
    except ValueError as error:
        raise ConfigError(f"--delimiter: {error}, found {delimiter!r}; correct it") from error
    return File(path, found, option=None, delimiter=sign, sheet=sheet)


def header(source: File) -> list[str]:
    """Return the names of the columns: of a header, else the keys of the first objects, in their order."""
    named = source.header()
    if named is not None:
        return named
    found = (row for row in islice(source.rows(), _FIRST) if not isinstance(row, Problem))
    return list(dict.fromkeys(key for row in found for key in row.values))


def texts(source: File, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells of every row, by column; DataError at the first that cannot be read."""
    for row in source.rows(wanted):
        if isinstance(row, Problem):
            raise DataError(f"{source.place}:{row.line}: found {row.found}, expected {row.expected}; correct the line")
        yield row.line, {name: _text(row.values.get(name)) for name in wanted}


def _text(value: object) -> str:
    """Return a cell as text; empty for none, whole numbers without a point."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


# Which columns of a user's ratings hold items, raters and ratings, by their names: wide, long, or counts.

_WITHIN = ("rater", "people", "truth", "judges", "annotators")
"""Roles whose words may stand within a name."""
LONG = 40
"""A longer name is not shown."""
Form = Literal["wide", "long", "counts"]
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_ACCENT = re.compile("[\u0300-\u036f]")
_STROKES = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "ß": "ss", "æ": "ae"})
"""Letters that are not taken apart into one and its accent."""


@dataclass(frozen=True)
class Layout:
    """Where in a file items, raters, ratings and clusters stand, and what the ratings are."""

    item: tuple[str, ...] = ()
    """Columns that name an item together; by their usual names, else the first column, if none is named."""
    raters: tuple[str, ...] = ()
    """Who is measured: columns of a wide file, raters of a long one; all but people beside judges if none is named."""
    rater: str | None = None
    """Long: the column that names the rater; with it, `rating` is the column of the ratings."""
    rating: str | None = None
    truth: str | None = None
    """The column, or in a long file the rater, whose ratings are people's; against them errors are measured."""
    counts: bool = False
    """A column per category, which holds how many raters chose it."""
    cluster: str | None = None
    scale: Level | None = None
    """nominal if it is not said and there is no order."""
    order: tuple[str, ...] = ()
    """All ratings in the order of the scale; numbers have one of their own."""
    positive: tuple[str, ...] = ()
    """Ratings on one side of a cut, which is measured too."""
    blank: tuple[str, ...] = ()
    """Words that stand for a missing rating, besides an empty cell."""
    missing: Missing = "gwet"
    """How kappa treats missing ratings."""
    delimiter: str | None = None
    """Between the cells of a CSV or TSV file; found without one."""
    sheet: str | None = None
    """Of an Excel file."""

    def __post_init__(self) -> None:
        if (self.rater is None) != (self.rating is None):
            raise ConfigError("expected --rater and --rating together, found one of them; give both, or neither")
        if self.counts and (self.rater or self.raters or self.truth):
            raise ConfigError("found --counts and an option that names raters, expected one; counts have none")
        if len(set(self.order)) < len(self.order):
            raise ConfigError("--order: found a rating twice, expected different ones; name each once")


@dataclass(frozen=True)
class RatingsLayout:
    """How a file is read."""

    form: Form
    item: tuple[str, ...]
    columns: tuple[str, ...]
    """Those of ratings, or of counts; one in long form."""
    rater: str | None
    cluster: str | None
    pair: tuple[str, ...]
    """Columns of query and document, as far as there are such."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, a sentence each."""

    @property
    def needed(self) -> set[str]:
        """Return all columns that are read."""
        return {*self.item, *self.columns, *(name for name in (self.rater, self.cluster) if name)}

    @property
    def hint(self) -> str:
        """Return what to type if an item was named by a part of its columns; empty if it was not."""
        part = self.item != self.pair and len(self.pair) == 2 and set(self.item) < set(self.pair)
        return f"--item {','.join(self.pair)}" if part else ""


def planned(place: str, header: Sequence[str], layout: Layout) -> RatingsLayout:
    """Return how a file with this header is read; DataError if it has no column that an option names."""
    known = {role: _named(role, header) for role in ("query", "document", "item", "rater", "rating")}
    pair = tuple(name for name in (known["query"], known["document"]) if name)
    usual = pair if len(pair) == 2 else tuple(name for name in (known["item"], *pair) if name)[:1]
    item = tuple(column(place, header, name) for name in layout.item)
    cluster, notes = layout.cluster and column(place, header, layout.cluster), list[str]()
    if layout.rater and not (item or usual):
        raise ConfigError("expected --item with --rater, found none; name the column of the items")
    rater, columns = _long(place, header, layout, known) if item or usual else (None, ())
    if rater:
        notes.append(f"long form, a row per rating: raters in {rater}, ratings in {columns[0]}")
    if not (item or cluster) and len(pair) == 2:
        cluster = pair[0]
        notes.append(f"intervals resample {cluster}")
    item = item or usual or tuple(header[:1])
    if not rater:
        keys = (*item, *pair, cluster, "")
        columns = _wide(place, [name for name in header if name not in keys], header, layout)
    plan = RatingsLayout(
        "counts" if layout.counts else "long" if rater else "wide", item, columns, rater, cluster, pair
    )
    if plan.hint:
        notes.append(f"items by {', '.join(item)} alone; give {plan.hint} if a pair of query and document is one")
    spare = [name for name in header if name and name not in plan.needed]
    if spare and (rater or not layout.raters):
        notes.append(f"not read: {shown(spare)}")
    return replace(plan, notes=tuple(notes))


def _long(
    place: str, header: Sequence[str], layout: Layout, known: Mapping[str, str | None]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the columns of rater and rating, None if the file is not long."""
    if layout.rater and layout.rating:
        return column(place, header, layout.rater), (column(place, header, layout.rating),)
    wide = layout.counts or any(_same(name, header) for name in layout.raters)
    rater, rating = known["rater"], known["rating"]
    return (None, ()) if wide or not (rater and rating) else (rater, (rating,))


def _wide(place: str, names: Sequence[str], header: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the columns of ratings among those that are no keys: those that are named, and of people."""
    if not layout.raters:
        return tuple(name for name in names if not is_named(name, "other"))
    wanted = (*layout.raters, *((layout.truth,) if layout.truth else ()))
    people = [name for name in names if is_named(name, "truth") or is_named(name, "people")]
    return tuple(dict.fromkeys((*(column(place, header, name) for name in wanted), *people)))


def column(place: str, header: Sequence[str], name: str) -> str:
    """Return the column that a name means, in any case; DataError if there is none."""
    found = _same(name, header)
    if found is None:
        known = [shown([each]) for each in header]
        raise DataError(f"{place}:1: found no column {name!r}, expected it in the header; {suggestion(name, known)}")
    return found


def shown(names: Sequence[str]) -> str:
    """Return names of columns for a sentence; a long one may be a text of a file without header."""
    return ", ".join(name if len(name) <= LONG else f"one of {len(name)} characters" for name in names)


@dataclass(frozen=True)
class RaterGroups:
    """Whose agreement is measured, and whose ratings are people's."""

    raters: tuple[str, ...]
    truth: str | None
    notes: tuple[str, ...]


def panel(names: Sequence[str], layout: Layout, persons: Callable[[Sequence[str]], bool], *, wide: bool) -> RaterGroups:
    """Return who of the raters is measured: those that are named, else all but people beside two others or more.

    A single one of the people is taken for the truth, unless people are measured. `persons` says whether the words of a
    name are names that people have.
    """
    truth = _rater(names, layout.truth, "--truth") if layout.truth else None
    named = [_rater(names, name, "--raters") for name in layout.raters]
    others = [name for name in names if name not in (truth, *named)]
    people = [name for name in others if is_person(name, names, persons, wide=wide)]
    rest = named or [name for name in others if name not in people]
    if len(rest) < 2:
        return RaterGroups(tuple(named or others), truth, ())
    if truth is None and len(people) == 1 and not any(is_person(name, names, persons, wide=wide) for name in rest):
        truth = people[0]
    notes = [f"{truth} is no rater here, but the truth that errors are counted against"] if truth else []
    left = ", ".join(name for name in people if name != truth)
    if left and not named:
        notes.append(f"left out as people: {left}; --raters names who is measured, --truth whose ratings are the truth")
    return RaterGroups(tuple(rest), truth, tuple(notes))


def is_person(name: str, names: Sequence[str], persons: Callable[[Sequence[str]], bool], *, wide: bool) -> bool:
    """Say whether a rater is called human or the like, or by the name or title of a person beside models.

    In a wide file, a title is enough: in a long one raters are people as a rule.
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
    """Return the family of models that a rater's name begins with; None for other names."""
    return begins_as(name)


def is_named(name: str, role: str) -> bool:
    """Say whether a name is one of a role's, or has a word that is one: `human` in human_1, 医生 in 王医生."""
    known = _names()[role]
    if plain(name).rstrip("0123456789" if role == "category" else "") in known:
        return True
    words = _words(name) if role in _WITHIN else []
    return any(word in known for word in words) or any(
        each in word for word in words if not word.isascii() for each in known if not each.isascii()
    )


def _named(role: str, header: Sequence[str]) -> str | None:
    """Return the column with the first of a role's names."""
    known = {plain(name): name for name in reversed(header)}
    return next((known[name] for name in _names()[role] if name in known), None)


def _rater(names: Sequence[str], name: str, option: str) -> str:
    found = _same(name, names)
    if found is None:
        raise ConfigError(f"{option}: found no rater {name!r}, expected one of the file's; {suggestion(name, names)}")
    return found


def _same(name: str, names: Sequence[str]) -> str | None:
    """Return the name itself if it is there, else the only one that differs in case alone."""
    alike = [each for each in names if each.casefold() == name.casefold()]
    return name if name in names else alike[0] if len(alike) == 1 else None


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _parted(name)]


def _parted(name: str) -> list[str]:
    """Return the words of a name as they are written, but for accents."""
    return _WORD.findall(_ACCENT.sub("", unicodedata.normalize("NFD", name.translate(_STROKES))))


@cache
def _names() -> Mapping[str, list[str]]:
    known: Mapping[str, list[str]] = parse_yaml(data_file("tables/readers/ratings.yaml").read_text(encoding="utf-8"))
    return known


# Tables of counts, a column per category: what tells them from ratings, and what their columns are.

LOOKED = 1_000
"""First rows that are looked at."""
APART = 0.25
FEW = 6
"""With fewer rows sums must be equal, for chance makes them near; unless all columns are named like categories, or a
number is no grade."""
GRADE = 9
"""The highest number that people give as a grade, as a rule."""
_COUNT = re.compile(r"[0-9]{1,9}(?:\.0+)?")
MOST = 1_000
"""Ratings of one item, at most."""


def looks_like_counts(names: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Say whether cells of these columns may be counts: at least two columns, none of them named like a rater."""
    if (
        len(names) < 2
        or any(is_named(name, role) for name in names for role in ("rater", "truth", "people", "annotators"))
        or any(map(kin, names))
    ):
        return False
    table = _whole(rows)
    if table is None:
        return False
    if any(is_sum(table, at) for at, name in enumerate(names) if is_named(name, "total")):
        return True
    sums, spread = table.sum(axis=1), float(table.var(axis=0).sum())
    clear = len(table) > 2 or bool((table == 0).any())
    grades = int(table.max()) <= GRADE and not all(is_named(name, "category") for name in names)
    few = len(table) < FEW and grades
    return clear and spread > 0 and int(sums.max()) > 1 and float(sums.var()) <= (0 if few else APART * spread)


def is_sum(table: Ints, at: int) -> bool:
    """Say whether a column is the sum of all others in every row."""
    return table.shape[1] > 2 and bool((table[:, at] * 2 == table.sum(axis=1)).all())


def is_count(first: Ints, others: Ints) -> bool:
    """Say whether a first column, whole numbers without a name of ids, is a category as well: it repeats, or completes.

    It completes the sums of rows if they are all equal with it, and not without it.
    """
    sums = others.sum(axis=1)
    return len(set(first.tolist())) < len(first) or bool(np.ptp(sums) > 0 and np.ptp(sums + first) == 0)


def counted(cells: Sequence[str], names: Sequence[str], place: str) -> list[int]:
    """Return the numbers in a row of counts, an empty cell as 0; DataError for a cell that holds none."""
    for cell, name in zip(cells, names, strict=True):
        if cell and not _COUNT.fullmatch(cell):
            raise DataError(f"{place}, column {name}: found no whole number, expected a count of ratings; correct it")
    numbers = [int(float(cell or 0)) for cell in cells]
    if sum(numbers) > MOST:
        raise DataError(f"{place}: found over {MOST:,} ratings of an item, expected no more; leave the row out")
    return numbers


def ask(source: File, plan: RatingsLayout) -> None:
    """Raise DataError if a table may be one of counts, or a cross table: it is not for the program to say."""
    names, ids = plan.columns, plan.item
    rows = [cells for _, cells in islice(texts(source, plan.needed), LOOKED)]
    square = len(ids) == 1 and len(rows) == len(names) > 1 and {cells[ids[0]] for cells in rows} == set(names)
    if square and not all(map(str.isdigit, names)):
        raise DataError(
            f"{source.place}: found the same names in its rows as in its columns, as in a cross table of two raters, "
            "expected a row per item; write the items out, each with its two ratings"
        )
    for columns in (names, (*ids, *names)) if _first(source, plan) else (names,):
        if looks_like_counts(columns, ([cells[name] for name in columns] for cells in rows)):
            raise DataError(
                f"{source.place}: found whole numbers that look like counts, how many raters chose each of "
                f"{shown(columns)}, expected to be told; give --counts if they are, or --raters {','.join(names)} if "
                "every column is a rater"
            )


def categories(source: File, plan: RatingsLayout, layout: Layout) -> tuple[RatingsLayout, list[str]]:
    """Return which columns of a table of counts are categories: without ids and sums; and what was left out."""
    if layout.order:
        names = header(source)
        return replace(plan, columns=tuple(column(source.place, names, name) for name in layout.order)), []
    if not layout.item and _first(source, plan):
        plan = replace(plan, item=(), columns=(*plan.item, *plan.columns))
    sums = [name for name in plan.columns if len(plan.columns) > 2 and is_named(name, "total")][:1]
    left = tuple(name for name in plan.columns if name not in sums)
    for line, cells in texts(source, plan.columns) if sums else ():
        place = f"{source.place}:{line}"
        numbers = counted([cells[name] for name in left], left, place)
        if [sum(numbers)] != counted([cells[name] for name in sums], sums, place):
            raise DataError(
                f"{place}, column {sums[0]}: found another number than the sum of the other counts, expected it; "
                "correct it, or name the categories with --order"
            )
    return replace(plan, columns=left), [f"not read: {name}, the sum of the others" for name in sums]


def _first(source: File, plan: RatingsLayout) -> bool:
    """Say whether the first column, taken for ids because nothing else was named, holds counts as well."""
    if len(plan.item) != 1 or is_named(plan.item[0], "item") or not plan.item[0]:
        return False
    rows = islice(texts(source, plan.needed), LOOKED)
    table = _whole([cells[name] for name in (*plan.item, *plan.columns)] for _, cells in rows)
    return table is not None and is_count(table[:, 0], table[:, 1:])


def _whole(rows: Iterable[Sequence[str]]) -> Ints | None:
    """Return the cells as whole numbers; None at the first that is none, and of fewer than two rows."""
    table = []
    for cells in rows:
        if not all(map(_COUNT.fullmatch, cells)):
            return None
        table.append([int(float(cell)) for cell in cells])
    return np.array(table, dtype=np.int64) if len(table) > 1 else None
