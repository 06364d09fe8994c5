"""`curate check`: what the stages take for granted, looked at."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curate.cli import check_leaks, check_mask, check_pool
from curate.cli.group import Group
from curate.cli.running import AllowWeak, Assign, File, Folder, MaxCost, Yes, allowed, open_run, print_plan
from curate.cli.tables import as_table, too_few

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check judges, pool and masking of a run, and splits for leaks.",
)
check_pool.add_to(app)
check_mask.add_to(app)
check_leaks.add_to(app)


def add_to(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="check")


@app.command("judge")
def judge(
    pipeline: File = None,
    run: Folder = None,
    assign: Assign = None,
    controls: Annotated[bool, typer.Option("--controls", help="Have every judge answer pairs of known grade.")] = False,
    positives: Annotated[
        Path | None, typer.Option(help="Those pairs: query_id, doc_id, grade; without it the run's reviews.")
    ] = None,
    again: Annotated[str, typer.Option(help="Ask prompts again: reversed,alone,repeat.")] = "",
    rubric: Annotated[list[str] | None, typer.Option(help="Ask by another rubric; may be repeated.")] = None,
    prompts: Annotated[int, typer.Option(min=1, help="How many prompts of each judge are asked again.")] = 50,
    plan: Annotated[bool, typer.Option("--plan", help="Print calls, tokens and cost; send nothing.")] = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    offline: Annotated[bool, typer.Option("--offline", help="Send nothing; the ledger holds every answer.")] = False,
    allow_weak_judges: AllowWeak = False,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Measure the judges: controls, position, repetition, strictness, clones; without an order nothing is sent."""
    from curate.checks import judge as checks
    from curate.checks.warnings import effective, tables
    from curate.cli.progress import bars
    from curate.errors import RunFailed

    work = open_run(pipeline, run, assign or [])
    work.consent = allowed(max_cost, yes, offline=offline)
    kinds = [name.strip() for name in again.split(",") if name.strip()]
    order = checks.Order(controls, positives, kinds, rubric or [], prompts)
    if plan:
        print_plan(work, work.consent, lambda: checks.planned(work, order), digits=4, as_json=as_json)
        return
    with bars() as (work.progress, work.tell):
        found = checks.check(work, order)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        for title, lines in tables(found):
            typer.echo(f"{title}\n{as_table(lines, digits=3)}\n")
        typer.echo("\n".join([*effective(found), *found["warnings"], *too_few(found["queries"])]))
    if found["gate"]["failed"] and not (allow_weak_judges or found["gate"]["allow_weak_judges"]):
        raise RunFailed(
            f"judges did not pass the gate: {', '.join(found['gate']['failed'])}; take other judges, or go on with "
            "--allow-weak-judges"
        )
