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
        ("give --raters ann,ben, or leave one out", 'give raters="ann,ben", or leave one out'),
        ("give --counts if they are", "give counts=True if they are"),
        ("give --column order=NAME with another", 'give column="order=NAME" with another'),
        ("name one with --set sheet=NAME", "name one with sheet=NAME"),
        ("choose by --set", "choose by settings={'KEY': VALUE}"),
        ("take --accept", "take accept"),
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


def test_notices_and_notes_name_arguments_as_errors_do(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("item,x,y,human,gold\n1,a,b,a,a\n2,b,b,b,b\n3,a,a,b,b\n")
    [note] = [note for note in curate.agree(tmp_path / "f.csv").notes if "left out as people" in note]
    assert note.endswith("raters names who is measured, truth whose ratings are the truth")
    (tmp_path / "counts.csv").write_text("id,yes,no\n1,3,0\n2,0,3\n3,1,2\n")
    with pytest.raises(curate.DataError, match=r'give counts=True if they are, or raters="yes,no" if every column'):
        curate.agree(tmp_path / "counts.csv")
    with pytest.raises(
        curate.DataError, match=r'found no column .text. among .*; name another with column="text=NAME"'
    ):
        curate.notes(table=tmp_path / "counts.csv", models=["e5"])


def test_names_are_a_sequence_or_separated_by_commas() -> None:
    with pytest.raises(curate.UserError, match="no such run folder"):
        curate.pool(run=Path("nothere"), retrievers="bm25,e5", settings={"pool.size": 3})
    with pytest.raises(curate.UserError, match="no such run folder"):
        curate.pool(run=Path("nothere"), retrievers=["bm25", "e5"])
