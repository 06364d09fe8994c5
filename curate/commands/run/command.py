"""`curate run PIPELINE --plan`: the bill of a whole pipeline as a table and sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from curate.view.answers import answer
from curate.view.text import as_table

if TYPE_CHECKING:
    from curate.commands.run.plan import RunPlan
    from curate.pipeline.stage import Consent


def print_run_plan(
    pipeline: str, folder: Path | None, assign: Sequence[str], consent: "Consent", *, as_json: bool
) -> None:
    """Print what is left of a pipeline to pay for; nothing is sent or kept."""
    from curate.commands.run.plan import plan
    from curate.runs.opening import opened_to_plan
    from curate.view.progress import bars

    work = opened_to_plan(pipeline, folder, assign, tell=partial(typer.echo, err=True))
    work.consent = consent
    with bars() as (work.progress, work.tell):
        found = plan(work)
    answer(asdict(found), _lines(found), as_json=as_json, warnings=[*found.unknown, *found.assumed])


def _lines(found: "RunPlan") -> Iterator[str]:
    if not found.rows:
        yield "nothing is left to send"
        return
    hidden = {"exact"} if any(row["least"] != row["most"] for row in found.rows) else {"exact", "least"}
    yield as_table([{name: each for name, each in row.items() if name not in hidden} for row in found.rows], digits=2)
    yield _total(found)
    if found.prices:
        yield "\nper million tokens"
        yield as_table(found.prices, digits=4)
    for title, said in (("not known", found.unknown), ("assumed", found.assumed)):
        if said:
            yield f"\n{title}:"
            yield from (f"  {each}" for each in said)


def _total(found: "RunPlan") -> str:
    from curate.llm.exchange_rates import shown

    if found.most is not None and found.least is not None:
        fewest = f"{shown(found.least, found.currency)} to " if found.least < found.most else ""
        return f"in all: {fewest}{shown(found.most, found.currency)} at most"
    part = "" if found.known is None else f"; what has a price: at most {shown(found.known, found.currency)}"
    return f"in all: not known{part}"
