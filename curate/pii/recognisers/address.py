"""Postal addresses, including directions from a crossing to a house: `中山路与人民路交叉口往东200米路北`.

A crossing consists of one or more roads and a word for a crossing. A way consists of directions, distances and sides of
the road. Both are parts of an address in any context. All patterns are in places.yaml.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from curate.pii.patterns import narrow
from curate.pii.rules import RuleRecogniser, rules
from curate.pii.words import fold

_PATTERN = rules("places").pattern


def _behind_leads(text: str, start: int, end: int) -> int:
    """Return the start of the first road's name at a crossing, after words that occur in no name (`诊所新址`)."""
    while other_road := _PATTERN("other_road").search(text, max(0, start - 12), start):
        start = other_road.start()
    if number := re.search("[A-Za-z]?[0-9]{2,4}\\Z", text[max(0, start - 5) : start]):
        coded = number[0][0] in "GSXY"
        start -= len(number[0]) if coded or text.startswith(("国道", "省道", "县道", "乡道"), start) else 0
        if joined := _PATTERN("joined_road").search(text, max(0, start - 12), start):
            start = joined.start()
    road = _PATTERN("road_at_crossing").match(text, start)
    end = road.end() if road else end
    while match := _PATTERN("lead").search(text[start:end]):
        start += match.end()
    return start


def _crossing(text: str, start: int) -> int | None:
    """Return the end of a crossing that begins at `start`; None if there is none."""
    match = _PATTERN("crossing").match(text, start)
    if not match or _PATTERN("no_place").match(match["road"]) or _PATTERN("no_road").search(match["road"]):
        return None
    if not match["other"] and _PATTERN("no_crossing_alone").search(match[0]):
        return None
    return match.end() if match["other"] or len(match["road"]) > 2 else None  # 沿路口 is no 沿路


def _building(text: str, start: int) -> int | None:
    """Return the end of a name at `start` that a house or door number follows (`万达B座`); None if there is none."""
    match = _PATTERN("building").match(text, start)
    return match.end() if match and not _PATTERN("no_place").match(match[0]) else None


def _end(name: str, text: str, start: int) -> int | None:
    """Return the end of a match of a pattern at `start`; None without one."""
    match = _PATTERN(name).match(text, start)
    return match.end() if match else None


# Addresses, from the largest unit that is named down to the door: `广东省深圳市南山区科技园南路12号`.

CITY, COUNTY, TOWN, PLACE, ESTATE, DOOR = range(1, 7)
"""Rank of a part of an address, from large to small; provinces rank as CITY, roads and villages as PLACE."""
_LISTED = {"listed_province": CITY, "listed_city": CITY, "listed_district": COUNTY}
"""Pattern of a listed place -> its rank."""
_UNLISTED = {
    "city": CITY,
    "county": COUNTY,
    "town": TOWN,
    "road": PLACE,
    "village": PLACE,
    "estate": ESTATE,
    "door": DOOR,
    "bare_door": DOOR,
}
_PARTS = 16
"""Maximum number of parts of an address."""


class _Part(NamedTuple):
    end: int
    rank: int
    known: bool
    firm: bool
    """Whether the part ends in a word for its type: `上海市`, not `上海`."""
    led: bool = False
    """Whether the part is a crossing followed by directions."""


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    if _PATTERN("hints").search(text):
        yield from _folded_addresses(fold(text))


def _folded_addresses(text: str) -> Iterator[tuple[int, int]]:
    last_end = 0
    for start, cued in sorted(_starts(text), key=lambda start: (start[0], not start[1])):
        components = _read(text, start) if start >= last_end else []
        if _identifies(components, cued):
            code = _PATTERN("postcode").match(text, components[-1].end)
            last_end = code.end("value") if code else components[-1].end
            yield start, last_end
    yield from (match.span("value") for match in _PATTERN("house").finditer(text))
    yield from (match.span() for match in _PATTERN("english").finditer(text))
    yield from (match.span("value") for match in _PATTERN("postcode_alone").finditer(text))


def _starts(text: str) -> Iterator[tuple[int, bool]]:
    """Yield (start of a possible address, whether a word for living precedes it)."""
    yield from ((match.end(), True) for match in _PATTERN("cue").finditer(text))
    yield from ((match.start(), False) for match in _PATTERN("listed").finditer(text))
    yield from ((_name_start(text, match.start()), False) for match in _PATTERN("anchor").finditer(text))
    for match in _PATTERN("crossed_behind").finditer(text):  # of two roads, the last of which ends here
        yield _behind_leads(text, _name_start(text, match.start()), match.start()), False


def _name_start(text: str, end: int) -> int:
    """Return the start of a name that ends at `end`: after words that occur in no name, or at a known place."""
    run = _PATTERN("name_run").search(text, max(0, end - 24), end)
    start = run.start() if run else end
    for match in _PATTERN("before_names").finditer(text, start, end):
        start = match.start("place") if match["place"] else match.end()
        if match["place"]:
            break
    return start + 1 if text[max(0, start - 1) : start + 1] in ("我家", "你家", "他家", "她家") else start


def _read(text: str, position: int) -> list[_Part]:
    """Return the parts of the address that begins at `position`, the largest first."""
    components: list[_Part] = []
    while len(components) < _PARTS:
        gap = _PATTERN("part_gap").match(text, position) if components else None
        rank = components[-1].rank if components else CITY
        component = _crossing_part(text, position, rank) or _next(text, gap.end() if gap else position, rank)
        if component is None:
            break
        components.append(component)
        position = component.end
    return components


def _crossing_part(text: str, start: int, rank: int) -> _Part | None:
    """Return the address part at `start` that is a crossing or directions; None without one.

    Directions may follow a crossing, a road or a village.
    """
    cross = _crossing(text, start) if rank <= PLACE else None
    if cross is None and rank not in (TOWN, PLACE):
        return None
    led = _end("way", text, start if cross is None else cross) or cross or start
    beyond = _end("beside", text, led)
    doored = beyond and _next(text, beyond, ESTATE)
    if beyond and (doored or _next(text, beyond, PLACE)):
        led = beyond
    landmark_end = _building(text, led + text.startswith("的", led)) if cross and cross < led != beyond else None
    if cross and cross < led and not landmark_end:
        landmark_end = _end("last_place", text, led)
    end = landmark_end or led
    return (
        _Part(
            end,
            ESTATE
            if landmark_end or (doored and end == beyond) or (cross and _PATTERN("dashed").match(text, end))
            else PLACE,
            False,
            False,
            led=bool(cross) and end > (cross or 0),
        )
        if end > start
        else None
    )


def _next(text: str, start: int, rank: int) -> _Part | None:
    """Return the next part of an address at `start`: a listed place or a door, else the part that ends first."""
    for name, part_rank in _LISTED.items():
        match = _PATTERN(name).match(text, start) if _follows(part_rank, rank) else None
        if match:
            return _Part(match.end(), part_rank, known=True, firm=bool(match["ending"]))
    candidates = list(_unlisted(text, start, rank))
    return min(
        candidates,
        key=lambda component: (
            component.rank != DOOR,
            -component.end if component.rank == DOOR else component.end,
            -component.rank,
        ),
        default=None,
    )


def _unlisted(text: str, start: int, rank: int) -> Iterator[_Part]:
    for name, part_rank in _UNLISTED.items():
        follows = rank >= ESTATE if name == "bare_door" else _follows(part_rank, rank)
        match = _PATTERN(name).match(text, start) if follows else None
        if match and (part_rank == DOOR or not _PATTERN("no_place").match(match[0])):
            yield _Part(match.end(), part_rank, known=False, firm=bool(match.groupdict().get("ending")))


def _follows(part_rank: int, rank: int) -> bool:
    """Return whether a part may follow one of this rank: never a larger part, and a door only after a town or less."""
    if part_rank == DOOR:
        return rank >= TOWN
    if rank == DOOR:
        return part_rank == ESTATE
    return part_rank >= rank or (rank == ESTATE and part_rank == PLACE)


def _identifies(components: list[_Part], cued: bool) -> bool:
    """Return whether the parts are specific enough to identify where a person lives."""
    lowest = max((component.rank for component in components), default=0)
    if lowest == DOOR or cued:
        return lowest >= COUNTY
    if any(component.led for component in components):
        return True
    fixed = [component for component in components if component.rank <= COUNTY and (component.firm or component.known)]
    if lowest == TOWN and fixed:
        return components[-1].end - components[-2].end >= 3  # 东莞长安镇, no 北京城镇
    return lowest >= TOWN and (
        any(component.firm for component in fixed) or (len(fixed) >= 2 and fixed[-1].rank == COUNTY)
    )


address = RuleRecogniser(rules("places"), "address", _addresses)

# Places before a British postcode.

_ABROAD = rules("addresses_abroad").pattern
_REACH = 120
"""Maximum number of characters of the places before a British postcode."""


def _british(text: str) -> Iterator[tuple[int, int]]:
    narrowed = narrow(text)
    for postcode in _ABROAD("british_behind").finditer(narrowed):
        low = max(0, postcode.start() - _REACH)
        places = _ABROAD("places").search(narrowed, low, postcode.start())
        if places and (named := _ABROAD("capital").search(places[0])):
            start = places.start() + named.start()
            house = _ABROAD("house").search(narrowed, low, start)
            yield house.start() if house else start, postcode.end()


address_abroad = RuleRecogniser(rules("addresses_abroad"), "address_abroad", _british)
