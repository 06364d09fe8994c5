"""The places that the residual scan of `mask` lists, with their surroundings, and what people decide on them.

Numbers are those of the list: places in the order of table, id, field and offset, those that a decision had masked
among them, so that masking again renumbers nothing. Surroundings are read from the masked tables to be shown; what is
written down is where, why, who and when.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import polars as pl

from curate.ask import privacy_guard, residual_decisions
from curate.ask.residual_decisions import Decision
from curate.core.config import Json
from curate.core.errors import ConfigError, suggestion
from curate.pii.pseudonyms import FIELD
from curate.pii.residual import Excerpt, excerpt
from curate.pipeline.pipeline import Pipeline
from curate.pipeline.stage import Context
from curate.system.files import read_table

_KEYS = {"queries": "query_id", "corpus": "doc_id"}
State = Literal["open", "accepted", "to be masked", "masked"]


@dataclass(frozen=True)
class ResidualPlace:
    """A place that the scan listed, and what was decided on it."""

    number: int
    table: str
    id: str
    field: str
    start: int | None
    """In the masked text; None once the place is masked, for it is no more."""
    end: int | None
    reason: str
    state: State
    raw_start: int
    raw_end: int
    link: str

    def row(self) -> dict[str, Json]:
        """Return what may be written down: no text."""
        return {name: value for name, value in asdict(self).items() if name != "link"}


@dataclass(frozen=True)
class Listing:
    """All places of a run."""

    run: Path
    places: Sequence[ResidualPlace]
    gone: int
    """Decisions whose place is no more, because the text or what is masked in it has changed."""
    allowed: bool
    """Whether the pipeline lets everything pass (`mask.residual: allow`)."""

    def open(self) -> list[ResidualPlace]:
        """Return the places without a decision."""
        return [place for place in self.places if place.state == "open"]

    def counts(self) -> dict[str, dict[str, int]]:
        """Return reason -> state -> number of places, the most frequent reason first."""
        totals = Counter(place.reason for place in self.places)
        states = Counter((place.reason, place.state) for place in self.places)
        names: tuple[State, ...] = ("open", "accepted", "to be masked", "masked")
        return {
            reason: {state: states[reason, state] for state in names}
            for reason, _ in sorted(totals.items(), key=lambda each: (-each[1], each[0]))
        }


def listing(run: Path) -> Listing:
    """Return the places of a run; DataError if `mask` has not run, or not under this version."""
    may = privacy_guard.settings(Context(run, run, run, settings=Pipeline.load(run / "pipeline.yaml").settings))
    table, decided = read_table(run / "mask", "residual"), residual_decisions.read(run)
    found: dict[residual_decisions.Place, tuple[State, str, str, int | None, int | None]] = {}
    for row in table.iter_rows(named=True):
        place: residual_decisions.Place = tuple(row[name] for name in residual_decisions.PLACE)
        known = decided.get(place)
        state = _state(known if known and known.link == row["link"] else None, accepted=row["id"] in may.accept)
        found[place] = (state, row["reason"], row["link"], row["start"], row["end"])
    hidden = _masked(run)
    for place, known in decided.items():
        if place not in found and known.decision == "mask" and _covered(place, hidden):
            found[place] = ("masked", known.reason, known.link, None, None)
    places = [
        ResidualPlace(number, *place[:3], start, end, reason, state, *place[3:], link)
        for number, (place, (state, reason, link, start, end)) in enumerate(sorted(found.items()), 1)
    ]
    gone = sum(place not in found or found[place][2] != known.link for place, known in decided.items())
    return Listing(run, places, gone, may.residual == "allow")


def _state(known: Decision | None, *, accepted: bool) -> State:
    if known is None:
        return "accepted" if accepted else "open"
    return "accepted" if known.decision == "accept" else "to be masked"


def _masked(run: Path) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """Return table, id and field -> what is masked there, in offsets of the raw text."""
    spans = read_table(run / "mask", "spans").select("table", "id", "field", "start", "end")
    found: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for table, name, field, start, end in spans.iter_rows():
        found.setdefault((table, name, field), []).append((start, end))
    return found


def _covered(place: residual_decisions.Place, hidden: Mapping[tuple[str, str, str], Sequence[tuple[int, int]]]) -> bool:
    if place[2] == FIELD:
        return True  # an id is renamed whole, and its name is listed nowhere
    return any(start <= place[3] and place[4] <= end for start, end in hidden.get(place[:3], ()))


def excerpts(listing: Listing) -> dict[int, Excerpt]:
    """Return number -> a place with its surroundings in the masked text, for a terminal alone."""
    read: dict[tuple[str, str], Mapping[str, str]] = {}
    for table, key in _KEYS.items():
        wanted = {place.id for place in listing.places if place.table == table and place.start is not None}
        rows = pl.scan_parquet(listing.run / "mask" / f"{table}.parquet").filter(pl.col(key).is_in(sorted(wanted)))
        read |= {(table, row[key]): {**row, FIELD: row[key]} for row in rows.collect().iter_rows(named=True)}
    return {
        place.number: excerpt(read[place.table, place.id][place.field], place.start, place.end)
        for place in listing.places
        if place.start is not None and place.end is not None
    }


@dataclass(frozen=True)
class ResidualDecisions:
    """Decisions of a user: numbers of the list, and reasons for all places of a reason that are open."""

    mask: Sequence[int] = ()
    accept: Sequence[int] = ()
    mask_all: Sequence[str] = ()
    accept_all: Sequence[str] = ()
    by: str = ""

    def __bool__(self) -> bool:
        return any((self.mask, self.accept, self.mask_all, self.accept_all))


def decide(listing: Listing, orders: ResidualDecisions) -> list[Decision]:
    """Write down what is decided, all of it or nothing, and return it; ConfigError for a place that is not listed."""
    _check(orders, listing)
    of_reason = [(place.number, place.reason) for place in listing.open()]
    mask = {*orders.mask, *(number for number, reason in of_reason if reason in orders.mask_all)} - {*orders.accept}
    accept = {*orders.accept, *(number for number, reason in of_reason if reason in orders.accept_all)} - mask
    places = (listing.places[number - 1] for number in sorted(mask | accept))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = [
        Decision(
            *(place.table, place.id, place.field, place.raw_start, place.raw_end),
            *(place.link, place.reason, "mask" if place.number in mask else "accept", orders.by, now),
        )
        for place in places
    ]
    if made:
        residual_decisions.append(listing.run, made)
    return made


def _check(orders: ResidualDecisions, listing: Listing) -> None:
    last, reasons = len(listing.places), list(listing.counts())
    if orders and not last:
        raise ConfigError("found no place that looks like personal data, expected one to decide on; nothing is left")
    for number in (*orders.mask, *orders.accept):
        if not 1 <= number <= last:
            raise ConfigError(f"found the number {number}, expected one of the list: 1 to {last}; see --residual")
    for name in (*orders.mask_all, *orders.accept_all):
        if name not in reasons:
            raise ConfigError(f"unknown reason {name!r}: {suggestion(name, reasons)}")
    both = {*orders.mask} & {*orders.accept} or {*orders.mask_all} & {*orders.accept_all}
    if both:
        raise ConfigError(f"{min(both)}: found both, expected it to be masked or accepted; choose one of the two")
