"""`curate doctor`: what this machine has, what it lacks, and what to type then."""

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

MARKS = {"good": "ok", "missing": "--", "bad": "!!"}


def add_to(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("doctor")(doctor)


def doctor(as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False) -> None:
    """Look at Python, extras, encoders, keys, disk, memory, GPU and ledger; exit code 1 if something stops work."""
    from curate.runs.doctor import examine
    from curate.stages.context import home, ledger_place

    findings = list(examine(home(), ledger_place(), os.environ))
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in findings], indent=1, ensure_ascii=False))
    else:
        width = max(len(each.what) for each in findings)
        for each in findings:
            remedy = f"\n   {'':{width}}  {each.remedy}" if each.remedy else ""
            typer.echo(f"{MARKS[each.state]} {each.what:{width}}  {each.found}{remedy}")
    raise typer.Exit(any(each.state == "bad" for each in findings))
