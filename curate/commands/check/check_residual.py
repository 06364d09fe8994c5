"""`curate check mask --residual`: list possible residual PII, and store decisions on it."""

import getpass
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from curate.commands.check.residual import (
    Listing,
    ResidualDecisions,
    ResidualFigures,
    ResidualPlace,
    decide,
    excerpts,
    listing,
)
from curate.core.errors import ConfigError
from curate.view.answers import Result

_ASKED = "mask it (m), accept it (a), mask all of its reason (M), accept all of its pattern (A), skip it (s), stop (q)"


def residual(
    run: Path, numbers: tuple[str, str], mask_all: Sequence[str], accept_patterns: Sequence[str], by: str | None
) -> Result[ResidualFigures]:
    """Return the passages with possible residual PII, after decisions on some of them were stored.

    `numbers` select passages to mask and to accept, `mask_all` reasons to mask, `accept_patterns` patterns to accept.
    """
    mask, accept = map(_numbers, numbers)
    orders = ResidualDecisions(mask, accept, list(mask_all), list(accept_patterns), by or getpass.getuser())
    spans, lines = listing(run), list[str]()
    if orders:
        decisions = decide(spans, orders)
        spans = listing(run)
        masked = sum(decision.decision == "mask" for decision in decisions)
        lines.append(f"{masked:,} places will be masked by the next run, {len(decisions) - masked:,} were accepted")
        lines += _closing_line(spans)
    return Result(spans.figures(), lines if orders else _lines(spans))


def _numbers(text: str) -> list[int]:
    """Return the numbers in a list such as `1,4-6`; ConfigError for anything else."""
    numbers: list[int] = []
    for span in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", span)
        if match is None:
            raise ConfigError(f"found {span!r}, expected numbers of the list such as 1,4-6")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ConfigError(f"found {span!r}, expected a range from the lower number on, such as {last}-{first}")
        numbers += range(first, last + 1)
    return numbers


def _lines(spans: Listing) -> Iterator[str]:
    """Yield the passages, grouped by reason, with the text around them."""
    excerpt_by_number = excerpts(spans)
    for reason, states in spans.counts().items():
        counts = ", ".join(f"{count:,} {state}" for state, count in states.items() if count)
        yield f"{reason}: {sum(states.values()):,} places ({counts})"
        for entry in spans.places:
            if entry.reason == reason:
                yield f"{_place_line(entry)}  {excerpt_by_number.get(entry.number, '')}".rstrip()
    yield from _closing_line(spans)


def _place_line(entry: ResidualPlace) -> str:
    span = "-" if entry.start is None else f"{entry.start}-{entry.end}"
    shown = "" if entry.pattern is None else f"  {entry.pattern!r}"
    return f"{entry.number:>5}  {entry.table}  {entry.id}  {entry.field}  {span}  {entry.state}{shown}"


def _closing_line(spans: Listing) -> Iterator[str]:
    n_open = len(spans.open())
    if spans.gone:
        yield f"{spans.gone:,} decisions belong to places that are no more, and count no more"
    if not spans.places:
        yield "nothing looks like personal data any more"
    elif spans.allowed:
        yield f"{n_open:,} places are open, and mask.residual: allow lets them pass"
    elif n_open:
        first = spans.open()[0]
        yield (
            f"{n_open:,} places are open; decide by number (--mask {first.number}, --accept {first.number}), mask a "
        )
        quoted = shlex.quote(first.pattern or "")
        yield f"reason (--mask-all {first.reason}) or accept a pattern (--accept-pattern {quoted})"
    else:
        yield "every place is decided: give the command again that was stopped, and it goes on"


def ask(run: Path, by: str | None) -> None:
    """Ask about every passage without a decision; each answer is stored before the next question."""
    entries, by = listing(run), by or getpass.getuser()
    if not entries.open():
        return
    excerpt_by_number, skipped = excerpts(entries), set[int]()
    typer.echo(_ASKED)
    while remaining := [entry for entry in entries.open() if entry.number not in skipped]:
        entry = remaining[0]
        typer.echo(f"{_place_line(entry)}  {entry.reason}  {excerpt_by_number[entry.number]}")
        typed = typer.prompt("m/a/M/A/s/q", prompt_suffix=" ").strip()
        decision = {
            "m": ResidualDecisions(mask=[entry.number], by=by),
            "a": ResidualDecisions(accept=[entry.number], by=by),
            "M": ResidualDecisions(mask_all=[entry.reason], by=by),
            "A": ResidualDecisions(accept_patterns=[entry.pattern or ""], by=by),
        }.get(typed)
        if typed == "q":
            break
        if typed == "s":
            skipped.add(entry.number)
        elif decision is None:
            typer.echo(_ASKED)
        else:
            decide(entries, decision)
            entries = listing(entries.run)
    typer.echo("\n".join(_closing_line(entries)))
