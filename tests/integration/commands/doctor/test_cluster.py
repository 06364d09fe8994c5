"""A cluster of two nodes masks, embeds and searches as one process does, though workers are killed."""

import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster import STAGES, made, one_killed, two_nodes
from curate.commands.doctor import examination as diagnosis
from curate.retrieval.engines import ray as engine_cluster
from tests.conftest import need
from tests.support import machine
from tests.support.ray_cluster import ray_here
from tests.support.runs import curate, ran
from tests.support.small import EmbeddingServer, embedding_server

DOCUMENTS = 4_100
KEY = "0123456789abcdef-key"
PHONES = "139123400"
PIPELINE = """\
version: 1
name: many
ingest: {source: data}
mask: {mode: pseudonym, residual: allow, recognisers: [mobile]}
diversify: {enabled: false}
encoders: {letters: {kind: api, base_url: URL, model: m, dim: 64, batch_size: 256}}
pool: {retrievers: [letters], depth: 20, size: 20}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Give two nodes; in a folder with a short name, for sockets lie in it."""
    need(importlib.util.find_spec("ray") is not None, "the package ray")
    with tempfile.TemporaryDirectory(prefix="r") as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("RAY_TMPDIR", "RAY_USAGE_STATS_ENABLED"):
            patch.setenv(name, "")
        with ray_here(Path(folder)), two_nodes(Path(folder)) as running:
            yield running


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


def written(folder: Path, url: str) -> None:
    (folder / "data" / "qrels").mkdir(parents=True)
    corpus = [
        {
            "_id": f"d{n:05}",
            "title": "",
            "text": f"第{n}号 {'x' * (n % 50)} {'' if n % 9 else f'电话{PHONES}{n % 100:02}'}",
        }
        for n in range(DOCUMENTS)
    ]
    queries = [{"_id": f"q{n}", "text": f"第{n}号 {chr(97 + n)}"} for n in range(20)]
    for name, rows in (("queries", queries), ("corpus", corpus)):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / "data" / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td00000\t1\n")
    (folder / "many.yaml").write_text(PIPELINE.replace("URL", url), encoding="utf-8")


def stages(folder: Path, name: str, engine: str, killing: Any = None) -> dict[str, str]:
    """Run everything in a run and home of its own; with `killing`, a worker dies in each stage. Return digests."""
    home = folder / name
    around = {"CURATE_HOME": str(home), "CURATE_PII_KEY": KEY}
    ran(folder, "ingest", "--pipeline", "many.yaml", "--run", f"runs/{name}", "--set", f"engine={engine}", **around)
    for stage in (*STAGES[:-1], "diversify", STAGES[-1]):
        with one_killed(killing) if killing and stage in STAGES else nullcontext([0]) as dead:
            ran(folder, stage, "--run", f"runs/{name}", **around)
        assert dead, f"{stage}: no worker was seen at work"
    return made(folder / "runs" / name, home)


def test_two_nodes_make_the_bytes_of_one_process_though_a_worker_is_killed_in_every_stage(
    cluster: Any, server: EmbeddingServer, tmp_path: Path
) -> None:
    written(tmp_path, server.url)
    expected = stages(tmp_path, "here", "{}")
    assert stages(tmp_path, "processes", "{kind: local, shards: 3, processes: 2}") == expected
    ours = f"{{kind: ray, shards: 2, address: '{cluster.address}'}}"
    assert stages(tmp_path, "nodes", ours, cluster) == expected
    spans = json.loads((tmp_path / "runs/nodes/mask/stage.json").read_text())["report"]["facts"]["spans_phone"]
    assert spans == len(range(0, DOCUMENTS, 9))
    left = [path for path in Path(os.environ["RAY_TMPDIR"]).rglob("*") if path.is_file()]
    assert len(left) > 10
    for path in left:
        held = path.read_bytes()
        assert KEY.encode() not in held, path
        assert PHONES.encode() not in held, path


def doctor(folder: Path, address: str, code: int) -> Mapping[str, Mapping[str, str]]:
    done = curate(folder, "doctor", "--cluster", address, "--json")
    assert done.returncode == code, done.stderr
    return {each["what"].split(" (")[0]: each for each in machine.data(done.stdout)}


def test_the_doctor_looks_at_every_node(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor(tmp_path, cluster.address, 0)
    assert found["cluster"]["found"].startswith("2 nodes: 2 CPUs, 0 GPUs, ")
    assert found["node 127.0.0.1"]["found"].startswith("1 CPUs, 0 GPUs, ")
    assert found["node 127.0.0.1"]["found"].endswith(" and files as here")
    assert not list(tmp_path.glob(".curate-probe-*"))
    with monkeypatch.context() as patch:
        patch.setattr(diagnosis, "version", lambda _: "9.9")
        assert doctor(tmp_path, cluster.address, 1)["node 127.0.0.1"]["found"].endswith(", here 9.9")

    @contextmanager
    def not_here(_: object) -> Iterator[dict[str, str]]:
        yield {"/nowhere/probe": "x", __file__: "other"}

    monkeypatch.setattr(engine_cluster, "_probes", not_here)
    lacking = doctor(tmp_path, cluster.address, 1)["node 127.0.0.1"]
    assert lacking["found"].endswith(f"; does not see the files in /nowhere, {Path(__file__).parent}")
    assert lacking["remedy"].startswith("mount them there under the same paths")


def test_the_doctor_names_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    need(importlib.util.find_spec("ray") is not None, "the package ray")
    import ray

    ray.shutdown()
    found = doctor(tmp_path, "127.0.0.1:1", 1)["cluster"]
    assert found["state"] == "bad"
    assert "no Ray cluster answers at '127.0.0.1:1'" in found["remedy"]


def test_a_cluster_that_refuses_is_a_sentence_too(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(importlib.util.find_spec("ray") is not None, "the package ray")
    import ray

    def refuse(**_: object) -> None:
        raise ray.exceptions.AuthenticationError(f"mode {os.environ.get('RAY_AUTH_MODE')}.")

    ray.shutdown()
    monkeypatch.setattr(ray, "init", refuse)
    token = tmp_path / "token"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    for mode in ("None", "token"):  # as soon as there is a token, it is sent
        monkeypatch.setenv("RAY_AUTH_MODE", "")
        monkeypatch.delenv("RAY_AUTH_MODE")
        remedy = doctor(tmp_path, server.url.split("/")[2], 1)["cluster"]["remedy"]
        assert f"(mode {mode}." in remedy
        assert "copy the token" in remedy
        token.write_text("0" * 64)
