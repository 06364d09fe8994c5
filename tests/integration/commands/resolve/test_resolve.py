"""The final labels: what experts change, what they leave, and what the export says of it."""

import json
from pathlib import Path

import polars as pl
import pytest

from curate.commands.resolve.stage import opinions, resolve
from curate.core.errors import ConfigError
from curate.core.records import TABLES
from curate.core.scale import FIVE, Scale
from curate.review import ADJUDICATED, Answer, Desk, Sample, items
from curate.review.drawing import SampleOptions, texts
from curate.review.sample import Design, Stratum, name_row
from curate.system.files import frame, write_scale, write_table
from tests.support.pools import pooled, step, table
from tests.support.runs import curate

PANEL = {
    ("q1", "d1"): "relevant",
    ("q1", "d2"): "contested",
    ("q1", "d3"): "not relevant",
    ("q2", "d1"): "incomplete",
    ("q2", "d2"): "relevant",
}


def verdicts() -> pl.DataFrame:
    rows = [
        {"query_id": q, "doc_id": d, "verdict": said, "votes": [], "policy": "unanimous"}
        for (q, d), said in PANEL.items()
    ]
    return frame("verdicts", rows)


def reviews(*said: tuple[str, str, str, str]) -> pl.DataFrame:
    rows = [dict(zip(("query_id", "doc_id", "assessor", "grade"), each, strict=True)) for each in said]
    return frame("reviews", [{**row, "sampled_weight": 1.0} for row in rows])


def decided(*said: tuple[str, str, str, str]) -> dict[tuple[str, str], str]:
    final, _ = resolve(verdicts(), opinions(reviews(*said), FIVE))
    return {(q, d): verdict for q, d, verdict in final.select("query_id", "doc_id", "verdict").iter_rows()}


def test_without_reviews_the_panel_stands() -> None:
    final, overrides = resolve(verdicts(), opinions(reviews(), FIVE))
    assert final.equals(verdicts())
    assert overrides.is_empty()


def test_an_expert_decides_on_the_pairs_that_were_read_and_on_no_other() -> None:
    said = [("q1", "d1", "wang", "B"), ("q1", "d2", "wang", "S"), ("q1", "d3", "wang", "D"), ("q2", "d1", "li", "C")]
    final, overrides = resolve(verdicts(), opinions(reviews(*said), FIVE))
    assert decided(*said) == {
        **PANEL,
        ("q1", "d1"): "not relevant",
        ("q1", "d2"): "relevant",
        ("q2", "d1"): "not relevant",
    }
    assert overrides.select("query_id", "doc_id", "panel", "verdict").rows() == [
        ("q1", "d1", "relevant", "not relevant"),
        ("q1", "d2", "contested", "relevant"),
        ("q2", "d1", "incomplete", "not relevant"),
    ]
    assert final["policy"].to_list() == ["expert-over-panel"] * 4 + ["unanimous"]


def test_experts_who_disagree_change_nothing_until_it_is_adjudicated() -> None:
    both = [("q1", "d1", "wang", "S"), ("q1", "d1", "li", "D")]
    assert decided(*both) == PANEL
    assert opinions(reviews(*both), FIVE)["expert"].to_list() == [None]
    assert decided(*both, ("q1", "d1", ADJUDICATED, "C"))["q1", "d1"] == "not relevant"
    assert decided(("q1", "d1", "wang", "B"), ("q1", "d1", "li", "D"))["q1", "d1"] == "not relevant", "same side"


def test_reviews_of_other_pairs_change_nothing() -> None:
    assert decided(("q9", "d9", "wang", "S")) == PANEL


def sampled(run: Path, name: str, pairs: list[tuple[str, str]]) -> Desk:
    """Freeze a sample of some pairs of a run, all for one person."""
    queries, passages = texts(run, (doc for _, doc in pairs))
    read = [[queries[query], passages[doc]] for query, doc in pairs]
    rows = [
        {
            "row_id": name_row(name, at, pair, read[at]),
            "ids": pair,
            "texts": read[at],
            "stratum": "all",
            "probability": 0.5,
            "assessors": ["wang"],
        }
        for at, pair in enumerate(pairs)
    ]
    design = Design(name, "relevance", "zh", 1, ["wang"], [Stratum("all", 2 * len(rows), len(rows))])
    sample = Sample(run / "reviews" / name, design, frame("survey", rows))
    sample.freeze()
    return Desk(sample)


def decided_run(run: Path) -> Path:
    """Write what `diversify` and `consensus` leave."""
    pooled(run, {f"d{n}": f"文本{n}" for n in (1, 2, 3)})
    (run / "consensus").mkdir()
    write_table(run / "consensus", "verdicts", verdicts())
    write_table(run / "consensus", "dropped", frame("dropped"))
    return run


def test_what_was_said_of_other_texts_is_left_out(tmp_path: Path) -> None:
    desk = sampled(decided_run(tmp_path), "expert", [("q1", "d1"), ("q1", "d2")])
    desk.record("wang", [Answer(row.row_id, "D") for row in desk.rows("wang")])
    corpus = pl.read_parquet(tmp_path / "diversify" / "corpus.parquet")
    changed = corpus.with_columns(text=pl.col("text").str.replace("文本1", "另一文本"))
    write_table(tmp_path / "diversify", "corpus", changed)
    report = step(tmp_path, "resolve", {"policy": "expert-over-panel"})
    assert (report.facts["reviewed"], report.facts["outdated"]) == (1, 1)
    assert any("texts of 1 pairs changed" in note for note in report.notes)
    assert table(tmp_path, "resolve", "overrides")["doc_id"].to_list() == ["d2"]


def test_what_was_read_on_another_scale_is_left_out(tmp_path: Path) -> None:
    """On 3 2 1 0 an S is no grade; taken for one it would be below the cut, and the pair not relevant."""
    desk = sampled(decided_run(tmp_path), "expert", [("q1", "d1")])
    desk.record("wang", [Answer(desk.rows("wang")[0].row_id, "S")])
    (tmp_path / "judge").mkdir()
    write_scale(tmp_path / "judge", Scale(("3", "2", "1", "0"), "2", (3, 2, 1, 0)), {})
    report = step(tmp_path, "resolve", {"policy": "expert-over-panel"})
    assert report.facts["samples"] == []
    assert table(tmp_path, "resolve", "overrides").is_empty()
    assert "read on other grades than the judges now give, so left out: expert" in report.notes


def test_the_stage_reads_only_the_samples_that_it_is_told_to(tmp_path: Path) -> None:
    decided_run(tmp_path)
    dropped = [{"table": "corpus", "id": name, "stage": "consensus", "reason": "refined"} for name in ("d2", "d9")]
    write_table(tmp_path / "consensus", "dropped", frame("dropped", dropped))
    for name, grade in (("first", "S"), ("second", "D")):
        desk = sampled(tmp_path, name, [("q1", "d2")])
        desk.record("wang", [Answer(desk.rows("wang")[0].row_id, grade)])
    report = step(tmp_path, "resolve", {"policy": "expert-over-panel", "samples": ["first"]})
    facts = dict(report.facts)
    counts = facts.pop("counts")
    assert facts == {
        "policy": "expert-over-panel",
        "samples": ["first"],
        "reviewed": 1,
        "overridden": 1,
        "disputed": 0,
        "outdated": 0,
    }
    assert isinstance(counts, dict)
    assert (counts["relevant"], counts["contested"], counts["queries_with_a_positive"]) == (3, 0, 2)
    assert (report.rows_in, report.rows_out, report.dropped) == (5, 4, 1), "one is still incomplete"
    changed = "relevant 2 to 3, contested 1 to 0"
    assert report.notes == [f"experts read 1 of these pairs and changed 1 verdicts: {changed}"]
    assert table(tmp_path, "resolve", "qrels").rows() == [("q1", "d1", 1), ("q1", "d2", 1), ("q2", "d2", 1)]
    assert table(tmp_path, "resolve", "dropped")["id"].to_list() == ["d9"], "an expert found d2 relevant, so it stays"
    for name in ("verdicts", "qrels", "overrides", "dropped"):
        assert table(tmp_path, "resolve", name).schema == pl.Schema(TABLES[name])


def test_an_unknown_sample_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"resolve.samples: no sample 'exprt'"):
        step(tmp_path, "resolve", {"policy": "expert-over-panel", "samples": ["exprt"]})


def test_what_people_said_of_items_of_a_kind_changes_no_label(tmp_path: Path) -> None:
    decided_run(tmp_path)
    pair = {"pair_id": "p1", "query_id": "q1", "sentence1": "a", "sentence2": "b", "label": 1, "kind": "positive"}
    (tmp_path / "sts").mkdir()
    write_table(tmp_path / "sts", "pairs", frame("pairs", [{**pair, "split": "test"}]))
    desk = Desk(items.draw(tmp_path, SampleOptions(name="sts", of="sts", size=1)))
    desk.record("assessor", [Answer(row.row_id, "no") for row in desk.rows("assessor")])
    report = step(tmp_path, "resolve", {"policy": "expert-over-panel"})
    assert (report.facts["samples"], report.facts["reviewed"]) == ([], 0)
    with pytest.raises(ConfigError, match=r"'sts' is a sample of items of the kind 'sts', which says nothing of doc"):
        step(tmp_path, "resolve", {"policy": "expert-over-panel", "samples": ["sts"]})


def test_an_answer_makes_the_labels_stale_and_the_export_says_how_many_changed(tiny_run: Path, tmp_path: Path) -> None:
    run = tiny_run
    (query, doc), *_ = table(run, "consensus", "qrels").select("query_id", "doc_id").rows()
    desk = sampled(run, "expert", [(query, doc)])
    desk.record("wang", [Answer(desk.rows("wang")[0].row_id, "D")])
    setting = ["--set", "resolve.policy=expert-over-panel"]
    done = curate(tmp_path, "run", "tiny.yaml", *setting)
    assert done.returncode == 0, done.stderr
    assert "consensus: up to date" in done.stderr
    assert (query, doc) not in table(run, "resolve", "qrels").select("query_id", "doc_id").rows()
    assert (query, doc) in table(run, "consensus", "qrels").select("query_id", "doc_id").rows(), "the panel's stay"
    marked = json.loads((run / "export" / "stage.json").read_text(encoding="utf-8"))
    assert marked["report"]["facts"]["overridden"] == 1
    assert "experts changed" in (run / "export" / "mteb" / "README.md").read_text(encoding="utf-8")
    desk.record("wang", [Answer(desk.rows("wang")[0].row_id, "S")])
    again = curate(tmp_path, "run", "tiny.yaml", *setting)
    assert "resolve: started again, changed: files, models or answers" in again.stderr
    assert (query, doc) in table(run, "resolve", "qrels").select("query_id", "doc_id").rows()
