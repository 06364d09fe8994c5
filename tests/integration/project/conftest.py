"""A folder with what a reader of the docs has, shared by the tests of pages and site."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.reader import library


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of the demo and more, which is made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "docs"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            made = tmp_path_factory.mktemp("docs")
            library(made)
            made.rename(folder)
    return folder
