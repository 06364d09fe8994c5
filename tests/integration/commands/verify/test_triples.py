"""`curate verify` of a set to train on: sides, texts, order, lines and card follow from the ledger and the manifest."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from curate.commands.verify.verification import Verified, verify
from curate.ledger import Ledger
from curate.system.files import sha256
from curate.tables.exporters import manifest
from tests.integration.commands.verify.test_verify import RECORDED, replayed
from tests.support.runs import curate, ran, tiny

Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triples")
    tiny(folder)
    words = ["diversify.enabled=false", "retrievers.words={kind: bm25}", "train_set.scores=true"]
    settings = [word for each in words for word in ("--set", each)]
    ran(folder, "train-set", "data", "--retrievers", "words", "--depth", "12", "--test", "none", *settings)
    return folder


@pytest.fixture
def triples(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "runs/train-data/train_set/triples", tmp_path / "triples")
    shutil.copytree(made / "home", tmp_path / "home")
    return tmp_path / "triples"


def checked(folder: Path) -> Verified:
    """Verify after the names and digests of all files were made to fit."""
    for path in folder.glob("*-*.parquet"):
        path.rename(path.with_name(f"{path.stem.rpartition('-')[0]}-{sha256(path)[:16]}.parquet"))
    body = manifest.read(folder)
    manifest.write(folder, {key: body[key] for key in body if key not in ("files", "version")})
    with Ledger(folder.parent / "home" / "ledger.db") as ledger:
        [found] = verify(folder, ledger)
    return found


def changed(folder: Path, table: str, change: Change) -> str:
    [path] = folder.glob(f"{table}*.parquet")
    before = pl.read_parquet(path)
    after = change(before)
    assert not after.equals(before)
    after.write_parquet(path)
    return "\n".join(checked(folder).differences)


def first(column: str, value: pl.Expr) -> Change:
    """Put another value into the first row."""
    return lambda table: table.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(column).alias(column)
    )


def test_a_set_verifies_and_says_what_no_ledger_holds(triples: Path) -> None:
    found = checked(triples)
    assert found.differences == []
    assert [part.partition(",")[0] for part in found.unchecked] == [
        "which of the judged pairs became triples",
        "what the READMEs say of the run",
    ]
    assert found.labels > found.pairs > 0


FORGERIES: dict[str, tuple[str, Change, str]] = {
    "sides": (
        "train",
        lambda table: table.rename({"positive_id": "negative_id", "negative_id": "positive_id"}).select(table.columns),
        "pairs of positive_id are not relevant by the ledger",
    ),
    "a positive as negative": (
        "train",
        first("negative_id", pl.col("positive_id")),
        "1 pairs of negative_id are not not relevant by the ledger, for example 'q0 d",
    ),
    "documents": ("train", lambda table: table.reverse(), "train: its rows are not those that follow"),
    "a pair of two queries": (
        "train",
        lambda table: table.with_columns(pl.col("query_id").replace({"q0": "q1", "q1": "q0"})),
        "by the ledger",
    ),
    "a removed query": (
        "train",
        lambda table: table.filter(pl.col("query_id") != "q0"),
        "judged pairs are in no triple",
    ),
    "a foreign document": (
        "documents",
        first("text", pl.lit("这句话没有人问过。")),
        "the ledger holds no rating by lexical of",
    ),
    "swapped documents": (
        "documents",
        lambda table: table.with_columns(doc_id=pl.col("doc_id").replace({"d00": "d01", "d01": "d00"})),
        "the ledger holds no rating by lexical of",
    ),
    "a foreign query": ("queries", first("text", pl.lit("没有人问过")), "the ledger holds no rating by lexical of"),
    "one document more": (
        "documents",
        lambda table: pl.concat([table, table.head(1).with_columns(doc_id=pl.lit("new"))]),
        "corpus: expected",
    ),
    "a vote": ("verdicts", first("verdict", pl.lit("contested")), "verdicts.parquet: 1 rows say otherwise"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_careful_forgery_is_found(triples: Path, name: str) -> None:
    table, change, said = FORGERIES[name]
    found = changed(triples, table, change)
    assert said in found
    assert "没有人问过" not in found, "a sentence shows no text"


def edited(folder: Path, change: Callable[[dict[str, list[object]]], object]) -> list[str]:
    """Return what is said after a change of the first line of triples.jsonl."""
    path = folder / "triples.jsonl"
    line, *others = path.read_text(encoding="utf-8").splitlines()
    row = json.loads(line)
    change(row)
    path.write_text("\n".join([json.dumps(row, ensure_ascii=False), *others, ""]), encoding="utf-8")
    return checked(folder).differences


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row["pos"].append("这句话没有人问过。"),
        lambda row: row.update(pos=row["neg"], neg=row["pos"]),
        lambda row: row["neg_scores"].__setitem__(0, 4.0),
        lambda row: row.update(query="没有人问过"),
        lambda row: row.update(prompt="Say yes."),
    ],
)
def test_an_edited_line_is_found(triples: Path, change: Callable[[dict[str, list[object]]], object]) -> None:
    assert edited(triples, change) == ["triples.jsonl:1: it is not what follows from the tables and the ledger"]


def test_a_removed_line_and_an_edited_card_are_found(triples: Path) -> None:
    path = triples / "triples.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    card = triples / "README.md"
    card.write_text(card.read_text(encoding="utf-8").replace("path: train-", "path: https://example.com/train-"))
    said = checked(triples).differences
    assert said[0] == f"triples.jsonl:{len(lines)}: it is not what follows from the tables and the ledger"
    assert said[1].startswith("README.md:")


@pytest.mark.parametrize(
    "settings",
    [
        ["judge.passage_tokens=50"],
        ["consensus.policy=majority", "export.rerank.draw=by_grade"],
        ["export.labels=both"],
    ],
    ids=lambda each: each[0],
)
def test_triples_of_an_export_verify_too(tmp_path: Path, settings: list[str]) -> None:
    tiny(tmp_path)
    corpus = tmp_path / "data" / "corpus.jsonl"  # long enough that judges see a cut text
    corpus.write_text(corpus.read_text(encoding="utf-8").replace('"}', "这是一句话。" * 30 + '"}'), encoding="utf-8")
    words = [word for each in ["export.formats=[triples, mteb]", *settings] for word in ("--set", each)]
    ran(tmp_path, "run", "tiny.yaml", *words)
    done = curate(tmp_path, "verify", "runs/tiny/export/triples")
    assert done.returncode == 3, done.stdout
    assert curate(tmp_path, "verify", "runs/tiny/export/mteb").returncode == 3


def test_triples_of_a_fitted_policy_verify(tmp_path: Path) -> None:
    """The votes on pairs that are in no triple are in the manifest: `dawid-skene` learns from all of them."""
    replayed(tmp_path, "consensus.policy=dawid-skene", "export.formats=[triples]")
    folder = tmp_path / "runs/tiny/export/triples"
    assert manifest.read(folder)["labels"]["outside"]
    done = curate(tmp_path, "verify", str(folder), *RECORDED)
    assert done.returncode == 3, done.stdout
