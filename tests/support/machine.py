"""What a command says to machines: its envelope and its data, held against their schemas."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from curate.commands.schema import contract


def data(stdout: str) -> Any:
    """Return the data of an envelope that is in order."""
    return envelope(stdout)["data"]


def envelope(stdout: str) -> dict[str, Any]:
    """Return an envelope; it and its data hold what their schemas name, and nothing else."""
    found: dict[str, Any] = json.loads(stdout, parse_constant=_no_number)
    _hold(contract.ENVELOPE, found)
    assert found["ok"] == (found["error"] is None)
    if found["data"] is not None:
        _hold(found["command"], found["data"])
    return found


def _hold(name: str, value: object) -> None:
    error = best_match(_validator(name).iter_errors(value))
    assert error is None, f"curate schema {name}: {error.json_path}: {error.message}"


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(closed(contract.schema(name)))


def closed(schema: Any) -> Any:
    """Return a schema that allows no field which it does not name, so that none is forgotten there."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    more = {"additionalProperties": False} if "properties" in schema and "type" in schema else {}
    return {**{name: closed(each) for name, each in schema.items()}, **more}


def _no_number(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")
