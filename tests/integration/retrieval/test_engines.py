"""Engines: parts of a corpus here, in processes and on Ray give the hits of one piece; whoever dies is replaced."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate.ask import build
from curate.core import config
from curate.core.config import Settings
from curate.core.errors import ConfigError, MissingExtra, ProviderError, RunFailed
from curate.core.protocols import Engine, Kit, Vectors
from curate.core.records import Hit, Role
from curate.retrieval.engines import ENGINES
from curate.retrieval.engines import ray as ray_engine
from curate.retrieval.retrievers.dense import Config, DenseRetriever
from curate.retrieval.vectors import BLOCK, CachedEncoder
from curate.testing import ListCorpus, listed
from tests.conftest import need
from tests.support.ray_cluster import ray_here
from tests.support.runs import curate, tiny
from tests.support.small import Letters, Neighbours, context

TEXTS = {f"d{number * 7919 % 3001}": f"{number % 40} " + "x" * (number % 9) for number in range(2 * BLOCK + 300)}
"""More than two blocks; every text stands there several times, so many products are equal."""
QUERIES = {f"q{number}": f"{number} x" for number in range(20)}
KINDS: dict[str, Settings] = {
    "one": {"shards": 1},
    "three": {"shards": 3},
    "sixteen": {"shards": 16},
    "processes": {"shards": 3, "processes": 2},
    "ray": {"kind": "ray", "shards": 1},
    "ray two": {"kind": "ray", "shards": 2},
    "ray five": {"kind": "ray", "shards": 5},
}
DYING = ["processes", "ray two"]


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with ray_here(tmp_path_factory.mktemp("ray")):
        yield


def engine(kind: str) -> Engine:
    if KINDS[kind].get("kind") == "ray":
        need(importlib.util.find_spec("ray") is not None, "the package ray")
    elif "ray" in sys.modules:  # a process that is connected dies with its cluster, whatever else it does
        sys.modules["ray"].shutdown()
    made = build.engine(replace(context(Path()), engine=KINDS[kind]))
    assert made is not None
    return made


def hits(folder: Path, engine: Engine | None, encoder: Letters | None = None, depth: int = 50) -> list[list[Hit]]:
    cached = CachedEncoder(encoder or Neighbours(), folder)
    dense = DenseRetriever("dense", Config(encoder="x"), Kit(lambda _: cached, folder, engine))
    return listed(dense, ListCorpus(TEXTS), QUERIES, depth)


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_parts_gives_the_hits_of_one_piece(kind: str, tmp_path: Path) -> None:
    expected = hits(tmp_path / "whole", None)
    assert [len(each) for each in expected] == [50] * len(QUERIES)
    assert len({hit.score for hit in expected[0]}) < 50, "there are ties"
    assert hits(tmp_path / "parts", engine(kind)) == expected
    assert hits(tmp_path / "parts", None) == expected, "from the cache that the parts have filled"


def test_parts_without_documents_and_a_depth_beyond_all(tmp_path: Path) -> None:
    few = {name: TEXTS[name] for name in list(TEXTS)[:5]}
    cached = CachedEncoder(Neighbours(), tmp_path)
    for kind in (None, "three"):
        dense = DenseRetriever(
            "dense", Config(encoder="x"), Kit(lambda _: cached, tmp_path, engine(kind) if kind else None)
        )
        (found,) = listed(dense, ListCorpus(few), {"q": "x"}, 99)
        assert sorted(hit.doc_id for hit in found) == sorted(few)
        assert listed(dense, ListCorpus({}), {"q": "x"}, 99) == [[]]


class Dying(Neighbours):
    """An encoder whose process dies after so many groups, as often as `deaths` says, in all processes together."""

    def __init__(self, folder: Path, deaths: int, after: int) -> None:
        super().__init__("letters", "1")
        self.folder, self.deaths, self.after = folder, deaths, after

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        died = len(list(self.folder.glob("died-*")))
        if len(self.calls) >= self.after and died < self.deaths:
            (self.folder / f"died-{died}-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, role)


@pytest.mark.parametrize("kind", DYING)
def test_a_part_whose_process_is_killed_is_done_again_with_the_same_hits(kind: str, tmp_path: Path) -> None:
    encoder = Dying(tmp_path, 1, 1)
    assert hits(tmp_path / "parts", engine(kind), encoder) == hits(tmp_path / "whole", None)
    assert list(tmp_path.glob("died-*"))


@pytest.mark.parametrize("kind", DYING)
def test_processes_that_keep_dying_end_the_run(kind: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"engine: .* died 4 times; if memory is short, set more engine\.shards"):
        hits(tmp_path / "parts", engine(kind), Dying(tmp_path, 99, 0))


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("kind", ["three", *DYING])
def test_an_error_comes_as_it_was_raised(kind: str) -> None:
    with pytest.raises(ProviderError, match="no answer") as caught:
        list(engine(kind).map(fail, [ProviderError("no answer", fatal=True)]))
    assert caught.value.fatal


def where(task: int) -> tuple[int, int, str]:
    return task, os.getpid(), str(Path.cwd())


@pytest.mark.parametrize("kind", ["three", *DYING])
def test_results_come_in_order_from_where_they_should(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    results = list(engine(kind).map(where, range(9)))
    assert [task for task, _, _ in results] == list(range(9))
    assert {folder for _, _, folder in results} == {str(tmp_path)}
    assert (os.getpid() in {process for _, process, _ in results}) == (kind == "three")


SERVING = """
import sys
from curate.retrieval.engines.ray import connected

cluster = connected(None)
print(cluster.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


def test_a_cluster_that_runs_already_and_one_that_does_not(tmp_path: Path) -> None:
    expected = hits(tmp_path / "whole", None)
    engine("ray two")  # skips without Ray
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVING], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        address = other.stdout.readline().strip()
        elsewhere = ray_engine.Ray(config.check(ray_engine.Config, {"address": address, "shards": 2}, "engine"))
        assert hits(tmp_path / "parts", elsewhere) == expected
        assert sys.modules["ray"].get_runtime_context().gcs_address == address
        sys.modules["ray"].shutdown()
    with pytest.raises(ConfigError, match=r"engine\.address: no Ray cluster answers at '127\.0\.0\.1:.*; start one"):
        list(elsewhere.map(where, [1]))


def test_parts_that_want_more_than_this_machine_has_are_refused() -> None:
    """Ray would wait for ever."""
    engine("ray two")  # skips without Ray
    for setting, number in (("cpus", 4096), ("gpus", 999)):
        much = ray_engine.Ray(config.check(ray_engine.Config, {setting: number}, "engine"))
        with pytest.raises(ConfigError, match=rf"engine\.{setting}: {number} for each part, and this machine has \d+$"):
            list(much.map(where, [1]))


def test_ray_that_does_not_start_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    engine("ray two")  # skips without Ray
    ray = importlib.import_module("ray")

    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nSee the logs")  # noqa: TRY002 - Ray's own

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(
        RunFailed, match=r"^engine: Ray did not start on this machine \(The current node timed out .*\);"
    ):
        list(ray_engine.Ray(ray_engine.Config()).map(where, [1]))


def test_ray_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'curate-ir\[ray\]'"):
        list(ray_engine.Ray(ray_engine.Config()).map(where, [1]))


def test_the_pipeline_names_an_engine_and_no_result_depends_on_it(tmp_path: Path) -> None:
    assert ENGINES.names() == ["faiss", "local", "ray"]
    assert build.engine(context(tmp_path)) is None
    wrong_ones: list[tuple[Settings, str]] = [
        ({"kind": "locl"}, r"engine\.locl\.kind: found nothing; did you mean 'local'"),
        ({"shard": 3}, r"engine\.local\.shard: unknown key; did you mean 'shards'"),
        ({"kind": "ray", "shards": 0}, r"engine\.ray\.shards: .*greater than or equal to 1"),
    ]
    for settings, message in wrong_ones:
        with pytest.raises(ConfigError, match=message):
            build.engine(replace(context(tmp_path), engine=settings))
    pipeline = tiny(tmp_path)
    assert curate(tmp_path, "run", pipeline, "--run", "runs/t").returncode == 0
    again = curate(tmp_path, "pool", "--run", "runs/t", "--set", "engine={kind: local, shards: 4}")
    assert "pool: up to date, skipped" in again.stderr
    wrong = curate(tmp_path, "pool", "--run", "runs/t", "--set", "engine={kind: locl}")
    assert (wrong.returncode, "did you mean 'local'" in wrong.stderr) == (2, True)
