"""The audit of a set with graded labels, on real grades of people and judges that replay them.

The judges know the labels, so this shows the counting and nothing of any judge: plumbing.
"""

import csv
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate import load_task
from tests.support.runs import complaint, ran

RUBRIC = ["--set", "judge.rubric=rubric-en-trec", "--set", "judge.batch=1", "--language", "en"]
CUT = 3
"""Lowest score of the set's labels, 1 to 4, that means relevant: people's grades 2 and 3 of 0 to 3."""


@pytest.fixture(scope="module")
def grades(shared_data: Path) -> dict[tuple[str, str], int]:
    """Return people's grades, 0 to 3, of the real slice."""
    with (shared_data / "multirater" / "llmjudge_8queries_5judges.csv").open(encoding="utf-8") as stream:
        return {(row["query_id"], row["doc_id"]): int(row["human"]) for row in csv.DictReader(stream)}


def write(folder: Path, grades: dict[tuple[str, str], int]) -> list[str]:
    """Write the set with labels one above people's grades, a run file of all pairs, and return the options."""
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    queries, docs = (sorted({pair[at] for pair in grades}) for at in (0, 1))
    for name, ids, word in (("queries", queries, "question"), ("corpus", docs, "passage")):
        lines = [json.dumps({"_id": key, "title": "", "text": f"The {word} that is called {key}."}) for key in ids]
        (data / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    label(folder, {pair: grade + 1 for pair, grade in grades.items()})
    run = [f"{query} Q0 {doc} {at} {-at} all" for at, (query, doc) in enumerate(grades, start=1)]
    (folder / "all.run").write_text("\n".join(run) + "\n")
    found = ["--retrievers", "all", "--set", "retrievers.all={kind: runfile, path: all.run}", "--depth", "1000"]
    return [*found, "--set", "pool.size=1000", *RUBRIC]


def label(folder: Path, scores: dict[tuple[str, str], int]) -> None:
    lines = [f"{query}\t{doc}\t{score}\n" for (query, doc), score in scores.items()]
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))


def judge(folder: Path, name: str, grades: dict[tuple[str, str], int]) -> list[str]:
    rows = [f"{query}\t{doc}\t{grade}" for (query, doc), grade in grades.items()]
    random.Random(name).shuffle(rows)  # judges of one content would be one judge
    (folder / f"{name}.tsv").write_text("query_id\tdoc_id\tgrade\n" + "\n".join(rows) + "\n")
    return ["--set", f"judges.{name}={{kind: replay, path: {name}.tsv}}"]


def totals(folder: Path) -> dict[str, int]:
    counts = pl.read_parquet(folder / "runs" / "audit-data" / "audit" / "audited.parquet").drop("query_id")
    return {name: int(counts[name].sum()) for name in counts.columns}


def test_without_the_cut_an_audit_stops_and_asks(tmp_path: Path, grades: dict[tuple[str, str], int]) -> None:
    options = write(tmp_path, grades)
    said = complaint(tmp_path, "audit", "data", "--models", "lexical", "--json", *options)
    counts = [sum(grade + 1 == score for grade in grades.values()) for score in (1, 2, 3, 4)]
    expected = ", ".join(f"{score} ({count:,})" for score, count in zip((1, 2, 3, 4), counts, strict=True))
    assert f"the qrels have the scores {expected}" in said
    assert "curate audit data --relevant-from N" in said
    assert "the qrels have" in complaint(tmp_path, "audit", "data", "--models", "lexical", "--plan", *options)
    assert not (tmp_path / "runs" / "audit-data" / "mask").exists()


def test_judges_that_replay_people_find_no_wrong_label(tmp_path: Path, grades: dict[tuple[str, str], int]) -> None:
    options = write(tmp_path, grades)
    options += [word for name in "abc" for word in judge(tmp_path, name, grades)]
    done = ran(tmp_path, "audit", "data", "--models", "a,b,c", *options, "--relevant-from", str(CUT))
    assert "labels of 3 and above count as relevant" in done.stdout
    assert f"{CUT} and above count as relevant" in done.stderr
    found, right = totals(tmp_path), sum(grade + 1 >= CUT for grade in grades.values())
    assert (found["labels"], found["confirmed"]) == (right, right)
    assert (found["false_positives"], found["false_negatives"], found["contested"]) == (0, 0, 0)
    repaired = pl.read_parquet(tmp_path / "runs" / "audit-data" / "audit" / "qrels.parquet")
    assert {row[:2]: row[2] for row in repaired.iter_rows()} == {pair: each + 1 for pair, each in grades.items()}


@pytest.mark.parametrize("alike", [0, 0.25], ids=["alone", "a quarter with the others"])
def test_a_judge_that_errs_on_a_tenth_is_counted_as_by_hand(
    tmp_path: Path, grades: dict[tuple[str, str], int], alike: float
) -> None:
    """Its errors make pairs contested; where all err alike, labels are wrong in both directions."""
    chance = random.Random(5)
    options, pairs = write(tmp_path, grades), sorted(grades)
    erring = set(chance.sample(pairs, len(pairs) // 10))
    all_wrong = set(chance.sample(sorted(erring), round(len(erring) * alike)))

    def said(name: str) -> dict[tuple[str, str], int]:
        wrong = erring if name == "a" else all_wrong
        return {pair: 3 - grade if pair in wrong else grade for pair, grade in grades.items()}

    panel = {name: said(name) for name in "abc"}
    options += [word for name, each in panel.items() for word in judge(tmp_path, name, each)]
    ran(tmp_path, "audit", "data", "--models", "a,b,c", *options, "--relevant-from", str(CUT))
    counts: dict[str, int] = dict.fromkeys(("confirmed", "false_positives", "false_negatives", "contested"), 0)
    for pair, grade in grades.items():
        sides, label = {each[pair] >= 2 for each in panel.values()}, grade + 1 >= CUT
        if len(sides) > 1:
            counts["contested"] += label
        elif sides == {True}:
            counts["confirmed" if label else "false_negatives"] += 1
        else:
            counts["false_positives"] += label
    found = totals(tmp_path)
    assert {name: found[name] for name in counts} == counts
    assert [counts[name] > 0 for name in counts] == [True, alike > 0, alike > 0, True]
    _repaired(tmp_path, grades, panel)


def _repaired(folder: Path, grades: dict[tuple[str, str], int], panel: dict[str, dict[tuple[str, str], int]]) -> None:
    """Hold that the repaired labels keep the scores of the set."""
    repaired = pl.read_parquet(folder / "runs" / "audit-data" / "audit" / "qrels.parquet")
    expected: dict[tuple[Any, ...], int] = {}
    for pair, grade in grades.items():
        sides, score = {each[pair] >= 2 for each in panel.values()}, grade + 1
        if sides == {False} and score >= CUT:
            continue
        expected[pair] = CUT if sides == {True} and score < CUT else score
    assert {row[:2]: row[2] for row in repaired.iter_rows()} == expected


GRADED = {"q1": {"d1": 0, "d2": 1, "d3": 2, "d4": 3}, "q2": {"d1": 1, "d2": 0}}
"""People's grades of a small set; q2 has nothing relevant."""


def flat(grades: dict[str, dict[str, int]]) -> dict[tuple[str, str], int]:
    return {(query, doc): grade for query, docs in grades.items() for doc, grade in docs.items()}


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Write the small set and two judges, who find d1 of q1 relevant and d3 not, and return the words of an audit."""
    grades = flat(GRADED)
    options = write(tmp_path, grades)
    said = {**grades, ("q1", "d1"): 2, ("q1", "d3"): 1}
    options += [word for name in "ab" for word in judge(tmp_path, name, said)]
    return ["audit", "data", "--models", "a,b", *options]


def rows(path: Path) -> dict[tuple[str, str], int]:
    with path.open(encoding="utf-8") as stream:
        _, *found = csv.reader(stream, delimiter="\t")
    return {(query, doc): int(score) for query, doc, score in found}


def test_the_repaired_set_keeps_its_scale_and_says_so(tmp_path: Path, small: list[str]) -> None:
    """d1 of q1, a 1, becomes the weakest score that means relevant; d3, a 3, has no row; all else is as it was."""
    complaint(tmp_path, *small)
    ran(tmp_path, *small, "--relevant-from", str(CUT))
    audit = tmp_path / "runs" / "audit-data" / "audit"
    repaired = {("q1", "d1"): 3, ("q1", "d2"): 2, ("q1", "d4"): 4, ("q2", "d1"): 2, ("q2", "d2"): 1}
    assert rows(audit / "qrels.tsv") == repaired
    found = json.loads((audit / "audit.json").read_text(encoding="utf-8"))
    assert found["relevant_from"] == CUT
    assert found["queries_without_label"] == 1
    page = (audit / "audit.html").read_text(encoding="utf-8")
    assert "those with a score of 3 or more mean relevant" in page
    assert "those left of the bar mean relevant: 3 2 | 1 0." in page
    assert '<b class="g-x1">2</b>' in page
    assert "b.g-x1 { background:" in page


def test_stock_mteb_gets_the_scores_of_queries_with_a_positive(tmp_path: Path, small: list[str]) -> None:
    ran(tmp_path, *small, "--relevant-from", str(CUT))
    task = load_task(tmp_path / "runs" / "audit-data" / "audit" / "mteb" / "retrieval")
    task.load_data()
    (data,) = [splits["test"] for splits in task.dataset.values()]
    assert data["relevant_docs"] == {"q1": {"d1": 3, "d2": 2, "d4": 4}}
    card = (tmp_path / "runs/audit-data/audit/mteb/README.md").read_text(encoding="utf-8")
    assert "Scores are those of the set: 3 and above mean relevant, what was added has 3" in card
    assert "Labels are binary" not in card
    assert "| positives | 2 |" in card
    assert "| negatives | 1 |" in card


def test_another_cut_makes_the_audit_again(tmp_path: Path, small: list[str]) -> None:
    ran(tmp_path, *small, "--relevant-from", str(CUT))
    assert totals(tmp_path)["labels"] == 2
    done = ran(tmp_path, "audit", "--relevant-from", "2")
    assert "audit: started again" in done.stderr
    assert totals(tmp_path)["labels"] == 4
    assert rows(tmp_path / "runs" / "audit-data" / "audit" / "qrels.tsv")["q1", "d1"] == 2


def test_what_a_score_means_is_no_matter_of_the_queries_that_are_taken(tmp_path: Path, small: list[str]) -> None:
    """q3 alone has labels of one score."""
    with (tmp_path / "data" / "queries.jsonl").open("a") as stream:
        stream.write(json.dumps({"_id": "q3", "text": "Another question."}) + "\n")
    with (tmp_path / "data" / "qrels" / "test.tsv").open("a") as stream:
        stream.write("q3\td4\t4\n")
    assert "1 (2), 2 (2), 3 (1), 4 (2)" in complaint(tmp_path, *small, "--set", "ingest.ids=[q3]")


def test_a_cut_above_all_scores_is_refused_before_anything_is_judged(tmp_path: Path, small: list[str]) -> None:
    said = complaint(tmp_path, *small, "--relevant-from", "5")
    assert "ingest.relevant_from: found 5, but the qrels have the scores 1 (2), 2 (2), 3 (1), 4 (1)" in said
    assert "Invalid value for '--relevant-from'" in complaint(tmp_path, *small, "--relevant-from", "0")


def test_a_set_that_counts_from_nought_keeps_its_noughts(tmp_path: Path, small: list[str]) -> None:
    label(tmp_path, flat(GRADED))
    ran(tmp_path, *small, "--relevant-from", "2")
    found = rows(tmp_path / "runs" / "audit-data" / "audit" / "qrels.tsv")
    assert found == {("q1", "d1"): 2, ("q1", "d2"): 1, ("q1", "d4"): 3, ("q2", "d1"): 1, ("q2", "d2"): 0}


def test_labels_of_one_score_ask_nothing_and_drop_noughts_as_ever(tmp_path: Path, small: list[str]) -> None:
    label(tmp_path, {pair: int(grade > 1) for pair, grade in flat(GRADED).items()})
    ran(tmp_path, *small)
    run = tmp_path / "runs" / "audit-data"
    assert rows(run / "audit" / "qrels.tsv") == {("q1", "d1"): 1, ("q1", "d4"): 1}
    assert not (run / "ingest" / "labels.json").exists()
    assert "relevant_from" not in json.loads((run / "audit" / "audit.json").read_text(encoding="utf-8"))


def test_a_sample_for_people_is_drawn_by_the_labels_from_the_cut_on(tmp_path: Path, small: list[str]) -> None:
    ran(tmp_path, *small, "--relevant-from", str(CUT))
    ran(tmp_path, "review", "export", "--of", "audit", "--size", "6", "--assessors", "anna", "--controls", "0")
    design = json.loads((tmp_path / "runs/audit-data/reviews/audit/design.json").read_text(encoding="utf-8"))
    assert {each["name"]: each["size"] for each in design["strata"]} == {
        "relevant, legacy +": 1,
        "not relevant, legacy +": 1,
        "relevant, legacy -": 1,
        "not relevant, near, legacy -": 3,
    }


def test_a_benchmark_of_such_a_set_goes_on_and_says_what_it_takes(tmp_path: Path) -> None:
    write(tmp_path, {("q1", "d1"): 0, ("q1", "d2"): 2})
    (tmp_path / "p.yaml").write_text("version: 1\nname: p\nlanguage: en\ningest: {source: data}\n")
    done = ran(tmp_path, "ingest", "--pipeline", "p.yaml")
    assert "the qrels have the scores 1 (1), 3 (1): each counts as relevant; see ingest.relevant_from" in done.stderr
    done = ran(tmp_path, "ingest", "--pipeline", "p.yaml", "--set", "ingest.relevant_from=2")
    assert "the qrels have the scores 1 (1), 3 (1): 2 and above count as relevant" in done.stderr
