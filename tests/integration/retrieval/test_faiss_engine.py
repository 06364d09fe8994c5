"""The engine faiss keeps an index that is built once, and that kills, damage and a full disk cannot change."""

import os
import signal
import time
from collections.abc import Callable
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from curate.core.protocols import Hits, Kit, Progress, quiet
from curate.retrieval.engines import faiss
from curate.retrieval.engines.faiss import Config, Faiss
from curate.retrieval.retrievers.dense import Config as DenseConfig
from curate.retrieval.retrievers.dense import DenseRetriever
from curate.retrieval.vectors import CachedEncoder
from curate.system.files import digests
from curate.testing import ListCorpus
from tests.support.small import Letters, asked, full_disk

TEXTS = {f"d{n * 7919 % 3001}": f"{n * n % 977} " + "xyz"[n % 3] * (n % 9) for n in range(3_000)}
QUERIES = {f"q{n}": f"{n} x" for n in range(20)}
KINDS: dict[str, dict[str, Any]] = {
    "ivf": {"lists": 10, "probes": 5},
    "ivf int8": {"lists": 10, "probes": 5, "storage": "int8"},
    "hnsw": {"index": "hnsw", "threads": 1},
    "hnsw int8": {"index": "hnsw", "threads": 1, "storage": "int8"},
}
STEP = 250


def small_steps() -> None:
    """Add and keep few vectors at once, in this process."""
    faiss.BLOCK = faiss.FIRST = STEP


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BLOCK", "FIRST"):
        monkeypatch.setattr(faiss, name, STEP)


def hits(folder: Path, kind: str, progress: Progress = quiet, **settings: Any) -> list[list[tuple[str, float]]]:
    """Search with an index of its own in the folder; vectors are kept there too."""
    engine = Faiss(Config(**{"exact_below": 0, "min_recall": 0.5, **KINDS[kind], **settings}))
    cached = CachedEncoder(Letters(), folder / "vectors")
    dense = DenseRetriever("dense", DenseConfig(encoder="x"), Kit(lambda _: cached, folder / "cache", engine))
    found = list[list[tuple[str, float]]]()
    for some in dense.search(ListCorpus(TEXTS), asked(QUERIES), 30, progress):
        assert isinstance(some, Hits)
        rows = zip([some.ids[row] for row in some.rows], some.scores.tolist(), strict=True)
        found += [list(islice(rows, number)) for number in some.counts]
    return found


def indexes(folder: Path) -> dict[str, str]:
    """Return what is kept of an index, and that nothing half-written is."""
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    return digests(folder / "cache" / "faiss")


class Told:
    """A progress that remembers the first number of documents that an index was said to hold."""

    def __init__(self) -> None:
        self.first: int | None = None

    def __call__(self, label: str, _total: int, done: int, _money: str = "", /) -> None:
        if label.startswith("building the index") and self.first is None:
            self.first = done


def child(work: Callable[..., None], *words: object) -> Any:
    """Start a process that shares nothing with this one."""
    process = get_context("spawn").Process(target=work, args=words)
    process.start()
    return process


def slowly(folder: Path, kind: str) -> None:
    small_steps()
    hits(folder, kind, lambda label, *_: time.sleep(0.1 * label.startswith("building the index")))


def dying(folder: Path, kind: str, writes: int) -> None:
    """Die while the checkpoint of that number is whole but for its name."""
    small_steps()
    number, sync = count(1), os.fsync

    def die(file: int) -> None:
        sync(file)
        if "faiss" in str(Path(f"/proc/self/fd/{file}").readlink()) and next(number) == writes:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = die  # type: ignore[assignment]
    hits(folder, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_index_in_another_place_and_none_the_second_time(kind: str, tmp_path: Path) -> None:
    one, again, other = Told(), Told(), Told()
    found = hits(tmp_path / "one", kind, one)
    assert [len(each) for each in found] == [30] * len(QUERIES)
    assert one.first == 0
    made = indexes(tmp_path / "one")
    assert len(made) == 1
    assert hits(tmp_path / "one", kind, again) == found
    assert again.first is None, "it was opened, not built"
    assert hits(tmp_path / "other", kind, other) == found
    assert indexes(tmp_path / "other") == made


def test_a_build_killed_from_outside_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    expected = hits(tmp_path / "whole", "hnsw")
    process = child(slowly, tmp_path / "killed", "hnsw")
    while not any(int(path.name[:12]) for path in (tmp_path / "killed").rglob("*.faiss")):
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    told = Told()
    assert hits(tmp_path / "killed", "hnsw", told) == expected
    assert told.first
    assert told.first < len(TEXTS)
    assert indexes(tmp_path / "killed") == indexes(tmp_path / "whole")


@pytest.mark.parametrize("writes", [1, 5])
def test_a_file_that_a_kill_left_unfinished_is_never_read(writes: int, tmp_path: Path) -> None:
    expected = hits(tmp_path / "whole", "ivf")
    process = child(dying, tmp_path / "killed", "ivf", writes)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert list((tmp_path / "killed").rglob(".*.new"))
    told = Told()
    assert hits(tmp_path / "killed", "ivf", told) == expected
    assert (told.first or 0) == max(0, writes - 2) * STEP
    assert indexes(tmp_path / "killed") == indexes(tmp_path / "whole")


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_a_damaged_index_is_built_again(kind: str, damage: str, tmp_path: Path) -> None:
    expected, made = hits(tmp_path, kind), indexes(tmp_path)
    (path,) = tmp_path.rglob("*.faiss")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"flipped": bytes(data), "cut": bytes(data[:-9]), "empty": b""}[damage])
    told = Told()
    assert hits(tmp_path, kind, told) == expected
    assert told.first == 0
    assert indexes(tmp_path) == made


def test_a_full_disk_is_said_and_what_was_kept_is_used(tmp_path: Path) -> None:
    expected = hits(tmp_path / "whole", "hnsw")
    size = next((tmp_path / "whole").rglob("*.faiss")).stat().st_size
    CachedEncoder(Letters(), tmp_path / "full/vectors").encode(list(TEXTS.values()), "document")
    with full_disk(size // 2), pytest.raises(OSError, match="File too large"):
        hits(tmp_path / "full", "hnsw")
    told = Told()
    assert hits(tmp_path / "full", "hnsw", told) == expected
    assert told.first
    assert indexes(tmp_path / "full") == indexes(tmp_path / "whole")


def waited(folder: Path) -> None:
    small_steps()
    told = Told()
    hits(folder, "hnsw", told)
    (folder / f"{os.getpid()}-{'opened' if told.first is None else 'built'}").touch()


def test_of_several_processes_one_builds(tmp_path: Path) -> None:
    hits(tmp_path, "ivf")  # so that all have the vectors
    processes = [child(waited, tmp_path) for _ in range(2)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 2
    assert sorted(path.name.partition("-")[2] for path in tmp_path.glob("*-*")) == ["built", "opened"]
