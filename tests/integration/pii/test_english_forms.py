"""English: names behind clinical labels and in signatures, named hospitals, and whole addresses; their likes stay."""

import pytest

from tests.support.judged_texts import damaged, masked

NAMES = (
    ("Rosa Martinez", "Rosa", "Martinez"),
    ("Kwame Boateng", "Kwame", "Boateng"),
    ("Siobhan O'Keeffe", "Siobhan", "Keeffe"),
    ("Priya Raghunathan", "Priya", "Raghunathan"),
    ("Mary-Ann Whitcombe", "Mary", "Whitcombe"),
)
LABELS = {
    "patient": ("Patient: {}\nComplaint: cough for two days.", "Patient: {}, seen for a cough for two days."),
    "patient name": ("Pt name: {}\nComplaint: cough for two days.", "Patient Name: {}. She had a cough for two days."),
    "attending": ("Attending: {}, MD\nPlan: discharge.", "Attending physician: Dr. {}. Plan: discharge."),
    "doctor": ("Dr. {} reviewed the scan and saw no fracture.", "She was seen by Dr. {} after the fracture."),
    "referring": ("Referring physician: {}, MD\nReason: fracture.", "Referred by: Dr. {}. Reason: fracture."),
    "next of kin": ("Next of kin: {} (daughter), informed.", "NOK: {}, daughter, informed."),
    "emergency contact": (
        "Emergency contact: {}, her brother, informed.",
        "Emergency Contact Name: {}\nRelation: brother",
    ),
    "copy": ("cc: Dr. {}\nThank you for the referral.", "CC: {}, MD\nThank you for the referral."),
    "dictated": ("Dictated by: {}, MD\nTranscribed the same day.", "Dictated by {}, M.D. Transcribed the same day."),
    "signed": ("Signed: {}\nThe report is final.", "Signed by: Dr. {}. The report is final."),
    "electronically signed": (
        "Electronically signed by {}, MD. The report is final.",
        "Electronically signed by: {}\nThe report is final.",
    ),
    "surgeon": ("Surgeon: {}, MD\nAnesthesia: general.", "Surgeon: Dr. {}\nAnesthesia: general."),
    "primary care": ("PCP: {}, MD\nAllergies: none.", "Primary care physician: Dr. {}. Allergies: none."),
}
STAYING = ("cough", "fracture", "discharge", "daughter", "brother", "referral", "Transcribed", "report", "Anesthesia")


@pytest.mark.parametrize("label", LABELS)
def test_a_name_behind_a_clinical_label_is_masked_whole(label: str) -> None:
    """A user can rely on it that no part of a name behind this label is left, and what stands around it is."""
    kept: dict[str, str] = {}
    for name, *parts in NAMES:
        for text in masked(*(form.format(name) for form in LABELS[label])):
            left = [part for part in parts if part in text.after]
            lost = [word for word in STAYING if word in text.before and word not in text.after]
            if left or lost:
                kept[text.before] = text.after
    assert kept == {}


SIGNATURES = (
    "He may return to work on Monday.\n\nSincerely,\n{}, MD",
    "Please call with any question.\n\nKind regards,\n{}\nStaff Nurse",
    "Wound clean, sutures out.\n\nBest wishes,\nDr {}",
    "Seen and agreed.\n\nYours sincerely,\n\n{}\nConsultant Cardiologist",
)


def test_a_name_in_a_signature_is_masked_whole() -> None:
    """A user can rely on it that the one who signs an English letter is masked, and the letter is not."""
    kept = {}
    for name, *parts in NAMES:
        for text in masked(*(form.format(name) for form in SIGNATURES)):
            if any(part in text.after for part in parts) or text.before.partition("\n")[0] not in text.after:
                kept[text.before] = text.after
    assert kept == {}


HOSPITALS = {
    "general": ("She was transferred to {} on Monday.", "Brackenmoor General Hospital", "Brackenmoor"),
    "saint": ("He was treated at {} for pneumonia.", "St. Hildred's Medical Center", "Hildred"),
    "infirmary": ("Admitted to {} with chest pain.", "Royal Wexmoor Infirmary", "Wexmoor"),
    "children": ("Follow-up at {} in six weeks.", "Cedar Hollow Children's Hospital", "Cedar Hollow"),
    "memorial": ("Discharged from {} in good condition.", "Thornbury Oaks Memorial Hospital", "Thornbury"),
    "university": ("The biopsy was read at {}.", "Larkfield University Hospital", "Larkfield"),
    "heart": ("Records were requested from the {}.", "Maple Ridge Heart Hospital", "Maple Ridge"),
}


@pytest.mark.parametrize("what", ["general saint infirmary", "children memorial", "university heart"])
def test_a_named_english_hospital_is_masked(what: str) -> None:
    """A user can rely on it that the name of a hospital goes, as it does in Chinese, and the sentence stays."""
    kept = {}
    for around, name, part in (HOSPITALS[each] for each in what.split()):
        [text] = masked(around.format(name))
        before, _, after = around.partition("{}")
        if part in text.after or before.removesuffix("the ") not in text.after or not text.after.endswith(after):
            kept[text.before] = text.after
    assert kept == {}


ADDRESSES = {
    "uk house": ("14 Larkspur Gardens, Harrogate HG1 5QT", "14 Larkspur Gardens Harrogate HG1 5QT"),
    "uk flat": ("Flat 3, 27 Merrowdown Road, Edinburgh EH9 1HZ", "27 Merrowdown Road Edinburgh EH9 1HZ Flat"),
    "uk village": ("2 Tanner's Yard, Little Wenham, Ipswich, IP8 3QB", "Tanner Yard Wenham Ipswich IP8 3QB"),
    "uk box": ("PO Box 418, Truro TR1 9ZZ", "418 Truro TR1 9ZZ Box"),
    "us apartment": (
        "4127 Willowbend Drive, Apt 5B, Springfield, IL 62704",
        "4127 Willowbend Apt 5B Springfield 62704",
    ),
    "us suite": ("880 N. Harrowgate St., Suite 210, Columbus, OH 43215-1122", "880 Harrowgate 210 Columbus 43215 1122"),
    "us box": ("P.O. Box 2291, Boise, ID 83701", "2291 Boise 83701 Box"),
    "us unit": ("77 Quarry Hill Ln Unit 12, Burlington, VT 05401", "Quarry Hill Unit Burlington 05401"),
    "german": ("Ahornhainstraße 14, 50674 Köln", "Ahornhain 14 50674 Köln"),
    "german short": ("Am Alten Salzhof 7a, 18055 Rostock", "Salzhof 7a 18055 Rostock"),
    "german str.": ("Birkenwinkelstr. 102, 04109 Leipzig", "Birkenwinkel 102 04109 Leipzig"),
    "french": ("12 rue des Trois-Alouettes, 69003 Lyon", "12 rue Alouettes 69003 Lyon"),
    "french bis": ("45 bis avenue du Vieux-Pressoir, 75116 Paris", "45 bis Pressoir 75116 Paris"),
    "dutch": ("Zilverlindelaan 24, 1016 EA Amsterdam", "Zilverlinde 24 1016 EA Amsterdam"),
    "dutch joined": ("Kwartelstraat 118-2, 3512JK Utrecht", "Kwartel 118 3512JK Utrecht"),
    "spanish": ("Avenida de los Almendrillos 87, 3º B, 28009 Madrid", "Almendrillos 87 28009 Madrid"),
    "italian": ("Via delle Ginestrelle 23, 20121 Milano", "Ginestrelle 23 20121 Milano"),
}
AROUND = ("Address: {}", "She lives at {} with her son.", "Home address: {}\nDiagnosis: asthma")


@pytest.mark.parametrize("country", ["uk", "us", "german", "french", "dutch", "spanish", "italian"])
def test_an_address_is_masked_whole(country: str) -> None:
    """A user can rely on it that street, number, apartment, postcode and town of an address go together."""
    kept = {}
    for address, pieces in (each for form, each in ADDRESSES.items() if form.startswith(country)):
        for text in masked(*(around.format(address) for around in AROUND)):
            left = [piece for piece in pieces.split() if piece in text.after]
            lost = [word for word in ("with her son", "asthma") if word in text.before and word not in text.after]
            if left or lost:
                kept[text.before] = text.after
    assert kept == {}


STAY = {
    "states of a patient": (
        "Patient: stable.",
        "Patient: fully oriented, no distress.",
        "Patient: Female, 54 years",
        "Pt: alert and comfortable.",
        "Patient: None of the above.",
        "Patient: Anxious but cooperative.",
    ),
    "labels without a name": (
        "Dr. visit in two weeks.",
        "Attending: on call.",
        "Signed: consent obtained.",
        "cc: none",
        "Next of kin: not known.",
        "Emergency contact: refused.",
        "Referring physician: unknown.",
        "Dictated by: voice software.",
    ),
    "eponyms": (
        "Parkinson disease, Down syndrome and Hashimoto thyroiditis were noted.",
        "Apgar scores of 8 and 9; Baker cyst on the left.",
        "Bell palsy, Crohn disease, Graves disease, Addison disease.",
        "The Charlotte score and the Charlson index were low.",
        "A Foley catheter and a Whipple procedure were planned.",
        "Homans sign negative, Murphy sign positive, Tinel sign equivocal.",
    ),
    "drugs and plants": (
        "St John's wort lowers warfarin.",
        "Patient: Lisinopril 10 mg daily.",
        "Signed out on Ativan and Allegra.",
        "Take Tylenol, Lasix or Aleve with food.",
    ),
    "hospitals of no name": (
        "She was taken to a children's hospital.",
        "The general hospital has no such ward.",
        "Teaching hospitals were compared with community hospitals.",
        "Discharged from hospital on day 3.",
    ),
    "codes like postcodes": (
        "B12 and D3 were low, T4 N1 M0, L5 S1 disc, C1 C2 2AB.",
        "12 Road traffic injuries, 27 street drugs, 5 drive belts.",
        "IL 6 was 62704 pg/mL; ID 50 of 83701 units.",
        "Type 2A, grade 3512 JK cells, E10 5 mg.",
    ),
}


@pytest.mark.parametrize("what", STAY)
def test_what_only_looks_like_a_name_or_an_address_stays(what: str) -> None:
    """A user can rely on it that labels, eponyms, drugs and codes of English notes stay (today too)."""
    assert damaged(*STAY[what]) == {}
