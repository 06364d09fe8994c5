"""Ray in tests: processes that stay on this machine, and a token that is not the user's."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import ROOT


@contextmanager
def ray_here(folder: Path) -> Iterator[None]:
    """Keep Ray's processes on this machine and its token out of the home, and stop what a test has started.

    The first Ray cluster of a process sets mode, token and address, so all have the same; a test that only connects to
    one needs them set before: else Ray sends no token, and looks for 127.0.0.1 at the machine's own address, for ten
    minutes.
    """
    token = folder / "token"
    token.write_text("0" * 64)
    paths = os.pathsep.join([str(ROOT / "tests/loopback"), *filter(None, sys.path)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", paths)
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        yield
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
