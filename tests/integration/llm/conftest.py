"""A ledger in a file: what is asked of vendors is the same in either kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a new ledger, in a SQLite file."""
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened
