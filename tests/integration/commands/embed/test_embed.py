"""`curate embed`: vectors ahead of the stages, in shards, whatever is killed; the pool keeps its bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.system.files import sha256
from tests.support import machine
from tests.support.runs import Done, curate
from tests.support.small import EmbeddingServer, embedding_server, full_disk

DOCUMENTS, QUERIES = 2600, 30
PIPELINE = """\
version: 1
name: many
ingest: {source: data}
mask: {enabled: false}
diversify: {enabled: false}
encoders:
  letters: {kind: api, base_url: URL, model: m, dim: 64, batch_size: 256}
  other: {kind: api, base_url: URL, model: m, dim: 64, batch_size: 256, document_prompt: "答：", query_prompt: "问："}
pool: {retrievers: [letters, words], depth: 20, size: 20}
retrievers:
  words: {kind: bm25, tokens: bigrams}
"""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture
def work(tmp_path: Path, server: EmbeddingServer) -> Path:
    """Return a folder with a run of 2,600 documents, three blocks, that is masked."""
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    texts = {
        "queries": [{"_id": f"q{n}", "text": f"what is number {n} {chr(97 + n % 26)}"} for n in range(QUERIES)],
        "corpus": [{"_id": f"d{n:05}", "title": "", "text": f"number {n} " + "x" * (n % 50)} for n in range(DOCUMENTS)],
    }
    for name, rows in texts.items():
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td00000\t1\n")
    (tmp_path / "many.yaml").write_text(PIPELINE.replace("URL", server.url))
    for stage in ("ingest", "mask"):
        done = curate(tmp_path, stage, "--pipeline", "many.yaml", "--run", "runs/many")
        assert done.returncode == 0, done.stderr
    return tmp_path


def embed(folder: Path, *words: str, home: str = "home") -> Done:
    done = curate(folder, "embed", "--run", "runs/many", "--json", *words, CURATE_HOME=str(folder / home))
    assert done.returncode == 0, done.stderr
    return done


def counts(done: Done) -> list[tuple[str | int, ...]]:
    """Return encoder, tables, and how many queries and documents were encoded."""
    columns = ("encoder", "tables", "queries_encoded", "documents_encoded")
    return [tuple(row[name] for name in columns) for row in machine.data(done.stdout)]


def pooled(folder: Path, home: str) -> tuple[str, str]:
    """Run diversify and pool on the embeddings of a home; return digests of rankings and pool."""
    for stage in ("diversify", "pool"):
        done = curate(folder, stage, "--run", "runs/many", "--force", CURATE_HOME=str(folder / home))
        assert done.returncode == 0, done.stderr
    return sha256(folder / "runs/many/pool/rankings.parquet"), sha256(folder / "runs/many/pool/pool.parquet")


def test_three_shards_give_the_pool_of_one_process_and_leave_nothing_to_encode(
    work: Path, server: EmbeddingServer
) -> None:
    found = [counts(embed(work, "--shard", f"{number}/3")) for number in (2, 0, 1)]
    assert found == [
        [("letters", "mask", 30, 552)],
        [("letters", "mask", 0, 1024)],
        [("letters", "mask", 0, 1024)],
    ]
    assert counts(embed(work, "--shard", "1/3")) == [("letters", "mask", 0, 0)]
    asked = len(server.bodies)
    assert pooled(work, "home") == pooled(work, "alone")
    assert len(server.bodies) > asked, "the second home was empty"
    assert counts(embed(work)) == [("letters", "diversify", 0, 0)]


def test_a_shard_that_is_killed_and_run_again_ends_alike(work: Path) -> None:
    home = {"CURATE_HOME": str(work / "home")}
    command = [sys.executable, "-m", "curate", "embed", "--run", "runs/many", "--shard", "0/2"]
    process = subprocess.Popen(command, cwd=work, env={**os.environ, **home}, stdout=subprocess.DEVNULL)
    while not list(work.glob("home/vectors/*/*.rows")):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    embed(work, "--shard", "1/2")
    ((_, _, _, rest),) = counts(embed(work, "--shard", "0/2"))
    assert 0 < int(rest) < 2048
    assert pooled(work, "home") == pooled(work, "alone")


def test_it_encodes_for_the_stage_that_comes_next(work: Path) -> None:
    setting = ["--set", "diversify={enabled: true, encoder: other, queries: {enabled: false}, corpus: {t: 1}}"]
    assert counts(embed(work, *setting)) == [("other", "mask", 30, 2600)]
    assert curate(work, "diversify", "--run", "runs/many", *setting).returncode == 0
    assert counts(embed(work)) == [("letters", "diversify", 30, 2600)]
    both = counts(embed(work, "--encoder", "letters", "--encoder", "other"))
    assert both == [("letters", "diversify", 0, 0), ("other", "diversify", 0, 0)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shard", "3/3"], "--shard: found '3/3', expected I/N with I from 0 to N - 1, for example 0/3"),
        (["--shard", "0/0"], "--shard: found '0/0'"),
        (["--shard", "one"], "--shard: found 'one'"),
        (["--encoder", "leters"], "unknown encoder 'leters': did you mean 'letters'"),
        (["--set", "pool.retrievers=[words]"], "no retriever of the pipeline encodes texts; name an encoder"),
        (["--force"], "No such option"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(work: Path, words: list[str], message: str) -> None:
    done = curate(work, "embed", "--run", "runs/many", *words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_full_disk_is_a_sentence(work: Path) -> None:
    with full_disk(1000):
        done = curate(work, "embed", "--run", "runs/many")
    assert (done.returncode, "no space left on the disk" in done.stderr) == (2, True), done.stderr
    assert counts(embed(work))[0][2:] == (30, 2600)


def test_a_run_that_is_not_masked_says_what_to_type(work: Path) -> None:
    done = curate(work, "embed", "--pipeline", "many.yaml", "--run", "runs/new")
    assert done.returncode == 2
    assert "run `curate ingest` with the same --pipeline and --run" in done.stderr
