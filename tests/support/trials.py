"""Parameters of tests that only `make accept` tries."""

from typing import Any

import pytest


def accepting(*values: object) -> list[Any]:
    """Return values as parameters that are left out unless long trials are asked for."""
    return [pytest.param(value, marks=pytest.mark.accept) for value in values]
