"""Ratings of several scales in one ledger: side by side, never under one another's key, never mixed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.core.config import Json
from curate.core.errors import DataError
from curate.core.scale import FIVE, Scale
from curate.ledger import Ledger, Rating
from curate.ledger.exchange import export, import_
from curate.ledger.stats import stats
from curate.runs.ledger_check import check
from tests.support.rows import CALL, sql

TREC = Scale(("3", "2", "1", "0"), "2", (3, 2, 1, 0))
SHIFTED = replace(TREC, relevant_from="1")
CLASSES = Scale(
    (*(f"类 {number}" for number in range(198)), "其他", "多类"), order="nominal", none="其他", several="多类"
)
SCALES = {"five": FIVE, "trec": TREC, "classes": CLASSES}
MODEL = {"model": {"model": "m"}}
FREE: dict[str, Json] = {"heuristic": "lexical", "scale": TREC.to_json()}
PLAIN: dict[str, Json] = {"heuristic": "lexical", "scale": 0.5}
"""A plug-in's, which calls something else its scale."""


def say(ledger: Ledger, rubric: str, grade: str) -> None:
    judge = ledger.register(MODEL)
    call = replace(CALL, judge_digest=judge, rubric_digest=rubric, query_digest="q", slots='["p"]')
    ledger.append([Rating("q", "p", judge, rubric, 0, grade, "rated", 0, 1)], call)


def rate(ledger: Ledger, identity: Mapping[str, Json], grade: str) -> None:
    judge = ledger.register(identity)
    ledger.append([Rating("q", "p", judge, "", 0, grade, "rated", 0, 1)])


@pytest.fixture
def mixed(ledger: Ledger) -> Ledger:
    """Return a ledger in which one model rated one pair under three rubrics, and two heuristics did."""
    for rubric, scale in SCALES.items():
        ledger.note_scale(rubric, scale)
        say(ledger, rubric, scale.labels[-1])
    rate(ledger, FREE, "3")
    rate(ledger, PLAIN, "S")
    return ledger


def test_scales_stand_side_by_side(mixed: Ledger, tmp_path: Path) -> None:
    assert mixed.count("rubrics") == 2
    export(mixed, tmp_path / "copy")
    with Ledger(tmp_path / "copy.db") as copy:
        assert import_(copy, tmp_path / "copy") == {
            "judges": 3,
            "rubrics": 2,
            "calls": 3,
            "passages": 0,
            "ratings": 5,
            "records": 0,
        }
        for ledger in (mixed, copy):
            judge = ledger.register(MODEL)
            for rubric, scale in SCALES.items():
                assert ledger.ratings(judge, rubric)["grade"].to_list() == [scale.labels[-1]]
            assert ledger.ratings(ledger.register(FREE), "")["grade"].to_list() == ["3"]
            assert check(ledger) == []
            assert {row.scale for row in stats(ledger)} == {each.described() for each in SCALES.values()}


def test_a_grade_of_another_scale_is_refused(mixed: Ledger) -> None:
    for rubric, grade in (("five", "3"), ("unknown", "3"), ("trec", "S"), ("classes", "3"), ("trec", "4")):
        with pytest.raises(DataError, match=rf"the grade '{grade}' of judge .* under rubric {rubric}, whose scale is "):
            say(mixed, rubric, grade)
    for identity, grade in ((FREE, "S"), (PLAIN, "3"), ({"heuristic": "new"}, "3")):
        with pytest.raises(DataError, match=rf"the grade '{grade}' of judge .* without a rubric, whose scale is "):
            rate(mixed, identity, grade)
    assert (mixed.count("judges"), mixed.count("calls"), mixed.count("ratings")) == (3, 3, 5)


def test_a_scale_is_never_changed(mixed: Ledger) -> None:
    for rubric, scale in (("five", TREC), ("trec", FIVE), ("trec", SHIFTED), ("classes", TREC)):
        mixed.note_scale(rubric, SCALES[rubric])
        with pytest.raises(DataError, match=rf"rubric {rubric}: its ratings .* are on the scale .*never changed"):
            mixed.note_scale(rubric, scale)


def test_a_scale_is_kept_with_the_first_that_is_said(place: Path | str) -> None:
    with Ledger(place) as one, Ledger(place) as another:
        one.note_scale("new", TREC)
        with pytest.raises(DataError, match="never changed"):
            one.note_scale("new", FIVE)
        assert one.count("rubrics") == 0, "a plan writes nothing"
        another.note_scale("new", SHIFTED)
        say(one, "new", "1")
        with pytest.raises(DataError, match="never changed"):
            say(another, "new", "1")
        assert (one.count("rubrics"), one.count("calls")) == (1, 1)


def test_a_grade_that_came_under_another_key_is_found(mixed: Ledger) -> None:
    judge = mixed.register(MODEL)
    sql(mixed, "UPDATE ratings SET rubric_digest = 'five' WHERE rubric_digest = 'trec'")
    sql(mixed, "UPDATE calls SET rubric_digest = 'five' WHERE rubric_digest = 'trec'")
    sql(mixed, f"UPDATE ratings SET grade = 'S' WHERE judge_digest <> '{judge}'")
    found = {finding.what: finding.rows for finding in check(mixed)}
    assert found == {"ratings whose grade is not of their status or scale": 2}


def test_a_scale_that_cannot_be_read_is_found_and_takes_no_grade(mixed: Ledger, place: Path | str) -> None:
    for text in ("no JSON", "7", "{}", '{"labels": ["3"]}'):
        sql(mixed, f"UPDATE rubrics SET scale = '{text}' WHERE rubric_digest = 'trec'")
        assert [str(finding) for finding in check(mixed)] == ["rubrics whose scale cannot be read: 1, such as trec"]
    assert None in {row.scale for row in stats(mixed)}
    with Ledger(place) as ledger, pytest.raises(DataError, match="under rubric trec, whose scale cannot be read"):
        say(ledger, "trec", "3")


def test_a_copy_with_another_scale_of_a_rubric_is_refused(mixed: Ledger, tmp_path: Path) -> None:
    with Ledger(tmp_path / "other.db") as other:
        rate(other, {"heuristic": "other"}, "S")
        other.note_scale("trec", SHIFTED)
        say(other, "trec", "1")
        export(other, tmp_path / "other")
    with pytest.raises(DataError, match=r"rubric trec: .*never changed"):
        import_(mixed, tmp_path / "other")
    assert (mixed.count("judges"), mixed.count("ratings")) == (3, 5)


def test_a_copy_of_a_version_without_scales_is_of_five_grades(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    with Ledger(tmp_path / "old.db") as old:
        say(old, "five", "S")
        export(old, folder)
    (folder / "rubrics.parquet").unlink()
    with pytest.raises(DataError, match=r"rubrics\.parquet: no such file"):
        import_(ledger, folder)
    for path in folder.iterdir():
        table = pq.read_table(path)
        old = table.drop_columns([name for name in ("estimated_tokens",) if name in table.column_names])
        pq.write_table(old.replace_schema_metadata({"curate ledger": "3"}), path)
    assert import_(ledger, folder)["ratings"] == 1
    with pytest.raises(DataError, match="never changed"):
        ledger.note_scale("five", TREC)


def test_a_copy_whose_scale_cannot_be_read_is_refused(mixed: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "copy" / "rubrics.parquet"
    export(mixed, path.parent)
    table = pq.read_table(path)
    pq.write_table(table.set_column(1, table.schema.field("scale"), pa.array(["{}"] * len(table))), path)
    with Ledger(tmp_path / "new.db") as new:
        with pytest.raises(DataError, match=r"rubrics\.parquet: .*classes is no scale"):
            import_(new, path.parent)
        assert new.count("judges") == 0
