"""`curate run PIPELINE --plan`: cost estimate of a whole pipeline, printed as a table and sentences."""

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
    """Print the estimated remaining cost of a pipeline; nothing is sent or written."""
    from curate.commands.run.plan import plan
    from curate.runs.opening import opened_to_plan
    from curate.view.progress import bars

    work = opened_to_plan(pipeline, folder, assign, tell=partial(typer.echo, err=True))
    work.consent = consent
    with bars() as (work.progress, work.tell):
        run_plan = plan(work)
    answer(asdict(run_plan), _lines(run_plan), as_json=as_json, warnings=[*run_plan.unknown, *run_plan.assumed])


def _lines(run_plan: "RunPlan") -> Iterator[str]:
    if not run_plan.rows:
        yield "nothing is left to send"
        return
    hidden = {"exact"} if any(row["least"] != row["most"] for row in run_plan.rows) else {"exact", "least"}
    yield as_table(
        [{name: cell for name, cell in row.items() if name not in hidden} for row in run_plan.rows], digits=2
    )
    yield _total(run_plan)
    if run_plan.prices:
        yield "\nper million tokens"
        yield as_table(run_plan.prices, digits=4)
    for title, sentences in (("not known", run_plan.unknown), ("assumed", run_plan.assumed)):
        if sentences:
            yield f"\n{title}:"
            yield from (f"  {sentence}" for sentence in sentences)


def _total(run_plan: "RunPlan") -> str:
    from curate.llm.exchange_rates import shown

    if run_plan.most is not None and run_plan.least is not None:
        fewest = f"{shown(run_plan.least, run_plan.currency)} to " if run_plan.least < run_plan.most else ""
        return f"in all: {fewest}{shown(run_plan.most, run_plan.currency)} at most"
    priced = "" if run_plan.known is None else f"; what has a price: at most {shown(run_plan.known, run_plan.currency)}"
    return f"in all: not known{priced}"
