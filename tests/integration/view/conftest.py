"""A finished run for all tests of its pages."""

from pathlib import Path

import pytest

from tests.integration.view.test_any_pair import Tables, write
from tests.support.runs import ran


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run, to be read only."""
    made = tmp_path_factory.mktemp("shown")
    ran(made, "run", write(made))
    return made


@pytest.fixture(scope="session")
def tables(folder: Path) -> Tables:
    return Tables(folder / "runs" / "shown")
