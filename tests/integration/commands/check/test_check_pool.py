"""`curate check pool` on a run whose truth is known, and as a user types it."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curate.commands.check.check_pool import _text
from curate.commands.check.pool import check
from curate.commands.pool.stage import pool as pooled
from curate.core.errors import DataError, UserError
from curate.review import Answer, Desk
from curate.review.drawing import SampleOptions, draw
from curate.system.files import frame, write_table
from tests.support import machine
from tests.support.runs import complaint, curate, ran, tiny

QUERIES, DOCUMENTS, DEPTH = 60, 300, 40
REACH = {"dense": 2.0, "lexical": 0.8, "old": 0.4}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[tuple[str, str]]]:
    """Return a run of three retrievers that find relevant documents independently, and all relevant pairs."""
    run, random = tmp_path_factory.mktemp("known") / "run", np.random.default_rng(11)
    for stage in ("mask", "diversify", "pool", "judge", "consensus"):
        (run / stage).mkdir(parents=True)
    names = [f"d{n:03}" for n in range(DOCUMENTS)]
    truth = {(f"q{q:02}", names[n]) for q in range(QUERIES) for n in random.permutation(DOCUMENTS)[:20]}
    rows = []
    for q in range(QUERIES):
        for name, odds in REACH.items():
            good = [doc for doc in names if (f"q{q:02}", doc) in truth and random.random() < odds / (1 + odds)]
            bad = [doc for doc in random.permutation(names).tolist() if (f"q{q:02}", doc) not in truth]
            listed = random.permutation([*good, *bad[: DEPTH - len(good)]]).tolist()
            rows += [
                {"query_id": f"q{q:02}", "retriever": name, "doc_id": doc, "rank": rank, "score": 1 / rank}
                for rank, doc in enumerate(listed, start=1)
            ]
    rankings = frame("rankings", rows).sort("query_id", "retriever", "rank")
    pool = pooled(rankings, 1000, "equal-depth")
    write_table(run / "pool", "rankings", rankings)
    write_table(run / "pool", "pool", pool)
    asked = ({"query_id": f"q{q:02}", "text": f"问题{q}", "source": "t"} for q in range(QUERIES))
    write_table(run / "diversify", "queries", frame("queries", asked))
    texts = ({"doc_id": doc, "title": "", "text": f"文本{doc}", "source": "t"} for doc in names)
    write_table(run / "diversify", "corpus", frame("corpus", texts))
    for stage in ("mask", "diversify"):
        write_table(run / stage, "dropped", frame("dropped"))
    alias = {"table": "corpus", "old_id": "twin", "kept_id": "d000"}
    write_table(run / "mask", "aliases", frame("aliases", [alias]))
    verdicts = [
        {
            "query_id": query,
            "doc_id": doc,
            "verdict": "relevant" if (query, doc) in truth else "not relevant",
            "votes": [{"judge": "j", "grade": "S" if (query, doc) in truth else "D"}],
            "policy": "unanimous",
        }
        for query, doc in pool.select("query_id", "doc_id").iter_rows()
    ]
    write_table(run / "consensus", "verdicts", frame("verdicts", verdicts).sort("query_id", "doc_id"))
    positive = ({**row, "score": 1} for row in verdicts if row["verdict"] == "relevant")
    write_table(run / "consensus", "qrels", frame("qrels", positive).sort("query_id", "doc_id"))
    (run / "pipeline.yaml").write_text("version: 1\nname: known\npool: {depth: 40, size: 1000}\n", encoding="utf-8")
    return run, truth


@pytest.fixture
def run(known: tuple[Path, set[tuple[str, str]]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(known[0], tmp_path / "run"))


def at(found: Any, *keys: str | int) -> Any:
    for key in keys:
        found = found[key]
    return found


def figures(run: Path, run_files: Sequence[Path] = (), **options: Any) -> Any:
    return check(run, run_files, **options).to_json()


def inside(figure: Any, truth: float) -> bool:
    return bool(figure["low"] <= truth <= figure["high"])


def test_the_share_found_is_the_true_one(known: tuple[Path, set[tuple[str, str]]], run: Path) -> None:
    found = figures(run)
    share = len(pl.read_parquet(run / "consensus" / "qrels.parquet")) / len(known[1])
    assert 0.7 < share < 0.95
    assert inside(at(found, "capture", "share"), share)
    assert at(found, "capture", "missed", "value") == pytest.approx(len(known[1]) * (1 - share), rel=0.25)


def test_a_graded_sample_below_the_cut_agrees(known: tuple[Path, set[tuple[str, str]]], run: Path) -> None:
    truth, random = known[1], np.random.default_rng(5)
    pool = pl.read_parquet(run / "pool" / "pool.parquet").select("query_id", "doc_id")
    grid = [(f"q{q:02}", f"d{n:03}") for q in range(QUERIES) for n in range(DOCUMENTS)]
    outside = sorted(set(grid) - set(pool.iter_rows()))
    drawn = [outside[n] for n in random.choice(len(outside), 1500, replace=False)]
    lines = [f"{query},{doc},{'A' if (query, doc) in truth else 'C'}" for query, doc in drawn]
    path = run.parent / "below.csv"
    path.write_text("\n".join(["query_id,doc_id,grade", *lines]), encoding="utf-8")
    (sample,) = at(figures(run, below=[path]), "below")
    below = len(truth - set(pool.iter_rows()))
    retrieved, rest = sample["strata"]
    assert (retrieved["pairs"], retrieved["total"]["value"]) == (0, None)  # everything retrieved was pooled
    assert (rest["pairs"], rest["graded"]) == (len(outside), 1500)
    assert inside(rest["total"], below)
    assert inside(sample["recall"], 1 - below / len(truth))


def test_retrieved_but_not_pooled_is_a_stratum_of_its_own(run: Path) -> None:
    rankings = pl.read_parquet(run / "pool" / "rankings.parquet")
    cut(run, size=30)
    pool = pl.read_parquet(run / "pool" / "pool.parquet")
    pair = ["query_id", "doc_id"]
    outside = rankings.select(pair).unique().join(pool, on=pair, how="anti").sort(pair)
    path = run.parent / "below.tsv"
    outside.head(10).with_columns(grade=pl.lit("D")).write_csv(path, separator="\t")
    (sample,) = at(figures(run, below=[path]), "below")
    assert [(each["pairs"], each["graded"]) for each in sample["strata"]] == [
        (len(outside), 10),
        (QUERIES * DOCUMENTS - len(outside) - len(pool), 0),
    ]
    assert sample["recall"]["value"] is None  # one part was not sampled


@pytest.mark.parametrize(
    ("row", "what"),
    [("q00,{pooled},A", "are in the pool"), ("q00,d999,A", "are not of this run"), ("q00,d999,X", "found the grade")],
)
def test_rows_that_are_not_below_the_cut_are_refused(run: Path, row: str, what: str) -> None:
    pooled_doc = pl.read_parquet(run / "pool" / "pool.parquet")["doc_id"][0]
    path = run.parent / "below.csv"
    path.write_text(f"query_id,doc_id,grade\n{row.format(pooled=pooled_doc)}\n", encoding="utf-8")
    with pytest.raises(DataError, match=what):
        figures(run, below=[path])


def test_random_documents_of_a_review_are_a_sample_below_the_cut(run: Path) -> None:
    sample = draw(run, SampleOptions("people", size=40, controls=30, assessors=["ann"]))
    planted = sample.survey.filter(pl.col("expected").is_not_null())["row_id"].to_list()
    given = [Answer(name, "A" if place == 0 else "D") for place, name in enumerate(planted[:20])]
    Desk(sample).record("ann", given)
    (found,) = at(figures(run), "below")
    assert found["source"] == "reviews/people"
    assert [(each["graded"], each["relevant"]) for each in found["strata"]] == [(0, 0), (20, 1)]


def test_known_pairs_of_a_review_are_no_random_sample(run: Path) -> None:
    pooled_row = pl.read_parquet(run / "pool" / "pool.parquet").row(0)
    path = run.parent / "known.csv"
    path.write_text(f"query_id,doc_id,grade\n{pooled_row[0]},{pooled_row[1]},S\n", encoding="utf-8")
    sample = draw(run, SampleOptions("people", size=40, controls=5, known=path, assessors=["ann"]))
    planted = sample.survey.filter(pl.col("expected").is_not_null())["row_id"]
    Desk(sample).record("ann", [Answer(name, "D") for name in planted])
    assert at(figures(run), "below") == []


def test_a_run_file_is_followed_through_merges_and_its_holes_counted(run: Path) -> None:
    pool = pl.read_parquet(run / "pool" / "pool.parquet").filter(pl.col("query_id") == "q00")
    outside = sorted({f"d{n:03}" for n in range(1, DOCUMENTS)} - set(pool["doc_id"]))[:4]
    docs = ["twin", *outside]
    path = run.parent / "mine.trec"
    path.write_text("".join(f"q00 Q0 {doc} {n} {9 - n} x\n" for n, doc in enumerate(docs)), encoding="utf-8")
    system = at(figures(run, [path]), "systems")[1]
    assert (system["system"], system["pooled"], system["absent"]) == ("file mine", False, QUERIES - 1)
    first = system["depths"][0]
    assert (first["documents"], first["holes"]) == (5, 4 + ("d000" not in set(pool["doc_id"])))
    predictions = run.parent / "mine_predictions.json"
    scores = {"q00": {doc: 9.0 - n for n, doc in enumerate(docs)}}
    predictions.write_text(json.dumps({"default": {"test": scores}}), encoding="utf-8")
    again = at(figures(run, [predictions]), "systems")[1]
    assert again["depths"] == system["depths"]
    with pytest.raises(UserError, match=r"--run-file: .*none\.trec: no such file"):
        figures(run, [path, run / "none.trec"])
    with pytest.raises(UserError, match="several files named mine"):
        figures(run, [path, run / "mine.trec"])


def cut(run: Path, size: int) -> None:
    """Make the pool and the verdicts of a run as they would be with smaller pools."""
    pool = pooled(pl.read_parquet(run / "pool" / "rankings.parquet"), size, "equal-depth")
    write_table(run / "pool", "pool", pool)
    for name in ("verdicts", "qrels"):
        table = pl.read_parquet(run / "consensus" / f"{name}.parquet")
        kept = table.join(pool, on=["query_id", "doc_id"], how="semi", maintain_order="left")
        write_table(run / "consensus", name, kept)


def test_a_shallow_pool_is_not_saturated_and_how_to_deepen_it_is_told(run: Path) -> None:
    cut(run, size=30)
    found = figures(run)
    assert at(found, "depth", "high") <= 30
    assert len(at(found, "unsaturated")) > QUERIES / 2
    assert at(found, "deepen") == {"size": 2000, "depth": 80}


def test_without_a_relevant_document_nothing_is_defined(run: Path) -> None:
    verdicts = pl.read_parquet(run / "consensus" / "verdicts.parquet")
    write_table(run / "consensus", "verdicts", verdicts.with_columns(verdict=pl.lit("contested")))
    write_table(run / "consensus", "qrels", frame("qrels"))
    found = figures(run)
    assert found["capture"] is None
    assert at(found, "leave_one_out", 0, "tau", "value") is None
    assert at(found, "systems", 0, "stock", "value") is None
    assert at(found, "by_position", 0, "relevant") == 0
    lines = "\n".join(_text(check(run), run))
    assert "not defined: it takes two retrievers and a relevant document" in lines


def test_a_given_depth_credits_less(run: Path) -> None:
    assert at(figures(run, depth=1), "beyond_depth") > at(figures(run), "beyond_depth") == 0


def test_a_pool_that_was_not_judged_whole_is_refused(run: Path) -> None:
    verdicts = pl.read_parquet(run / "consensus" / "verdicts.parquet")
    write_table(run / "consensus", "verdicts", verdicts[1:])
    with pytest.raises(UserError, match="1 pairs have none"):
        figures(run)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    done = complaint(tmp_path, "check", "pool", "--run", "runs/nope")
    assert "runs/nope: no such run folder; known: none" in done


def test_as_a_user_types_it(tmp_path: Path) -> None:
    ran(tmp_path, "run", tiny(tmp_path))
    shown = ran(tmp_path, "check", "pool")
    assert "working in runs/tiny" in shown.stderr
    assert "judged by heuristics alone: these figures are for testing only" in shown.stdout
    found = machine.data(curate(tmp_path, "check", "pool", "--json").stdout)
    path = tmp_path / "runs" / "tiny" / "checks" / "pool.json"
    assert json.loads(path.read_text(encoding="utf-8")) == found
    assert found["labels"] == "resolve"
    ran(tmp_path, "pool", "--run", "runs/tiny", "--set", "pool.size=20", "--set", "pool.depth=16")
    unjudged = complaint(tmp_path, "check", "pool")
    assert "run `curate judge` and `curate consensus` first" in unjudged
    for stage in ("judge", "consensus"):
        ran(tmp_path, stage, "--run", "runs/tiny")
    found = machine.data(curate(tmp_path, "check", "pool", "--json").stdout)
    assert found["labels"] == "consensus", "resolve was made from another consensus"
    once = path.read_bytes()
    curate(tmp_path, "check", "pool")
    assert path.read_bytes() == once
    wrong = complaint(tmp_path, "check", "pool", "--run-file", "none.trec")
    assert "none.trec: no such file" in wrong
