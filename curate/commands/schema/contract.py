"""JSON Schemas of the `--json` output of commands, from the records that they answer with."""

from functools import cache
from typing import Any

from curate.core import figures
from curate.core.errors import NotFound, suggestion
from curate.core.figures import Record, Schema
from curate.runs.index import command_class, load
from curate.view.answers import Envelope, Versions, listed

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ENVELOPE = "envelope"
PROGRAM: dict[str, type[Record]] = {ENVELOPE: Envelope, "version": Versions}
"""Answers of the program itself."""


def names() -> list[str]:
    """Return every command whose output has a schema, and `envelope`, the object that contains all outputs; sorted."""
    return sorted({*_answers(), *PROGRAM})


def about(name: str) -> str:
    """Return a sentence on the data of a command's output."""
    return figures.described(PROGRAM[name]) if name in PROGRAM else str(_answers()[name]["answer"])


def schema(name: str) -> Schema:
    """Return the JSON Schema of a command's data, or of the envelope; NotFound for any other name."""
    commands = names()
    if name not in commands:
        raise NotFound(f"no schema of {name!r}: {suggestion(name, commands)}")
    answer = PROGRAM[name] if name in PROGRAM else command_class(_answers()[name]["class"]).answer()
    document = figures.schema(answer)
    definitions = document.pop("$defs")
    if name == ENVELOPE:
        definitions["error"]["properties"]["code"]["enum"] = list(listed())
    head = {"$schema": DIALECT, "title": f"curate {name}", "description": about(name)}
    return {**head, **document, **({"$defs": definitions} if definitions else {})}


@cache
def _answers() -> dict[str, dict[str, Any]]:
    """Return command -> its entry in the index, for those that answer with records."""
    return {entry["words"]: entry for entry in load() if entry["answer"]}
