"""What was encoded once stays encoded: across runs, kills, damage and processes, to the last bit."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from curate.core.errors import DataError, RunFailed
from curate.core.protocols import Vectors, quiet
from curate.core.records import Role
from curate.retrieval.encoders.e5 import E5, Config
from curate.retrieval.vectors import BLOCK, GROUP, CachedEncoder, default_folder, encode_part, of_corpus, span
from curate.retrieval.vectors.store import MANY, Store, checksum
from curate.testing import ListCorpus
from tests.support.small import DIM, Letters, Neighbours, full_disk, letters

TEXTS = [f"第{number}篇 " + "document " * (number % 7) + str(number) for number in range(2 * BLOCK + 300)]
DOCUMENTS = {f"d{number}": text for number, text in enumerate([*TEXTS, TEXTS[5], TEXTS[BLOCK + 5]])}
"""More than two blocks, and two texts that stand there twice, one of them in another block."""


def cached(folder: Path, encoder: Letters | None = None) -> tuple[CachedEncoder, Letters]:
    encoder = encoder or Letters()
    return CachedEncoder(encoder, folder), encoder


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.rows"))


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


def test_an_older_layout_is_left_alone(tmp_path: Path) -> None:
    old = tmp_path / "letters-0123456789ab" / "0123.npy"
    old.parent.mkdir()
    old.write_bytes(b"rows of another layout")
    assert (cached(tmp_path)[0].encode(["a"], "query") == letters(["a"])).all()
    assert old.read_bytes() == b"rows of another layout"


def test_texts_of_one_length_are_encoded_together_block_by_block(tmp_path: Path) -> None:
    both, encoder = cached(tmp_path)
    assert (both.encode(TEXTS, "document") == letters(TEXTS)).all()
    sizes = [len(part) for part, _ in encoder.calls]
    assert sizes == [GROUP] * 8 + [256, 44]
    for block in range(3):
        texts = [text for part, _ in encoder.calls[4 * block : 4 * block + 4] for text in part]
        lengths = [len(text) for text in texts]
        assert lengths == sorted(lengths, reverse=True)
        assert sorted(texts) == sorted(TEXTS[block * BLOCK : (block + 1) * BLOCK])


def flip(place: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES = [lambda data: data[:1000], lambda data: b"", lambda data: data + b"x", flip(0), flip(4 * DIM * GROUP - 1)]
"""Of a group's file: cut, emptied, longer, and a bit in the first row, in the last."""
TAILS = [flip(4 * DIM * GROUP + 3), flip(4 * DIM * GROUP + 9), flip(-30), flip(-20), flip(-3)]
"""A bit in the group's size, its checksum, a key, and the trailer."""


@pytest.mark.parametrize("damage", [*DAMAGES, *TAILS])
def test_a_damaged_file_is_encoded_again_and_the_others_are_not(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    rows = cached(tmp_path, Neighbours())[0].encode(TEXTS, "document")
    hurt = next(path for path in files(tmp_path) if path.stat().st_size > 4 * DIM * GROUP)
    whole = hurt.read_bytes()
    hurt.write_bytes(damage(whole))
    again, encoder = cached(tmp_path, Neighbours())
    assert (again.encode(TEXTS, "document") == rows).all()
    assert (again.encoded, len(encoder.texts)) == (GROUP, GROUP)
    assert hurt.read_bytes() == whole


def test_of_a_large_file_only_the_damaged_group_is_encoded_again(tmp_path: Path) -> None:
    rows = cached(tmp_path, Neighbours())[0].encode(TEXTS, "document")
    for number in range(MANY):  # until many small files have become one
        cached(tmp_path, Neighbours())[0].encode([f"query {number}"], "query")
    assert len(files(tmp_path)) < MANY
    large = max(files(tmp_path), key=lambda path: path.stat().st_size)
    large.write_bytes(flip(4 * DIM * GROUP * 3)(large.read_bytes()))
    again, encoder = cached(tmp_path, Neighbours())
    assert (again.encode(TEXTS, "document") == rows).all()
    assert 0 < len(encoder.texts) <= GROUP
    assert (cached(tmp_path, Unloadable())[0].encode(TEXTS, "document") == rows).all(), "mended for good"


def test_damage_without_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checksums = (f"never the same {number}".encode() for number in count())
    monkeypatch.setattr("curate.retrieval.vectors.store.checksum", lambda _content: next(checksums)[-16:])
    with pytest.raises(RunFailed, match="rows were damaged or gone 3 times; check the disk"):
        cached(tmp_path)[0].encode(["a"], "query")


def test_vectors_of_two_lengths_are_an_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing() as keep:
        keep(np.array([b"1" * 16]), np.ones((1, 3), np.float32))
        keep(np.array([b"2" * 16]), np.ones((1, 4), np.float32))
    with pytest.raises(DataError, match="holds vectors of 2 lengths, expected one; delete the folder"):
        Store(tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from curate.retrieval.vectors import GROUP, CachedEncoder, encode_part
from curate.core.protocols import quiet
from curate.testing import ListCorpus
from tests.support.small import Neighbours
from tests.integration.retrieval.test_vectors import DOCUMENTS

class Doomed(Neighbours):
    def encode(self, texts, role):
        if len(self.calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, role)

part = int(sys.argv[3]), int(sys.argv[4])
encode_part(CachedEncoder(Doomed(), Path(sys.argv[1])), ListCorpus(DOCUMENTS), quiet, part)
"""


def child(folder: Path, calls: int, number: int = 0, parts: int = 1) -> "subprocess.Popen[bytes]":
    """Start a process that encodes a part of the documents and kills itself after so many groups."""
    words = [sys.executable, "-c", KILLED, str(folder), str(calls), str(number), str(parts)]
    return subprocess.Popen(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def undisturbed(folder: Path) -> Vectors:
    return of_corpus(cached(folder, Neighbours())[0], ListCorpus(DOCUMENTS))[1]


def test_a_row_of_the_test_encoder_shows_its_neighbours() -> None:
    assert (Neighbours().encode(["a", "b"], "query") != Neighbours().encode(["a", "c"], "query"))[0].any()


def test_a_kill_between_files_loses_what_no_file_holds_and_changes_nothing(tmp_path: Path) -> None:
    assert child(tmp_path, 3).wait() == -signal.SIGKILL
    assert len(files(tmp_path)) in (2, 3), "the last group may be on its way to the disk"
    lost = files(tmp_path)[0].parent / ".0123.new"  # what a kill inside a write leaves
    lost.write_bytes(b"half")
    again, encoder = cached(tmp_path, Neighbours())
    ids, rows = of_corpus(again, ListCorpus(DOCUMENTS))
    assert ids == list(DOCUMENTS)
    whole, all_of_it = cached(tmp_path / "other", Neighbours())
    assert rows.tobytes() == of_corpus(whole, ListCorpus(DOCUMENTS))[1].tobytes()
    assert encoder.calls == all_of_it.calls[-len(encoder.calls) :], "the same texts were encoded side by side"
    assert len(encoder.calls) in (len(all_of_it.calls) - 3, len(all_of_it.calls) - 2)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_parts_give_the_bytes_of_one_process_in_any_order(tmp_path: Path, parts: int) -> None:
    counts = []
    for number in [*range(1, parts), 0]:
        encoder = cached(tmp_path, Neighbours())[0]
        counts.append(encode_part(encoder, ListCorpus(DOCUMENTS), quiet, (number, parts)))
        assert encode_part(cached(tmp_path, Neighbours())[0], ListCorpus(DOCUMENTS), quiet, (number, parts)) == 0
    assert sum(counts) == len(TEXTS)
    rows = of_corpus(cached(tmp_path, Unloadable())[0], ListCorpus(DOCUMENTS))[1]
    assert rows.tobytes() == undisturbed(tmp_path / "other").tobytes()


def test_a_part_that_is_killed_and_run_again_gives_the_same_bytes(tmp_path: Path) -> None:
    started = [child(tmp_path, 99, 0, 3), child(tmp_path, 2, 1, 3), child(tmp_path, 99, 2, 3)]
    assert [process.wait() for process in started] == [0, -signal.SIGKILL, 0]
    assert child(tmp_path, 99, 1, 3).wait() == 0
    rows = of_corpus(cached(tmp_path, Unloadable())[0], ListCorpus(DOCUMENTS))[1]
    assert rows.tobytes() == undisturbed(tmp_path / "other").tobytes()


def test_two_processes_at_once_give_the_bytes_of_one(tmp_path: Path) -> None:
    assert [process.wait() for process in [child(tmp_path, 99), child(tmp_path, 99)]] == [0, 0]
    rows = of_corpus(cached(tmp_path, Unloadable())[0], ListCorpus(DOCUMENTS))[1]
    assert rows.tobytes() == undisturbed(tmp_path / "other").tobytes()


@pytest.mark.parametrize("size", [0, 1000, 65_536, 200_000])
def test_a_full_disk_leaves_nothing_half_written(size: int, tmp_path: Path) -> None:
    """Files of rows are of some 70,000 bytes, the matrix of all of them of 600,000."""
    with full_disk(size), pytest.raises(OSError, match="File too large"):
        of_corpus(cached(tmp_path, Neighbours())[0], ListCorpus(DOCUMENTS))
    assert bool(files(tmp_path)) == (size == 200_000)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".rows", ""}
    rows = of_corpus(cached(tmp_path, Neighbours())[0], ListCorpus(DOCUMENTS))[1]
    assert rows.tobytes() == undisturbed(tmp_path / "other").tobytes()


def test_parts_are_whole_blocks_that_cover_everything_once() -> None:
    for total in (0, 1, BLOCK, BLOCK + 1, 10 * BLOCK - 1):
        for parts in (1, 2, 3, 16):
            spans = [span(total, number, parts) for number in range(parts)]
            assert [place for here in spans for place in range(here.start, here.stop)] == list(range(total))
            assert all(here.start % BLOCK == 0 for here in spans if here.start < here.stop)


def test_many_small_files_become_one_and_whoever_reads_them_goes_on(tmp_path: Path) -> None:
    reader = cached(tmp_path)[0]
    names = [f"text {number}" for number in range(3 * MANY)]
    first = reader.encode(names[:2], "query")
    for name in names:
        cached(tmp_path)[0].encode([name], "query")
    assert len(files(tmp_path)) < MANY
    assert (reader.encode(names[:2], "query") == first).all()
    assert reader.encoded == 2
    assert (cached(tmp_path, Unloadable())[0].encode(names, "query") == letters(names)).all()


def test_a_file_that_goes_before_it_is_read_is_looked_for_again(tmp_path: Path) -> None:
    cached(tmp_path)[0].encode(["a"], "query")
    reader = cached(tmp_path)[0]
    assert reader.fill(np.empty(0, "S16"), list, "query") == 0  # reads the index
    files(tmp_path)[0].unlink()
    assert (reader.encode(["a"], "query") == letters(["a"])).all()
    assert reader.encoded == 1


def test_one_object_that_adds_text_after_text(tmp_path: Path) -> None:
    adding = cached(tmp_path)[0]
    for number in range(2 * MANY):
        assert (adding.encode(["same", f"text {number}"], "query")[1] == letters([f"text {number}"])[0]).all()
    assert (adding.encoded, len(files(tmp_path)) < MANY) == (2 * MANY + 1, True)


def test_of_several_rows_of_a_text_the_same_one_stands_whatever_is_merged(tmp_path: Path) -> None:
    key, rows = np.array([b"k" * 16]), np.arange(2 * MANY, dtype=np.float32).reshape(-1, 1, 1)
    for number, row in enumerate(rows):
        with Store(tmp_path).writing() as keep:
            keep(key, row)
        assert Store(tmp_path).take(key) == min(rows[: number + 1], key=lambda each: checksum(each.data))


def test_a_copy_in_another_process_has_the_same_folder(tmp_path: Path) -> None:
    first = cached(tmp_path)[0]
    rows = first.encode(["a"], "query")
    copy = pickle.loads(pickle.dumps(first))
    assert (copy.folder, copy.name, copy.revision) == (first.folder, first.name, first.revision)
    assert (copy.encode(["a"], "query") == rows).all()
    assert copy.encoded == 0


def test_the_matrix_lies_on_disk_and_cannot_be_written(tmp_path: Path) -> None:
    rows = undisturbed(tmp_path)
    assert not rows.flags.owndata
    assert not rows.flags.writeable
    assert {path.suffix for path in (tmp_path).rglob("*") if path.is_file()} <= {".rows", ".lock", ""}


class Lanes(Letters):
    """An encoder that works on three groups at once."""

    lanes = 3


def test_groups_side_by_side_are_the_same_groups(tmp_path: Path) -> None:
    wide, encoder = cached(tmp_path, Lanes())
    assert (wide.encode(TEXTS, "document") == letters(TEXTS)).all()
    plain, one = cached(tmp_path / "other")
    plain.encode(TEXTS, "document")
    assert sorted(encoder.calls) == sorted(one.calls)


class Broken(Letters):
    """An encoder with a fault in its second group."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = super().encode(texts, role)
        if len(self.calls) > 1:
            rows[5, 0] = np.nan
        return rows


class Empty(Letters):
    """An encoder that knows nothing of one text."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = super().encode(texts, role)
        rows[7] = 0
        return rows


class Short(Letters):
    """An encoder that loses a row."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        return super().encode(texts, role)[1:]


def test_vectors_of_length_0_are_counted(tmp_path: Path) -> None:
    told: list[str] = []
    CachedEncoder(Empty(), tmp_path, tell=told.append).encode(TEXTS[:300], "document")
    assert told == ["encoders.letters: 2 of 300 texts have a vector of length 0: alike to none"]
    CachedEncoder(Letters(), tmp_path / "other", tell=told.append).encode(TEXTS[:300], "document")
    assert len(told) == 1


def test_vectors_that_are_none_are_never_kept(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"encoders\.letters: 1 of 256 vectors hold NaN or infinity; use a model"):
        cached(tmp_path, Broken())[0].encode(TEXTS, "document")
    with pytest.raises(RunFailed, match=r"found vectors of shape \(255, 64\) for 256 texts"):
        cached(tmp_path / "short", Short())[0].encode(TEXTS, "document")
    assert len(files(tmp_path)) == 1, "the group before it"
    again, encoder = cached(tmp_path)
    assert (again.encode(TEXTS, "document") == letters(TEXTS)).all()
    assert len(encoder.texts) == len(TEXTS) - GROUP


class Unloadable(Letters):
    """An encoder whose model must not be loaded."""

    @property
    def dim(self) -> int:  # type: ignore[override]
        raise AssertionError("loads the model")

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        raise AssertionError("loads the model")


def test_a_corpus_is_encoded_as_it_is_shown_and_needs_no_model_twice(tmp_path: Path) -> None:
    corpus = ListCorpus({"d2": "糖尿病", "d1": "高血压", "d3": "fever"})
    progress: list[tuple[str, int, int]] = []
    ids, rows = of_corpus(cached(tmp_path)[0], corpus, lambda *seen: progress.append(seen))
    assert ids == ["d2", "d1", "d3"]
    assert (rows == letters(["糖尿病", "高血压", "fever"])).all()
    assert progress == [("reading documents, letters", 3, done) for done in (0, 2, 3)]
    again = of_corpus(cached(tmp_path, Unloadable())[0], corpus)
    assert (again[1] == rows).all()
    assert of_corpus(Letters(), ListCorpus({}))[1].shape == (0, DIM)


def test_progress_counts_what_is_missing(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    CachedEncoder(Letters(), tmp_path, lambda *step: seen.append(step)).encode(TEXTS, "query")
    label = "encoding queries, letters"
    assert seen[:2] == [(label, len(TEXTS), 0), (label, len(TEXTS), GROUP)]
    assert seen[-1] == (label, len(TEXTS), len(TEXTS))
    again: list[tuple[str, int, int]] = []
    CachedEncoder(Letters(), tmp_path, lambda *step: again.append(step)).encode([*TEXTS, "one more"], "query")
    assert again == [(label, 1, 0), (label, 1, 1)], "what the cache holds is in no count, so in no rate"


def test_the_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURATE_VECTORS", raising=False)
    assert default_folder(tmp_path) == tmp_path / "vectors"
    monkeypatch.setenv("CURATE_VECTORS", "/elsewhere")
    assert default_folder(tmp_path) == Path("/elsewhere")


def test_an_encoder_of_small_steps_shows_each_and_is_kept_by_the_group(tmp_path: Path) -> None:
    class Slow(Letters):
        step = 100

    seen: list[int] = []
    slow = CachedEncoder(Slow(), tmp_path, lambda _label, _total, done: seen.append(done))
    rows = slow.encode(TEXTS[: GROUP + 50], "document")
    assert (rows == letters(TEXTS[: GROUP + 50])).all()
    assert seen == [0, 100, 200, 256, 306]
    whole, encoder = cached(tmp_path / "whole")
    whole.encode(TEXTS[: GROUP + 50], "document")
    assert [len(part) for part, _ in encoder.calls] == [256, 50]
    ours, theirs = (files(folder) for folder in (slow.folder, whole.folder))
    assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs]


def test_rows_of_small_steps_are_those_of_all_at_once() -> None:
    encoder = E5("e5", Config())
    texts = [f"{text} {'发热 fever ' * (number % 9)}" for number, text in enumerate(TEXTS[:40])]
    whole = encoder.encode(texts, "document")
    parts = [encoder.encode(texts[at : at + encoder.step], "document") for at in range(0, 40, encoder.step)]
    assert np.array_equal(whole, np.concatenate(parts))
