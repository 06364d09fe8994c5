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
        "name_introduced": "curate.pii.person:introduced",
        "name_labelled": "curate.pii.labels:labelled",
        "name_titled": "curate.pii.titles:titled",
        "name_familiar": "curate.pii.titles:familiar",
        "name_signed": "curate.pii.signatures:signed",
        "name_dotted": "curate.pii.foreign:dotted",
        "name_latin": "curate.pii.latin:latin",
        "birth_date": "curate.pii.birth:birth_date",
    },
)
"""Pure functions that return spans in code points, first one first, never overlapping their own."""
