"""`curate check mask --residual`: the places that may have been missed, one by one, and what people decide on them."""

import getpass
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from curate.core.errors import ConfigError
from curate.view.answers import answer

if TYPE_CHECKING:
    from curate.ask.residual_decisions import Decision
    from curate.commands.check.residual import Listing, ResidualPlace

_ASKED = "mask it (m), accept it (a), the same for all open ones of its reason (M, A), skip it (s), or stop (q)"


def residual(
    run: Path, numbers: tuple[str, str], reasons: tuple[Sequence[str], Sequence[str]], by: str | None, *, as_json: bool
) -> None:
    """List the places, or decide on them: by numbers and reasons to mask and to accept, else asked one by one."""
    from curate.commands.check.residual import ResidualDecisions, decide, listing

    (mask, accept), (mask_all, accept_all) = map(_numbers, numbers), map(_names, reasons)
    orders = ResidualDecisions(mask, accept, mask_all, accept_all, by or getpass.getuser())
    found = listing(run)
    if orders:
        made = decide(found, orders)
        found = listing(run)
        if not as_json:
            typer.echo("\n".join(_decided(made, found)))
            return
    answer(_figures(found), _lines(found), as_json=as_json)
    if not as_json and found.open() and sys.stdin.isatty() and sys.stdout.isatty():
        _ask(found, orders.by)


def _numbers(given: str) -> list[int]:
    """Return the numbers in a list such as `1,4-6`; ConfigError for anything else."""
    found: list[int] = []
    for part in filter(None, re.split(r"[,\s]+", given)):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if match is None:
            raise ConfigError(f"found {part!r}, expected numbers of the list such as 1,4-6")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ConfigError(f"found {part!r}, expected a range from the lower number on, such as {last}-{first}")
        found += range(first, last + 1)
    return found


def _names(given: Sequence[str]) -> list[str]:
    return [name.strip() for each in given for name in each.split(",") if name.strip()]


def _lines(found: "Listing") -> Iterator[str]:
    """Yield the places with their surroundings, those of a reason together."""
    from curate.commands.check.residual import excerpts

    shown = excerpts(found)
    for reason, states in found.counts().items():
        said = ", ".join(f"{count:,} {state}" for state, count in states.items() if count)
        yield f"{reason}: {sum(states.values()):,} places ({said})"
        for place in found.places:
            if place.reason == reason:
                yield f"{_where(place)}  {shown.get(place.number, '')}".rstrip()
    yield from _ending(found)


def _where(place: "ResidualPlace") -> str:
    at = "-" if place.start is None else f"{place.start}-{place.end}"
    return f"{place.number:>5}  {place.table}  {place.id}  {place.field}  {at}  {place.state}"


def _ending(found: "Listing") -> Iterator[str]:
    left = len(found.open())
    if found.gone:
        yield f"{found.gone:,} decisions belong to places that are no more, and count no more"
    if not found.places:
        yield "nothing looks like personal data any more"
    elif found.allowed:
        yield f"{left:,} places are open, and mask.residual: allow lets them pass"
    elif left:
        first, reason = found.open()[0].number, found.open()[0].reason
        yield f"{left:,} places are open; decide by number (--mask {first}, --accept {first}) or by reason (--mask-all "
        yield f"{reason!r}, --accept-all {reason!r}): each place once"
    else:
        yield "every place is decided: give the command again that was stopped, and it goes on"


def _decided(made: "Sequence[Decision]", found: "Listing") -> Iterator[str]:
    masked = sum(each.decision == "mask" for each in made)
    yield f"{masked:,} places will be masked by the next run, {len(made) - masked:,} were accepted"
    yield from _ending(found)


def _figures(found: "Listing") -> dict[str, object]:
    return {"places": [place.row() for place in found.places], "counts": found.counts(), "gone": found.gone}


def _ask(found: "Listing", by: str) -> None:
    """Ask about every open place; an answer is written down before the next question."""
    from curate.commands.check.residual import ResidualDecisions, decide, excerpts, listing

    shown, passed = excerpts(found), set[int]()
    typer.echo(_ASKED)
    while left := [place for place in found.open() if place.number not in passed]:
        place = left[0]
        typer.echo(f"{_where(place)}  {place.reason}  {shown[place.number]}")
        typed = typer.prompt("m/a/M/A/s/q", prompt_suffix=" ").strip()
        given = {
            "m": ResidualDecisions(mask=[place.number], by=by),
            "a": ResidualDecisions(accept=[place.number], by=by),
            "M": ResidualDecisions(mask_all=[place.reason], by=by),
            "A": ResidualDecisions(accept_all=[place.reason], by=by),
        }.get(typed)
        if typed == "q":
            break
        if typed == "s":
            passed.add(place.number)
        elif given is None:
            typer.echo(_ASKED)
        else:
            decide(found, given)
            found = listing(found.run)
    typer.echo("\n".join(_ending(found)))
