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
        "resident_id_15": "curate.pii.identity:resident_id_15",
        "passport": "curate.pii.documents:passport",
        "permit": "curate.pii.documents:permit",
        "hong_kong_id": "curate.pii.documents:hong_kong_id",
        "macao_id": "curate.pii.documents:macao_id",
        "taiwan_id": "curate.pii.documents:taiwan_id",
        "social_security": "curate.pii.documents:social_security",
        "bank_card": "curate.pii.cards:bank_card",
        "plate": "curate.pii.vehicle:plate",
        "medical_record": "curate.pii.chart:medical_record",
        "bed_number": "curate.pii.chart:bed_number",
        "name_introduced": "curate.pii.person:introduced",
        "name_labelled": "curate.pii.labelled:labelled",
        "name_titled": "curate.pii.titles:titled",
        "name_familiar": "curate.pii.titles:familiar",
        "name_signed": "curate.pii.signatures:signed",
        "name_dotted": "curate.pii.foreign:dotted",
        "name_latin": "curate.pii.latin:latin",
        "birth_date": "curate.pii.birth:birth_date",
        "address": "curate.pii.address:address",
        "hospital": "curate.pii.institution:hospital",
        "school": "curate.pii.institution:school",
    },
)
"""Pure functions that return spans in code points, first one first, never overlapping their own."""
