"""JSON Schemas of records are those that version 0.2 declared by hand, but for further descriptions."""

import json
from typing import Any

import pytest

from curate.commands.schema import contract
from tests import ROOT

DECLARED = json.loads((ROOT / "tests" / "data" / "answer_schemas.json").read_text(encoding="utf-8"))


def compared(declared: Any, generated: Any) -> Any:
    """Return a generated schema without the descriptions that the declared one lacks, at every level."""
    if isinstance(declared, dict) and isinstance(generated, dict):
        return {
            key: compared(declared.get(key), entry)
            for key, entry in generated.items()
            if key != "description" or key in declared or not isinstance(entry, str)
        }
    if isinstance(declared, list) and isinstance(generated, list) and len(declared) == len(generated):
        texts = all(isinstance(entry, str) for entry in declared)  # names of required properties, in any order
        return declared if texts and sorted(declared) == sorted(generated) else [*map(compared, declared, generated)]
    return generated


@pytest.mark.parametrize("name", DECLARED)
def test_the_schema_of_a_record_is_the_declared_one(name: str) -> None:
    assert compared(DECLARED[name], contract.schema(name)) == DECLARED[name]


@pytest.mark.parametrize("name", DECLARED)
def test_every_figure_of_a_record_is_described(name: str) -> None:
    definitions = contract.schema(name)["$defs"]
    definitions.pop("plan", None)  # is declared in a file
    for type_name, definition in definitions.items():
        for figure_name, figure in definition.get("properties", {}).items():
            assert figure.get("description"), (type_name, figure_name)
