"""What keeps the tests of small models cheap: one thread, and little to collect."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.publishing import finished


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run with all metadata, to be copied with what is beside it."""
    return finished(tmp_path_factory.mktemp("published"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: several wait for each other longer than a small model computes."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def little_to_collect() -> Iterator[None]:
    """Take what the libraries made out of each collection of garbage, which follows on every model."""
    gc.freeze()
    yield
    gc.unfreeze()
