"""Shared fixtures: a home and ledgers of its own for every test, no network but loopback, real data where it is."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from curate.ledger import Ledger
from tests.support import postgres
from tests.support.runs import curate, tiny

# The same examples every time: a change is judged by what it does. HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every command that a test starts would compile the package anew
os.environ.pop("COLUMNS", None)  # a worker of pytest-xdist says 80, but what tests read is a pipe

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EXAMPLE = Path(__file__).with_name("plugin")
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep ledger, caches and model hubs of a test inside its own folder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("CURATE_HOME", str(folder))
    monkeypatch.delenv("CURATE_LEDGER", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(folder / "datasets"))
    return folder


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine."""
    connect: Callable[..., Any] = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            raise RuntimeError(f"a test tried to reach {address[0]}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def need(present: bool, what: str) -> None:
    """Skip a test that lacks `what`, or fail it where everything is required."""
    if present:
        return
    if os.environ.get("REQUIRE_ALL"):
        pytest.fail(f"{what} is missing and REQUIRE_ALL is set")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data that stands beside a checkout; skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the folder of real data is not beside this checkout")
    return DATA


@pytest.fixture(scope="session")
def finished_tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the tiny pipeline has run once, to be read only; see `tiny_run`."""
    folder = tmp_path_factory.mktemp("tiny")
    done = curate(folder, "run", tiny(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def tiny_run(finished_tiny: Path, tmp_path: Path) -> Path:
    """Return a finished run of the tiny pipeline in `tmp_path`, which has its data, settings and ledger too."""
    shutil.copytree(finished_tiny, tmp_path, dirs_exist_ok=True)
    return tmp_path / "runs" / "tiny"


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example package by pip and return where."""
    need(importlib.util.find_spec("hatchling") is not None, "the package hatchling")
    target = tmp_path_factory.mktemp("site")
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(target))
    done = subprocess.run([sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)], check=False)
    assert done.returncode == 0
    return target


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """Return the folder of the socket of a real PostgreSQL server."""
    need(postgres.present(), "PostgreSQL's server, or the package psycopg,")
    with postgres.server() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Return where a new ledger may be: once a file, once the URL of a server's database."""
    if request.param == "sqlite":
        return tmp_path / "home" / "ledger.db"
    return postgres.database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def ledger(place: Path | str) -> Iterator[Ledger]:
    """Return a new ledger, in either kind of database."""
    with Ledger(place) as opened:
        yield opened
