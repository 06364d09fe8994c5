"""A ledger of version 3, for five grades alone, is brought up to date: wholly or not at all, and nobody is harmed."""

import logging
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from curate.core.errors import DataError
from curate.ledger import Ledger, database
from curate.ledger.tables import MIGRATIONS
from curate.runs.ledger_check import check
from tests import ROOT
from tests.support import old_ledger, postgres
from tests.support.old_ledger import VERSION, older, say
from tests.support.rows import sql

CALLS = 600
KILLS = 10
TABLES = {"versions", "judges", "calls", "ratings", "passages", "claims", "batches", "caps"}


def rows(ledger: Ledger) -> list[tuple[object, ...]]:
    return sql(ledger, "SELECT * FROM ratings ORDER BY rating_id")


def copies(place: Path | str, number: int, request: pytest.FixtureRequest) -> list[Path | str]:
    """Return copies of a ledger that nobody has open."""
    if isinstance(place, Path):
        return [Path(shutil.copy(place, place.with_name(f"{name}.db"))) for name in range(number)]
    folder, name = request.getfixturevalue("postgres_server"), sa.make_url(place).database
    return [postgres.database(folder, str(name)) for _ in range(number)]


def found(place: Path | str) -> tuple[int, set[str], int]:
    """Return version, tables and number of ratings of a ledger, without bringing it up to date."""
    engine = sa.create_engine(database.url_of(place))
    with engine.connect() as connection:
        version, ratings = (
            connection.exec_driver_sql(query).scalar_one()
            for query in ("SELECT max(version) FROM versions", "SELECT count(*) FROM ratings")
        )
        names = set(sa.inspect(connection).get_table_names())
    engine.dispose()
    return version, names, ratings


def test_a_kill_at_any_moment_leaves_all_of_the_old_or_all_of_the_new(
    place: Path | str, request: pytest.FixtureRequest
) -> None:
    with older(place) as ledger:
        say(ledger, 0, CALLS)
        before = rows(ledger)
    places = copies(place, KILLS + 1, request)
    command = [sys.executable, old_ledger.__file__, *map(str, places)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    old, new = (VERSION, TABLES, 3 * CALLS), (len(MIGRATIONS), TABLES | {"rubrics", "records"}, 3 * CALLS)
    killed = [found(each) for each in places[1:]]
    assert all(each in (old, new) for each in killed)
    assert killed[0] == old
    assert killed[-1] == found(places[0]) == new
    for each in places:
        with Ledger(each) as ledger:
            assert check(ledger) == []
            assert rows(ledger) == before


def test_who_has_it_open_goes_on_and_loses_nothing(place: Path | str) -> None:
    """An older process appends all the while, and another one is in the middle of an export."""
    done = threading.Event()
    number = 0

    def go_on(old: Ledger) -> None:
        nonlocal number
        while not done.is_set() or number < 60:
            say(old, number)
            number += 1

    with older(place) as old:
        say(old, 1_000, CALLS)
        writing = threading.Thread(target=go_on, args=(old,))
        with old.database.transaction("snapshot") as export:
            assert export.exec_driver_sql("SELECT count(*) FROM judges").scalar_one() == 1
            writing.start()
            Ledger(place).close()
            kept = export.exec_driver_sql("SELECT count(*) FROM ratings").scalar_one()
        done.set()
        writing.join()
        assert 3 * CALLS <= kept < 3 * (CALLS + 60)
        assert old.count("ratings") == 3 * (CALLS + number)
    with Ledger(place) as ledger:
        assert check(ledger) == []


def test_processes_that_open_it_at_once_find_it_done(place: Path | str) -> None:
    with older(place) as ledger:
        say(ledger, 0, CALLS)
    opened = list[int]()

    def look() -> None:
        with Ledger(place) as ledger:
            opened.append(ledger.count("ratings"))

    several = [threading.Thread(target=look) for _ in range(4)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert opened == [3 * CALLS] * 4


def test_a_full_disk_leaves_the_old_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    with older(path) as old:
        say(old, 0, CALLS)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limit[1]))
            with pytest.raises(DataError, match=r"ledger\.db: .*no space left on the disk"):
                Ledger(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert found(path)[0] == VERSION
        say(old, CALLS)
    with Ledger(path) as ledger:
        assert ledger.count("ratings") == 3 * (CALLS + 1)
        assert check(ledger) == []


def test_a_disk_that_is_too_small_is_seen_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    with older(path) as old:
        say(old, 0, CALLS)
    usage = shutil.disk_usage(path.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=3 * CALLS * database.ROOM - 1))
    with pytest.raises(DataError, match=r"its 1,800 ratings .* takes 2 MB of disk .*, and 2 are free; free some"):
        Ledger(path)
    assert found(path) == (VERSION, TABLES, 3 * CALLS)


def test_what_takes_long_is_said_once(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "MANY", 30)
    with older(place) as ledger:
        say(ledger, 0, 10)
    for _ in range(2):
        with Ledger(place):
            pass
    [said] = caplog.messages
    assert "bringing its 30 ratings" in said
    assert postgres.PASSWORD not in said
    assert caplog.records[0].levelno >= logging.WARNING  # so it is shown where nobody set up logging
