"""Possible residual PII of a run: the spans that the residual scan of `mask` lists, and decisions on them.

Spans are numbered in the order of table, id, field and offset. Spans that were masked by a decision keep their number.
Excerpts are read from the masked tables for display only; a stored decision has location, reason, person and time, but
no text.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

import polars as pl

from curate.ask import privacy_guard, residual_decisions
from curate.ask.residual_decisions import Decision
from curate.core.errors import ConfigError, suggestion
from curate.core.figures import Record, figure
from curate.pii.pseudonyms import FIELD
from curate.pii.residual import Excerpt, excerpt, pattern
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context
from curate.system.files import read_table

_KEYS = {"queries": "query_id", "corpus": "doc_id"}
State = Literal["open", "accepted", "to be masked", "masked"]


class ResidualPlace(Record, schema_name="place"):
    """A span that the residual scan listed, and the state of the decision on it."""

    number: int = figure("number of the span, for --mask and --accept")
    table: Literal["queries", "corpus"] = figure("table of the text")
    id: str = figure("id of the text")
    field: str = figure("column of the text")
    start: int | None = figure("start of the span in the masked text; null once it is masked")
    end: int | None = figure("end of the span in the masked text; null once it is masked")
    reason: str = figure("why it looks like personal data")
    state: State = figure("decision on the span")
    pattern: str | None = figure("its form behind the word in front, digits as 9; null once it is masked")
    raw_start: int = figure("start of the span in the text before masking")
    raw_end: int = figure("end of the span in the text before masking")


class ResidualFigures(Record, schema_name="residual"):
    """Places that masking may have missed."""

    places: tuple[ResidualPlace, ...] = figure("all listed spans")
    counts: Mapping[str, Mapping[str, int]] = figure("reason -> state -> spans")
    gone: int = figure("decisions on spans that no longer exist")


@dataclass(frozen=True)
class Listing:
    """All listed spans of a run."""

    run: Path
    places: tuple[ResidualPlace, ...]
    links: Sequence[str]
    """Digest of the text of each place, from which is seen whether it has changed since a decision."""
    gone: int
    """Number of stored decisions that do not apply any more, because the text or its masking has changed."""
    allowed: bool
    """Whether the pipeline has `mask.residual: allow`."""

    def open(self) -> list[ResidualPlace]:
        """Return the spans without a decision."""
        return [span for span in self.places if span.state == "open"]

    def figures(self) -> ResidualFigures:
        """Return the listed spans, none of which contains text of the corpus."""
        return ResidualFigures(self.places, self.counts(), self.gone)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return reason -> state -> number of spans, the most frequent reason first."""
        totals = Counter(span.reason for span in self.places)
        states = Counter((span.reason, span.state) for span in self.places)
        names: tuple[State, ...] = ("open", "accepted", "to be masked", "masked")
        return {
            reason: {state: states[reason, state] for state in names}
            for reason, _ in sorted(totals.items(), key=lambda total: (-total[1], total[0]))
        }


def listing(run: Path) -> Listing:
    """Return the spans that the residual scan of a run listed; DataError if `mask` has not run with this version."""
    may = privacy_guard.settings(Context(run, run, run, settings=Pipeline.load(run / "pipeline.yaml").settings))
    table, decided = read_table(run / "mask", "residual"), residual_decisions.read(run)
    by_place: dict[residual_decisions.Place, tuple[State, str, str, int | None, int | None]] = {}
    for row in table.iter_rows(named=True):
        key: residual_decisions.Place = tuple(row[name] for name in residual_decisions.PLACE)
        decision = decided.get(key)
        state: State = "accepted" if row["id"] in may.accept else "open"
        if decision and decision.link == row["link"]:  # else the text has changed since
            state = "accepted" if decision.decision == "accept" else "to be masked"
        by_place[key] = (state, row["reason"], row["link"], row["start"], row["end"])
    hidden = _masked(run)
    for key, decision in decided.items():
        if key in by_place or decision.decision != "mask":
            continue
        spans = hidden.get(key[:3], ())
        # an id is renamed whole, and its name is listed nowhere
        if key[2] == FIELD or any(start <= key[3] and key[4] <= end for start, end in spans):
            by_place[key] = ("masked", decision.reason, decision.link, None, None)
    ordered = sorted(by_place.items())
    places = tuple(
        ResidualPlace(
            number,
            cast("Literal['queries', 'corpus']", table),
            name,
            field,
            start,
            end,
            reason,
            state,
            None,
            *raw_extent,
        )
        for number, ((table, name, field, *raw_extent), (state, reason, _, start, end)) in enumerate(ordered, start=1)
    )
    texts = dict(_located(run, places))
    places = tuple(
        replace(span, pattern=pattern(*texts[span.number])) if span.number in texts else span for span in places
    )
    links = [link for _, (_, _, link, _, _) in ordered]
    gone = sum(key not in by_place or by_place[key][2] != decision.link for key, decision in decided.items())
    return Listing(run, places, links, gone, may.residual == "allow")


def _masked(run: Path) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """Return (table, id, field) -> masked spans, in offsets of the raw text."""
    rows = read_table(run / "mask", "spans").select("table", "id", "field", "start", "end")
    spans_by_field: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for table, name, field, start, end in rows.iter_rows():
        spans_by_field.setdefault((table, name, field), []).append((start, end))
    return spans_by_field


def excerpts(listing: Listing) -> dict[int, Excerpt]:
    """Return number of a span -> excerpt of the masked text around it; without masked spans; for display only."""
    return {number: excerpt(*located) for number, located in _located(listing.run, listing.places)}


def _located(run: Path, places: Sequence[ResidualPlace]) -> Iterator[tuple[int, tuple[str, int, int]]]:
    """Yield the number of each span that is not masked, with its masked text, start and end."""
    rows_by_id: dict[tuple[str, str], Mapping[str, str]] = {}
    for table, key in _KEYS.items():
        ids = {span.id for span in places if span.table == table and span.start is not None}
        rows = pl.scan_parquet(run / "mask" / f"{table}.parquet").filter(pl.col(key).is_in(sorted(ids)))
        rows_by_id |= {(table, row[key]): {**row, FIELD: row[key]} for row in rows.collect().iter_rows(named=True)}
    for span in places:
        if span.start is not None and span.end is not None:
            yield span.number, (rows_by_id[span.table, span.id][span.field], span.start, span.end)


@dataclass(frozen=True)
class ResidualDecisions:
    """Decisions of a user: spans to mask by number or reason, and spans to accept by number or pattern."""

    mask: Sequence[int] = ()
    accept: Sequence[int] = ()
    mask_all: Sequence[str] = ()
    accept_patterns: Sequence[str] = ()
    by: str = ""

    def __bool__(self) -> bool:
        return any((self.mask, self.accept, self.mask_all, self.accept_patterns))


def decide(listing: Listing, orders: ResidualDecisions) -> list[Decision]:
    """Store the decisions, all or none, and return them; ConfigError for a number or reason that is not listed."""
    _check(orders, listing)
    mask = {*orders.mask, *(span.number for span in listing.open() if span.reason in orders.mask_all)}
    mask -= {*orders.accept}
    accept = {
        *orders.accept,
        *(span.number for span in listing.open() if span.pattern in orders.accept_patterns),
    } - mask
    spans = (listing.places[number - 1] for number in sorted(mask | accept))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    decisions = [
        Decision(
            *(span.table, span.id, span.field, span.raw_start, span.raw_end),
            *(listing.links[span.number - 1], span.reason, "mask" if span.number in mask else "accept", orders.by, now),
        )
        for span in spans
    ]
    if decisions:
        residual_decisions.append(listing.run, decisions)
    return decisions


def _check(orders: ResidualDecisions, listing: Listing) -> None:
    last, reasons = len(listing.places), list(listing.counts())
    if orders and not last:
        raise ConfigError("found no place that looks like personal data, expected one to decide on; nothing is left")
    for number in (*orders.mask, *orders.accept):
        if not 1 <= number <= last:
            raise ConfigError(f"found the number {number}, expected one of the list: 1 to {last}; see --residual")
    for name in orders.mask_all:
        if name not in reasons:
            raise ConfigError(f"unknown reason {name!r}: {suggestion(name, reasons)}")
    patterns = sorted({span.pattern for span in listing.places if span.pattern is not None})
    for name in orders.accept_patterns:
        if name not in patterns:
            raise ConfigError(f"no listed place has the pattern {name!r}: {suggestion(name, patterns)}")
    if both := {*orders.mask} & {*orders.accept}:
        raise ConfigError(f"{min(both)}: found both, expected it to be masked or accepted; choose one of the two")
