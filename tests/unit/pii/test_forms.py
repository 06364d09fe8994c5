"""Every kind of personal data in every written form: what is found of 100 made-up values."""

import pytest

from benchmarks.pii_forms import FORMS, Form, found
from curate.pii.settings import Masking, masker

MASKER = masker(Masking(), "zh", b"key")
COUNT = 100
FUZZY = ("name", "address", "hospital")
"""Kinds whose values have no form of their own."""


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind}: {form.name}")
def test_values_are_found_at_their_place(form: Form) -> None:
    assert found(form, MASKER, COUNT, seed=2) >= COUNT * (0.95 if form.kind in FUZZY else 0.98)
