"""Agreement of raters in a file of ratings, and warnings about ratings that look like typing errors.

The warnings matter since a single 10 in ratings from 0 to 3 adds a category to the scale and changes every ordinal
figure.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from curate.core.errors import ConfigError, TableError, suggestion
from curate.core.figures import Record, figure
from curate.core.protocols import Progress, quiet
from curate.panel import judge_dependence
from curate.panel.agreement_figures import AgreementFigures, Kind, Level, figures
from curate.panel.judge_dependence import Dependence
from curate.pii.person_names.lexicon import is_name
from curate.stats.tally import Ints
from curate.tables.readers import ratings, roles
from curate.tables.readers import ratings as raters
from curate.tables.readers.ratings import Layout, RaterGroups, RatingsLayout, header, opened, texts
from curate.view.words import strings

RARE = 0.001
"""Share of a rater's ratings below which a value is reported as rare."""

Counts = Mapping[str, Counter[str]]
"""Rater -> rating -> count."""


def warnings(counts: Counts, order: Sequence[str], first_cells: Mapping[str, str]) -> list[str]:
    """Return one sentence per rare rating of a rater, and one on numbers separated from the others by a gap.

    `order` has all ratings in the order of the scale; `first_cells` is rating -> place of its first cell.
    """
    rare = [
        (rater, rating, number, count.total())
        for rater, count in counts.items()
        for rating, number in count.items()
        if number < RARE * count.total()
    ]
    beyond = _beyond_gaps(sum(counts.values(), Counter[str]()), order)
    plausible = [rating for rating in order if rating not in {*beyond, *(rating for _, rating, _, _ in rare)}]
    remedy = (
        f"--order {','.join(plausible)} refuses what is not on the scale, --order {','.join(order)} says that all is"
    )
    sentences = [
        f"WARNING: {rater} rates {number:,} of {total:,} items {rating}, first at {first_cells[rating]}; {remedy}"
        for rater, rating, number, total in rare
    ]
    if beyond:
        outliers = ", ".join(f"{rating} (first at {first_cells[rating]})" for rating in beyond)
        sentences.append(f"WARNING: the ratings {', '.join(order)} leave a gap, with {outliers} beyond it; {remedy}")
    return sentences


def _beyond_gaps(counts: Counter[str], order: Sequence[str]) -> list[str]:
    """Return the integer ratings that a gap separates from the consecutive integers with most ratings.

    Empty if a rating is not an integer.
    """
    numbers = {rating: int(rating) for rating in order if rating.removeprefix("-").isdecimal()}
    if len(numbers) < len(order) or not order:
        return []
    runs = list(_runs(sorted(order, key=numbers.__getitem__), numbers))
    main = max(runs, key=lambda run: sum(counts[rating] for rating in run))
    return [rating for run in runs if run is not main for rating in run]


def _runs(order: Sequence[str], numbers: Mapping[str, int]) -> Iterator[list[str]]:
    run = [order[0]]
    for current, following in pairwise(order):
        if numbers[following] > numbers[current] + 1:
            yield run
            run = []
        run.append(following)
    yield run


# Agreement: a column per rater or a row per rating, numbers or words.

MOST = 50
"""Maximum number of different ratings; a column with more values does not contain ratings."""
BLANKS = ("na", "n/a", "#n/a", "nan", "null", "-", "--", "?")
"""Common words for a missing rating."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of a file as integer codes, with their labels, raters and clusters."""

    codes: Ints
    """Indexes into `labels`, shape (items, raters); -1 for a missing rating."""
    labels: tuple[str, ...]
    """Rating of each code, in the order of the scale."""
    raters: tuple[str, ...]
    """Names of the raters, in the order of columns; empty for a file of counts, which names none."""
    truth: str | None
    """Name of the rater whose ratings are the truth (assessors), who is not in `raters`; None without one."""
    right: Ints
    """Codes of the ratings by `truth`, one per item."""
    clusters: list[str] | None
    """Cluster of each item, resampled as a whole for intervals; None if items are resampled."""
    kind: Kind
    plan: RatingsLayout
    notes: tuple[str, ...]


@dataclass
class _Cells:
    """Ratings collected while a file is read: numbers of items, raters and labels, and each label's first cell."""

    items: dict[tuple[str, ...], int] = field(default_factory=dict)
    raters: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    first_cells: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    label_numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    """(Item, rater) -> number of the label, -1 for none."""


class FileAgreement(Record, schema_name="of_file"):
    """Agreement of the raters of a file, or of the judges of a run, whose consensus policies are compared as well."""

    form: Literal["long", "wide", "counts"] = figure("a row per rating, a column per rater, or a column per category")
    item: tuple[str, ...] = figure("columns that identify an item; empty if each row is an item")
    raters: tuple[str, ...] = figure("names of the raters; empty for counts")
    truth: str | None = figure("column or rater with the reference ratings")
    scale: Level = figure("level of measurement")
    labels: tuple[str, ...] = figure("ratings in the order of the scale")
    notes: tuple[str, ...] = figure("assumptions about the file, one sentence each")
    ratings: AgreementFigures = figure("agreement on all ratings")
    cut: AgreementFigures | None = figure(
        "agreement on binary labels, positive against others; null without --positive"
    )
    dependence: Dependence | None = figure("dependence of the raters; null for counts")


def measure(path: Path, layout: Layout, seed: int, progress: Progress = quiet) -> FileAgreement:
    """Return the agreement of raters in a file."""
    parsed = read(path, layout)
    for name in layout.positive:
        if _index(name, parsed.labels) is None:
            raise ConfigError(f"--positive: no rating {name!r} in {path}; {suggestion(name, parsed.labels)}")
    sides = np.array([*(_index(label, layout.positive) is None for label in parsed.labels), -1], dtype=np.int64)
    binary, cut = Kind(2, parsed.kind.scale, missing=layout.missing), None
    if layout.positive:
        cut = figures(sides[parsed.codes], binary, parsed.raters, parsed.clusters, seed=seed, progress=progress)
    return FileAgreement(
        form=parsed.plan.form,
        item=tuple(parsed.plan.item),
        raters=parsed.raters,
        truth=parsed.truth,
        scale=parsed.kind.scale,
        labels=parsed.labels,
        notes=parsed.notes,
        ratings=figures(parsed.codes, parsed.kind, parsed.raters, parsed.clusters, seed=seed, progress=progress),
        cut=cut,
        dependence=_dependence(parsed, sides if layout.positive else None, seed) if parsed.raters else None,
    )


def _dependence(parsed: Ratings, sides: Ints | None, seed: int) -> Dependence:
    """Return the dependence of the raters, with warnings in English.

    The error of a rating is its difference from the truth: of binary labels if positive ratings are given, else in
    steps of an ordinal or interval scale. On a nominal scale it is 1 if the rating differs, else 0.
    """
    right, steps = parsed.right[:, None], parsed.kind.steps or range(len(parsed.labels))
    step_by_code = np.array([*steps, 0], dtype=np.float64) if sides is None else -sides.astype(np.float64)
    errors = step_by_code[parsed.codes] - step_by_code[right]
    if sides is None and parsed.kind.scale == "nominal":
        errors = (parsed.codes != right).astype(np.float64)
    errors[(parsed.codes < 0) | (right < 0)] = np.nan
    common = judge_dependence.dependence(
        parsed.raters,
        parsed.codes,
        clusters=np.arange(len(parsed.codes)) if parsed.clusters is None else parsed.clusters,
        seed=seed,
        errors=errors,
        families={name: raters.kin(name) for name in parsed.raters},
    )
    return replace(common, warnings=tuple(judge_dependence.warnings(common, strings("en")["dependence"], "raters")))


def read(path: Path, layout: Layout) -> Ratings:
    """Return the ratings of a file; DataError names the line, its content and the expected content."""
    source = opened(path, layout.delimiter, layout.sheet, layout.bounds)
    plan = raters.planned(source, layout)
    cells, notes = _Cells(), list(plan.notes)
    if plan.form == "wide" and not layout.raters:
        ratings.ask(source, plan)
    if plan.form == "counts":
        plan, without = ratings.categories(source, plan, layout)
        notes += without
        cells.labels = {name: index for index, name in enumerate(plan.columns)}
        scale: Level = layout.scale or ("ordinal" if layout.order else "nominal")
        layout = replace(layout, order=layout.order or plan.columns, scale=scale)
    if plan.form == "wide":
        cells.raters = {name: index for index, name in enumerate(plan.columns)}
    for line, row in texts(source, plan.needed):
        _add_row(cells, row, layout, plan, f"{path}:{line}")
    if plan.form == "long" and not layout.rater and len(cells.label_numbers) == len(cells.items) > 0:
        raise TableError.at(
            path,
            f"no item with two ratings ({plan.notes[0]})",
            "items with two ratings",
            f"if these columns are raters themselves, give --raters {plan.rater},{plan.columns[0]}",
            options=[["--raters", f"{plan.rater},{plan.columns[0]}"]],
        )
    coded = _coded(cells, layout, plan, notes)
    if not cells.items or (len(coded.raters) < 2 and plan.form != "counts"):
        no_truth = f" beside {coded.truth}, the truth" if coded.truth else ""
        raise TableError.at(
            path,
            f"{len(cells.items)} items and {len(coded.raters)} raters{no_truth}",
            "an item and two raters at least",
            "choose the columns with --raters, or with --item, --rater and --rating",
        )
    return coded


def checked_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells of `columns` as text) for every row of a file; DataError as in `read`."""
    source = opened(path)
    names = header(source)
    matched = [roles.column(str(path), names, name) for name in columns]
    for line, row in texts(source, matched):
        yield line, [row[name] for name in matched]


def _add_row(cells: _Cells, row: Mapping[str, str], layout: Layout, plan: RatingsLayout, row_place: str) -> None:
    """Add a row's ratings."""
    key = tuple(row[name] for name in plan.item) or (row_place,)
    if not any(key):
        where = f"{row_place}, column {' or '.join(plan.item)}"
        raise TableError.at(where, "an empty cell", "the name of an item", "fill it in")
    new = key not in cells.items
    hint = f"give {plan.hint}, or leave" if plan.hint else "name more columns of an item with --item, or leave"
    if not new and plan.form != "long":
        raise TableError.at(row_place, "an item for the second time", "a row per item", f"{hint} one of them out")
    item_number = cells.items.setdefault(key, len(cells.items))
    if plan.cluster:
        _cluster(cells, item_number, row[plan.cluster], f"{row_place}, column {plan.cluster}")
    for rater, column, rating in _row_ratings(cells, row, plan, row_place):
        if (item_number, rater) in cells.label_numbers:
            raise TableError.at(row_place, "a second rating of an item by one rater", "one rating", f"{hint} one out")
        cells.label_numbers[item_number, rater] = _label(cells, rating, layout, f"{row_place}, column {column}")


def _row_ratings(
    cells: _Cells, row: Mapping[str, str], plan: RatingsLayout, row_place: str
) -> list[tuple[int, str, str]]:
    """Return the ratings of a row as (number of the rater, column, rating); for counts, raters are numbered per row."""
    row_ratings = [row[name] for name in plan.columns]
    if plan.form == "wide":
        return list(zip(range(len(row_ratings)), plan.columns, row_ratings, strict=True))
    if plan.form == "counts":
        times = zip(plan.columns, ratings.counted(row_ratings, plan.columns, row_place), strict=True)
        row_labels = [name for name, count in times for _ in range(count)]
        return [(cells.raters.setdefault(str(index), index), name, name) for index, name in enumerate(row_labels)]
    name = row[str(plan.rater)]
    if not name:
        raise TableError.at(f"{row_place}, column {plan.rater}", "an empty cell", "a rater's name", "fill it in")
    return [(cells.raters.setdefault(name, len(cells.raters)), plan.columns[0], row_ratings[0])]


def _cluster(cells: _Cells, number: int, name: str, cell_place: str) -> None:
    if not name:
        raise TableError.at(cell_place, "an empty cell", "a cluster for every item", "fill it in")
    if number == len(cells.clusters):
        cells.clusters.append(name)
    elif cells.clusters[number] != name:
        raise TableError.at(
            cell_place, "another cluster than before for this item", "one cluster per item", "correct one"
        )


def _label(cells: _Cells, text: str, layout: Layout, cell_place: str) -> int:
    """Return the number of a rating, which is new at its first occurrence; -1 for a missing rating."""
    if not text or text in layout.blank:
        return -1
    if text not in cells.labels:
        cells.labels[text] = len(cells.labels)
        cells.first_cells.append(cell_place)
        if layout.order and _index(text, layout.order) is None:
            expected = f"one of {', '.join(layout.order)}, or nothing"
            remedy = "correct the cell, or name all ratings with --order"
            raise TableError.at(cell_place, _quoted(text), expected, remedy, _admitting(text, layout))
        if len(cells.labels) > MOST:
            raise TableError.at(
                cell_place,
                f"more than {MOST} different ratings",
                f"at most {MOST}",
                "choose the columns that hold ratings with --raters",
            )
    return cells.labels[text]


def _admitting(text: str, layout: Layout) -> list[list[str]]:
    """Return options with which a rating outside the scale counts as missing, or as its last; none for a long text."""
    if _quoted(text) != repr(text) or "," in text:
        return []
    return [["--set", f"blank={','.join((*layout.blank, text))}"], ["--order", ",".join((*layout.order, text))]]


def _coded(cells: _Cells, layout: Layout, plan: RatingsLayout, notes: Sequence[str]) -> Ratings:
    """Return the collected cells as `Ratings`: labels sorted by the scale, with a matrix of their codes."""
    groups = RaterGroups(tuple(cells.raters), None, ())
    if plan.form != "counts":
        groups = raters.panel(list(cells.raters), layout, is_name, wide=plan.form == "wide")
        rater_numbers = {cells.raters[name] for name in (*groups.raters, groups.truth) if name}
        used = {label for (_, rater), label in cells.label_numbers.items() if rater in rater_numbers}
    else:
        used = set(cells.labels.values())
    labels = [text for text, number in cells.labels.items() if number in used]
    scale: Level = layout.scale or ("ordinal" if layout.order else "nominal")
    not_number = next((text for text in layout.order or labels if _number(text) is None), None)
    if not_number is not None and (scale == "interval" or (scale == "ordinal" and not layout.order)):
        where = "--order" if layout.order else cells.first_cells[cells.labels[not_number]]
        remedy = "use --scale ordinal" if layout.order else "give --order with all ratings, or --scale nominal"
        raise TableError.at(where, _quoted(not_number), f"a number on the scale `{scale}`", remedy)
    order = layout.order or _sorted(labels)
    code = np.array([_index(text, order) if number in used else -1 for text, number in cells.labels.items()] + [-1])
    matrix = np.full((len(cells.items), len(cells.raters) + 1), -1, dtype=np.int64)
    positions = np.array(list(cells.label_numbers), dtype=np.int64).reshape(-1, 2)
    matrix[positions[:, 0], positions[:, 1]] = code.astype(np.int64)[
        np.array(list(cells.label_numbers.values()), dtype=np.int64)
    ]
    steps = [float(text) for text in order] if scale == "interval" else None
    return Ratings(
        codes=matrix[:, [cells.raters[name] for name in groups.raters]],
        labels=tuple(order),
        raters=() if plan.form == "counts" else groups.raters,
        truth=groups.truth,
        right=matrix[:, cells.raters[groups.truth] if groups.truth else -1],
        clusters=cells.clusters if plan.cluster else None,
        kind=Kind(max(len(order), 1), scale, steps, layout.missing),
        plan=plan,
        notes=(*notes, *groups.notes, *_odd_labels(labels, layout), *_suspect_ratings(cells, groups, order, layout)),
    )


def _suspect_ratings(cells: _Cells, groups: RaterGroups, order: Sequence[str], layout: Layout) -> list[str]:
    """Return warnings about ratings that look like typing errors; none if `order` defines the scale."""
    if layout.order:
        return []
    label_texts, names = (
        list(cells.labels),
        {cells.raters[name]: name for name in (*groups.raters, groups.truth) if name},
    )
    counts_by_rater: dict[str, Counter[str]] = {name: Counter() for name in names.values()}
    for (_, rater), label in cells.label_numbers.items():
        if rater in names and label >= 0:
            counts_by_rater[names[rater]][label_texts[label]] += 1
    return warnings(counts_by_rater, order, dict(zip(label_texts, cells.first_cells, strict=False)))


def _odd_labels(labels: Sequence[str], layout: Layout) -> list[str]:
    """Return notes on labels that may mean a missing rating, and on labels that only differ in case."""
    none = [text for text in labels if text.casefold() in BLANKS and text not in layout.order]
    twice = [text for text in labels if sum(text.casefold() == label.casefold() for label in labels) > 1]
    notes = {
        f"counted as ratings: {', '.join(none)}; --set blank={','.join(none)} if they are none": none,
        f"counted as different ratings: {', '.join(sorted(twice))}; write them alike if they are one": twice,
    }
    return [note for note, about in notes.items() if about]


def _sorted(labels: Sequence[str]) -> list[str]:
    """Return the distinct ratings: sorted by value if all are numbers (`1` and `1.0` are one), else by name."""
    numbers = {text: number for text in labels if (number := _number(text)) is not None}
    if len(numbers) < len(labels):
        return sorted(labels)
    first = {number: text for text, number in reversed(numbers.items())}
    return [first[number] for number in sorted(first)]


def _index(text: str, order: Sequence[str]) -> int | None:
    """Return the index of a rating on a scale, by its text, else by its numeric value; None if missing."""
    if text in order:
        return list(order).index(text)
    number = _number(text)
    return next((index for index, label in enumerate(order) if number is not None and _number(label) == number), None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 20 else f"a text of {len(text)} characters"
