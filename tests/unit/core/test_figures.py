"""Records: their JSON, their JSON Schema, their tables, and what no record may do."""

import json
from typing import Literal

import pytest

from curate.core.figures import ABSENT, Figure, Record, decimal, described, figure, schema


class Fruit(Record):
    """What a fruit costs.

    The second line is for readers of the code.
    """

    kind: Literal["apple", "pear"] = figure("sort of the fruit")
    price: float | None
    share: Figure = figure("of all sales", digits=1, percent=True)
    seeds: int = figure(default=0)
    ripe: bool = figure(default=False)


class Basket(Record, schema_name="box"):
    """Fruits."""

    fruits: tuple[Fruit, ...]
    best: Fruit | None
    by_month: dict[str, int]
    ends: tuple[str, int]


PEAR = Fruit("pear", None, Figure(0.5, 0.25, 0.75))
BASKET = Basket((PEAR,), None, {"May": 3}, ("a", 1))


def test_json_is_the_figures_by_name() -> None:
    assert PEAR.to_json() == {
        "kind": "pear",
        "price": None,
        "share": {"value": 0.5, "low": 0.25, "high": 0.75},
        "seeds": 0,
        "ripe": False,
    }
    assert BASKET.to_json()["fruits"] == [PEAR.to_json()]
    assert BASKET.to_json()["by_month"] == {"May": 3}


def test_a_number_has_its_decimals_and_no_negative_zero() -> None:
    assert [decimal(-0.0004, 3), decimal(1234.5, 1), decimal(0.0005, 3)] == ["0.000", "1,234.5", "0.001"]


def test_zero_and_false_are_defaults() -> None:
    assert (PEAR.seeds, PEAR.ripe) == (0, False)


def test_a_schema_has_types_descriptions_and_each_record_once() -> None:
    found = schema(Basket)
    assert found["$ref"] == "#/$defs/box"
    assert list(found["$defs"]) == ["box", "fruit", "figure"], "in the same order in every run"
    assert found["$defs"]["box"]["properties"] == {
        "fruits": {"type": "array", "items": {"$ref": "#/$defs/fruit"}},
        "best": {"anyOf": [{"$ref": "#/$defs/fruit"}, {"type": "null"}]},
        "by_month": {"type": "object", "additionalProperties": {"type": "integer"}},
        "ends": {"type": "array", "items": {}},
    }
    fruit = found["$defs"]["fruit"]
    assert fruit["required"] == ["kind", "price", "share", "seeds", "ripe"]
    assert fruit["properties"]["kind"] == {"enum": ["apple", "pear"], "description": "sort of the fruit"}
    assert fruit["properties"]["price"] == {"type": ["number", "null"]}
    assert fruit["properties"]["share"] == {"$ref": "#/$defs/figure", "description": "of all sales"}


def test_an_answer_is_described_by_its_first_line() -> None:
    assert described(Fruit) == described(list[Fruit]) == "What a fruit costs."
    assert described(dict[str, int]) == ""


def test_two_records_of_one_name_in_a_schema_are_an_error() -> None:
    class Other(Record, schema_name="fruit"):
        """Something else."""

        count: int

    class Both(Record):
        """Two that are called the same."""

        first: Fruit
        second: Other

    globals()["Other"] = Other
    with pytest.raises(TypeError, match="fruit: two records of one name"):
        schema(Both)


def test_the_name_of_a_record_is_no_figure() -> None:
    with pytest.raises(TypeError, match="cannot be called schema_name"):

        class Wrong(Record):
            schema_name: str  # type: ignore[misc]


def test_a_table_has_the_bounds_of_an_estimate_as_columns() -> None:
    table = BASKET.frame("fruits")
    assert table.columns == ["kind", "price", "share", "share_low", "share_high", "seeds", "ripe"]
    assert table.row(0) == ("pear", None, 0.5, 0.25, 0.75, 0, False)


def test_a_record_is_read_back_from_its_json_and_an_older_one_has_defaults() -> None:
    assert Basket.from_json(json.loads(json.dumps(BASKET.to_json()))) == BASKET
    older = {name: content for name, content in PEAR.to_json().items() if name not in ("seeds", "ripe")}
    assert Fruit.from_json(older) == PEAR


class Harvest(Record):
    """What was picked."""

    crates: float | None = figure("whole crates", optional=True)
    days: int = figure("days of work")
    paid: float | None = figure("null where nobody knows", optional=True, default=ABSENT)


def test_an_optional_figure_is_left_out_where_it_is_none() -> None:
    assert Harvest(days=3, crates=None).to_json() == {"days": 3}
    assert Harvest(days=3, crates=2.5).to_json() == {"crates": 2.5, "days": 3}
    assert Harvest.from_json({"days": 3}) == Harvest(days=3, crates=None)
    definition = schema(Harvest)["$defs"]["harvest"]
    assert definition["required"] == ["days"]
    assert definition["properties"]["crates"] == {"type": "number", "description": "whole crates"}


def test_an_optional_figure_of_which_none_is_a_value_is_left_out_where_it_is_absent() -> None:
    assert Harvest(days=3, crates=None, paid=None).to_json() == {"days": 3, "paid": None}
    assert Harvest.from_json({"days": 3}).paid is ABSENT
    assert Harvest.from_json({"days": 3, "paid": None}).paid is None
    assert schema(Harvest)["$defs"]["harvest"]["properties"]["paid"]["type"] == ["number", "null"]


class Weather(Record):
    """Days of a week."""

    not_dry: int = figure("days with rain", key="not dry")


def test_a_figure_has_a_name_of_its_own_in_json() -> None:
    assert Weather(2).to_json() == {"not dry": 2}
    assert Weather.from_json({"not dry": 2}) == Weather(2)
    assert schema(Weather)["$defs"]["weather"]["required"] == ["not dry"]
