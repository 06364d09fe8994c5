"""JSON Schemas of what commands answer to machines, made of the short notation of their `schema.yaml`.

A file has `about`, the type of `data`, and `types`: name -> field -> type and what the field is, as in

    data: row[]
    types:
      row: {stage: string; name of the stage, cost: number?; None where unknown, paid?: "number{}; currency -> amount"}

A type is string, integer, number, boolean, object, any, a name of `types` or of `shared.yaml`, or a constant in quotes.
`[]` makes a list of it, `{}` a mapping from text to it, `?` allows null, and ` | ` stands between alternatives. A field
whose name ends in `?` may be left out.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curate.core import safe_yaml
from curate.core.errors import NotFound, suggestion
from curate.pipeline import stages
from curate.system.resources import data_file
from curate.view.answers import listed

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ENVELOPE = "envelope"
SHARED = "shared"
MAKING = "making"
"""The file of all commands of stages that make a kind of benchmark: `--plan` of each answers the same."""
_ALONE = {"anonymise recognisers": "recognisers", "status show": "show"}
"""Commands that lie in the folder of another and are typed by themselves."""
_PLAIN = {name: {"type": name} for name in ("string", "integer", "number", "boolean", "null", "object")}

Schema = dict[str, Any]


def names() -> list[str]:
    """Return every command whose answer has a schema, and `envelope`, what all answers come in."""
    return sorted(_files().keys() - {SHARED, MAKING} | stages.KIND_COMMANDS.keys() & set(stages.KNOWN))


def about(name: str) -> str:
    """Return in a sentence what a command's data are."""
    return str(_file(name)["about"])


def schema(name: str) -> Schema:
    """Return the JSON Schema of a command's data, or of the envelope; NotFound for any other name."""
    known = names()
    if name not in known:
        raise NotFound(f"no schema of {name!r}: {suggestion(name, known)}")
    file = _file(name)
    made = {each: _type(fields) for each, fields in {**_file(SHARED)["types"], **file.get("types", {})}.items()}
    root = typed(file["data"])
    if name == ENVELOPE:
        made["error"]["properties"]["code"]["enum"] = list(listed())
    found = {"$schema": DIALECT, "title": f"curate {name}", "description": str(file["about"]), **root}
    needed = _needed(root, made)
    return {**found, "$defs": {each: made[each] for each in made if each in needed}} if needed else found


def typed(text: str) -> Schema:
    """Return the schema of a type in the short notation, with its description if it has one."""
    words, _, said = text.partition("; ")
    options = [_option(word.strip()) for word in words.split(" | ")]
    constants = [option["const"] for option in options if "const" in option]
    others = [option for option in options if "const" not in option]
    options = [*others, {"enum": constants}] if constants else others
    found = options[0] if len(options) == 1 else {"anyOf": options}
    return {**found, "description": said} if said else found


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


def _needed(root: Schema, made: Mapping[str, Schema]) -> set[str]:
    """Return the types that a schema refers to, and those that these refer to."""
    found, left = set[str](), list(_references(root))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _references(made[name])
    return found


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _file(name: str) -> dict[str, Any]:
    path = _files()[MAKING if name in stages.KIND_COMMANDS else name]
    found: dict[str, Any] = safe_yaml.parse(safe_yaml.read(path))
    return found


def _files() -> dict[str, Path]:
    """Return command -> its file: `schema.yaml`, or `WORD.schema.yaml` in the folder of the command it is below."""
    found = {path.stem: path for path in data_file("view/schemas").glob("*.yaml")}
    for path in data_file("commands").glob("*/*schema.yaml"):
        folder, word = path.parent.name.replace("_", "-"), path.name.removesuffix("schema.yaml").removesuffix(".")
        name = f"{folder} {word}".strip()
        found[_ALONE.get(name, name)] = path
    return found
