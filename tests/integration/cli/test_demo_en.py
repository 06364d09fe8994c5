"""The English demo, a part of it end to end with its real encoders: what heuristics reach, and no word of Chinese."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.calibrate_heuristics import kappa
from curate.ask.judges.heuristic import packaged
from curate.system import resources
from tests.support.pools import table
from tests.support.runs import Done, curate

DEMO = resources.demo() / "en"
HAN = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Return the run folder and the output of the packaged pipeline on every fifth question and the graded passages."""
    folder = tmp_path_factory.mktemp("demo-en")
    (folder / "data").mkdir()
    queries = pl.read_ndjson(DEMO / "queries.jsonl")[::5]
    grades = pl.read_csv(DEMO / "grades.tsv", separator="\t").filter(pl.col("grade").is_in(["S", "A", "B"]))
    graded = grades.filter(pl.col("query_id").is_in(queries["_id"].implode()))["doc_id"]
    corpus = pl.read_ndjson(DEMO / "corpus.jsonl").filter(pl.col("_id").is_in(graded.implode()))
    queries.write_ndjson(folder / "data" / "queries.jsonl")
    corpus.write_ndjson(folder / "data" / "corpus.jsonl")
    less = ("ingest.source=data", "mask.enabled=false", "export.rerank.enabled=false")
    done = curate(folder, "run", "demo-en", *(word for each in less for word in ("--set", each)))
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "demo-en", done


def truth(run: Path) -> pl.DataFrame:
    """Return the ratings of every judge, with whether the judge and the planted grade say relevant."""
    known = pl.read_csv(DEMO / "grades.tsv", separator="\t").rename({"grade": "planted"})
    return (
        table(run, "judge", "ratings")
        .join(known, on=["query_id", "doc_id"], how="left")
        .with_columns(
            said=pl.col("grade").is_in(["3", "2"]).cast(pl.Int64),
            planted=pl.col("planted").is_in(["S", "A"]).fill_null(value=False).cast(pl.Int64),
        )
    )


@pytest.mark.parametrize(("judge", "least"), [("e5", 0.55), ("use", 0.4), ("lexical", 0.35)])
def test_each_judge_agrees_with_the_planted_grades(finished: tuple[Path, Done], judge: str, least: float) -> None:
    own = truth(finished[0]).filter(pl.col("judge") == judge)
    assert kappa(own["planted"].to_numpy(), own["said"].to_numpy(), 2) > least


def test_what_two_of_three_find_is_mostly_what_was_planted(finished: tuple[Path, Done]) -> None:
    votes = truth(finished[0]).group_by("query_id", "doc_id").agg(pl.col("said").sum(), pl.col("planted").first())
    planted, said = votes["planted"].to_numpy() > 0, votes["said"].to_numpy() >= 2
    assert np.mean(planted[said]) > 0.75
    assert np.mean(said[planted]) > 0.3


def test_english_thresholds_grade_and_none_of_them_is_called_a_guess(finished: tuple[Path, Done]) -> None:
    identities = table(finished[0], "judge", "ratings")["judge"].unique()
    assert {*identities} == {"lexical", "e5", "use"}
    assert "guess" not in finished[1].stdout + finished[1].stderr
    for judge in ("e5", "use"):
        assert packaged(judge, judge).of("en", judge)["A"] < packaged(judge, judge).of("zh", judge)["A"]


def test_no_different_text_is_dropped(finished: tuple[Path, Done]) -> None:
    assert table(finished[0], "diversify", "dropped").is_empty()


def test_nothing_that_a_reader_sees_is_chinese(finished: tuple[Path, Done]) -> None:
    run, done = finished
    page = (run / "report.html").read_text(encoding="utf-8")
    shown = re.sub(r"(?s)<(script|style|template)\b.*?</\1>", "", page)  # a template is the page in the other language
    seen = shown.replace("中文", "")  # on the button that brings it
    cards = [path.read_text(encoding="utf-8") for path in (run / "export").rglob("*.md")]
    assert len(cards) >= 2
    assert '<html lang="en"' in page
    for text in (done.stdout, done.stderr, seen, *cards):
        assert not HAN.search(text), HAN.search(text)
