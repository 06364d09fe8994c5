"""Copies of a ledger: whole, the same every time, brought together without doubling, refused if they are strange."""

import shutil
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.core.errors import DataError
from curate.ledger import Ledger, PassageRow
from curate.ledger.exchange import export, import_
from curate.system.files import digests
from tests.support.rows import CALL, RATING

COPIED = {"judges": 1, "rubrics": 0, "calls": 3, "passages": 1, "ratings": 6, "records": 0}


def fill(ledger: Ledger, name: str, calls: int = 3) -> None:
    judge = ledger.register({"model": name})
    ledger.note([PassageRow(f"passage of {name}", 10, cut=True, whole_tokens=12, flags=("labels",))])
    for number in range(calls):
        said = replace(RATING, query_digest=f"{name}-{number}", grade=None, status="unparsed")
        ledger.append(
            [replace(said, judge_digest=judge), RATING],
            replace(CALL, raw=f"{name}: 中 {number}", cost=number or None, prompt_tokens=number),
        )


def test_a_copy_in_another_database_is_the_same_copied_again(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, "one")
    assert export(ledger, tmp_path / "a") == COPIED
    with Ledger(tmp_path / "copy.db") as copy:
        assert import_(copy, tmp_path / "a") == COPIED
        export(copy, tmp_path / "b")
        assert set(copy.ratings("judge", "rubric").rows()) == set(ledger.ratings("judge", "rubric").rows())
        assert copy.passages() == ledger.passages()
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


def test_what_is_there_is_not_doubled(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, "one")
    export(ledger, tmp_path / "a")
    assert set(import_(ledger, tmp_path / "a").values()) == {0}
    fill(ledger, "two", calls=1)
    assert set(import_(ledger, tmp_path / "a").values()) == {0}
    assert ledger.count("ratings") == 8


def test_machines_come_together_to_the_same_in_any_order(place: Path | str, tmp_path: Path) -> None:
    for number, history in enumerate((["unparsed", "B"], ["refused", "A", "S"], ["D", "failed"])):
        with Ledger(tmp_path / f"{number}.db") as one:
            for word in history:
                grade, status = (word, "rated") if len(word) == 1 else (None, word)
                one.append([replace(RATING, grade=grade, status=status)], CALL)  # type: ignore[arg-type]
            fill(one, str(number))
            export(one, tmp_path / str(number))
    merged = []
    for order in permutations("012"):
        with Ledger(tmp_path / f"{''.join(order)}.db") as together:
            for each in order:
                import_(together, tmp_path / each)
            export(together, tmp_path / "".join(order))
            merged.append(together.ratings("judge", "rubric").sort("query_digest"))
    assert all(each.equals(merged[0]) for each in merged)
    assert merged[0].filter(query_digest="query")["grade"].to_list() == ["B"]
    with Ledger(place) as server:
        import_(server, tmp_path / "210")
        assert server.ratings("judge", "rubric").sort("query_digest").equals(merged[0])
        export(server, tmp_path / "server")
    assert digests(tmp_path / "server") == digests(tmp_path / "012") == digests(tmp_path / "210")


def test_a_copy_is_of_one_moment(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(ledger, "one")
    from curate.ledger import exchange

    write = exchange._write

    def meanwhile(*arguments: object) -> int:
        written = write(*arguments)  # type: ignore[arg-type]
        ledger.append([RATING], CALL)
        return written

    monkeypatch.setattr(exchange, "_write", meanwhile)
    assert export(ledger, tmp_path / "a") == COPIED
    assert ledger.count("ratings") == 6 + len(COPIED)


def test_an_empty_ledger_has_a_copy_too(ledger: Ledger, tmp_path: Path) -> None:
    assert set(export(ledger, tmp_path / "a").values()) == {0}
    assert set(import_(ledger, tmp_path / "a").values()) == {0}


def test_strange_files_are_refused_and_nothing_is_added(tmp_path: Path) -> None:
    with Ledger(tmp_path / "full.db") as full:
        fill(full, "one")
        export(full, tmp_path / "good")
    ratings = pq.read_table(tmp_path / "good" / "ratings.parquet")
    newer = ratings.replace_schema_metadata({"curate ledger": "99"})
    with Ledger(tmp_path / "ledger.db") as ledger:
        for strange, said in (
            (newer, "of ledger version 99, expected 6; .*this version of curate"),
            (ratings.replace_schema_metadata(None), "of ledger version none, expected 6"),
            (ratings.drop_columns(["slot"]), "of ledger version 6, expected 6"),
            (ratings.set_column(0, "rating_id", pa.array([1] * len(ratings))), "expected 6"),
        ):
            shutil.copytree(tmp_path / "good", tmp_path / "bad", dirs_exist_ok=True)
            pq.write_table(strange, tmp_path / "bad" / "ratings.parquet")
            with pytest.raises(DataError, match=rf"ratings\.parquet: .*{said}"):
                import_(ledger, tmp_path / "bad")
        (tmp_path / "bad" / "ratings.parquet").write_bytes(b"PAR1 cut off")
        with pytest.raises(DataError, match=r"ratings\.parquet: not a whole Parquet file"):
            import_(ledger, tmp_path / "bad")
        (tmp_path / "bad" / "ratings.parquet").unlink()
        with pytest.raises(DataError, match=r"ratings\.parquet: no such file"):
            import_(ledger, tmp_path / "bad")
        assert ledger.count("calls") == 0


def test_a_wrong_grade_in_a_copy_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, "one")
    export(ledger, tmp_path / "a")
    path = tmp_path / "a" / "ratings.parquet"
    table = pq.read_table(path)
    ids = pa.array([f"new {number}" for number in range(len(table))])
    wrong = table.set_column(0, table.schema.field("rating_id"), ids)
    wrong = wrong.set_column(6, table.schema.field("grade"), pa.array(["E"] * len(table)))
    pq.write_table(wrong.cast(table.schema), path)
    with pytest.raises(DataError, match="grade_means_rated"):
        import_(ledger, tmp_path / "a")
    assert ledger.count("ratings") == 6
