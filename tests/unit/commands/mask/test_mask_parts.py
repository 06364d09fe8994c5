"""Masking in parts: the bytes of one process, for any number of parts; no raw text leaves a part, no key is shown."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curate.commands.mask import tables
from curate.commands.mask.tables import Part, PartMasker, mask_in_parts
from curate.core.records import Span
from curate.pii.masking import Masked
from curate.pii.settings import Masking
from curate.system.files import frame, write_table

KEY = b"not to be shown"
TEXTS = [f"{number} 号" + ("，电话13912345678" if number % 3 == 0 else "，别无他事") for number in range(11)]


class InParts:
    """An engine that sends tasks and results by pickle, and notes them."""

    def __init__(self, shards: int) -> None:
        self.shards, self.sent = shards, list[bytes]()

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        for task in tasks:
            result = pickle.dumps(pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(task))))
            self.sent += [pickle.dumps(task), result]
            yield pickle.loads(result)


def texts(column: str, batch: pl.DataFrame) -> list[str]:
    return batch[column].to_list()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PartMasker:
    monkeypatch.setattr(tables, "BATCH", 4)
    rows = [{"query_id": f"q{number:02}", "text": text} for number, text in enumerate(TEXTS)]
    write_table(tmp_path, "queries", frame("queries", rows))
    masking = Masking(recognisers=["mobile"], mode="pseudonym")
    return PartMasker(tmp_path, "queries", partial(texts, "text"), masking, "zh", KEY)


def known(batch: pl.DataFrame) -> dict[int, list[Span]]:
    """Return what a person decided to mask: the first character of q01 and of q10."""
    return {
        row: [Span(0, 1, "number", "person")] for row, name in enumerate(batch["query_id"]) if name in ("q01", "q10")
    }


def masked(engine: InParts, work: PartMasker, **more: Any) -> list[tuple[str, Masked]]:
    found = mask_in_parts(engine, work, len(TEXTS), **{"known": None, **more})
    return [pair for batch, each in found for pair in zip(batch["query_id"], each, strict=True)]


@pytest.mark.parametrize("asked", [None, known])
def test_any_number_of_parts_gives_the_texts_of_one(work: PartMasker, asked: Any) -> None:
    whole, *others = (masked(InParts(shards), work, known=asked) for shards in (1, 2, 3, 99))
    assert [name for name, _ in whole] == [f"q{number:02}" for number in range(len(TEXTS))]
    assert [bool(each.spans) for _, each in whole] == [
        n % 3 == 0 or (asked is known and n in (1, 10)) for n in range(11)
    ]
    assert all(other == whole for other in others)
    assert masked(InParts(5), PartMasker(**{**vars(work), "key": b"another"}), known=asked) != whole


def test_no_raw_text_is_sent_and_texts_without_a_find_stay_where_they_are(work: PartMasker) -> None:
    engine = InParts(2)
    masked(engine, work)
    assert not [sent for sent in engine.sent if b"13912345678" in sent or "别无他事".encode() in sent]


def test_the_key_is_not_shown_and_a_missing_table_is_named(work: PartMasker, tmp_path: Path) -> None:
    assert "not to be shown" not in f"{work!r} {Part(range(1))!r}"
    (tmp_path / "queries.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"queries\.parquet") as caught:
        masked(InParts(1), work)
    assert "not to be shown" not in str(caught.value)


def test_a_table_without_rows_has_no_part(work: PartMasker) -> None:
    assert list(mask_in_parts(InParts(3), work, 0, None)) == []
