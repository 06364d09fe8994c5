"""Tables of counts, a column per category: what tells them from ratings, and what their columns are.

Raters who agree at all move together, so the sum of a row varies more than its cells do on their own; counts move
apart, for their sum is the number of raters. So a table of whole numbers is asked about where the variance of its rows'
sums is at most a quarter of the sum of its columns' variances, or where a column is the sum of the others. Ratings of
raters who contradict one another look the same, which is why nothing is decided here.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from curate.core.errors import DataError
from curate.stats.tally import Ints
from curate.tables.readers.cells import header, texts
from curate.tables.readers.file import File
from curate.tables.readers.raters import Layout, RatingsLayout, column, is_named, kin, shown

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
