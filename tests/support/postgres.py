"""A real PostgreSQL server of its own, on a socket in a folder of its own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

PASSWORD = "s3cret@of/the:server"
SERVERS = Path("/usr/lib/postgresql").glob("*/bin/initdb")  # a client's folder has none
PROGRAMS = max((path.parent for path in SERVERS), key=lambda path: int(path.parts[-2]), default=None)
_numbers = count(1)


def present() -> bool:
    """Say whether server and driver are installed."""
    return PROGRAMS is not None and find_spec("psycopg") is not None


def url(folder: Path, database: str, password: str = PASSWORD) -> str:
    """Return the URL of a database on the server whose socket is in a folder."""
    import sqlalchemy as sa

    place = sa.URL.create("postgresql", "curate", password, database=database, query={"host": str(folder)})
    return place.render_as_string(hide_password=False)


@contextmanager
def server() -> Iterator[Path]:
    """Run a server as long as the block lasts, and give the folder of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    secret, data = folder / "password", folder / "data"
    secret.write_text(PASSWORD)
    who = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # the server refuses to run as root
    if who:
        for path in (folder, secret):
            shutil.chown(path, "postgres", "postgres")
    assert PROGRAMS is not None
    options = ["--auth=scram-sha-256", "--username=curate", f"--pwfile={secret}", "--no-sync", "--encoding=UTF8"]
    control = [*who, str(PROGRAMS / "pg_ctl"), "-D", str(data), "-w"]
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -F"  # -F: no test pulls the plug
    try:
        _run([*who, str(PROGRAMS / "initdb"), "-D", str(data), *options])
        _run([*control, "-l", str(folder / "log"), "-o", settings, "start"])
        try:
            yield folder
        finally:
            _run([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder)


def database(folder: Path, template: str = "template1") -> str:
    """Make a new database, empty or a copy of another that nobody has open, and return its URL."""
    import psycopg

    name = f"ledger_{next(_numbers)}"
    with psycopg.connect(url(folder, "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return url(folder, name)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, cwd="/")
