"""A query set of reranking's own: in no retrieval task, drawn again by `curate verify`, and told on cards."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from curate import load_tasks
from curate.commands.verify.verification import verify
from curate.ledger import Ledger
from curate.tables.exporters import manifest
from tests.support.runs import complaint, ran, tiny

APART = ("--set", "export.rerank.queries=2", "--set", "export.labels=both")


@pytest.fixture(scope="module", params=["", "met"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small pipeline with two queries of reranking's own; with query ids that are document ids, too."""
    folder = tmp_path_factory.mktemp("apart")
    tiny(folder)
    if request.param:
        for name in ("corpus.jsonl", "qrels/test.tsv"):
            path = folder / "data" / name
            path.write_text(path.read_text("utf-8").replace("d00", "q1"), "utf-8")
    ran(folder, "run", "tiny.yaml", *APART)
    return folder


def table(export: Path, task: str, name: str) -> pl.DataFrame:
    (path,) = (export / "mteb" / task).glob(f"{name}-*.parquet")
    return pl.read_parquet(path)


def differences(folder: Path, export: Path) -> dict[str, list[str]]:
    with Ledger(folder / "home" / "ledger.db") as ledger:
        return {each.folder.name: each.differences for each in verify(export, ledger)}


def test_no_query_is_in_both_tasks_and_every_format_says_the_same(made: Path) -> None:
    export = made / "runs" / "tiny" / "export"
    one, two = (set(table(export, task, "queries")["id"]) for task in ("retrieval", "reranking"))
    assert (len(two), one & two) == (2, set())
    assert set(table(export, "graded", "queries")["id"]) == one
    for name, column in (("qrels", "query-id"), ("grades", "query-id")):
        assert set(table(export, "retrieval", name)[column]) == one
        assert set(table(export, "reranking", name)[column]) == two
    lines = (export / "beir" / "queries.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["_id"] for line in lines} == one
    assert {line.split()[0] for line in (export / "trec" / "qrels.txt").read_text("utf-8").splitlines()} == one
    assert differences(made, export) == {"beir": [], "mteb": [], "trec": []}
    tasks = {task.metadata.name: task for task in load_tasks(export)}
    assert len(tasks) == 3
    assert "a set of their own" in (export / "mteb" / "README.md").read_text("utf-8")
    assert f"queries: {len(one | two)} of 5 are exported" in ran(made, "run", "tiny.yaml", *APART).stdout


def test_a_query_that_is_moved_to_the_other_task_is_found(made: Path, tmp_path: Path) -> None:
    export = tmp_path / "export"
    shutil.copytree(made / "runs" / "tiny" / "export", export)
    (path,) = (export / "mteb" / "retrieval").glob("queries-*.parquet")
    pl.concat([pl.read_parquet(path), table(export, "reranking", "queries")[:1]]).write_parquet(path)
    body = manifest.read(export / "mteb")
    manifest.write(export / "mteb", {name: body[name] for name in body if name not in ("files", "version")})
    said = "\n".join(differences(made, export)["mteb"])
    assert f"retrieval/{path.name}" in said


def test_the_draw_is_by_the_seed_and_too_many_are_refused(made: Path) -> None:
    export = made / "runs" / "tiny" / "export"
    two = set(table(export, "reranking", "queries")["id"])
    ran(made, "export", *APART, "--force")
    assert set(table(export, "reranking", "queries")["id"]) == two
    said = complaint(made, "export", "--set", "export.rerank.queries=9")
    assert "found 4 queries with a positive and 1 negatives, expected more than 9" in said
    assert "--set export.rerank.queries=null" in said
    assert set(table(export, "reranking", "queries")["id"]) == two, "a refused export leaves the old one"


def test_without_it_nothing_in_an_export_is_other_than_before(tmp_path: Path) -> None:
    tiny(tmp_path)
    ran(tmp_path, "run", "tiny.yaml")
    made = manifest.read(tmp_path / "runs" / "tiny" / "export" / "mteb")["labels"]["rerank"]
    assert made == {"enabled": True, "positives": 10, "negatives": 1, "draw": "uniform"}
