"""Recognisers of personal data by name: text -> spans. Masking puts typed placeholders in their place."""

from collections.abc import Callable

from curate.records import Span
from curate.registry import Registry

Recogniser = Callable[[str], list[Span]]

RECOGNISERS: Registry[Recogniser] = Registry(
    "recogniser",
    {
        "mobile": "curate.pii.contact:mobile",
        "landline": "curate.pii.contact:landline",
        "email": "curate.pii.contact:email",
        "resident_id": "curate.pii.identity:resident_id",
        "address": "curate.pii.address:address",
        "hospital": "curate.pii.institution:hospital",
        "school": "curate.pii.institution:school",
    },
)
"""Pure functions that return spans in code points, first one first, never overlapping their own."""
