"""`curate paper` on recorded grades of a real panel and on a run of the paper's size, compiled in both languages."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from benchmarks import paper
from tests.conftest import need
from tests.support import machine
from tests.support.graded_panel import recorded, write_run
from tests.support.paper_tables import compiled, recomputed, rows
from tests.support.runs import PIPELINE, ran

pytestmark = pytest.mark.accept


def kits(folder: Path, run: str) -> None:
    """Score BM25 and an encoder, write the kit in both languages, compile both, and recompute the English one."""
    need(all(map(shutil.which, ("pdflatex", "xelatex"))), "pdflatex, or xelatex,")
    ran(folder, "evaluate", run, "--models", "bm25,use", "--no-baselines", "--speed")
    for language, program in (("en", "pdflatex"), ("zh", "xelatex")):
        made = machine.data(ran(folder, "paper", run, "--out", language, "--language", language, "--json").stdout)
        assert [each["name"] for each in made["figures"]] == ["difficulty", "quality-speed", "scores"]
        assert not {"matplotlib", "font"} & {each["name"] for each in made["not_done"]}
        compiled(folder / language, program)
    recomputed(folder / run, folder / "en" / "csv")


def test_the_replayed_panel(tmp_path: Path, shared_data: Path) -> None:
    panel = shared_data / "panel"
    write_run(tmp_path / "rated.trec", recorded(panel))
    paths = {f"judges.{name}.path": panel / "ratings.tsv" for name in ("first", "second", "third")}
    settings = {"ingest.source": panel, "retrievers.rated.path": "rated.trec", **paths}
    ran(tmp_path, "run", "replay", "--run", "runs/panel", *(f"--set={key}={value}" for key, value in settings.items()))
    kits(tmp_path, "runs/panel")
    assert [row["n"] for row in rows(tmp_path / "en/csv/judges.csv")] == ["600"] * 3


def test_a_run_of_the_papers_size(tmp_path: Path) -> None:
    made, data = tmp_path / "made", tmp_path / "data"
    made.mkdir()
    (data / "qrels").mkdir(parents=True)
    paper.corpus(made, 5_000, 734, None)
    for name, key in (("queries", "query_id"), ("corpus", "doc_id")):
        lines = [
            json.dumps({"_id": row[key], "title": "", "text": row["text"]}, ensure_ascii=False)
            for row in pl.read_parquet(made / f"{name}.parquet").iter_rows(named=True)
        ]
        (data / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq00000\td0000000\t1\n", encoding="utf-8")
    text = PIPELINE.replace("depth: 8, size: 10", "depth: 500, size: 500").replace("negatives: 1", "negatives: 20")
    text = text.replace("ingest: {source: data}", "ingest: {source: data, duplicates: keep}\nmask: {enabled: false}")
    (tmp_path / "size.yaml").write_text(text, encoding="utf-8")
    ran(tmp_path, "run", "size.yaml", "--run", "runs/size")
    kits(tmp_path, "runs/size")
    assert sum(int(row["pairs"]) for row in rows(tmp_path / "en/csv/verdicts.csv")) > 300_000
