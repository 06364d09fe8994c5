"""A sample is blind, repeatable and complete, and its figures are those of the whole pool."""

import math
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.core.errors import ConfigError, DataError, UserError
from curate.core.records import TABLES
from curate.core.scale import FIVE
from curate.panel.audit_design import REST
from curate.panel.voting import PAIR
from curate.review import ADJUDICATED, Answer, Desk, Sample, audit_correction
from curate.review.desk import path as answers_of
from curate.review.drawing import SampleOptions, draw, plan
from curate.review.proof import disagreements, prove
from curate.review.showing import lines
from curate.system.files import frame, read_table, write_table
from tests.support.defined import defined
from tests.support.judged import judged

TWO = ("wang", "li")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], str]]:
    """Return a judged run of 3,000 pairs, and the truth about them."""
    run = tmp_path_factory.mktemp("reviewed") / "run"
    truth = judged(run, queries=30, depth=100)
    return run, {(query, doc): grade for query, doc, grade in truth.iter_rows()}


Pool = tuple[Path, dict[tuple[str, str], str]]


def answered(sample: Sample, truth: dict[tuple[str, str], str], people: Sequence[str] = TWO) -> Desk:
    """Have everybody give the true grade; of a document that was not pooled it is D."""
    desk = Desk(sample)
    ids = dict(sample.survey.select("row_id", "ids").iter_rows())
    for person in people:
        desk.record(person, [Answer(row.row_id, truth.get(tuple(ids[row.row_id]), "D")) for row in desk.rows(person)])
    return desk


def test_the_same_order_draws_the_same_rows_and_another_seed_others(pool: Pool) -> None:
    run, _ = pool
    first, again, other = (
        draw(run, SampleOptions(name, size=200, seed=seed)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    ids = [sample.survey["ids"].to_list() for sample in (first, again, other)]
    assert ids[0] == ids[1]
    assert sorted(ids[0]) != sorted(ids[2])
    assert not set(first.rows) & set(again.rows), "rows of another sample have other names"


def test_every_row_keeps_its_stratum_and_probability(pool: Pool) -> None:
    run, _ = pool
    sample = draw(run, SampleOptions("kept", size=300, controls=0))
    sizes = {stratum.name: stratum for stratum in sample.design.strata}
    drawn = Counter(sample.survey["stratum"])
    assert drawn == {name: each.drawn for name, each in sizes.items()}
    assert sum(each.size for each in sizes.values()) == 3000
    for name, probability in sample.survey.select("stratum", "probability").iter_rows():
        assert probability == pytest.approx(sizes[name].drawn / sizes[name].size)
    panel = read_table(run / "consensus", "verdicts")
    ids = sample.survey.select(
        query_id=pl.col("ids").list.get(0), doc_id=pl.col("ids").list.get(1), verdict="verdict", votes="votes"
    )
    assert len(ids.join(panel, on=["query_id", "doc_id", "verdict"])) == 300, "the verdicts are those that it saw"


def test_readers_have_equal_shares_and_the_overlap_has_two(pool: Pool) -> None:
    run, _ = pool
    sample = draw(run, SampleOptions("shared", size=300, assessors=("wang", "li", "zhao"), overlap=0.1, controls=9))
    readers = sample.survey.filter(pl.col("expected").is_null())["assessors"].to_list()
    assert Counter(first for first, *_ in readers) == {"wang": 100, "li": 100, "zhao": 100}
    assert Counter(map(len, readers)) == {1: 270, 2: 30}
    planted = sample.survey.filter(pl.col("expected").is_not_null())
    assert planted["assessors"].to_list() == [["wang", "li", "zhao"]] * 9
    texts = [row.texts[0] for row in sample.of("wang")]
    assert sum(one != other for one, other in pairwise(texts)) == len(set(texts)) - 1, "by query"


def test_random_controls_are_of_no_pool_and_known_ones_of_this_run(pool: Pool, tmp_path: Path) -> None:
    run, truth = pool
    (query, doc), *_ = [pair for pair, grade in truth.items() if grade == "S"]
    known = tmp_path / "known.csv"
    known.write_text(f"query_id,doc_id,grade\n{query},{doc},S\n", encoding="utf-8")
    planted = draw(run, SampleOptions("planted", size=100, controls=5, known=known)).survey.filter(
        pl.col("expected").is_not_null()
    )
    assert sorted(planted["expected"]) == ["D"] * 5 + ["S"]
    strangers = planted.filter(pl.col("expected") == "D")["ids"].to_list()
    assert not {tuple(ids) for ids in strangers} & set(truth)
    known.write_text("query_id,doc_id,grade\nq1,d1,5\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: found the grade '5', expected one of S, A, B, C, D"):
        draw(run, SampleOptions("refused", size=100, known=known))
    assert not (run / "reviews" / "refused").exists()


def test_no_control_stands_twice_in_a_sheet_or_is_a_drawn_row(pool: Pool, tmp_path: Path) -> None:
    run, truth = pool
    drawn = draw(run, SampleOptions("before", size=100, controls=0)).survey["ids"].to_list()
    query, doc = drawn[0]
    other = next(pair for pair in truth if list(pair) not in drawn)
    known = tmp_path / "known.csv"
    rows = ["query_id,doc_id,grade", f"{query},{doc},S", f"{other[0]},{other[1]},A", f"{other[0]},{other[1]},A"]
    known.write_text("\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 4: found a pair for the second time"):
        draw(run, SampleOptions("repeated", size=100, controls=0, known=known))
    known.write_text("\n".join(rows[:3]) + "\n", encoding="utf-8")
    ids = draw(run, SampleOptions("unrepeated", size=100, controls=0, known=known)).survey["ids"].to_list()
    assert sorted(ids) == sorted([*drawn, list(other)])


def test_controls_that_cannot_be_found_are_a_sentence(tmp_path: Path) -> None:
    judged(tmp_path, queries=1, depth=100)
    with pytest.raises(ConfigError, match=r"--controls: found 100 pairs with a document of no pool, expected 101"):
        draw(tmp_path, SampleOptions(size=50, controls=101))
    assert not (tmp_path / "reviews").exists()


def test_a_sample_is_never_drawn_over(pool: Pool) -> None:
    run, _ = pool
    draw(run, SampleOptions("once", size=100))
    with pytest.raises(UserError, match="holds a sample already"):
        draw(run, SampleOptions("once", size=100))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "either --size N or --margin M"),
        ({"size": 10, "margins": ("0.1",)}, "either --size N or --margin M"),
        ({"size": 10, "target": "kappa"}, "--target: found 'kappa'"),
        ({"size": 10, "target": "recall", "of": "audit"}, "expected fp or none; leave out --target"),
        ({"size": 10, "target": "fp"}, "--target: found 'fp'"),
        ({"size": 10, "assessors": ("a", "a")}, "differ by more than case or width"),
        ({"size": 10, "assessors": ("Wang", "ｗang")}, "differ by more than case or width"),
        ({"size": 10, "name": "my sample"}, "sample 'my sample': expected 1 to 40"),
        ({"size": 10, "assessors": ("../x",)}, "without blanks"),
        ({"size": 10, "assessors": (ADJUDICATED.title(),)}, "kept for final answers"),
        ({"size": 10, "overlap": 0.1}, "two assessors"),
        ({"size": 10, "controls": -1}, "0 or more"),
    ],
)
def test_an_impossible_order_is_a_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SampleOptions(**wrong)


@pytest.fixture
def audit(pool: Pool, tmp_path: Path) -> Pool:
    """Return a copy of the run with labels: half of the relevant documents, and every 40th of the others."""
    run, truth = pool
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    good = [pair for pair, grade in truth.items() if grade in "SA"][::2]
    bad = [pair for pair, grade in truth.items() if grade not in "SA"][::40]
    write_table(
        copy / "diversify",
        "qrels",
        frame("qrels", [dict(zip((*PAIR, "score"), (*pair, 1), strict=True)) for pair in good + bad]),
    )
    hits = [
        [{"retriever": "bm25", "rank": rank, "score": None}] for rank in read_table(copy / "pool", "pool")["position"]
    ]
    write_table(
        copy / "pool",
        "pool",
        read_table(copy / "pool", "pool").with_columns(hits=pl.Series(hits, dtype=TABLES["pool"]["hits"])),
    )
    return copy, truth


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "options", "expected"),
    [
        (300, {"assessors": TWO}, 50),
        (600, {"assessors": TWO}, 60),
        (60, {"assessors": TWO}, 50),
        (55, {"assessors": TWO, "of": "audit"}, 50),
        (300, {"assessors": TWO, "overlap": 0.0}, 0),
        (300, {"assessors": TWO, "overlap": 0.02}, 6),
        (300, {}, 0),
    ],
)
def test_two_assessors_read_fifty_rows_or_a_tenth_twice(
    audit: Pool, size: int, options: dict[str, Any], expected: int
) -> None:
    run, _ = audit
    drawn = draw(run, SampleOptions("twice", size=size, controls=0, **options))
    assert drawn.survey["assessors"].list.len().sum() - len(drawn.survey) == expected
    assert drawn.design.overlap == pytest.approx(expected / size)


def test_a_small_sample_is_read_twice_completely() -> None:
    assert SampleOptions(size=40, assessors=TWO).share_twice(40) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("of", ["labels", "audit"])
def test_open_rows_widen_the_figures_to_what_any_answers_give(audit: Pool, of: str) -> None:
    """Whatever people answer to the open rows, the estimate is within the bounds; none are shown up to 5 % open."""
    run, truth = audit
    drawn = draw(run, SampleOptions("open", size=400, controls=0, of=of))
    queries = [f"q{number:04}" for number in range(30)]
    frames = list(audit_correction.frames(*audit_tables(run), run / "pool", FIVE))

    def figures(until: int, rest: str = "") -> tuple[Any, Any]:
        """Return the figures if all rows from `until` on are open, or have the grade `rest`."""
        shutil.rmtree(drawn.folder / "answers", ignore_errors=True)
        desk, ids = Desk(drawn), dict(drawn.survey.select("row_id", "ids").iter_rows())
        answers = [Answer(row.row_id, truth[tuple(ids[row.row_id])]) for row in desk.rows("assessor")]
        last = [Answer(answer.row_id, rest) for answer in answers[until:]] if rest else []
        desk.record("assessor", [*answers[:until], *last])
        corrected = audit_correction.corrected_counts(desk, frames, queries).to_json() if of == "audit" else None
        return prove(desk).to_json(), corrected

    assert all("worst_case" not in (record or {}) for record in (*figures(380), *figures(0)))
    proof, corrected = figures(340)
    best, worst = (figures(340, grade) for grade in "SD")
    for name in ("agreement", "recall"):
        bounds = proof["worst_case"][name]
        assert bounds["low"] < proof[name]["low"] < proof[name]["high"] < bounds["high"]
    bounds = proof["worst_case"]["confirmed"]["relevant"]
    # all positives that are open are confirmed by S, and rejected by D
    assert bounds["high"] == best[0]["confirmed"]["relevant"]["high"]
    assert bounds["low"] == worst[0]["confirmed"]["relevant"]["low"]
    table = {row["figure"]: row for row in lines(proof)}
    assert table["relevant: confirmed"]["at worst"] == bounds["low"]
    assert "at worst" not in next(lines(best[0]))
    if corrected:
        for name in ("false_negatives", "positives", "precision"):
            assert corrected["worst_case"][name] == {"low": worst[1][name]["low"], "high": best[1][name]["high"]}
        bounds = corrected["worst_case"]["false_positives"]
        assert bounds == {"low": best[1]["false_positives"]["low"], "high": worst[1]["false_positives"]["high"]}


def audit_tables(run: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    return read_table(run / "consensus", "verdicts"), read_table(run / "diversify", "qrels")


@pytest.mark.slow
def test_a_plan_of_an_audit_says_how_many_answers_a_half_width_needs(audit: Pool) -> None:
    run, _ = audit
    stratified, planned = plan(run, SampleOptions("audit", size=300, of="audit"))
    assert len(planned.strata) == 7
    rest, queries = stratified.filter(pl.col("stratum") == REST).height, 30
    assert planned.audit is not None
    assert planned.audit.rest_answers == pytest.approx(3.7 * rest / queries)
    needed = math.ceil(3.7 * rest / queries / 0.5)
    assert planned.notes[0].endswith(f"in the stratum 'not relevant, rest, legacy -': {needed} for 0.5")
    assert planned.widths()[0]["figure"] == "false negatives per query"


def test_a_margin_gives_the_size_that_keeps_it(pool: Pool) -> None:
    run, _ = pool
    _, planned = plan(run, SampleOptions(margins=("0.02",)))
    assert list(planned.aims) == ["agreement"]
    assert defined(planned.figures["agreement"]) <= 0.02
    assert sum(each.drawn for each in planned.strata) < 3000


def test_what_a_sample_was_drawn_for_is_kept_and_its_answers_teach_the_next(pool: Pool, tmp_path: Path) -> None:
    """A guess weighs as much as 20 answers: (x + 20 g) / (n + 20)."""
    run, truth = pool
    copy = tmp_path / "run"
    for stage in ("diversify", "pool", "consensus"):
        shutil.copytree(run / stage, copy / stage)
    _, before = plan(copy, SampleOptions(margins=("precision=0.1", "recall=0.2")))
    first = draw(copy, SampleOptions("first", margins=("precision=0.1", "recall=0.2"), controls=0))
    assert Sample.load(first.folder).design.facts["aims"] == {"precision": 0.1, "recall": 0.2}
    rows = {
        row.row_id: truth[tuple(row_ids)] for row, row_ids in zip(first.rows.values(), first.survey["ids"], strict=True)
    }
    Desk(first).record("assessor", [Answer(row_id, grade) for row_id, grade in rows.items()])
    _, after = plan(copy, SampleOptions(size=300))
    for old, new in zip(before.strata, after.strata, strict=True):
        own = first.survey.filter(pl.col("stratum") == old.stratum)
        relevant = sum(rows[row_id] in FIVE.relevant for row_id in own["row_id"])
        wrong = len(own) - relevant if old.stratum.startswith("relevant") else relevant
        assert new.answers == len(own) == old.drawn
        assert new.guess == pytest.approx((wrong + 20 * old.guess) / (len(own) + 20))


def test_the_figures_are_those_of_the_pool_by_hand(pool: Pool) -> None:
    """Faultless readers: every figure against sums over rows with their weights, written out here."""
    run, truth = pool
    desk = answered(draw(run, SampleOptions("figures", size=500, assessors=TWO, overlap=0.2, seed=3)), truth)
    figures: dict[str, Any] = prove(desk).to_json()
    rows = [
        (verdict, truth[query, doc] in FIVE.relevant, 1 / probability)
        for (query, doc), verdict, probability, expected in desk.sample.survey.select(
            "ids", "verdict", "probability", "expected"
        ).iter_rows()
        if expected is None
    ]

    def weight(*verdicts: str, yes: bool | None = None) -> float:
        return math.fsum(by for verdict, good, by in rows if verdict in verdicts and yes in (None, good))

    decided = ("relevant", "not relevant")
    agreeing = weight("relevant", yes=True) + weight("not relevant", yes=False)
    assert figures["agreement"]["value"] == pytest.approx(agreeing / weight(*decided), abs=1e-4)
    assert figures["confirmed"]["relevant"]["value"] == pytest.approx(
        weight("relevant", yes=True) / weight("relevant"), abs=1e-4
    )
    assert figures["relevant"]["contested"]["value"] == pytest.approx(
        weight("contested", yes=True) / weight("contested"), abs=1e-4
    )
    everywhere = weight(*decided, "contested", yes=True)
    assert figures["recall"]["value"] == pytest.approx(weight("relevant", yes=True) / everywhere, abs=1e-4)
    assert figures["held"]["value"] == pytest.approx(weight("contested", yes=True) / everywhere, abs=1e-4)
    assert figures["negative_recall"]["value"] == pytest.approx(
        weight("not relevant", yes=False) / weight(*decided, "contested", yes=False), abs=1e-4
    )
    plain = [good == (verdict == "relevant") for verdict, good, _ in rows if verdict in decided]
    assert figures["plain"]["value"] == pytest.approx(np.mean(plain), abs=1e-4)
    assert figures["kappa"]["people"]["wang, li"]["cut"]["value"] == 1.0
    assert figures["people"]["wang"]["controls"] == {"value": 1.0, "low": 0.7225, "high": 1.0, "answered": 10}
    assert figures["agreement"]["low"] < figures["agreement"]["value"] < figures["agreement"]["high"]
    assert {row["figure"] for row in lines(figures)} >= {"kappa of one and people, cut", "controls right: li"}


@pytest.mark.parametrize("name", ["design.json", "survey.parquet"])
@pytest.mark.parametrize("content", [None, b"", b"{", b'{"version": 1}', b"[]"])
def test_a_damaged_sample_is_a_sentence(pool: Pool, tmp_path: Path, name: str, content: bytes | None) -> None:
    run, _ = pool
    folder = run / "reviews" / "whole"
    if not folder.exists():
        draw(run, SampleOptions("whole", size=100))
    copy = Path(shutil.copytree(folder, tmp_path / "damaged"))
    (copy / name).unlink() if content is None else (copy / name).write_bytes(content)
    with pytest.raises(UserError, match=r"damaged: (no such sample|design.json or survey.parquet is damaged)"):
        Sample.load(copy)


def test_nothing_read_proves_nothing(pool: Pool) -> None:
    run, _ = pool
    figures: dict[str, Any] = prove(Desk(draw(run, SampleOptions("unread", size=100)))).to_json()
    assert (figures["read"], figures["agreement"], figures["recall"], figures["kappa"]["panel"]) == (
        0,
        None,
        None,
        None,
    )
    assert [row["value"] for row in lines(figures)] == [None] * len(list(lines(figures)))


def test_a_judge_that_rated_half_of_a_stratum_does_not_count_double(pool: Pool) -> None:
    """Kappa by hand: a row counts pairs / rows read of its stratum, however many of them the judge rated."""
    run, truth = pool
    drawn = draw(run, SampleOptions("half", size=400, controls=0, seed=8))
    votes = pl.col("votes").list.eval(pl.element().filter(pl.element().struct.field("judge") != "one"))
    silent = pl.col("stratum").str.starts_with("contested") | (pl.int_range(pl.len()) % 3 == 0)
    gone = drawn.survey.with_columns(votes=pl.when(silent).then(votes).otherwise("votes"))
    desk = answered(Sample(drawn.folder, drawn.design, gone), truth, ["assessor"])
    sizes = {stratum.name: stratum.size for stratum in drawn.design.strata}
    read = Counter(gone["stratum"])
    cells = np.zeros((2, 2))
    for ids, stratum, given in gone.select("ids", "stratum", "votes").iter_rows():
        for vote in given:
            if vote["judge"] == "one":
                cells[int(vote["grade"] in FIVE.relevant), int(truth[tuple(ids)] in FIVE.relevant)] += (
                    sizes[stratum] / read[stratum]
                )
    cells /= cells.sum()
    chance = float(cells.sum(axis=0) @ cells.sum(axis=1))
    figures: dict[str, Any] = prove(desk).to_json()
    assert figures["kappa"]["judges"]["one"]["cut"]["value"] == pytest.approx(
        (float(np.trace(cells)) - chance) / (1 - chance), abs=1e-4
    )
    values = [figure["cut"]["value"] for figure in figures["kappa"]["judges"].values()]
    assert values == sorted(values, reverse=True), "the judge that agrees best comes first"


def test_a_stratum_that_nobody_read_leaves_every_figure_of_the_pool_open(pool: Pool) -> None:
    run, truth = pool
    desk = Desk(draw(run, SampleOptions("partly", size=200, controls=0)))
    rows = desk.sample.survey.filter(~pl.col("stratum").str.starts_with("not relevant, all D"))
    said = [Answer(row_id, truth[tuple(ids)]) for row_id, ids in rows.select("row_id", "ids").iter_rows()]
    desk.record("assessor", said)
    figures: dict[str, Any] = prove(desk).to_json()
    assert figures["confirmed"]["relevant"] is not None
    assert figures["agreement"] is None
    assert figures["kappa"]["panel"] is None
    assert figures["kappa"]["judges"]["one"] == {"grades": None, "cut": None}
    shown = {row["figure"]: row["value"] for row in lines(figures)}
    assert shown["  not relevant, all D, top 50: confirmed"] is None
    assert shown["  relevant, one grade, top 50: confirmed"] is not None


def test_answers_of_a_stranger_are_in_no_figure_and_no_table(pool: Pool) -> None:
    run, _ = pool
    desk = Desk(draw(run, SampleOptions("visited", size=100, controls=0)))
    said = Answer(desk.rows("assessor")[0].row_id, "S")
    desk.record("assessor", [said])
    file = answers_of(desk.sample.folder, "assessor")
    (file.parent / "assessor-copy.jsonl").write_bytes(file.read_bytes())
    (file.parent / "assessor (1).jsonl").write_bytes(file.read_bytes())
    assert desk.reviews()["assessor"].to_list() == ["assessor"]


def test_the_first_reader_counts_until_a_final_answer_does(pool: Pool) -> None:
    run, truth = pool
    desk = answered(draw(run, SampleOptions("final", size=100, assessors=TWO, overlap=1.0, controls=0)), truth)
    before = len(disagreements(desk))
    row_id, readers = next(
        row
        for row in desk.sample.survey.filter(pl.col("verdict") == "relevant").select("row_id", "assessors").iter_rows()
    )
    desk.record(readers[0], [Answer(row_id, "S")])
    desk.record(readers[1], [Answer(row_id, "A")])
    assert row_id not in {row["row_id"] for row in desk.open_rows()}, "both find it relevant"
    desk.record(readers[1], [Answer(row_id, "D")])
    assert row_id in {row["row_id"] for row in desk.open_rows()}
    assert row_id in {row.row_id for row in disagreements(desk)}, "people differ"
    assert next(row for row in disagreements(desk) if row.row_id == row_id).settled == "S"
    desk.record(ADJUDICATED, [Answer(row_id, "D")])
    assert row_id not in {row.row_id for row in disagreements(desk)}
    assert len(disagreements(desk)) <= before
    figures: dict[str, Any] = prove(desk).to_json()
    assert figures["adjudicated"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("torn", [b"{", b'{"row', b'{"row_id": "r000', b'{"row_id": "r00001-abcdef", "note": "{1}'])
def test_answers_survive_a_torn_line_and_say_nothing_twice(pool: Pool, torn: bytes) -> None:
    run, _ = pool
    desk = Desk(draw(run, SampleOptions(f"torn{len(torn)}", size=100)))
    one, two, *_ = (row.row_id for row in desk.rows("assessor"))
    assert desk.record("assessor", [Answer(one, "S", "好")]) == 1
    file = answers_of(desk.sample.folder, "assessor")
    with file.open("ab") as stream:
        stream.write(torn)
    assert desk.record("assessor", [Answer(one, "S", "好"), Answer(two, "B")]) == 1, "only what is new"
    assert {row: answer.answer for row, answer in desk.said("assessor").items()} == {one: "S", two: "B"}
    desk.record("assessor", [Answer(one, None)])
    assert set(desk.said("assessor")) == {two}, "taken back"
    assert len(desk.reviews()) <= 1
    with file.open("ab") as stream:
        stream.write(b"grade: S\n")
    with pytest.raises(DataError, match=r"assessor.jsonl, line \d: found a damaged line"):
        desk.said("assessor")
    with pytest.raises(DataError, match=r"assessor.jsonl, line \d: found a damaged line"):
        plan(run, SampleOptions(size=100))  # what was said before tells where the next rows are needed
    shutil.rmtree(desk.sample.folder)


@pytest.mark.parametrize(("person", "grade"), [("stranger", "S"), ("assessor", "E"), ("assessor", "s")])
def test_only_known_people_and_answers_are_kept(pool: Pool, person: str, grade: str) -> None:
    run, _ = pool
    folder = run / "reviews" / "strict"
    desk = Desk(Sample.load(folder) if folder.exists() else draw(run, SampleOptions("strict", size=60)))
    with pytest.raises(ConfigError):
        desk.record(person, [Answer(desk.rows("assessor")[0].row_id, grade)])
    with pytest.raises(ConfigError):
        desk.record("assessor", [Answer("r99999-abcdef", FIVE.labels[0])])
