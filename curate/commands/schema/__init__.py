"""`curate schema`: JSON Schema of a command's `--json` output."""

import json
from collections.abc import Mapping
from typing import Any

from curate.commands.schema import contract
from curate.core.figures import Record, figure
from curate.runs.command import Command, argument
from curate.view.answers import Result


class CommandSchema(Record, schema_name="row"):
    """A command whose answer has a schema."""

    command: str = figure("words of the command, such as `check pool`")
    about: str = figure("content of its data")


class SchemaCommand(Command):
    """Print JSON Schemas.

    Of the data that a command answers with --json; without a command, they are listed.
    """

    words = "schema"
    examples = ("schema", "schema check pool")
    answers = "A JSON Schema; without a command, a row per command that has one."

    command: tuple[str, ...] = argument(
        "Such as status, or check pool; envelope is what all come in.", (), metavar="[COMMAND]..."
    )

    def result(self) -> Result[list[CommandSchema] | Mapping[str, Any]]:
        """Return the schema of the command's data; without a command, a row per schema."""
        if self.command:
            json_schema = contract.schema(" ".join(self.command))
            return Result(json_schema, [json.dumps(json_schema, indent=1)])
        rows = [CommandSchema(name, contract.about(name)) for name in contract.names()]
        width = max(len(row.command) for row in rows)
        return Result(rows, (f"{row.command:{width}}  {row.about}" for row in rows))
