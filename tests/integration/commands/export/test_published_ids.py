"""Ids of an export: new ones where those of the source may name people, and a key that only the run holds."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.export import Config
from curate.commands.verify.verification import verify
from curate.core.config import Settings
from curate.ledger import Ledger
from curate.pipeline.stage import Context
from curate.runs.published_ids import published_identifiers
from curate.system.files import frame, read_json, write_table
from curate.tables.exporters.ids import numbered
from tests.integration.commands.export.test_export_stage import exported
from tests.support.runs import complaint, tiny

KINDS = {"retrieval", "reranking", "sts", "paraphrase", "sentence-retrieval", "gradient-edit", "gradient-mix"}
NUMBER = "20241177"
"""Of an admission: it is in no text, and no recogniser knows it."""


def admitted(folder: Path) -> Path:
    """Write the small set with numbers of admissions for ids, and words that have synonyms; return its pipeline."""
    name = tiny(folder)
    for path in (folder / "data").rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"\b([qd])(\d+)\b", rf"{NUMBER}\g<1>\2", text), encoding="utf-8")
    return folder / name


def files_of(export: Path) -> bytes:
    """Return all that is published, names of files and unpacked tables."""
    found = b""
    for path in sorted(path for each in ("mteb", "beir", "trec") for path in (export / each).rglob("*")):
        table = str(pl.read_parquet(path).to_dicts()).encode() if path.suffix == ".parquet" else b""
        found += path.name.encode() + table + (path.read_bytes() if path.is_file() else b"")
    return found


def test_numbers_of_people_are_no_published_ids(tmp_path: Path) -> None:
    admitted(tmp_path)
    stages = "stages=[ingest,mask,diversify,pool,judge,consensus,resolve,sts,paraphrase,gradient,export]"
    more = (
        "sts.test=2",
        "sts.train=1",
        "paraphrase.retrievers=[bm25, use]",
        "paraphrase.test=4",
        "gradient.shortest=5",
    )
    run = exported(tmp_path, stages, *more)
    folder, key = run / "export", run / "export.ids.tsv"
    assert {path.name for path in (folder / "mteb").iterdir()} >= KINDS
    assert NUMBER.encode() not in files_of(folder)
    names = pl.read_csv(key, separator="\t", schema_overrides={"old_id": pl.String})
    assert names.height == 25
    assert key.stat().st_mode & 0o777 == 0o600
    assert names["new_id"][:2].to_list() == ["q000001", "q000002"]
    assert any(str(key.name) in note for note in read_json(folder / "stage.json")["report"]["notes"])
    with Ledger(tmp_path / "home" / "ledger.db") as ledger:
        assert [found.differences for found in verify(folder, ledger)] == [[], [], []]
    said = complaint(tmp_path, "diff", "runs/tiny", "runs/tiny/export")
    assert "the ids of one are new ones of its export" in said
    kept, before = exported(tmp_path, stages, *more, "export.ids=keep"), key.read_bytes()
    assert NUMBER.encode() in files_of(kept / "export")
    exported(tmp_path, stages, *more, "export.ids=new")
    assert (NUMBER.encode() in files_of(folder), key.read_bytes()) == (False, before)


CASES = {
    "a folder": ("data", "auto", True),
    "a task of mteb": ("SciFact", "auto", False),
    "ir_datasets": ("irds:beir/scifact", "auto", False),
    "new ones that were asked for": ("SciFact", "new", True),
}


@pytest.mark.parametrize(("source", "ids", "expected"), CASES.values(), ids=CASES)
def test_ids_of_a_public_set_are_kept(source: str, ids: Any, expected: bool, tmp_path: Path) -> None:
    for folder in ("data", "diversify"):
        (tmp_path / folder).mkdir()
    for table, column in (("queries", "query_id"), ("corpus", "doc_id")):
        write_table(tmp_path / "diversify", table, frame(table, [{column: f"{column}-{NUMBER}", "text": "x"}]))
    named = str(tmp_path / source) if source == "data" else source
    settings: Settings = {"ingest": {"source": named}, "export": {"small": True, "ids": ids}}
    context = Context(tmp_path, tmp_path / "export", tmp_path / "home", settings=settings)
    assert (published_identifiers(context).key is not None) == expected


def test_digests_of_queries_that_a_model_wrote_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "diversify").mkdir()
    write_table(
        tmp_path / "diversify", "queries", frame("queries", [{"query_id": "synthetic-123456789abc", "text": "x"}])
    )
    write_table(tmp_path / "diversify", "corpus", frame("corpus", [{"doc_id": "d1", "text": "x"}]))
    assert published_identifiers(Context(tmp_path, tmp_path / "export", tmp_path / "home")).key is None


def test_ids_that_are_known_keep_their_numbers() -> None:
    known = pl.DataFrame({"table": "corpus", "old_id": ["b", "a"], "new_id": ["d000001", "d000002"]})
    key = numbered(known, "corpus", pl.Series(["c", "a"]))
    assert key["new_id"].to_list() == ["d000001", "d000002", "d000003"]
    assert key["old_id"].to_list() == ["b", "a", "c"]


def test_a_setting_of_before_leaves_the_stage_as_it_was() -> None:
    assert "ids" not in Config(ids="keep").model_dump(mode="json")
