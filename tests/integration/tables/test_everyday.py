"""Everyday files, messy as people have them: each goes from ingest to an export, or stops with what to type next."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import yaml

from curate.system import files
from tests.support import everyday
from tests.support.everyday import DOCUMENTS, QUERIES, SOURCES, Everyday
from tests.support.printed import sentences
from tests.support.runs import curate

PIPELINE = {
    "version": 1,
    "name": "everyday",
    "language": "zh",
    "stages": ["ingest", "mask", "diversify", "pool", "judge", "consensus", "resolve", "export"],
    "mask": {"recognisers": ["mobile"]},
    "diversify": {"enabled": False},
    "pool": {"retrievers": ["words"], "depth": 4, "size": 4},
    "retrievers": {"words": {"kind": "bm25", "tokens": "bigrams"}},
    "judge": {"models": ["lexical"]},
    "export": {"small": True, "rerank": {"negatives": 1}},
}


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a module with ir_datasets' documented functions in the place of the package."""
    monkeypatch.setitem(sys.modules, "ir_datasets", everyday.ir_datasets())


def pipeline(folder: Path, source: Everyday, on_error: str) -> str:
    settings = PIPELINE | {"ingest": {**source.ingest, "on_error": on_error, "keep_raw": True}}
    (folder / "everyday.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
    return "everyday.yaml"


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_a_source_goes_through_to_an_export(make: Callable[[Path], Everyday], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    source = make(tmp_path / "data")
    done = curate(tmp_path, "run", pipeline(tmp_path, source, "drop"))
    assert done.returncode == 0, done.stderr
    run = tmp_path / "runs" / "everyday"
    asked, answers = (files.read_table(run / "ingest", name) for name in ("queries", "corpus"))
    assert asked["query_id"].to_list() == [str(100 + n) for n in range(QUERIES)]
    assert (asked.height, answers.height) == (source.queries, source.documents)
    assert files.read_table(run / "ingest", "qrels").height == source.qrels
    assert sorted(answers["doc_id"]) == sorted(map(str, range(DOCUMENTS)))
    assert answers["text"].str.len_chars().max() == source.longest
    html = answers.filter(pl.col("doc_id") == "4")["text"].item()
    assert ("10^9 个" in html and "<" not in html.replace("p<0.05", "")) == (source.ingest.get("html") == "strip")
    reasons = files.read_table(run / "ingest", "dropped")["reason"]
    assert reasons.str.contains("the id '7' again").any()
    assert (reasons == "empty text").sum() == 2
    for note in source.notes:
        assert note in done.stdout + done.stderr
    assert (run / "export" / "mteb").is_dir()


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_a_source_stops_at_a_bad_row_with_what_to_do(make: Callable[[Path], Everyday], tmp_path: Path) -> None:
    done = curate(tmp_path, "ingest", "--pipeline", pipeline(tmp_path, make(tmp_path), "stop"))
    assert done.returncode == 2
    assert ": found the id '100' again, expected one row per id; correct the line" in sentences(done.stderr)
    assert "or set ingest.on_error: drop" in sentences(done.stderr)
    assert "又是" not in done.stderr


QUICK = (
    "ingest.keep_raw=true",
    "mask.recognisers=[mobile]",
    "diversify.enabled=false",
    "pool.retrievers=[bm25]",
    "pool.depth=4",
    "pool.size=4",
    "judge.models=[lexical]",
    "export.rerank.negatives=1",
    "export.small=true",
)
COMMAND = re.compile(r"(curate init .*?)(?=$|; |, or )", re.MULTILINE)


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_init_leads_to_an_export_by_the_commands_that_it_prints(
    make: Callable[[Path], Everyday], tmp_path: Path
) -> None:
    """Type the source alone, then what is printed: of several commands that which drops bad rows, else the first."""
    (tmp_path / "data").mkdir()
    source = make(tmp_path / "data")
    paths = [
        (f"--{name}", source.ingest[name]["path"]) for name in ("queries", "corpus", "qrels") if name in source.ingest
    ]
    given = [source.ingest["source"]] if "source" in source.ingest else [word for pair in paths for word in pair]
    done = curate(tmp_path, "init", *given, "--name", "mine")
    for _ in range(6):
        if done.returncode == 0:
            break
        printed = [shlex.split(command)[1:] for command in COMMAND.findall(done.stderr)]
        assert printed, done.stderr
        dropping = [words for words in printed if "ingest.on_error=drop" in words]
        done = curate(tmp_path, *(dropping or printed)[0])
    assert done.returncode == 0, done.stderr
    ran = curate(tmp_path, "run", "mine.yaml", *(word for each in QUICK for word in ("--set", each)))
    assert ran.returncode == 0, ran.stderr
    run = tmp_path / "runs" / "mine"
    held = {name: files.read_table(run / "ingest", name) for name in ("queries", "corpus", "qrels")}
    assert held["queries"]["query_id"].to_list() == [str(100 + n) for n in range(QUERIES)]
    assert [held[name].height for name in ("corpus", "qrels")] == [source.documents, source.qrels]
    assert (run / "export" / "mteb").is_dir()
