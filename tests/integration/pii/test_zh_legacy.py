"""Real patient questions and real answers: a slice in every test run, the whole set in `make accept`."""

import csv
import json
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.support.runs import started
from tests.support.scoring import scores

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside mteb and datasets

SLICE = 60


def assign(**settings: str) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]


def own_answer_found(run: Path, depth: int) -> float:
    """Return the share of qrels whose document is among the first `depth` of its query's pool."""
    qrels = pl.read_parquet(run / "diversify" / "qrels.parquet")
    pool = pl.read_parquet(run / "pool" / "pool.parquet").filter(pl.col("position") <= depth)
    return len(qrels.join(pool, on=["query_id", "doc_id"], how="semi")) / len(qrels)


@pytest.fixture(scope="module")
def sliced(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the pipeline on the first questions and their own answers."""
    source, folder = shared_data / "zh_legacy", tmp_path_factory.mktemp("slice")
    with (source / "qrels.tsv").open(encoding="utf-8", newline="") as stream:
        qrels = list(csv.DictReader(stream, delimiter="\t"))[: 3 * SLICE]
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    for name, key in (("queries", "query-id"), ("corpus", "corpus-id")):
        wanted = {row[key] for row in qrels}
        lines = (source / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if json.loads(line)["_id"] in wanted]
        (data / f"{name}.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    lines = [f"{row['query-id']}\t{row['corpus-id']}\t{row['score']}" for row in qrels]
    (data / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    ids = json.dumps(sorted({row["query-id"] for row in qrels})[:SLICE])
    settings = assign(
        ingest__source="data",
        ingest__ids=ids,
        pool__retrievers="[bm25,use]",
        judge__models="[lexical,use]",
        export__small="true",
    )
    result = started(folder, "run", "zh-legacy", "--run", "runs/zh", *settings)
    assert result.returncode == 0, result.stderr
    return folder / "runs" / "zh"


def test_titles_are_the_queries(sliced: Path) -> None:
    texts = pl.read_parquet(sliced / "mask" / "queries.parquet")["text"]
    assert len(texts) == SLICE
    assert texts.str.len_chars().max() < 60  # type: ignore[operator]


def test_own_answers_are_found(sliced: Path) -> None:
    assert own_answer_found(sliced, 500) == 1.0  # the pool is the corpus
    assert own_answer_found(sliced, 20) > 0.6


def test_stock_mteb_scores_the_export(sliced: Path) -> None:
    assert 0.2 < scores(sliced / "export" / "mteb" / "retrieval")["ndcg_at_10"] <= 1.0


@pytest.mark.accept
@pytest.mark.timeout(7200)
def test_the_whole_set(shared_data: Path, tmp_path: Path) -> None:
    settings = assign(ingest__source=str(shared_data / "zh_legacy"))
    result = started(tmp_path, "run", "zh-legacy", "--run", "runs/zh", *settings)
    assert result.returncode == 0, result.stderr
    run = tmp_path / "runs" / "zh"
    assert len(pl.read_parquet(run / "mask" / "corpus.parquet")) == 5029
    aliases = pl.read_parquet(run / "mask" / "aliases.parquet").filter(pl.col("table") == "corpus")
    assert aliases["kept_id"].n_unique() == len(aliases) == 274
    assert 0.80 < own_answer_found(run, 500) < 0.95
    assert 0.50 < own_answer_found(run, 100) < 0.70
    found = scores(run / "export" / "mteb" / "retrieval")["ndcg_at_10"]
    sys.stdout.write(f"{started(tmp_path, 'status', '--run', 'runs/zh').stdout}\nnDCG@10 of USE: {found:.4f}\n")
