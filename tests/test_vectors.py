"""What was encoded once stays encoded: across runs, kills and damage."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from curate.errors import RunFailed
from curate.protocols import Vectors
from curate.records import Role
from curate.vectors import CHUNK, SHARD, CachedEncoder, default_folder, of_corpus
from tests.small import DIM, Letters, Listed, letters

TEXTS = [f"第{number}篇 document {number}" for number in range(2 * SHARD + 10)]


def cached(folder: Path, encoder: Letters | None = None) -> tuple[CachedEncoder, Letters]:
    encoder = encoder or Letters()
    return CachedEncoder(encoder, folder), encoder


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.npy"))


def test_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    first, _ = cached(tmp_path)
    rows = first.encode(TEXTS, "document")
    assert (rows == letters(TEXTS)).all()
    assert rows.dtype == np.float32
    assert first.encoded == len(TEXTS)
    second, encoder = cached(tmp_path)
    assert (second.encode(TEXTS[::-1], "document") == rows[::-1]).all()
    assert (second.encoded, encoder.calls) == (0, [])


def test_one_text_more_encodes_one(tmp_path: Path) -> None:
    cached(tmp_path)[0].encode(TEXTS, "document")
    again, encoder = cached(tmp_path)
    assert (again.encode([*TEXTS[:5], "新的", *TEXTS[5:]], "document")[5] == letters(["新的"])[0]).all()
    assert encoder.texts == ["新的"]


def test_equal_texts_are_encoded_once_and_roles_apart(tmp_path: Path) -> None:
    both, encoder = cached(tmp_path)
    both.encode(["a", "b", "a"], "document")
    both.encode(["b", "a"], "query")
    both.encode(["a"], "document")
    assert encoder.calls == [(["a", "b"], "document"), (["b", "a"], "query")]


def test_nothing_to_encode(tmp_path: Path) -> None:
    empty, encoder = cached(tmp_path)
    assert empty.encode([], "query").shape == (0, DIM)
    assert (encoder.calls, list(tmp_path.iterdir())) == ([], [])


def test_names_and_revisions_have_folders_of_their_own(tmp_path: Path) -> None:
    for encoder in (Letters(), Letters(revision="2"), Letters("other"), Letters("../a/b")):
        assert cached(tmp_path / "cache", encoder)[0].encode(["a"], "query").shape == (1, DIM)
        assert encoder.texts == ["a"]
    folders = [path.name for path in (tmp_path / "cache").iterdir()]
    assert sorted(name.rsplit("-", 1)[0] for name in folders) == [".._a_b", "letters", "letters", "other"]


def flip(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]


@pytest.mark.parametrize("damage", [lambda data: data[:1000], lambda data: b"", flip, lambda data: data + b"x"])
def test_a_damaged_file_is_encoded_again_and_the_others_are_not(tmp_path: Path, damage: object) -> None:
    cached(tmp_path)[0].encode(TEXTS, "document")
    hurt = files(tmp_path)[1]
    whole = hurt.read_bytes()
    hurt.write_bytes(damage(whole))  # type: ignore[operator]
    again, encoder = cached(tmp_path)
    assert (again.encode(TEXTS, "document") == letters(TEXTS)).all()
    assert len(encoder.texts) in (SHARD, 10)
    assert hurt.read_bytes() == whole


KILLED = """
import os, signal, sys
from pathlib import Path
from curate.vectors import SHARD
from tests.small import Letters
from tests.test_vectors import TEXTS, cached

class Doomed(Letters):
    def encode(self, texts, role):
        if len(self.texts) >= SHARD + 64:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, role)

cached(Path(sys.argv[1]), Doomed())[0].encode(TEXTS, "document")
"""


def test_a_kill_between_files_loses_what_no_file_holds(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(files(tmp_path)) == 1
    (files(tmp_path)[0].parent / f".half.npy.{1}").write_bytes(b"half")  # what a kill inside a write leaves
    again, encoder = cached(tmp_path)
    assert (again.encode(TEXTS, "document") == letters(TEXTS)).all()
    assert encoder.texts == TEXTS[SHARD:]
    undisturbed, whole = cached(tmp_path / "other")
    undisturbed.encode(TEXTS, "document")
    assert encoder.calls == whole.calls[SHARD // CHUNK :], "the same texts were encoded side by side"


class Broken(Letters):
    """An encoder with a fault in its seventieth vector."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = super().encode(texts, role)
        if len(self.calls) > 1:
            rows[5, 0] = np.nan
        return rows


class Short(Letters):
    """An encoder that loses a row."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        return super().encode(texts, role)[1:]


def test_vectors_that_are_none_are_never_kept(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"encoders\.letters: 1 of 64 vectors hold NaN or infinity; use a model"):
        cached(tmp_path, Broken())[0].encode(TEXTS, "document")
    with pytest.raises(RunFailed, match=r"found vectors of shape \(63, 64\) for 64 texts"):
        cached(tmp_path, Short())[0].encode(TEXTS, "document")
    assert files(tmp_path) == []


class Unloadable(Letters):
    """An encoder whose model must not be loaded."""

    @property
    def dim(self) -> int:  # type: ignore[override]
        raise AssertionError("loads the model")

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        raise AssertionError("loads the model")


def test_a_corpus_is_encoded_as_it_is_shown_and_needs_no_model_twice(tmp_path: Path) -> None:
    corpus = Listed({"d2": "糖尿病", "d1": "高血压", "d3": "fever"})
    progress: list[tuple[str, int, int]] = []
    ids, rows = of_corpus(cached(tmp_path)[0], corpus, lambda *seen: progress.append(seen))
    assert ids == ["d2", "d1", "d3"]
    assert (rows == letters(["糖尿病", "高血压", "fever"])).all()
    assert progress == [("vectors of documents, letters", 3, 2), ("vectors of documents, letters", 3, 3)]
    again = of_corpus(cached(tmp_path, Unloadable())[0], corpus)
    assert (again[1] == rows).all()
    assert of_corpus(Letters(), Listed({}))[1].shape == (0, DIM)


def test_progress_counts_what_is_missing(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    CachedEncoder(Letters(), tmp_path, lambda *step: seen.append(step)).encode(TEXTS, "query")
    assert seen[0] == ("encode query texts, letters", len(TEXTS), SHARD)
    assert seen[-1] == ("encode query texts, letters", len(TEXTS), len(TEXTS))


def test_the_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURATE_VECTORS", raising=False)
    assert default_folder(tmp_path) == tmp_path / "vectors"
    monkeypatch.setenv("CURATE_VECTORS", "/elsewhere")
    assert default_folder(tmp_path) == Path("/elsewhere")
