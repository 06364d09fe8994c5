"""Numbers of the United States, the United Kingdom and Europe are masked as their kind; codes and public lines stay."""

import json
from pathlib import Path

import pytest
import yaml

from curate.pii.residual import residues
from curate.pii.settings import Masking, masker, untouched
from curate.pii.sieve import mask_all
from tests import ROOT
from tests.support.runs import curate

_DATA = yaml.safe_load((ROOT / "tests" / "data/western.yaml").read_text("utf-8"))
ALONE = [(kind, str(value)) for kind, values in _DATA["alone"].items() for value in values]
BESIDE = [(kind, value) for kind, values in _DATA["beside"].items() for value in values]
AROUND = (
    "{}",
    "({})",
    '"{}".',
    "{},",
    "\n{}\r\n",
    "see {}; thanks",
    "the number {} is mine",
    "Patient: {}!",
    "sure—{}—call",
    "<{}>",
)
ENGLISH = masker(Masking(recognisers=["western", "national_number"]), "en", b"")


def wide(text: str) -> str:
    """Return the text in full-width letters, digits and signs."""
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text)


WRITTEN = (str, wide, lambda text: text.replace(" ", "\u00a0"), lambda text: text.replace("-", "\u2011"))


@pytest.mark.parametrize(("kind", "form"), [*ALONE, *BESIDE])
def test_numbers_wherever_they_touch(kind: str, form: str) -> None:
    for write in WRITTEN:
        for around in AROUND:
            word, _, value = (write(part) for part in form.rpartition("~"))
            text = around.format(f"{word}{value}")
            start = text.rindex(value)
            found = [(span.start, span.end, span.kind) for span in ENGLISH.mask(text).spans]
            assert found == [(start, start + len(value), kind)], text


@pytest.mark.parametrize("text", _DATA["stay"])
def test_codes_measures_and_public_lines_stay(text: str) -> None:
    assert masker(Masking(), "en", b"").mask(text).text == text


def test_a_number_ends_where_another_one_begins() -> None:
    assert ENGLISH.mask("call +44 20 7946 0958 2 times, phone 212 555 0123 3 days").text == (
        "call [PHONE] 2 times, phone [PHONE] 3 days"
    )


def test_a_placeholder_is_in_the_language_of_its_text() -> None:
    whole = masker(Masking(), "zh", b"")
    assert whole.mask("Call (212) 555-0123 or write to amy@web.org").text == "Call [PHONE] or write to [EMAIL]"
    assert whole.mask("请打13912345678").text == "请打[电话]"
    assert whole.mask("患者WBC、RBC、PLT正常，电话13912345678").text == "患者WBC、RBC、PLT正常，电话[电话]"
    assert whole.mask("13912345678").text == "[电话]"
    assert masker(Masking(), "en", b"").mask("请打13912345678").text == "请打[电话]"
    assert masker(Masking(placeholders="en"), "zh", b"").mask("请打13912345678").text == "请打[PHONE]"


def test_anonymise_speaks_the_language_of_each_row(tmp_path: Path) -> None:
    rows = [{"text": "My SSN is 219-09-9999."}, {"text": "电话13912345678"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = curate(tmp_path, "anonymise", "in.jsonl", "-")
    assert [json.loads(line)["text"] for line in said.stdout.splitlines()] == [
        "My SSN is [SOCIAL_SECURITY].",
        "电话[电话]",
    ]


def test_a_cell_without_letters_speaks_the_language_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "en.csv").write_text("id,name,phone\n1,Ann,+44 20 7946 0321\n")
    (tmp_path / "zh.csv").write_text("编号,姓名,电话\n1,安,13912345678\n", "utf-8")
    assert "[PHONE]" in curate(tmp_path, "anonymise", "en.csv", "-", "--field", "phone").stdout
    assert "[电话]" in curate(tmp_path, "anonymise", "zh.csv", "-", "--field", "电话").stdout


def test_a_medicare_number_is_found_where_no_three_digits_stand_together() -> None:
    for number in ("1EG4-TE5-MK73", "1EG4TE5MK72", "１ＥＧ４－ＴＥ５－ＭＫ７３"):
        assert mask_all(ENGLISH, [f"Medicare number {number}"])[0].text == "Medicare number [SOCIAL_SECURITY]"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Geburtsdatum: 25.01.1980", "25.01.1980"),
        ("SSN: 21909999", "21909999"),
        ("her member ID is XG12345-A, thanks", "xg12345-a"),
        ("Driver's license no. D123-4567", "d123-4567"),
        ("passport number AB12345", "ab12345"),
        ("call 404 639 10751", "404 639 10751"),
    ],
)
def test_the_residual_scan_knows_words_of_the_west(text: str, place: str) -> None:
    found = [text[each.start : each.end].lower() for each in residues(text, untouched(Masking()))]
    assert found == [place]


@pytest.mark.parametrize(
    "text",
    [
        "Call the CDC at 770-488-7100 or 1-800-232-4636, or 18004516434 free of charge",
        "Bethesda, MD 20892-3655 and New York, NY 10021-7471",
        "Childline 0800 1111, Telefonseelsorge 0800 1110111, Refuge 0808 2000 247, NHS 0300 123 2323, 1-800-273-TALK",
        "Last reviewed: 01/25/2021, seen on 10-12-2021 and from 9.12.2021 14:30 to 11.12.2021",
        "passport to health; tax id; the license of 2019; medicare 2019",
    ],
)
def test_the_residual_scan_lets_public_lines_and_zip_codes_pass(text: str) -> None:
    assert residues(text, untouched(Masking())) == []
