"""Recognisers of personal data by name: text -> spans. Masking puts typed placeholders in their place."""

from collections.abc import Callable

from curate.records import Span
from curate.registry import Registry

Recogniser = Callable[[str], list[Span]]

RECOGNISERS: Registry[Recogniser] = Registry(
    "recogniser",
    {
        "mobile": "curate.pii.phone:mobile",
        "landline": "curate.pii.phone:landline",
        "overseas": "curate.pii.phone_overseas:overseas",
        "spoken": "curate.pii.phone_spoken:spoken",
        "western": "curate.pii.phone_western:western",
        "email": "curate.pii.phone:email",
        "encoded": "curate.pii.encoded:encoded",
        "disguised": "curate.pii.disguised:disguised",
        "broken": "curate.pii.broken:broken",
        "wechat": "curate.pii.accounts:wechat",
        "qq": "curate.pii.accounts:qq",
        "url": "curate.pii.accounts:url",
        "resident_id": "curate.pii.resident_id:resident_id",
        "resident_id_15": "curate.pii.resident_id:resident_id_15",
        "passport": "curate.pii.documents:passport",
        "permit": "curate.pii.documents:permit",
        "hong_kong_id": "curate.pii.documents:hong_kong_id",
        "macao_id": "curate.pii.documents:macao_id",
        "taiwan_id": "curate.pii.documents:taiwan_id",
        "social_security": "curate.pii.documents:social_security",
        "national_number": "curate.pii.national_numbers:national_number",
        "bank_card": "curate.pii.bank_card:bank_card",
        "plate": "curate.pii.plate:plate",
        "medical_record": "curate.pii.medical_record:medical_record",
        "staff_number": "curate.pii.staff:staff_number",
        "ip_address": "curate.pii.ip_address:ip_address",
        "bed_number": "curate.pii.medical_record:bed_number",
        "name_introduced": "curate.pii.name_introduced:introduced",
        "name_labelled": "curate.pii.name_labelled:labelled",
        "name_titled": "curate.pii.name_titled:titled",
        "name_familiar": "curate.pii.name_titled:familiar",
        "name_signed": "curate.pii.name_signed:signed",
        "name_dotted": "curate.pii.name_foreign:dotted",
        "name_weighed": "curate.pii.name_weighed:weighed",
        "name_called": "curate.pii.name_weighed:called",
        "name_scarce": "curate.pii.name_scarce:bare",
        "name_given": "curate.pii.name_kin:given_alone",
        "name_nick": "curate.pii.name_nick:nick",
        "name_spaced": "curate.pii.name_spaced:spaced",
        "name_parts": "curate.pii.name_parts:parts",
        "name_latin": "curate.pii.name_latin:latin",
        "name_of_kin": "curate.pii.name_of_kin:of_kin",
        "name_handle": "curate.pii.name_handle:handle",
        "birth_date": "curate.pii.birth_date:birth_date",
        "address": "curate.pii.address:address",
        "hospital": "curate.pii.institutions:hospital",
        "hospital_short": "curate.pii.institutions_short:hospital_short",
        "school": "curate.pii.institutions:school",
    },
)
"""Pure functions that return spans in code points, first one first, never overlapping their own."""
