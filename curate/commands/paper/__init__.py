"""`curate paper`: tables and figures of a run for a paper."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from curate.runs import completing
from curate.runs.options import AsJson
from curate.runs.running import open_run
from curate.system import resources
from curate.view.answers import answer
from curate.view.text import as_table


def paper(
    run: Annotated[
        Path | None,
        typer.Argument(help="Run folder; default: the newest run.", autocompletion=completing.runs),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: `paper` in the run.")] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of captions and figures, en or zh; default: the run's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a run's statistics, agreement, audit and scores as CSV, LaTeX (booktabs) and vector PDF.

    Nothing is sent or scored; what was not done is named, and has no table.
    """
    from curate.commands.paper import kit
    from curate.view.progress import bars

    work = open_run(None, run)
    with bars() as (progress, _):
        kit_contents = kit.paper(work, out, language, progress)
    answer(
        kit_contents,
        _lines(kit_contents),
        as_json=as_json,
        warnings=[absent["found"] for absent in kit_contents["not_done"]],
    )


def _lines(contents: Mapping[str, Any]) -> Iterator[str]:
    yield as_table([{"table": table["name"], "rows": table["rows"]} for table in contents["tables"]])
    for entry in contents["figures"]:
        yield f"figure: {entry['name']}"
    for entry in contents["not_done"]:
        yield f"not done: {entry['name']}: {entry['found']}" + (f"\n  next: {entry['next']}" if entry["next"] else "")
    program = resources.words("commands/paper/words.yaml", contents["language"])["latex"]["program"]
    yield f"document: {contents['document']}, to be compiled by {program}"
