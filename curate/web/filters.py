"""Filters of pairs and orders of queries: what stands in an address after the question mark, as Polars expressions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import polars as pl

from curate.core.records import VERDICTS
from curate.web.index import RunIndex

PAGE = 100
"""Rows of a page of a list."""
GAP = 2
"""Grades apart from which a pair counts as one on which judges are far apart."""
TOP = 10
"""Ranks that count as the top of a retriever."""


def grade(judge: str) -> pl.Expr:
    """Return the column with a judge's grades."""
    return pl.col(f"grade:{judge}")


_NAMES = (
    "verdict",
    "only",
    "against",
    "gap",
    "missed",
    "original",
    "synthetic",
    "masked",
    "query",
    "people",
    "page",
    "lang",
)


def param(judge: str) -> str:
    """Return the name of a judge's grade in an address: its own, unless that of another filter or with a colon."""
    return f"grade:{judge}" if judge in _NAMES or ":" in judge else judge


def judge_of(index: RunIndex, name: str) -> str | None:
    """Return the judge whose grade a name in an address stands for; None for another name."""
    return next((judge for judge in index.judges if name == param(judge)), None)


def rank(retriever: str) -> pl.Expr:
    """Return the column with a retriever's ranks."""
    return pl.col(f"rank:{retriever}")


@dataclass(frozen=True)
class FilterChoice:
    """A filter in a menu: name and value in the address, and the key and the name of its words."""

    name: str
    value: str
    words: str
    of: str = ""


class PairFilter:
    """The filters of an address: those that are known and fit the run; others are ignored."""

    def __init__(self, index: RunIndex, params: Mapping[str, str]) -> None:
        self.index = index
        menu = list(_offered(index))
        self.choices = [choice for choice, _ in menu]
        """Filters of the menu."""
        offered = {(choice.name, choice.value): condition for choice, condition in menu}
        conditions = {
            (name, value): offered.get((name, value), _of_address(index, name, value)) for name, value in params.items()
        }
        self._conditions = {of: condition for of, condition in conditions.items() if condition is not None}
        self.given = [*self._conditions]
        """(Name, value) of every filter."""

    @property
    def beside_menu(self) -> "list[FilterChoice]":
        """Return the filters that only links have: grades of a judge or of people, and a query."""
        links = []
        for name, value in self.given:
            judge = judge_of(self.index, name)
            if judge or name in ("query", "people"):
                links.append(FilterChoice(name, value, "grade" if judge else name, judge or ""))
        return links

    @property
    def pairs(self) -> pl.DataFrame:
        """Return the pairs that every filter keeps, by query and position."""
        return self.index.pairs.filter(*self._conditions.values())

    def address(self, path: str, **changes: str) -> str:
        """Return an address with these filters, changed by name; an empty value takes a filter out."""
        values = {**dict(self.given), **changes}
        words = urlencode({name: value for name, value in values.items() if value})
        return f"{path}?{words}" if words else path


def _offered(index: RunIndex) -> Iterator[tuple[FilterChoice, pl.Expr]]:
    """Yield the filters of the menu that fit a run, with their conditions."""
    held = set(index.pairs["verdict"].drop_nulls().unique())
    for verdict in VERDICTS:
        if verdict in held:
            yield FilterChoice("verdict", verdict, f"verdict_{verdict}"), pl.col("verdict") == verdict
    if index.scale.positives and len(index.judges) > 1:
        for judge in index.judges:
            yield FilterChoice("only", judge, "only", judge), _alone(index, judge, only=True)
            yield FilterChoice("against", judge, "against", judge), _alone(index, judge, only=False)
    if index.scale.order == "ordinal" and len(index.judges) > 1:
        yield FilterChoice("gap", str(GAP), "gap"), pl.col("gap") >= GAP
    for retriever in index.retrievers:
        yield (
            FilterChoice("missed", retriever, "missed", retriever),
            (pl.col("published") == 1) & rank(retriever).is_null(),
        )
    if index.pairs["original"].any():
        original, relevant = pl.col("original"), pl.col("verdict") == "relevant"
        rejected = original & (pl.col("verdict") == "not relevant")
        yield FilterChoice("original", "rejected", "rejected"), rejected
        yield FilterChoice("original", "confirmed", "confirmed"), original & relevant
        yield FilterChoice("original", "added", "added"), ~original & relevant
    if index.queries["synthetic"].any():
        rows = index.queries.with_row_index("row").filter("synthetic")["row"].cast(pl.Int32)
        yield FilterChoice("synthetic", "1", "synthetic"), pl.col("query").is_in(rows.implode())
    if index.pairs["masked"].any():
        yield FilterChoice("masked", "1", "masked"), pl.col("masked")


def _of_address(index: RunIndex, name: str, value: str) -> pl.Expr | None:
    """Return the condition of a filter that only links have: a grade, or a query; None for anything else."""
    if judge := judge_of(index, name):
        return grade(judge) == value
    if name == "people":
        return pl.col("people") == value
    return pl.col("query") == index.query_rows[value] if name == "query" and value in index.query_rows else None


def _alone(index: RunIndex, judge: str, *, only: bool) -> pl.Expr:
    """Return whether a judge is alone: only it says relevant, or all others say the opposite of what it says."""
    relevant = {label: label in index.scale.relevant for label in index.scale.labels}
    sides = {name: grade(name).replace_strict(relevant, default=None, return_dtype=pl.Boolean) for name in index.judges}
    others = [side for name, side in sides.items() if name != judge]
    first = sides[judge] & pl.all_horizontal([~side for side in others])
    return first if only else first | (~sides[judge] & pl.all_horizontal(others))


@dataclass(frozen=True)
class QueryOrder:
    """What the list of queries shows first, and which it leaves out."""

    name: str = ""
    of: str = ""


def query_rows(index: RunIndex, order: QueryOrder) -> pl.DataFrame:
    """Return the queries with counts of their pairs: `relevant`, `contested`, `other`, and per retriever `top:NAME`.

    `top:NAME` is the number of relevant documents in its top ranks. `order` is `none` (without a relevant document),
    `contested` (most contested first), `fails` (no relevant document in the top of `of`), `gap` (largest difference
    between retrievers first), `synthetic` or `masked`.
    """
    relevant, contested = pl.col("published") == 1, pl.col("verdict") == "contested"
    tops = {f"top:{name}": (relevant & (rank(name) <= TOP)).sum() for name in index.retrievers}
    counts = index.pairs.group_by("query").agg(
        pairs=pl.len(), relevant=relevant.sum(), contested=contested.sum(), **tops
    )
    numbered = index.queries.with_row_index("query").with_columns(pl.col("query").cast(pl.Int32))
    rows = numbered.join(counts, on="query", how="left", maintain_order="left")
    rows = rows.with_columns(pl.exclude(*numbered.columns).fill_null(0)).with_columns(
        other=pl.col("pairs") - pl.col("relevant") - pl.col("contested")
    )
    if order.name == "none":
        return rows.filter(pl.col("relevant") == 0)
    if order.name == "contested":
        return rows.filter(pl.col("contested") > 0).sort("contested", descending=True, maintain_order=True)
    if order.name == "fails" and order.of in index.retrievers:
        return rows.filter((pl.col("relevant") > 0) & (pl.col(f"top:{order.of}") == 0))
    if order.name == "gap" and len(tops) > 1:
        spread = pl.max_horizontal(list(tops)) - pl.min_horizontal(list(tops))
        return rows.with_columns(spread=spread).sort("spread", descending=True, maintain_order=True).drop("spread")
    return rows.filter(pl.col(order.name)) if order.name in ("synthetic", "masked") else rows
