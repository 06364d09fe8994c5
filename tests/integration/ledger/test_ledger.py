"""The ledger: found by text, appended once, whole after a kill, shared by processes, and honest about what it lacks.

What it promises is tested over SQLite and over a real PostgreSQL server.
"""

import resource
import signal
import sqlite3
import traceback
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from random import Random

import polars as pl
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from curate.core.errors import ConfigError, DataError
from curate.ledger import Ledger, PassageRow, tables
from curate.ledger.rows import LOST, standing
from curate.ledger.store import TimeOrderedIds
from curate.pipeline.stage import ledger_place
from tests.conftest import need
from tests.support import postgres
from tests.support.rows import CALL, RATING, child, sql


def test_a_rating_is_found_by_texts_judge_rubric_and_replicate(ledger: Ledger) -> None:
    call_id = ledger.append([RATING], CALL)
    [row] = ledger.ratings("judge", "rubric").rows(named=True)
    assert row == {
        "query_digest": "query",
        "passage_digest": "passage",
        "grade": "A",
        "status": "rated",
        "slot": 2,
        "batch_size": 10,
        "call_id": call_id,
    }
    for other in (("judge-2", "rubric", 0), ("judge", "rubric-2", 0), ("judge", "rubric", 1)):
        assert ledger.ratings(*other).is_empty()


STANDING = [
    ("failed", "failed"),
    ("failed rated:B", "B"),
    ("rated:B failed", "B"),
    ("rated:B rated:S", "B"),
    ("failed unparsed refused", "refused"),
    ("refused unparsed", "unparsed"),
    ("refused rated:D failed rated:S", "D"),
]


@pytest.mark.parametrize(("history", "standing"), STANDING)
def test_the_first_grade_stands_else_the_last_word(ledger: Ledger, history: str, standing: str) -> None:
    for word in history.split():
        status, _, grade = word.partition(":")
        ledger.append([replace(RATING, status=status, grade=grade or None)])  # type: ignore[arg-type]
    [row] = ledger.ratings("judge", "rubric").rows(named=True)
    assert (row["grade"] or row["status"]) == standing
    assert ledger.count("ratings") == len(history.split())


def test_a_call_and_its_ratings_are_written_together_or_not_at_all(ledger: Ledger) -> None:
    broken = replace(RATING, grade=object())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="type 'object'"):
        ledger.append([RATING, broken], replace(CALL, raw="a private answer"))
    assert (ledger.count("calls"), ledger.count("ratings")) == (0, 0)


def test_an_error_holds_no_reply(ledger: Ledger) -> None:
    with pytest.raises(DataError) as caught:
        ledger.append([], replace(CALL, raw="a private answer", request_digest=object()))  # type: ignore[arg-type]
    chain = f"{caught.value} {caught.value.__cause__}"
    assert "private" not in chain


def test_a_judge_is_known_by_what_changes_its_grades(ledger: Ledger) -> None:
    first = ledger.register({"model": "m", "temperature": 0})
    assert ledger.register({"temperature": 0, "model": "m"}) == first
    other = ledger.register({"model": "m", "temperature": 1})
    assert other != first
    assert ledger.count("judges") == 0, "a judge that said nothing is not there"
    for judge in (first, first, other):
        ledger.append([], replace(CALL, judge_digest=judge))
    assert ledger.count("judges") == 2


def test_models_are_named_first_to_last(ledger: Ledger) -> None:
    for model in ("b", "a", "", "b", "c"):
        ledger.append([], replace(CALL, model=model, rubric_digest="rubric"))
    assert ledger.models("judge", "rubric") == ["b", "a", "c"]
    assert ledger.models("judge-2", "rubric") == ledger.models("judge", "rubric-2") == []


def test_the_bill_adds_up_what_a_run_paid(ledger: Ledger) -> None:
    known = replace(CALL, prompt_tokens=100, cached_tokens=40, output_tokens=10, cost=0.5, currency="USD")
    for call in (
        known,
        known,
        replace(known, run="another"),
        replace(known, judge_digest="free", cost=None, currency=None),
    ):
        ledger.append([], call)
    bill = ledger.bill("run", ["judge", "free", "never asked"]).rows()
    assert bill == [("free", 1, 100, 40, 10, None, None), ("judge", 2, 200, 80, 20, 1.0, "USD")]
    ledger.append([], replace(CALL))
    known_and_unknown = {row[1:] for row in ledger.bill("run", ["judge"]).rows()}
    assert known_and_unknown == {(1, None, None, None, None, None), (2, 200, 80, 20, 1.0, "USD")}


def test_a_request_without_a_reply_is_on_no_bill(ledger: Ledger) -> None:
    ledger.append([], replace(CALL, cost=0.5))
    ledger.append([], replace(CALL, finish="error"))
    assert ledger.bill("run", ["judge"])["calls", "cost"].rows() == [(1, 0.5)]
    ledger.append([], replace(CALL, finish="error", form=LOST, cost=0.25))
    assert ledger.bill("run", ["judge"])["calls", "cost"].rows() == [(1, 0.75)]


@pytest.mark.parametrize(
    ("grade", "status"),
    [("", "rated"), ("长" * 41, "rated"), (None, "rated"), ("S", "failed"), (None, "lost"), ("", "refused")],
)
def test_a_grade_is_kept_exactly_with_the_status_rated(ledger: Ledger, grade: str | None, status: str) -> None:
    with pytest.raises(DataError, match=r"(CHECK constraint failed|violates check constraint).*grade_means_rated"):
        ledger.append([replace(RATING, grade=grade, status=status)])  # type: ignore[arg-type]
    assert ledger.count("ratings") == 0


def test_what_was_written_is_there_after_reopening(place: Path | str) -> None:
    for expected in (1, 2, 3):
        with Ledger(place) as ledger:
            ledger.append([RATING], CALL)
            assert ledger.count("ratings") == expected
            assert sql(ledger, "SELECT version FROM versions") == [(1,), (2,), (3,), (4,), (5,), (6,)]


def test_a_file_has_one_writer_and_readers_beside_it(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert sql(ledger, "PRAGMA journal_mode") == [("wal",)]


def opened() -> list[str]:
    """Return the ledgers that this process has open."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing itself is open while it lists
            links.append(str(link.readlink()))
    return [link for link in links if "ledger.db" in link]


def test_a_closed_ledger_holds_no_file(tmp_path: Path) -> None:
    need(Path("/proc/self/fd").is_dir(), "/proc, which lists open files,")
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.append([RATING], CALL)
        assert opened() != []
    assert opened() == []
    (tmp_path / "bad.ledger.db").write_text("no database" * 100)
    with pytest.raises(DataError):
        Ledger(tmp_path / "bad.ledger.db")
    assert opened() == []


def test_wrong_files_are_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(DataError, match=r"text.db: file is not a database; .*CURATE_HOME"):
        Ledger(tmp_path / "text.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(DataError, match=r"folder.db: unable to open database file; .*CURATE_HOME"):
        Ledger(tmp_path / "folder.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as other:
        other.execute("CREATE TABLE calls (number INTEGER)")
    with pytest.raises(DataError, match=r"old.db: table calls already exists; .*another place"):
        Ledger(tmp_path / "old.db")


def test_a_newer_version_is_left_alone(place: Path | str) -> None:
    with Ledger(place) as ledger:
        sql(ledger, "INSERT INTO versions VALUES (99)")
    with pytest.raises(DataError, match="newer version of curate"):
        Ledger(place)
    with pytest.raises(DataError, match="newer version of curate"):
        Ledger(place)


def test_the_tables_are_those_that_the_program_knows(ledger: Ledger) -> None:
    found = sa.inspect(ledger.database.engine)
    for table in (*tables.KEPT.values(), tables.claims, tables.batches, tables.caps):
        assert [column["name"] for column in found.get_columns(table.name)] == table.c.keys()


def test_a_server_that_is_not_there_is_a_sentence_without_the_password(postgres_server: Path) -> None:
    refused = postgres.url(postgres_server, "postgres", "wrong-secret")
    unknown = postgres.url(postgres_server, "nowhere")
    absent = "postgresql://curate:a-secret@127.0.0.1:1/ledger?password=a-secret"
    for place, said in ((refused, "password authentication failed"), (unknown, "does not exist"), (absent, "refused")):
        with pytest.raises(DataError, match=rf"curate:\*\*\*@.*{said}.*; .*CURATE_LEDGER") as caught:
            Ledger(place)
        told = "".join(traceback.format_exception(caught.value))
        assert "secret" not in told
        assert postgres.PASSWORD not in told


@pytest.mark.parametrize(
    "place", ["mysql://u:secret@host/d", "nonsense://", "postgresql://u:a@secret@host/d", "postgresql://u:secret@h:x/d"]
)
def test_a_wrong_url_is_a_sentence_that_does_not_repeat_it(place: str) -> None:
    with pytest.raises(ConfigError, match=r"expected postgresql://USER:PASSWORD@HOST/DATABASE") as caught:
        Ledger(place)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_ledger_shows_its_place_without_password(postgres_server: Path) -> None:
    with Ledger(postgres.database(postgres_server)) as ledger:
        assert repr(ledger).startswith("Ledger('postgresql+psycopg://curate:***@/ledger_")


def test_the_place_is_a_url_a_file_or_in_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger_place() == home / "ledger.db"
    for named, place in (("some/file.db", Path("some/file.db")), ("postgresql://h/d", "postgresql://h/d")):
        monkeypatch.setenv("CURATE_LEDGER", named)
        assert ledger_place() == place


def test_what_a_database_cannot_hold_is_written_as_json_would(ledger: Ledger) -> None:
    ledger.append([], replace(CALL, model="m\0", raw='{"P1": "\0 \ud800 中"}'))
    assert sql(ledger, "SELECT model, raw FROM calls") == [("m\\u0000", '{"P1": "\\u0000 \\ud800 中"}')]


def test_the_first_that_was_noted_of_a_passage_stays(ledger: Ledger) -> None:
    first = PassageRow("a", 10, cut=True, whole_tokens=20, flags=("labels", "roles"))
    other = PassageRow("b", 5, cut=False, whole_tokens=5)
    ledger.note([first])
    ledger.note([replace(first, flags=()), other])
    ledger.note([])
    assert ledger.passages() == [first, other]


def test_ids_grow_whatever_the_clock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5_000_000, 5_000_000, 3_000_000, 9_000_000, 1_000_000])
    monkeypatch.setattr("time.time_ns", lambda: next(times))
    one = TimeOrderedIds()
    made = [one.next() for _ in range(5)]
    assert made == sorted(set(made))
    assert {len(each) for each in made} == {26}


def test_two_writers_make_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)
    one, another = TimeOrderedIds(), TimeOrderedIds()
    assert len({ids.next() for ids in (one, another) for _ in range(1_000)}) == 2_000


def fill(ledger: Ledger) -> None:
    """Write replies without end."""
    for number in count():
        ledger.append([RATING], replace(CALL, request_digest=str(number), raw="x" * 10_000))


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Ledger(path) as ledger:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
            with pytest.raises(DataError, match=r"ledger\.db: .*no space left on the disk"):
                fill(ledger)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        kept = ledger.count("calls")
        assert kept == ledger.count("ratings") > 5
        assert sql(ledger, "SELECT request_digest FROM calls ORDER BY call_id") == [
            (str(number),) for number in range(kept)
        ]
        ledger.append([RATING], CALL)
        assert ledger.count("calls") == kept + 1
        assert sql(ledger, "PRAGMA integrity_check") == [("ok",)]


def test_processes_open_a_new_ledger_and_write_to_it_at_once(place: Path | str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    children = [child(place, "append", number, 40, go) for number in range(4)]
    go.touch()
    for each in children:
        each.communicate(timeout=60)
    assert [each.returncode for each in children] == [0] * 4
    with Ledger(place) as ledger:
        assert (ledger.count("calls"), ledger.count("ratings")) == (160, 480)
        assert len(ledger.ratings("j", "r")) == 480


@pytest.mark.parametrize(("way", "in_flight"), [("append", 1), ("write", 50)])
def test_a_kill_loses_nothing_that_was_written(place: Path | str, way: str, in_flight: int) -> None:
    with child(place, way, "name", 100_000) as process:
        assert process.stdout is not None
        told = {int(line) for line in islice(process.stdout, 200)}
        process.send_signal(signal.SIGKILL)
        told |= {int(line) for line in process.stdout.read().split()}
    assert process.returncode == -signal.SIGKILL
    with Ledger(place) as ledger:
        kept = ledger.ratings("j", "r")["query_digest"]
        written = {int(query.removeprefix("name-")) for query in kept}
        assert told <= written
        assert len(written - told) <= in_flight
        assert len(kept) == 3 * len(written) == 3 * ledger.count("calls") == ledger.count("ratings")
        ledger.append([RATING], CALL)
        assert ledger.count("calls") == len(written) + 1
        assert ledger.database.path is None or sql(ledger, "PRAGMA integrity_check") == [("ok",)]


PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["B", "S", "failed"])))


@given(PAIRS, st.randoms())
def test_what_stands_does_not_depend_on_the_order_of_arrival(
    history: list[tuple[str, str, str]], chance: Random
) -> None:
    expected: dict[tuple[str, str], str] = {}
    for query, passage, word in history:
        if expected.get((query, passage), "failed") == "failed":
            expected[query, passage] = word
    rows = [
        (query, passage, word if len(word) == 1 else None, "rated" if len(word) == 1 else word, f"{number:09}")
        for number, (query, passage, word) in enumerate(history)
    ]
    chance.shuffle(rows)
    names = ["query_digest", "passage_digest", "grade", "status", "rating_id"]
    found = standing(pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row"))
    assert {row[:2]: row[2] or row[3] for row in found.iter_rows()} == expected
    assert len(found) == len(expected)


def test_replies_about_one_prompt_are_read_again_oldest_first(ledger: Ledger) -> None:
    ledger.append([], replace(CALL, request_digest="one", finish="error", raw="{}"))
    ledger.append([], replace(CALL, request_digest="one", finish="stop", raw='{"label": "噪声"}'))
    ledger.append([], replace(CALL, request_digest="two", finish="refusal", raw="no"))
    for other in ({"rubric_digest": "rubric-2"}, {"judge_digest": "judge-2"}, {"replicate": 1}):
        ledger.append([], replace(CALL, **other))
    found = ledger.generations(CALL.judge_digest, CALL.rubric_digest, CALL.replicate)
    assert [row[1:4] for row in found] == [
        ("one", "error", "{}"),
        ("one", "stop", '{"label": "噪声"}'),
        ("two", "refusal", "no"),
    ]
    newest = found[-1][0]
    assert ledger.generations(CALL.judge_digest, CALL.rubric_digest, CALL.replicate, newest) == found[-1:]


def test_an_empty_file_is_no_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    with pytest.raises(DataError, match=r"ledger\.db: an empty file and no ledger; put a copy of it back"):
        Ledger(path)
    assert path.stat().st_size == 0


def test_what_is_damaged_is_said_with_the_advice_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for number in range(200):
            ledger.append([], replace(CALL, request_digest=str(number), raw="x" * 3_000))
        ledger.database.engine.dispose()
    with path.open("r+b") as stream:
        size = stream.seek(0, 2)
        stream.seek(size // 2)
        stream.write(b"\xff" * (size // 4))
    with pytest.raises(DataError, match=r"PRAGMA integrity_check.*\.recover"), Ledger(path) as ledger:
        ledger.generations(CALL.judge_digest, CALL.rubric_digest, CALL.replicate)


def test_a_record_is_stored_once_and_a_changed_one_is_none(ledger: Ledger, tmp_path: Path) -> None:
    pool = ledger.record({"queries": [["q", "中\0%s"]], "seed": 0})
    assert ledger.record({"seed": 0, "queries": [["q", "中\0%s"]]}) == pool
    exports = [ledger.record({"format": name}, follows=pool) for name in ("trec", "beir")]
    assert ledger.count("records") == 3
    assert ledger.recorded(pool) == {"queries": [["q", "中\0%s"]], "seed": 0}
    assert sorted(each["format"] for each in ledger.following(pool)) == ["beir", "trec"]
    assert ledger.recorded("0" * 64) is None
    assert ledger.following(exports[0]) == []
    with ledger.database.transaction() as connection:
        connection.exec_driver_sql(f"UPDATE records SET content = '{{}}' WHERE record_digest = '{pool}'")
    assert ledger.recorded(pool) is None
