"""`curate pilot` as a user types it: sheets out and back, a proposal, and the file that it is written into."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.support import machine
from tests.support.controlled import DOCUMENTS, PAIRS, QUERIES
from tests.support.pools import grades_file
from tests.support.runs import complaint, ran

GRADES = "SABCD"
PIPELINE = """\
version: 1
name: t
language: zh
ingest: {source: data}
mask: {enabled: false}
diversify: {enabled: false}
retrievers:
  ranked: {kind: runfile, path: ranked.trec}
pool: {retrievers: [ranked], depth: 10, size: 10}
judges:   # recorded
  one: {kind: replay, path: one.tsv}
  two: {kind: replay, path: two.tsv}
  three: {kind: replay, path: three.tsv}
judge:
  models: [one, two, three]   # the first idea
export: {small: true, rerank: {negatives: 1}}
"""


def graded(pair: tuple[str, str], every: int) -> str:
    """Return the true grade of a pair, of every so manieth another one."""
    true = DOCUMENTS[pair[1]][-1]
    return GRADES[::-1][GRADES.index(true)] if PAIRS.index(pair) % every == 0 else true


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pooled")
    (folder / "data").mkdir()
    for name, texts in (("queries", QUERIES), ("corpus", DOCUMENTS)):
        rows = [json.dumps({"_id": key, "title": "", "text": text}, ensure_ascii=False) for key, text in texts.items()]
        (folder / "data" / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    ranks = "".join(f"{query} Q0 {doc} 1 {20 - int(doc[-1])} r\n" for query, doc in PAIRS)
    (folder / "ranked.trec").write_text(ranks, encoding="utf-8")
    for name, every in (("one", 9), ("two", 10), ("three", 3)):
        grades_file(folder / f"{name}.tsv", [(*pair, graded(pair, every)) for pair in PAIRS])
    (folder / "t.yaml").write_text(PIPELINE, encoding="utf-8")
    for stage in ("ingest", "mask", "diversify", "pool"):
        ran(folder, stage, "--pipeline", "t.yaml")
    return folder


@pytest.fixture
def folder(pooled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pooled, tmp_path / "work"))


def filled(folder: Path, sheet: Path, grade: str | None = None) -> None:
    """Write the true grade into every row of a sheet, or one grade."""
    survey = pl.read_parquet(folder / "runs/t/reviews/pilot/survey.parquet")
    ids = dict(survey.select("row_id", "ids").iter_rows())
    rows = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))
    at = rows[0].index("等级")
    for row in rows[1:]:
        row[at] = grade or DOCUMENTS[ids[row[0]][1]][-1]
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)


def test_from_the_sheets_to_the_pipeline_file(folder: Path) -> None:
    out = machine.data(
        ran(
            folder, "pilot", "export", "--pipeline", "t.yaml", "--assessors", "ann,ben", "--size", "150", "--json"
        ).stdout
    )
    assert (out["pairs"], out["queries"], out["queries_in_pool"]) == (150, 26, 26)
    assert [Path(each).name for each in out["files"]] == ["ann.csv", "ben.csv", "GUIDE.html"]
    again = machine.data(ran(folder, "pilot", "export", "--pipeline", "t.yaml", "--json").stdout)
    assert again == out, "the sheets of the pilot that there is"
    sheets = [folder / each for each in out["files"][:2]]
    filled(folder, sheets[0], "E")
    wrong = complaint(folder, "review", "import", str(sheets[0]), "--run", "runs/t", "--sample", "pilot")
    assert re.search(
        r"ann\.csv:2 \(\S+\), column 等级\nexpected one of S, A, B, C, D, \? \(cannot judge\), ! .+, got 'E'",
        wrong,
    )
    for sheet in sheets:
        filled(folder, sheet)
    ran(folder, "review", "import", *map(str, sheets), "--run", "runs/t", "--sample", "pilot")

    before = (folder / "t.yaml").read_text("utf-8")
    found = machine.data(ran(folder, "pilot", "report", "--pipeline", "t.yaml", "--json").stdout)
    assert (found["answered"], found["people"]["pairs"], found["people"]["kappa"]) == (150, 50, 1.0)
    assert found["settings"]["judge.models"] == ["one", "two"]
    assert found["written"] is None
    assert (folder / "t.yaml").read_text("utf-8") == before, "nothing is written without --accept"
    told = ran(folder, "pilot", "report", "--pipeline", "t.yaml").stdout
    for words in (
        "people with each other: kappa 1.000",
        "held against 2 of one + two + three, which nobody chose: kappa ",
        "its kappa is too high, for it was chosen among 21 rules",
        "one judge alone is proposed only with --single",
        '  models: ["one", "two"]',
    ):
        assert words in told
    alone = machine.data(ran(folder, "pilot", "report", "--run", "runs/t", "--single", "--json").stdout)
    assert len(alone["settings"]["judge.models"]) == 1

    written = ran(folder, "pilot", "report", "--pipeline", "t.yaml", "--accept").stdout
    assert "t.yaml: written into it:\njudge:\n  models: [" in written
    after = (folder / "t.yaml").read_text("utf-8")
    assert '  models: ["one", "two"]   # the first idea\n' in after
    assert after.replace('["one", "two"]', "[one, two, three]").startswith(before)
    ran(folder, "run", "t.yaml")
    agreement = json.loads((folder / "runs/t/consensus/agreement.json").read_text("utf-8"))
    assert (agreement["panel"], agreement["counts"]["contested"]) == (["one", "two"], 0)
    labels = json.loads((folder / "runs/t/resolve/stage.json").read_text("utf-8"))["report"]
    assert "pilot" not in json.dumps(labels), "a pilot is no review of labels"
    assert "a pilot, which proves nothing of labels" in complaint(folder, "review", "report", "--run", "runs/t")
    refused = ["--set", "resolve.policy=expert-over-panel", "--set", "resolve.samples=[pilot]"]
    assert "is a pilot, on which the panel was chosen" in complaint(folder, "resolve", "--run", "runs/t", *refused)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "--assessors", "ann,ben", "--size", "99"], "--size: found 99, expected 100 or more"),
        (["export", "--assessors", "ann"], "--assessors: found ann, expected two or more"),
        (["export"], "--assessors: found no name, expected two or more"),
        (["export", "--assessors", "a,b", "--set", "overlap=0.1"], "by which 20 of 200 pairs are read twice"),
        (["report", "--models", "one"], "--models: found one, expected two to 8 different judges"),
        (["report"], "no such pilot; draw one with `curate pilot export"),
        (["report", "--models", "one,tow"], "no such pilot"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, words: list[str], said: str) -> None:
    assert said in complaint(folder, "pilot", *words, "--pipeline", "t.yaml")


def test_a_proposal_is_written_only_into_a_file_of_ones_own(folder: Path) -> None:
    assert "give --pipeline FILE" in complaint(folder, "pilot", "report", "--accept", "--run", "runs/t")
    packaged = complaint(folder, "pilot", "report", "--accept", "--pipeline", "demo")
    assert "demo is packaged and stays as it is" in packaged


def test_a_pool_that_is_too_small_is_named(folder: Path) -> None:
    small = ["--pipeline", "t.yaml", "--set", "pool.depth=2", "--set", "pool.size=2"]
    ran(folder, "pool", *small)
    refused = complaint(folder, "pilot", "export", *small, "--assessors", "a,b")
    assert "found 52 pairs in the pool, expected 100 or more" in refused
