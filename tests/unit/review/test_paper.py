"""Paper: a sheet per person goes out, sheets come back, and a file with a problem changes nothing."""

import re
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from curate.core.errors import DataError, UserError
from curate.core.scale import FIVE
from curate.review import Design, Desk, Sample
from curate.review.desk import ADJUDICATED, Answer
from curate.review.forms import in_language, of_rubric
from curate.review.paper import guide, hand_out, take_back
from curate.review.sample import Stratum, name_row
from curate.system import resources
from curate.system.files import frame
from tests.support.damage import Saving, Table
from tests.support.defined import defined
from tests.support.reviewing import TEXTS as PAIRS
from tests.support.reviewing import sample

TEXTS = [(f"查询{number}", f"=段落{number}") for number in range(6)]
IDS = [name_row("s", number, ["q", str(number)], texts) for number, texts in enumerate(TEXTS)]
ANNA, BOB = IDS[:4], IDS[3:]
"""Who reads which row; one is read by both."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    readers = [[name for name, ids in (("anna", ANNA), ("bob", BOB)) if row_id in ids] for row_id in IDS]
    survey = frame(
        "survey",
        [
            {"row_id": row_id, "ids": ["q", str(at)], "texts": TEXTS[at], "probability": 0.5, "assessors": readers[at]}
            for at, row_id in enumerate(IDS)
        ],
    )
    design = Design("s", "relevance", "zh", 1, ["anna", "bob"], [Stratum("all", 12, 6)])
    Sample(tmp_path / "reviews" / "s", design, survey).freeze()
    return Desk(Sample.load(tmp_path / "reviews" / "s"))


def fill(path: Path, **grades: str) -> Path:
    """Type grades into a sheet, by the number of the row; `note3` is a note."""
    table = Table.of(path.read_bytes())
    for key, value in grades.items():
        table.row(IDS[int(key[-1])])[table.at["note" if key.startswith("note") else "answer"]] = value
    path.write_bytes(Saving().save(table)[0])
    return path


def said(desk: Desk, person: str) -> dict[str, tuple[str | None, str]]:
    return {row_id: (answer.answer, answer.note) for row_id, answer in desk.said(person).items()}


def test_everybody_gets_a_sheet_of_their_rows_and_the_guide(desk: Desk, tmp_path: Path) -> None:
    out = tmp_path / "out"
    paths = hand_out(desk, out, ("csv", "xlsx"))
    assert sorted(path.name for path in paths) == ["GUIDE.html", "anna.csv", "anna.xlsx", "bob.csv", "bob.xlsx"]
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in paths)
    assert [row[0] for row in Table.of((out / "anna.csv").read_bytes()).rows] == ANNA
    page = defined(openpyxl.load_workbook(out / "bob.xlsx").active)
    assert [cell.value for cell in page["A"]] == ["编号", *BOB]


def test_handing_out_again_changes_nothing_and_never_what_was_filled_in(desk: Desk, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in hand_out(desk, tmp_path / "out", ("csv", "xlsx"))}
    hand_out(desk, tmp_path / "out", ("csv", "xlsx"))
    assert {path: path.read_bytes() for path in before} == before
    filled = fill(tmp_path / "out" / "anna.csv", row0="A").read_bytes()
    with pytest.raises(UserError, match=r"anna\.csv"):
        hand_out(desk, tmp_path / "out")
    assert (tmp_path / "out" / "anna.csv").read_bytes() == filled


def test_the_guide_is_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    page, english = (guide(sample(tmp_path / tag, PAIRS[:1], language=tag)) for tag in ("zh", "en"))
    assert '<html lang="zh">' in page
    assert "<td><strong>S</strong></td>" in page
    assert "<title>Relevance review</title>" in english
    assert "href" not in page
    assert "src" not in page


def test_answers_are_recorded_once_with_the_name_of_their_file(desk: Desk, tmp_path: Path) -> None:
    hand_out(desk, tmp_path / "out")
    anna = fill(tmp_path / "out" / "anna.csv", row0="a", row3="Ｓ", note1="看不清")
    bob = fill(tmp_path / "out" / "bob.csv", row3="d")
    results = take_back(desk, [anna, bob])
    assert [(result.assessor, result.answers, result.new, result.problems) for result in results] == [
        ("anna", 3, 3, []),
        ("bob", 1, 1, []),
    ]
    assert said(desk, "anna") == {IDS[0]: ("A", ""), IDS[3]: ("S", ""), IDS[1]: (None, "看不清")}
    assert said(desk, "bob") == {IDS[3]: ("D", "")}
    assert desk.said("anna")[IDS[0]].source == "anna.csv"
    assert [result.new for result in take_back(desk, [anna, bob])] == [0, 0]


def test_a_problem_in_one_file_and_nothing_is_taken_from_any(desk: Desk, tmp_path: Path) -> None:
    hand_out(desk, tmp_path / "out")
    anna = fill(tmp_path / "out" / "anna.csv", row0="A", row1="X", row2="B")
    bob = fill(tmp_path / "out" / "bob.csv", row3="D")
    (tmp_path / "none.csv").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        take_back(desk, [anna, tmp_path / "none.csv", bob])
    lines = str(caught.value).splitlines()
    start = f"{anna}:3 ({IDS[1]}), column 等级: found 'X', expected one of S, A, B, C, D, ? (cannot judge), ! (pers"
    assert any(line.startswith(start) for line in lines)
    assert any(line.startswith(f"{tmp_path / 'none.csv'}: found no header") for line in lines)
    assert len(lines) == 2
    assert said(desk, "anna") == said(desk, "bob") == {}


def test_good_rows_are_kept_on_demand(desk: Desk, tmp_path: Path) -> None:
    hand_out(desk, tmp_path / "out")
    anna = fill(tmp_path / "out" / "anna.csv", row0="A", row1="X", row2="B")
    (result,) = take_back(desk, [anna], keep_good_rows=True)
    assert (result.answers, result.new, [problem.row_id for problem in result.problems]) == (2, 2, [IDS[1]])
    assert said(desk, "anna") == {IDS[0]: ("A", ""), IDS[2]: ("B", "")}


def test_two_files_of_one_person_that_differ_are_taken_one_by_one(desk: Desk, tmp_path: Path) -> None:
    hand_out(desk, tmp_path / "out")
    old = fill(tmp_path / "out" / "anna.csv", row0="A", row1="B")
    new = tmp_path / "new.csv"
    new.write_bytes(old.read_bytes())
    fill(new, row0="C", row1="b")
    with pytest.raises(DataError) as caught:
        take_back(desk, [old, new], keep_good_rows=True)
    assert str(caught.value).startswith(f"{new}:2 ({IDS[0]}): found C, expected A as in {old}:2; take")
    assert len(str(caught.value).splitlines()) == 1
    assert said(desk, "anna") == {}
    assert [take_back(desk, [file])[0].new for file in (old, new)] == [2, 1]
    assert said(desk, "anna") == {IDS[0]: ("C", ""), IDS[1]: ("B", "")}


def test_a_row_of_another_person_is_said_to_be_one(desk: Desk, tmp_path: Path) -> None:
    hand_out(desk, tmp_path / "out")
    anna = tmp_path / "out" / "anna.csv"
    anna.write_bytes(anna.read_bytes() + f"{IDS[5]},{TEXTS[5][0]},'{TEXTS[5][1]},A,,\r\n".encode())
    with pytest.raises(DataError, match=r":6, column 编号: found 'r00005-\w+', a row of another person"):
        take_back(desk, [anna])


def test_whose_sheet_it_is_can_be_said_where_its_column_is_gone(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(f"row,grade\n{IDS[4]},C\n", encoding="utf-8")
    with pytest.raises(DataError, match="--assessor"):
        take_back(desk, [path])
    assert [result.assessor for result in take_back(desk, [path], "bob")] == ["bob"]
    assert said(desk, "bob") == {IDS[4]: ("C", "")}
    assert [result.assessor for result in take_back(desk, [path], ADJUDICATED)] == [ADJUDICATED]


def test_a_sheet_of_two_people_is_that_of_most_rows(desk: Desk, tmp_path: Path) -> None:
    hand_out(desk, tmp_path / "out")
    anna = fill(tmp_path / "out" / "anna.csv", row0="A", row1="B")
    anna.write_bytes(anna.read_bytes().replace(b"anna", b"bob", 1))
    with pytest.raises(DataError, match=r":2 \(r00000-\w+\), column 评审人: found 'bob', expected 'anna'"):
        take_back(desk, [anna])


def test_a_file_that_is_not_there_is_a_sentence(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no readable file"):
        take_back(desk, [tmp_path / "absent.csv"])


def test_an_old_sheet_taken_back_again_changes_no_newer_answer(desk: Desk, tmp_path: Path) -> None:
    """The page came later: neither its answer nor its note is undone by a file that says nothing new."""
    sheet = fill(hand_out(desk, tmp_path / "out")[0], row0="S", row1="A")
    assert [result.new for result in take_back(desk, [sheet])] == [2]
    desk.record("anna", [Answer(IDS[0], "D", "说明", source="page")])
    assert [result.new for result in take_back(desk, [fill(sheet, row1="B")])] == [1]
    assert said(desk, "anna") == {IDS[0]: ("D", "说明"), IDS[1]: ("B", "")}
    take_back(desk, [fill(sheet, row0="A")])
    assert said(desk, "anna")[IDS[0]] == ("A", "说明"), "an empty note takes none back"


@pytest.mark.parametrize("name", ["GUIDE.md", "GUIDE-SCALE.md", "ITEMS.md", "PRIVACY.md"])
def test_a_guide_has_the_same_rules_in_each_language(name: str) -> None:
    text = resources.guide(name)
    rules = {language: re.findall(r"^\d+\. .+", in_language(text, language), re.MULTILINE) for language in ("zh", "en")}
    assert len(rules["zh"]) == len(rules["en"]) == len(re.findall(r"^\d+\. ", text, re.MULTILINE))
    assert all(re.search("[一-鿿]", rule) for rule in rules["zh"])
    assert not any(re.search("[一-鿿]{8}", rule) for rule in rules["en"]), "but for a quoted query"
    heads = [in_language(text, language).count("meaning") for language in ("zh", "en")]
    assert heads == [0, 1] if "| meaning" in text else True


def test_a_guide_with_meanings_in_one_language_shows_them_to_readers_of_another() -> None:
    meanings = {"zh": dict.fromkeys(FIVE.labels, "按岗位要求")}
    text = of_rubric(resources.guide("GUIDE.md"), FIVE, meanings)
    assert [in_language(text, language).count("按岗位要求") for language in ("zh", "en")] == [5, 5]
    assert "same intent" not in text
    both = of_rubric(text, FIVE, {**meanings, "en": dict.fromkeys(FIVE.labels, "as the post asks")})
    assert [in_language(both, "en").count(word) for word in ("按岗位要求", "as the post asks")] == [0, 5]


def test_a_guide_of_the_working_directory_stands_before_the_rubric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = sample(tmp_path / "drawn", PAIRS[:2], ("anna",))
    meanings = {"zh": dict.fromkeys(FIVE.labels, "按岗位要求")}
    drawn = replace(drawn, design=replace(drawn.design, language="zh", meanings=meanings))
    assert guide(drawn).count("按岗位要求") == len(FIVE.labels)
    assert drawn.meanings == meanings["zh"]
    (tmp_path / "annotations").mkdir()
    own = "| grade | 中文 |\n| --- | --- |\n| **S** | 自己的说法 |\n"
    (tmp_path / "annotations" / "GUIDE.md").write_text(own, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    drawn = replace(drawn)
    assert "自己的说法" in guide(drawn)
    assert "按岗位要求" not in guide(drawn)
    assert drawn.meanings == {"S": "自己的说法"}


def test_a_guide_in_one_language_stays_whole() -> None:
    own = "# Leitfaden\n\nBewerten Sie jeden Absatz.\n\n1. Lesen Sie die Frage.\n"
    assert in_language(own, "zh") == in_language(own, "de") == own
