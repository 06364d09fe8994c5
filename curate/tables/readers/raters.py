"""Which columns of a user's ratings hold items, raters and ratings, by their names: wide, long, or counts.

Wide is a column per rater, long a row per rating, counts a column per category. Names are those of ratings.yaml, in any
case; what an option names goes before them.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from curate.core.config import parse_yaml
from curate.core.errors import ConfigError, DataError, suggestion
from curate.core.model_family import begins_as
from curate.panel.agreement_figures import Level
from curate.stats.agreement import Missing
from curate.system.resources import data_file
from curate.tables.readers.names import plain

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
    if not any(is_named(other, "judges") or kin(other) for other in names):
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
