"""Parameters of tests that only `make accept` tries."""

from typing import Any

import pytest


def accepting(*values: object) -> list[Any]:
    """Return values as parameters that are left out unless long trials are asked for."""
    return [pytest.param(value, marks=pytest.mark.accept) for value in values]


two_at_one_ledger = pytest.mark.parametrize(
    ("place", "killed"),
    [
        pytest.param("sqlite", True, id="sqlite-one is killed"),
        pytest.param("postgresql", False, id="postgresql-both finish"),
        pytest.param("sqlite", False, id="sqlite-both finish", marks=pytest.mark.accept),
        pytest.param("postgresql", True, id="postgresql-one is killed", marks=pytest.mark.accept),
    ],
    indirect=["place"],
)
"""Two processes at a ledger of either kind, of which one is killed or none."""
