"""Recognisers of personal data by name: functions from a text to spans; masking replaces these by placeholders."""

from collections.abc import Callable

from curate.core.records import Span
from curate.core.registry import Registry

Recogniser = Callable[[str], list[Span]]

RECOGNISERS: Registry[Recogniser] = Registry(
    "recogniser",
    {
        "mobile": "curate.pii.recognisers.numbers:mobile",
        "landline": "curate.pii.recognisers.numbers:landline",
        "overseas": "curate.pii.recognisers.numbers:overseas",
        "spoken": "curate.pii.recognisers.numbers:spoken",
        "western": "curate.pii.recognisers.numbers:western",
        "email": "curate.pii.recognisers.numbers:email",
        "encoded": "curate.pii.recognisers.disguised:encoded",
        "disguised": "curate.pii.recognisers.disguised:disguised",
        "broken": "curate.pii.recognisers.disguised:broken",
        "wechat": "curate.pii.recognisers.numbers:wechat",
        "qq": "curate.pii.recognisers.numbers:qq",
        "url": "curate.pii.recognisers.numbers:url",
        "resident_id": "curate.pii.recognisers.numbers:resident_id",
        "resident_id_15": "curate.pii.recognisers.numbers:resident_id_15",
        "passport": "curate.pii.recognisers.numbers:passport",
        "permit": "curate.pii.recognisers.numbers:permit",
        "hong_kong_id": "curate.pii.recognisers.numbers:hong_kong_id",
        "macao_id": "curate.pii.recognisers.numbers:macao_id",
        "taiwan_id": "curate.pii.recognisers.numbers:taiwan_id",
        "social_security": "curate.pii.recognisers.numbers:social_security",
        "national_number": "curate.pii.recognisers.national_numbers:national_number",
        "bank_card": "curate.pii.recognisers.numbers:bank_card",
        "plate": "curate.pii.recognisers.numbers:plate",
        "medical_record": "curate.pii.recognisers.numbers:medical_record",
        "staff_number": "curate.pii.recognisers.numbers:staff_number",
        "ip_address": "curate.pii.recognisers.numbers:ip_address",
        "bed_number": "curate.pii.recognisers.numbers:bed_number",
        "name_introduced": "curate.pii.person_names.introduced:name_introduced",
        "name_labelled": "curate.pii.person_names.introduced:name_labelled",
        "name_titled": "curate.pii.person_names.titled:name_titled",
        "name_familiar": "curate.pii.person_names.titled:name_familiar",
        "name_signed": "curate.pii.person_names.introduced:name_signed",
        "name_dotted": "curate.pii.person_names.foreign:name_dotted",
        "name_weighed": "curate.pii.person_names.weights:name_weighed",
        "name_called": "curate.pii.person_names.weights:name_called",
        "name_scarce": "curate.pii.person_names.alone:name_scarce",
        "name_given": "curate.pii.person_names.kin:name_given",
        "name_nick": "curate.pii.person_names.alone:name_nick",
        "name_spaced": "curate.pii.person_names.alone:name_spaced",
        "name_parts": "curate.pii.person_names.foreign:name_parts",
        "name_latin": "curate.pii.person_names.titled:name_latin",
        "name_clinical": "curate.pii.person_names.clinical:name_clinical",
        "name_of_kin": "curate.pii.person_names.kin:name_of_kin",
        "name_handle": "curate.pii.person_names.handles:name_handle",
        "birth_date": "curate.pii.recognisers.numbers:birth_date",
        "address": "curate.pii.recognisers.address:address",
        "address_abroad": "curate.pii.recognisers.address:address_abroad",
        "hospital": "curate.pii.recognisers.institutions:hospital",
        "hospital_short": "curate.pii.recognisers.institutions_short:hospital_short",
        "school": "curate.pii.recognisers.institutions:school",
    },
)
"""Recogniser name -> pure function from a text to spans in code points, in order and without overlap."""
NEW = frozenset({"name_clinical", "address_abroad"})
"""Recognisers that version 0.2 did not have."""
