"""`curate check`: diagnostics of judges, pool, masking and train-test overlap."""

from pathlib import Path
from typing import Annotated

import typer

from curate.commands.check import check_circular, check_leaks, check_mask, check_pool
from curate.runs.group import CommandGroup
from curate.runs.options import AllowWeak, AsJson, Assign, Batch, File, Folder, MaxCost, Offline, Plan, Yes
from curate.runs.running import allowed, open_run, print_plan
from curate.view.answers import answer
from curate.view.text import as_table, too_few

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check the judges, the pool and the masking of a run, and two sets for leaks between them.",
)
app.command("pool")(check_pool.pool)
app.command("mask")(check_mask.mask)
app.command("leaks")(check_leaks.leaks)
app.command("circular")(check_circular.circular)


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
        Path | None, typer.Option(help="Those pairs: query_id, doc_id, grade; default: the run's reviews.")
    ] = None,
    again: Annotated[str, typer.Option(help="Repeat prompts in other forms: reversed,alone,repeat.")] = "",
    rubric: Annotated[
        list[str] | None, typer.Option(help="Repeat prompts under another rubric; may be repeated.")
    ] = None,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts per judge that are repeated.")] = 50,
    plan: Plan = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
    batch: Batch = False,
    offline: Offline = False,
    allow_weak_judges: AllowWeak = False,
    as_json: AsJson = False,
) -> None:
    """Measure the judges: controls, position bias, repeatability, strictness, shared errors; sends nothing unasked."""
    from curate.commands.check import judge as checks
    from curate.commands.check.warnings import effective, tables
    from curate.core.errors import CheckFailed
    from curate.view.progress import bars

    work = open_run(pipeline, run, assign or [])
    work.consent = allowed(max_cost, yes, offline=offline, batch=batch)
    kinds = [name.strip() for name in again.split(",") if name.strip()]
    order = checks.JudgeOptions(controls, positives, kinds, rubric or [], prompts)
    if plan:
        print_plan(work, work.consent, lambda: checks.planned(work, order), digits=4, as_json=as_json)
        return
    with bars() as (work.progress, work.tell):
        figures = checks.check(work, order)
    warnings = [*figures["warnings"], *too_few(figures["queries"])]
    lines = [f"{title}\n{as_table(rows, digits=3)}\n" for title, rows in tables(figures)]
    lines += ["\n".join([*effective(figures), *warnings])]
    gate = figures["gate"]
    failed = None
    if gate["failed"] and not (allow_weak_judges or gate["allow_weak_judges"]):
        failed = CheckFailed(
            f"judges did not pass the gate: {', '.join(gate['failed'])}; take other judges, or go on with "
            "--allow-weak-judges"
        )
    answer(figures, lines, as_json=as_json, warnings=warnings, failed=failed)
