"""`curate ready`: what a benchmark still lacks before it is published."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.cli import completing
from curate.cli.envelope import answer
from curate.cli.options import AsJson
from curate.cli.running import open_run
from curate.cli.tables import as_table


def ready(
    run: Annotated[
        Path | None,
        typer.Argument(help="Run folder; default: the newest run.", autocompletion=completing.runs),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go through the checklist of a benchmark that is to be published; nothing is sent or scored.

    Exit code 0 only if every point is ok; each open point names the command to type.
    """
    from curate.core.errors import CheckFailed
    from curate.evaluation.publish.checklist import checklist

    found = checklist(open_run(None, run))
    open_points = found["not_ok"] + found["not_measured"]
    said = f"{found['run']} is not ready: {open_points} of {len(found['points'])} points are open"
    answer(found, _lines(found), as_json=as_json, failed=CheckFailed(said) if open_points else None)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield as_table([{"point": each["name"], "": each["state"]} for each in found["points"]])
    for each in found["points"]:
        if each["next"]:
            yield f"{each['name']}: {each['found']}\n  next: {each['next']}"
    if found["ready"]:
        yield f"{found['run']} is ready to be published"
