"""The index of BM25 on disk: read again, made again where it is damaged, the same whoever cuts the texts."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.core.protocols import Kit, quiet
from curate.retrieval.retrievers import bm25
from curate.retrieval.retrievers.bm25 import Bm25, Config, Kind, best_scores, bigrams, cut_all
from curate.testing import ListCorpus
from tests.support.small import asked

TEXTS = {"d2": "小儿发热可以物理降温。", "d1": "高血压患者能喝咖啡吗？", "d3": "Coffee and gout.", "d4": "。"}
QUERIES = {"zh": "小儿发热", "en": "coffee", "none": "⁂"}


class Heard:
    """What a search said of its progress."""

    def __init__(self) -> None:
        self.labels: set[str] = set()

    def __call__(self, label: str, _total: int, _done: int) -> None:
        self.labels.add(label)


def search(cache: Path, texts: Mapping[str, str] = TEXTS, **settings: Any) -> tuple[list[Any], bool]:
    """Return what is found, and whether texts were cut for it."""

    def nobody(_name: str) -> Any:
        raise AssertionError("BM25 needs no encoder")

    heard = Heard()
    found = Bm25("mine", Config(**settings), Kit(nobody, cache)).search(ListCorpus(texts), asked(QUERIES), 5, heard)
    hits = [([each.ids[row] for row in each.rows], each.scores.tolist(), each.counts.tolist()) for each in found]
    return hits, "indexing documents, mine" in heard.labels


def places(cache: Path) -> list[Path]:
    return sorted((cache / "bm25").iterdir())


def test_an_index_is_made_once(tmp_path: Path) -> None:
    first, cut = search(tmp_path)
    assert cut
    assert search(tmp_path) == (first, False)
    assert len(places(tmp_path)) == 1


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ({**TEXTS, "d3": "tea"}, {}),
        ({**TEXTS, "d5": "tea"}, {}),
        ({f"x{name}": text for name, text in TEXTS.items()}, {}),
        (TEXTS, {"k1": 1.2}),
        (TEXTS, {"b": 0.5}),
        (TEXTS, {"tokens": "bigrams"}),
    ],
)
def test_another_corpus_or_setting_has_an_index_of_its_own(
    texts: Mapping[str, str], settings: Mapping[str, Any], tmp_path: Path
) -> None:
    before, _ = search(tmp_path)
    found, cut = search(tmp_path, texts, **settings)
    assert cut
    assert found == search(tmp_path / "other", texts, **settings)[0]
    assert search(tmp_path) == (before, False)
    assert len(places(tmp_path)) == 2


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [shorten, flip, Path.unlink, lambda path: path.write_text("[]")])
def test_a_damaged_index_is_made_again(damage: Callable[[Path], object], tmp_path: Path) -> None:
    whole, _ = search(tmp_path)
    [place] = places(tmp_path)
    names = [path.name for path in place.iterdir()]
    assert {"ids.parquet", "data.csc.index.npy", ".digests.json"} <= set(names)
    for name in names:
        damage(place / name)
        assert search(tmp_path) == (whole, True), name
        assert search(tmp_path) == (whole, False)
    assert places(tmp_path) == [place]


def test_whoever_is_slower_takes_what_is_there(tmp_path: Path) -> None:
    search(tmp_path)
    [place] = places(tmp_path)
    made = bm25.index(tmp_path / "other", None, ListCorpus(TEXTS), "words", {}, quiet, "mine")
    bm25._keep(made, place)
    assert places(tmp_path) == [place]
    shorten(place / "ids.parquet")
    with pytest.raises(OSError, match="not empty"):
        bm25._keep(made, place)


def test_a_corpus_without_a_token_leaves_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        assert search(tmp_path, {"d1": "。"}) == ([([], [], [0, 0, 0])], True)
    assert not (tmp_path / "bm25").exists()


@pytest.mark.parametrize("kind", ["words", "bigrams"])
def test_several_processes_cut_the_same_in_the_same_order(kind: Kind, tmp_path: Path) -> None:
    draw = random.Random(1)
    texts = list(TEXTS.values())
    batches = [["".join(draw.choices(texts, k=3)) for _ in range(size)] for size in (3, 0, 1, 7, 2, 5, 4, 1)]

    def plain(processes: int) -> Iterator[Any]:
        for words, numbers, counts in cut_all(kind, tmp_path, batches, processes):
            yield words, numbers.tolist(), counts.tolist(), str(numbers.dtype), str(counts.dtype)

    assert list(plain(2)) == list(plain(1))
    if kind == "bigrams":
        for batch, (words, numbers, counts) in zip(batches, cut_all(kind, tmp_path, batches, 1), strict=True):
            tokens = [bigrams(text) for text in batch]
            assert [words[number] for number in numbers] == [token for each in tokens for token in each]
            assert counts.tolist() == [len(each) for each in tokens]


def test_an_index_of_many_processes_is_that_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = search(tmp_path / "one")
    monkeypatch.setattr(bm25, "SPREAD", 1)
    monkeypatch.setattr(bm25, "cores", lambda: 2)
    assert search(tmp_path / "two") == one
    (left,), (right,) = places(tmp_path / "one"), places(tmp_path / "two")
    assert (left / ".digests.json").read_bytes() == (right / ".digests.json").read_bytes()


def test_the_best_scores_are_those_of_a_sort() -> None:
    """Scores that differ by less than rounding, and a cut among them: the same as rounding and sorting them all."""
    draw = np.random.default_rng(1)
    order = draw.permutation(400)
    for high in (0.5, 7.0, 30.0, 300.0):
        scores = (high + draw.integers(-9, 9, 400) * 3e-7).astype(np.float32)
        scores[::5] = 0
        for depth in (1, 3, 50, 399, 400, 1000):
            rounded = np.round(scores.astype(np.float64), 6)
            expected = sorted(np.flatnonzero(rounded > 0).tolist(), key=lambda row: (-rounded[row], order[row]))[:depth]
            rows, found = best_scores(order, scores, depth)
            assert rows.tolist() == expected
            assert found.tolist() == rounded[expected].tolist()
