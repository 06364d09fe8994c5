"""`curate ready`: what a benchmark still lacks before it is published."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs import completing
from curate.runs.options import AsJson
from curate.runs.running import open_run, run_folder
from curate.view.answers import answer
from curate.view.text import as_table


def ready(
    run: Annotated[
        Path | None,
        typer.Argument(help="Run folder; default: the newest run.", autocompletion=completing.runs),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write a pull request to mteb into: its text, tasks, statistics and results."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go through the checklist of a benchmark that is to be published; nothing is sent or scored.

    Exit code 0 only if every point is ok; each open point names the command to type. --out writes the folder all the
    same, and its text says what is open.
    """
    from curate.commands.ready.checklist import checklist
    from curate.core.errors import CheckFailed

    folder = run_folder(run, "give the run: an export does not hold who judged, read and compared what is in it")
    found = checklist(open_run(None, folder), out)
    open_points = found["not_ok"] + found["not_measured"]
    said = f"{found['run']} is not ready: {open_points} of {len(found['points'])} points are open"
    answer(found, _lines(found), as_json=as_json, failed=CheckFailed(said) if open_points else None)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield as_table([{"point": each["name"], "state": each["state"]} for each in found["points"]])
    alike = defaultdict[tuple[str, str], list[str]](list)
    for each in found["points"]:
        if each["next"]:
            alike[each["found"], each["next"]].append(each["name"])
    for (said, command), names in alike.items():
        yield f"{'; '.join(names)}: {said}\n  next: {command}"
    for each in found["edited"]:
        yield f"{found['folder']}/{each}: somebody edited it, so it was left; the new one lies beside it, named .new"
    if found["folder"]:
        yield f"for the pull request: {found['folder']}, {len(found['files'])} files; begin with PULL_REQUEST.md"
    if found["ready"]:
        yield f"{found['run']} is ready to be published"
