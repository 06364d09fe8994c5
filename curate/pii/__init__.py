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
        "overseas": "curate.pii.overseas:overseas",
        "spoken": "curate.pii.spoken:spoken",
        "email": "curate.pii.contact:email",
        "wechat": "curate.pii.online:wechat",
        "qq": "curate.pii.online:qq",
        "url": "curate.pii.online:url",
        "resident_id": "curate.pii.identity:resident_id",
    },
)
"""Pure functions that return spans in code points, first one first, never overlapping their own."""
