"""JSON Schemas of records are those that version 0.2 declared by hand, but for descriptions."""

import json
from typing import Any

import pytest

from curate.commands.schema import contract
from tests import ROOT

DECLARED = json.loads((ROOT / "tests" / "data" / "answer_schemas.json").read_text(encoding="utf-8"))


def compared(declared: Any, generated: Any, *, names: bool = False) -> Any:
    """Return a generated schema without what may be new: figures and types (`names`), and texts."""
    if isinstance(declared, dict) and isinstance(generated, dict):
        return {
            key: compared(declared.get(key), entry, names=key in ("properties", "$defs") and not names)
            for key, entry in generated.items()
            if key in declared or not (names or key == "description")
        }
    if isinstance(declared, list) and isinstance(generated, list):
        if all(isinstance(entry, str) for entry in declared):  # names of required figures, in any order
            return declared if set(declared) <= set(generated) else generated
        if len(declared) == len(generated):
            return [compared(*pair) for pair in zip(declared, generated, strict=True)]
    return generated


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
def test_the_schema_of_a_record_is_the_declared_one(name: str) -> None:
    assert compared(DECLARED[name], contract.schema(name)) == DECLARED[name]


@pytest.mark.parametrize("name", DECLARED)
def test_every_figure_of_a_record_is_described(name: str) -> None:
    definitions = contract.schema(name).get("$defs", {})
    for type_name, definition in definitions.items():
        for figure_name, figure in definition.get("properties", {}).items():
            assert figure.get("description"), (type_name, figure_name)
