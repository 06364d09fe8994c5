"""Errors of calls from Python: options become arguments, and commands to type stay as they are."""

from pathlib import Path

import pytest

import curate
from curate.runs.python_errors import in_python


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("allow it with --max-cost AMOUNT, or with --yes", "allow it with max_cost=AMOUNT, or with yes=True"),
        ("--max-cost: expected an amount, found 'x'", "max_cost: expected an amount, found 'x'"),
        ("set it: --set judge.models=[a,b]", "set it: settings={'judge.models': [a,b]}"),
        ("ask for fewer with --size 30.", "ask for fewer with size=30."),
        ("name them with --item, --rater and --rating", "name them with item, rater and rating"),
        ("type `curate pool --run x`", "type `curate pool --run x`"),
        ("next: curate judge --run x --plan\n--depth: no", "next: curate judge --run x --plan\ndepth: no"),
        ("a - b -- c, non--option", "a - b -- c, non--option"),
    ],
)
def test_options_become_arguments(message: str, expected: str) -> None:
    assert in_python(message) == expected


def test_a_command_in_python_names_its_arguments() -> None:
    with pytest.raises(curate.ConfigError, match=r"^check pool: depth: expected greater than or equal to 1"):
        curate.check_pool(depth=0)
    with pytest.raises(curate.ConfigError, match="did you mean 'depth'"):
        curate.check_pool(dept=3)  # type: ignore[call-arg]


def test_names_are_a_sequence_or_separated_by_commas() -> None:
    with pytest.raises(curate.UserError, match="no such run folder"):
        curate.pool(run=Path("nothere"), retrievers="bm25,e5", settings={"pool.size": 3})
    with pytest.raises(curate.UserError, match="no such run folder"):
        curate.pool(run=Path("nothere"), retrievers=["bm25", "e5"])
