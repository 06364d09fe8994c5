"""Ratings of a file that look like slips: values that a rater hardly uses, and numbers beyond a gap in the scale.

A model that was to answer 0 to 3 and once said 10 adds a category to the scale, and moves every ordinal figure.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from curate.core.config import Json
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.protocols import Progress, quiet
from curate.panel import judge_dependence
from curate.panel.agreement_figures import Kind, Level, figures
from curate.pii.person_names.lexicon import is_name
from curate.stats.tally import Ints
from curate.tables.readers import ratings
from curate.tables.readers import ratings as raters
from curate.tables.readers.ratings import Layout, RaterGroups, RatingsLayout, header, opened, texts
from curate.view.words import strings

RARE = 0.001
"""Share of a rater's ratings below which a value is named."""

Counts = Mapping[str, Counter[str]]
"""Rater -> rating -> how often."""


def warnings(counts: Counts, order: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Return a sentence per rating that a rater gives rarely, and one for numbers beyond a gap; none if all is well.

    `order` are all ratings in their order, `places` rating -> where it stands first.
    """
    rare = [
        (rater, rating, number, count.total())
        for rater, count in counts.items()
        for rating, number in count.items()
        if number < RARE * count.total()
    ]
    beyond = _beyond_gaps(sum(counts.values(), Counter[str]()), order)
    left = [rating for rating in order if rating not in {*beyond, *(rating for _, rating, _, _ in rare)}]
    remedy = f"--order {','.join(left)} refuses what is not on the scale, --order {','.join(order)} says that all is"
    found = [
        f"WARNING: {rater} rates {number:,} of {whole:,} items {rating}, first at {places[rating]}; {remedy}"
        for rater, rating, number, whole in rare
    ]
    if beyond:
        named = ", ".join(f"{rating} (first at {places[rating]})" for rating in beyond)
        found.append(f"WARNING: the ratings {', '.join(order)} leave a gap, with {named} beyond it; {remedy}")
    return found


def _beyond_gaps(counts: Counter[str], order: Sequence[str]) -> list[str]:
    """Return the whole numbers that stand apart from the run of consecutive ones with the most ratings."""
    numbers = {rating: int(rating) for rating in order if rating.removeprefix("-").isdecimal()}
    if len(numbers) < len(order) or not order:
        return []
    runs = list(_runs(sorted(order, key=numbers.__getitem__), numbers))
    main = max(runs, key=lambda run: sum(counts[rating] for rating in run))
    return [rating for run in runs if run is not main for rating in run]


def _runs(order: Sequence[str], numbers: Mapping[str, int]) -> Iterator[list[str]]:
    run = [order[0]]
    for one, other in pairwise(order):
        if numbers[other] > numbers[one] + 1:
            yield run
            run = []
        run.append(other)
    yield run


# Agreement of raters from a file of ratings: a column per rater or a row per rating, numbers or words.

MOST = 50
"""Different ratings that a scale may have; a column with more holds something else."""
BLANKS = ("na", "n/a", "#n/a", "nan", "null", "-", "--", "?")
"""Words that often stand for no rating."""


@dataclass(frozen=True)
class Ratings:
    """A file's ratings as codes."""

    codes: Ints
    """Shape (items, raters), -1 for a missing rating."""
    labels: tuple[str, ...]
    """What each code stands for, in the order of the scale."""
    raters: tuple[str, ...]
    """Empty for counts, which name no rater."""
    truth: str | None
    """Whose ratings are people's."""
    right: Ints
    """Their codes, one per item."""
    clusters: list[str] | None
    """The cluster of each item."""
    kind: Kind
    plan: RatingsLayout
    notes: tuple[str, ...]


@dataclass
class _Cells:
    """Ratings as they are read: numbers of items, raters and labels, with the place of each label's first cell."""

    items: dict[tuple[str, ...], int] = field(default_factory=dict)
    raters: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    said: dict[tuple[int, int], int] = field(default_factory=dict)


def measure(path: Path, layout: Layout, seed: int, progress: Progress = quiet) -> dict[str, Any]:
    """Return the agreement in a file, as `measures.figures` has it: of its `ratings`, and at the `cut` if one is named.

    Beside them stand what was read: `form` (wide, long, counts), `item` (columns), `raters` (none of counts), `truth`,
    `scale`, `labels` (the ratings in their order), `notes`; and in `dependence` what raters have in common, None of
    counts.
    """
    found = read(path, layout)
    for name in layout.positive:
        if _at(name, found.labels) is None:
            raise ConfigError(f"--positive: no rating {name!r} in {path}; {suggestion(name, found.labels)}")
    sides = np.array([*(_at(label, layout.positive) is None for label in found.labels), -1], dtype=np.int64)
    two, cut = Kind(2, found.kind.scale, missing=layout.missing), None
    if layout.positive:
        cut = figures(sides[found.codes], two, found.raters, found.clusters, seed=seed, progress=progress)
    return {
        "form": found.plan.form,
        "item": list(found.plan.item),
        "raters": list(found.raters),
        "truth": found.truth,
        "scale": found.kind.scale,
        "labels": list(found.labels),
        "notes": list(found.notes),
        "ratings": figures(found.codes, found.kind, found.raters, found.clusters, seed=seed, progress=progress),
        "cut": cut,
        "dependence": _dependence(found, sides if layout.positive else None, seed) if found.raters else None,
    }


def _dependence(found: Ratings, sides: Ints | None, seed: int) -> dict[str, Json]:
    """Return what raters have in common, as `judge_dependence.dependence` does, and its `warnings` in English.

    An error is the difference to the truth: of the sides of the cut if there is one, else of the steps on an ordinal or
    interval scale; on a nominal one it is 1 where the rating is another one.
    """
    right, steps = found.right[:, None], found.kind.steps or range(len(found.labels))
    place = np.array([*steps, 0], dtype=np.float64) if sides is None else -sides.astype(np.float64)
    wrong = place[found.codes] - place[right]
    if sides is None and found.kind.scale == "nominal":
        wrong = (found.codes != right).astype(np.float64)
    wrong[(found.codes < 0) | (right < 0)] = np.nan
    common = judge_dependence.dependence(
        found.raters,
        found.codes,
        clusters=np.arange(len(found.codes)) if found.clusters is None else found.clusters,
        seed=seed,
        errors=wrong,
        families={name: raters.kin(name) for name in found.raters},
    )
    return {**common, "warnings": [*judge_dependence.warnings(common, strings("en")["dependence"], "raters")]}


def read(path: Path, layout: Layout) -> Ratings:
    """Return the ratings of a file; DataError names the line, what was found there and what was expected."""
    source = opened(path, layout.delimiter, layout.sheet)
    plan = raters.planned(str(path), header(source), layout)
    cells, notes = _Cells(), list(plan.notes)
    if plan.form == "wide" and not layout.raters:
        ratings.ask(source, plan)
    if plan.form == "counts":
        plan, without = ratings.categories(source, plan, layout)
        notes += without
        cells.labels = {name: at for at, name in enumerate(plan.columns)}
        scale: Level = layout.scale or ("ordinal" if layout.order else "nominal")
        layout = replace(layout, order=layout.order or plan.columns, scale=scale)
    if plan.form == "wide":
        cells.raters = {name: at for at, name in enumerate(plan.columns)}
    for line, row in texts(source, plan.needed):
        _take(cells, row, layout, plan, f"{path}:{line}")
    if plan.form == "long" and not layout.rater and len(cells.said) == len(cells.items) > 0:
        raise DataError(
            f"{path}: found no item with two ratings ({plan.notes[0]}), expected some; if these columns are raters "
            f"themselves, give --raters {plan.rater},{plan.columns[0]}"
        )
    found = _coded(cells, layout, plan, notes)
    if not cells.items or (len(found.raters) < 2 and plan.form != "counts"):
        beside = f" beside {found.truth}, the truth" if found.truth else ""
        raise DataError(
            f"{path}: found {len(cells.items)} items and {len(found.raters)} raters{beside}, expected an item and two "
            "raters at least; choose the columns with --raters, or with --item, --rater and --rating"
        )
    return found


def checked_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield line and the cells of some columns, as text, of every row of a file; DataError as `read` raises it."""
    source = opened(path)
    names = header(source)
    found = [raters.column(str(path), names, name) for name in columns]
    for line, row in texts(source, found):
        yield line, [row[name] for name in found]


def _take(cells: _Cells, row: Mapping[str, str], layout: Layout, plan: RatingsLayout, place: str) -> None:
    """Add a row's ratings."""
    key = tuple(row[name] for name in plan.item) or (place,)
    if not any(key):
        raise DataError(f"{place}: found no {' or '.join(plan.item)}, expected the name of an item; fill in the cell")
    new = key not in cells.items
    hint = f"give {plan.hint}, or leave" if plan.hint else "name more columns of an item with --item, or leave"
    if not new and plan.form != "long":
        raise DataError(f"{place}: found an item for the second time, expected a row per item; {hint} one of them out")
    item = cells.items.setdefault(key, len(cells.items))
    if plan.cluster:
        _cluster(cells, item, row[plan.cluster], place)
    for rater, column, said in _given(cells, row, plan, place):
        if (item, rater) in cells.said:
            raise DataError(f"{place}: found a second rating of an item by one rater, expected one; {hint} one out")
        cells.said[item, rater] = _label(cells, said, layout, f"{place}, column {column}")


def _given(cells: _Cells, row: Mapping[str, str], plan: RatingsLayout, place: str) -> list[tuple[int, str, str]]:
    """Return the ratings in a row: number of the rater, column, and what stands there; counts name no rater."""
    said = [row[name] for name in plan.columns]
    if plan.form == "wide":
        return list(zip(range(len(said)), plan.columns, said, strict=True))
    if plan.form == "counts":
        times = zip(plan.columns, ratings.counted(said, plan.columns, place), strict=True)
        each = [name for name, count in times for _ in range(count)]
        return [(cells.raters.setdefault(str(at), at), name, name) for at, name in enumerate(each)]
    name = row[str(plan.rater)]
    if not name:
        raise DataError(f"{place}: found no {plan.rater}, expected the name of a rater; fill in the cell")
    return [(cells.raters.setdefault(name, len(cells.raters)), plan.columns[0], said[0])]


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


def _coded(cells: _Cells, layout: Layout, plan: RatingsLayout, notes: Sequence[str]) -> Ratings:
    """Return the cells as a matrix of codes in the order of the scale."""
    who = RaterGroups(tuple(cells.raters), None, ())
    if plan.form != "counts":
        who = raters.panel(list(cells.raters), layout, is_name, wide=plan.form == "wide")
        kept = {cells.raters[name] for name in (*who.raters, who.truth) if name}
        used = {label for (_, rater), label in cells.said.items() if rater in kept}
    else:
        used = set(cells.labels.values())
    labels = [text for text, number in cells.labels.items() if number in used]
    scale: Level = layout.scale or ("ordinal" if layout.order else "nominal")
    odd = next((text for text in layout.order or labels if _number(text) is None), None)
    if odd is not None and (scale == "interval" or (scale == "ordinal" and not layout.order)):
        where = "--order" if layout.order else cells.places[cells.labels[odd]]
        remedy = "use --scale ordinal" if layout.order else "give --order with all ratings, or --scale nominal"
        raise DataError(f"{where}: found {_quoted(odd)}, expected a number on the scale `{scale}`; {remedy}")
    order = layout.order or _sorted(labels)
    code = np.array([_at(text, order) if number in used else -1 for text, number in cells.labels.items()] + [-1])
    matrix = np.full((len(cells.items), len(cells.raters) + 1), -1, dtype=np.int64)
    at = np.array(list(cells.said), dtype=np.int64).reshape(-1, 2)
    matrix[at[:, 0], at[:, 1]] = code.astype(np.int64)[np.array(list(cells.said.values()), dtype=np.int64)]
    steps = [float(text) for text in order] if scale == "interval" else None
    return Ratings(
        codes=matrix[:, [cells.raters[name] for name in who.raters]],
        labels=tuple(order),
        raters=() if plan.form == "counts" else who.raters,
        truth=who.truth,
        right=matrix[:, cells.raters[who.truth] if who.truth else -1],
        clusters=cells.clusters if plan.cluster else None,
        kind=Kind(max(len(order), 1), scale, steps, layout.missing),
        plan=plan,
        notes=(*notes, *who.notes, *_odd(labels, layout), *_suspect(cells, who, order, layout)),
    )


def _suspect(cells: _Cells, who: RaterGroups, order: Sequence[str], layout: Layout) -> list[str]:
    """Return warnings of ratings that look like slips; none where the order says what the scale has."""
    if layout.order:
        return []
    texts_, names = list(cells.labels), {cells.raters[name]: name for name in (*who.raters, who.truth) if name}
    said: dict[str, Counter[str]] = {name: Counter() for name in names.values()}
    for (_, rater), label in cells.said.items():
        if rater in names and label >= 0:
            said[names[rater]][texts_[label]] += 1
    return warnings(said, order, dict(zip(texts_, cells.places, strict=False)))


def _odd(labels: Sequence[str], layout: Layout) -> list[str]:
    """Return notes on ratings that may be words for none, or one rating in two cases."""
    none = [text for text in labels if text.casefold() in BLANKS and text not in layout.order]
    twice = [text for text in labels if sum(text.casefold() == label.casefold() for label in labels) > 1]
    notes = {
        f"counted as ratings: {', '.join(none)}; --blank {','.join(none)} if they are none": none,
        f"counted as different ratings: {', '.join(sorted(twice))}; write them alike if they are one": twice,
    }
    return [note for note, about in notes.items() if about]


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


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 20 else f"a text of {len(text)} characters"
