"""JSON Schemas of the `--json` output of commands, from the records that they answer with, or else from a file.

The file, `schema.yaml`, has `about` (a sentence), `data` (a type), and `types`: name -> field -> type and description,
as in

    data: row[]
    types:
      row: {stage: string; name of the stage, cost: number?; None where unknown, paid?: "number{}; currency -> amount"}

A type is string, integer, number, boolean, object, any, a name of `types`, or a constant in quotes.
After a type, `[]` means a list, `{}` a mapping from strings, and `?` allows null; ` | ` separates alternatives. A field
whose name ends in `?` is optional.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from curate.core import figures, safe_yaml
from curate.core.errors import NotFound, suggestion
from curate.runs.command import Command
from curate.runs.index import command_class, load
from curate.system.resources import data_file
from curate.view.answers import listed

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ENVELOPE = "envelope"
_PLAIN = {name: {"type": name} for name in ("string", "integer", "number", "boolean", "null", "object")}

Schema = dict[str, Any]


def names() -> list[str]:
    """Return every command whose output has a schema, and `envelope`, the object that contains all outputs; sorted."""
    return sorted(_files().keys() | _answers().keys())


def about(name: str) -> str:
    """Return a sentence on the data of a command's output."""
    return str(_answers()[name]["answer"] if name in _answers() else _file(name)["about"])


def schema(name: str) -> Schema:
    """Return the JSON Schema of a command's data, or of the envelope; NotFound for any other name."""
    commands = names()
    if name not in commands:
        raise NotFound(f"no schema of {name!r}: {suggestion(name, commands)}")
    head = {"$schema": DIALECT, "title": f"curate {name}", "description": about(name)}
    if name in _answers():
        return {**head, **_of_records(command_class(_answers()[name]["class"]))}
    file = _file(name)
    definitions = {type_name: _type(fields) for type_name, fields in file.get("types", {}).items()}
    if name == ENVELOPE:
        definitions["error"]["properties"]["code"]["enum"] = list(listed())
    return {**head, **typed(file["data"]), **({"$defs": definitions} if definitions else {})}


def _of_records(command: type[Command]) -> Schema:
    schema = figures.schema(command.answer())
    if not schema["$defs"]:
        del schema["$defs"]
    return schema


def typed(text: str) -> Schema:
    """Return the schema of a type in the short notation, with its description if it has one."""
    words, _, description = text.partition("; ")
    options = [_option(word.strip()) for word in words.split(" | ")]
    constants = [option["const"] for option in options if "const" in option]
    others = [option for option in options if "const" not in option]
    options = [*others, {"enum": constants}] if constants else others
    type_schema = options[0] if len(options) == 1 else {"anyOf": options}
    return {**type_schema, "description": description} if description else type_schema


def _option(word: str) -> Schema:
    if word.endswith("?"):
        inner = _option(word[:-1])
        plain = set(inner) == {"type"}
        return {"type": [inner["type"], "null"]} if plain else {"anyOf": [inner, {"type": "null"}]}
    if word.endswith("[]"):
        return {"type": "array", "items": _option(word[:-2])}
    if word.endswith("{}"):
        return {"type": "object", "additionalProperties": _option(word[:-2])}
    if constant := re.fullmatch(r"'(.*)'", word):
        return {"const": constant[1]}
    if word == "any":
        return {}
    return dict(_PLAIN.get(word) or {"$ref": f"#/$defs/{word}"})


def _type(fields: str | Mapping[str, str]) -> Schema:
    if isinstance(fields, str):
        return typed(fields)
    return {
        "type": "object",
        "properties": {name.removesuffix("?"): typed(text) for name, text in fields.items()},
        "required": [name for name in fields if not name.endswith("?")],
    }


@cache
def _answers() -> dict[str, dict[str, Any]]:
    """Return command -> its entry in the index, for those that answer with records."""
    return {entry["words"]: entry for entry in load() if entry["answer"]}


def _file(name: str) -> dict[str, Any]:
    content: dict[str, Any] = safe_yaml.parse(safe_yaml.read(_files()[name]))
    return content


def _files() -> dict[str, Path]:
    """Return command -> its file: `schema.yaml` in its folder, or `WORD.schema.yaml` for a subcommand."""
    paths = {path.stem: path for path in data_file("view/schemas").glob("*.yaml")}
    for path in data_file("commands").glob("*/*schema.yaml"):
        folder, word = path.parent.name.replace("_", "-"), path.name.removesuffix("schema.yaml").removesuffix(".")
        name = f"{folder} {word}".strip()
        paths[name] = path
    return paths
