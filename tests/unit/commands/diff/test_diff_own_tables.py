"""Tables of kinds with labels of their own are compared row by row, of runs and of exports."""

from pathlib import Path

import polars as pl
import pytest

from curate.commands.diff.changes import compared
from curate.pipeline.folder import ID


def exported(folder: Path, kind: str, rows: list[tuple[str, list[str]]]) -> Path:
    """Write one table of a kind as the format mteb has it."""
    (folder / kind).mkdir(parents=True)
    (folder / "tasks.py").touch()
    pl.DataFrame(rows, {"text": pl.String, "labels": pl.List(pl.String)}, orient="row").write_parquet(
        folder / kind / "pairs-0123456789abcdef.parquet"
    )
    return folder


@pytest.mark.parametrize("below", ["", "mteb", "export/mteb"])
def test_rows_of_each_side_are_counted(tmp_path: Path, below: str) -> None:
    one = exported(tmp_path / "one" / below, "sts", [("a", ["x"]), ("b", ["y"]), ("b", ["y"])])
    other = exported(tmp_path / "other" / below, "sts", [("b", ["y"]), ("a", ["z"])])
    for folder in ("one", "other"):
        if below == "export/mteb":
            (tmp_path / folder / ID).write_text("0" * 32, encoding="ascii")
    row = {"kind": "sts", "table": "pairs", "both": 1, "before_only": 2, "after_only": 1}
    assert [table.to_json() for table in compared(tmp_path / "one", tmp_path / "other")] == [row]
    assert compared(tmp_path / "one", tmp_path / "one") == []
    assert [table.to_json() for table in compared(one, other)] == [row]


def test_a_kind_of_one_side_alone(tmp_path: Path) -> None:
    one = exported(tmp_path / "one", "sts", [("a", [])])
    other = exported(tmp_path / "other", "clustering", [("a", []), ("b", [])])
    assert [(each.kind, each.before_only, each.after_only) for each in compared(one, other)] == [
        ("clustering", 0, 2),
        ("sts", 1, 0),
    ]
    assert compared(one, tmp_path) == [], "a folder without such an export holds nothing to compare"
