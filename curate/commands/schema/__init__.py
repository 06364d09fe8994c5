"""`curate schema`: JSON Schema of a command's `--json` output."""

import json
from typing import Annotated

import typer

from curate.runs.options import AsJson
from curate.view.answers import answer


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND]...", help="Such as status, or check pool; envelope is what all come in."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of the data that a command answers with --json; without a command, list them."""
    from curate.commands.schema import contract

    if command:
        json_schema = contract.schema(" ".join(command))
        answer(json_schema, [json.dumps(json_schema, indent=1)], as_json=as_json)
        return
    rows = [{"command": name, "about": contract.about(name)} for name in contract.names()]
    width = max(len(row["command"]) for row in rows)
    answer(rows, (f"{row['command']:{width}}  {row['about']}" for row in rows), as_json=as_json)
