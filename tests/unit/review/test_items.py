"""Samples of a kind's items: drawn blind and by stratum, answered, and what they say of the published labels."""

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.review.samples import report_items
from curate.core.errors import ConfigError, DataError
from curate.core.scale import Scale
from curate.review import ADJUDICATED, Answer, Design, Desk, Sample, item_proof, items, paper
from curate.review.desk import graded_desks, settled
from curate.review.drawing import SampleOptions
from curate.review.item_proof import ItemProof
from curate.review.sample import ITEM_FORMS
from curate.stats.sample_estimates import StratumCounts, share
from curate.system.files import frame, read_table, write_table
from curate.tables.kinds import kind
from curate.tables.kinds.benchmark_kind import ReviewItems

SIZES = {"positive": 60, "hard": 30, "easy": 10}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder that holds pairs of sentences."""
    (tmp_path / "sts").mkdir()
    rows = [
        {
            "pair_id": f"{name}-{number}",
            "query_id": f"q{number}",
            "sentence1": f"{name} 高血压能喝茶吗 {number}",
            "sentence2": f"血压高能喝茶吗 {number}",
            "label": int(name == "positive"),
            "kind": name,
            "split": "test",
        }
        for name, size in SIZES.items()
        for number in range(size)
    ]
    write_table(tmp_path / "sts", "pairs", frame("pairs", rows))
    return tmp_path


def drawn(run: Path, **options: Any) -> Desk:
    return Desk(items.draw(run, SampleOptions(**{"name": "sts", "of": "sts", "size": 40, **options})))


def answer(desk: Desk, person: str, wrong: Mapping[str, int] | None = None) -> None:
    """Have a person say what is published, but for so many items of each kind."""
    left, other = Counter(wrong or {}), {"yes": "no", "no": "yes"}
    said = []
    for row_id, ids, label in desk.sample.survey.select("row_id", "ids", "verdict").iter_rows():
        name = ids[0].partition("-")[0]
        if row_id in {row.row_id for row in desk.rows(person)}:
            said.append(Answer(row_id, other[label] if left[name] > 0 else label))
            left[name] -= 1
    desk.record(person, said)


def proof(run: Path, desk: Desk) -> Any:
    return item_proof.prove(desk, items.of_run(run, kind("sts"))).to_json()


def test_a_sample_goes_over_the_strata_and_shows_no_label(run: Path) -> None:
    desk = drawn(run)
    strata = {each.name: (each.size, each.drawn) for each in desk.sample.design.strata}
    assert {name: size for name, (size, _) in strata.items()} == {f"test, {name}": n for name, n in SIZES.items()}
    assert sum(count for _, count in strata.values()) == 40
    assert min(count for _, count in strata.values()) >= 5, "a small stratum is not left out"
    sheet = paper.hand_out(desk, run / "sheets")[0].read_text(encoding="utf-8-sig")
    header, *rows = csv.reader(sheet.splitlines())
    assert header == ["编号", "文本一", "文本二", "两句话的意思相同吗？ (yes / no)", "备注", "评审人"]
    assert {row[3] for row in rows} == {""}
    assert not any(row[0].partition("-")[0] in SIZES for row in rows), "an id would tell the label"
    again = items.draw(run, SampleOptions(name="again", of="pairs", size=40))
    assert sorted(again.survey["ids"].to_list()) == sorted(desk.sample.survey["ids"].to_list()), "by seed"
    guide = (run / "sheets" / "GUIDE.html").read_text(encoding="utf-8")
    assert "两句话的意思相同吗？" in guide
    assert "Do both sentences mean the same?" in guide
    assert "同一个回答" in guide


def test_sheets_come_back_and_disputed_rows_are_settled(run: Path) -> None:
    desk = drawn(run, assessors=("wang", "li"), overlap=1.0, language="en")
    sheets = paper.hand_out(desk, run / "sheets", ("csv", "xlsx"))
    rows = list(csv.reader(sheets[0].read_text(encoding="utf-8-sig").splitlines()))
    assert rows[0][3] == "Do both sentences mean the same? (yes / no)"
    for row in rows[1:]:
        row[3] = "YES"
    with sheets[0].open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    [taken] = paper.take_back(desk, [sheets[0]])
    assert (taken.assessor, taken.answers) == ("wang", 40)
    answer(desk, "li")
    found = proof(run, desk)
    negative = found["disagreements"]
    assert (
        negative
        == found["disagreements_between_people"]
        == sum(1 for row in desk.sample.survey["verdict"] if row == "no")
    )
    path, count = paper.dispute(desk, run / "disputed.csv")
    assert count == negative
    assert "published: no" in path.read_text(encoding="utf-8-sig")
    desk.record(ADJUDICATED, [Answer(row.row_id, "no") for row in desk.rows(ADJUDICATED)])
    assert proof(run, desk)["disagreements"] == 0


def test_precision_is_weighted_to_all_published_items(run: Path) -> None:
    desk = drawn(run)
    assert proof(run, desk)["precision"] is None, "nobody has read anything"
    answer(desk, "assessor", {"positive": 4, "hard": 2})
    found = proof(run, desk)
    count = {each["stratum"]: each["read"] for each in found["strata"]}
    wrong = {"test, positive": 4, "test, hard": 2}
    parts = [
        StratumCounts(SIZES[name.partition(", ")[2]], n, n - wrong.get(name, 0)) for name, n in sorted(count.items())
    ]
    expected = share(parts)
    assert expected is not None
    assert found["precision"] == {**expected.bounds(4), "answered": 40}
    plain = sum(part.size * part.hits / part.answered for part in parts) / 100
    assert found["precision"]["value"] == pytest.approx(plain, abs=1e-4)
    assert 0 < found["kappa"]["published"]["value"] < 1
    assert found["disagreements_with_labels"] == 6
    lines = [str(row["figure"]) for row in item_proof.lines(ItemProof.from_json(found))]
    assert lines[0] == "published labels that people confirm (precision)"
    assert [line.strip() for line in lines[1:4]] == ["test, easy", "test, hard", "test, positive"]


def test_open_items_widen_the_precision_to_what_any_answers_give(run: Path) -> None:
    desk, right, wrong = drawn(run, name="open"), drawn(run, name="right"), drawn(run, name="wrong")
    labels = list(desk.sample.survey.select("row_id", "verdict").iter_rows())
    desk.record("assessor", [Answer(*row) for row in labels[:30]])
    answer(right, "assessor")
    other = {"yes": "no", "no": "yes"}
    texts = {tuple(ids): name for name, ids in wrong.sample.survey.select("row_id", "ids").iter_rows()}
    same = [texts[tuple(ids)] for ids in desk.sample.survey["ids"]]
    wrong.record(
        "assessor",
        [
            Answer(name, label if at < 30 else other[label])
            for at, (name, (_, label)) in enumerate(zip(same, labels, strict=True))
        ],
    )
    found = proof(run, desk)
    assert found["worst_case"] == {
        "low": proof(run, wrong)["precision"]["low"], "high": proof(run, right)["precision"]["high"]
    }  # fmt: skip
    assert "worst_case" not in proof(run, right)
    assert list(item_proof.lines(ItemProof.from_json(found)))[1]["figure"] == "  for any answers to the open rows"


def test_two_people_have_a_kappa_where_both_read(run: Path) -> None:
    desk = drawn(run, assessors=("wang", "li"), overlap=0.5)
    for person in ("wang", "li"):
        answer(desk, person, {"positive": 1} if person == "li" else None)
    found = proof(run, desk)
    both = sum(len(row["assessors"]) == 2 for row in desk.sample.survey.iter_rows(named=True))
    assert both == 20
    assert found["kappa"]["people"]["wang, li"]["grades"]["answered"] == both
    assert found["alpha"]["answered"] == both
    assert set(found["people"]) == {"wang", "li"}
    assert not any("wang" in str(row) for row in item_proof.on_card([ItemProof.from_json(found)])), (
        "the card names nobody"
    )


def test_what_was_read_of_other_items_gives_no_figure(run: Path) -> None:
    desk = drawn(run)
    answer(desk, "assessor")
    pairs = read_table(run / "sts", "pairs")
    write_table(run / "sts", "pairs", pairs.with_columns(label=1 - pl.col("label")))
    found = proof(run, desk)
    assert (found["outdated"], found["read"], found["precision"], found["kappa"]["published"]) == (True, 40, None, None)
    assert any("so there are no figures" in line for line in report_items(desk, []).lines)
    assert "other items" in str(item_proof.on_card([ItemProof.from_json(found)]))
    write_table(run / "sts", "pairs", pairs.reverse().with_columns(term=pl.lit("x")))
    assert not proof(run, desk)["outdated"], "neither order nor other columns were read"


def test_what_is_said_of_items_grades_no_document(run: Path) -> None:
    answer(drawn(run), "assessor")
    assert graded_desks(run) == []
    assert settled(run).is_empty()
    assert [desk.sample.design.name for desk in items.item_desks(run)] == ["sts"]
    assert items.item_desks(run, "other") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"of": "stss"}, "expected labels, audit, or a kind of benchmark; did you mean 'sts'"),
        ({"of": "retrieval"}, "a kind of benchmark"),
        ({"controls": 3}, "--controls: pairs of query and document are planted"),
        ({"known": Path("x.tsv")}, "known: pairs"),
        ({"target": "recall"}, "found 'recall', but only precision"),
        ({"size": None, "margins": ("recall=0.1",)}, "found 'recall', but only precision"),
    ],
)
def test_what_cannot_be_drawn_is_refused(run: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        drawn(run, **options)
    assert not (run / "reviews").exists()


def test_without_items_there_is_nothing_to_check(run: Path) -> None:
    write_table(run / "sts", "pairs", frame("pairs", []))
    with pytest.raises(DataError, match="pairs has no row, so there is nothing to check"):
        drawn(run)
    (run / "sts" / "pairs.parquet").unlink()
    with pytest.raises(DataError, match="run `curate sts` first"):
        drawn(run)


def test_a_margin_gives_the_smallest_size(run: Path) -> None:
    wish = SampleOptions(name="sts", of="sts", margins=("0.1",))
    planned = items.plan(run, wish)
    [width] = planned.verdicts.values()
    assert width is not None
    assert width <= 0.1
    fewer = items.plan(run, SampleOptions(name="sts", of="sts", size=sum(each.drawn for each in planned.strata) - 1))
    [wider] = fewer.verdicts.values()
    assert wider is not None
    assert wider > 0.1
    assert items.plan(run, SampleOptions(name="sts", of="sts", margins=("precision=0.1",))) == planned


@pytest.mark.slow
@given(st.integers(2, 60), st.booleans())
def test_items_of_any_classes_get_a_sheet(number: int, single: bool) -> None:
    """Their answers are classes of which there may be many, with one text to read or two."""
    labels = tuple(f"class {place}" for place in range(number))
    rows = [
        {"item_id": f"i{place}", "text1": "a", "text2": None if single else "b", "label": label, "stratum": label}
        for place, label in enumerate(labels)
    ]
    schema = dict.fromkeys(("item_id", "text1", "text2", "label", "stratum"), pl.String)
    made = ReviewItems(pl.DataFrame(rows, schema), labels, {"en": "Which class?"})
    assert items.state(made) != items.state(ReviewItems(made.rows.head(1), labels, made.question))
    scale = Scale(labels, order="nominal").to_json()
    facts: dict[str, Any] = {"question": made.question}
    design = Design("x", ITEM_FORMS[not single], "en", 0, ["a"], [], facts=facts, scale=scale)
    form = Sample(Path("x"), design, frame("survey")).form
    assert form.answers == labels
    assert form.header[-3].startswith("Which class?")
    assert len(form.header[-3]) < 200
    assert len(form.texts) == 1 + (not single)
