"""Recognisers and masking: what is found, what stays, and that masking twice changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.errors import ConfigError
from curate.core.records import Span
from curate.pii import RECOGNISERS
from curate.pii.listing import examples
from curate.pii.masking import resolve
from curate.pii.phone import email, landline, mobile
from curate.pii.resident_id import resident_id, valid
from curate.pii.settings import Masking, masker
from curate.system import resources
from curate.testing import check_recogniser
from tests import ROOT

MASKER = masker(Masking(), "zh", b"key")
LABELS = {
    "PHONE": "phone",
    "EMAIL": "email",
    "ID_CARD": "id_card",
    "PLATE": "plate",
    "WECHAT": "wechat",
    "QQ": "qq",
    "NAME": "name",
    "ADDRESS": "address",
    "HOSPITAL": "hospital",
}


def masked(text: str) -> str:
    return MASKER.mask(text).text


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def values(recogniser: Callable[[str], list[Span]], text: str) -> list[str]:
    return [text[span.start : span.end] for span in recogniser(text)]


@pytest.mark.parametrize("name", RECOGNISERS.builtin)
def test_the_contract(name: str) -> None:
    recognise = RECOGNISERS.load(name)
    check_recogniser(recognise, {text: values(recognise, text) for text in examples()})


@pytest.mark.parametrize(
    "number",
    [
        "13912345678",
        "139 1234 5678",
        "139-1234-5678",
        "1391-234-5678",
        "+8613912345678",
        "+86 139 1234 5678",
        "(+86)139-1234-5678",
        "86-13912345678",
        "008613912345678",
        "１３９１２３４５６７８",
        "＋８６　１３９－１２３４－５６７８",
        "139–1234–5678",
        "139.1234.5678",
        "+86 139.1234.5678",
    ],
)
def test_mobile_numbers(number: str) -> None:
    for text in (number, f"我的电话{number}请回", f"电话:{number}。", f"{number},{number}", f"tel{number}vx"):
        assert set(values(mobile, text)) == {number}


@pytest.mark.parametrize(
    "number",
    [
        "010-61234870",
        "(0755) 82614097",
        "（0755）82614097",
        "0531 8955 3295",
        "02131234567",
        "0311-8123456",
        "+86-10-61234870",
    ],
)
def test_landline_numbers(number: str) -> None:
    assert values(landline, f"家里座机{number}请打") == [number]
    assert values(landline, f"Tel{number}Fax{number}") == [number, number]


@pytest.mark.parametrize(
    "address", ["wang_fang5092@sina.com", "a.b+c@mail.example.com.cn", "ｋｌ８＠ｅｘａｍｐｌｅ．ｃｏｍ"]
)
def test_email_addresses(address: str) -> None:
    assert values(email, f"请发到{address}谢谢") == [address]
    assert masked(f"{address}13912345678") == "[邮箱][电话]"


@pytest.mark.parametrize(
    "number", ["110101198703262044", "11010519491231002X", "11010519491231002x", "110105 19491231 002X"]
)
def test_resident_numbers(number: str) -> None:
    assert values(resident_id, f"身份证{number}号") == [number]
    assert values(resident_id, f"ID{number}") == [number]


@pytest.mark.parametrize(
    "number",
    [
        "110101198703262045",  # check digit
        "110101198702302044",  # 30 February
        "110101178703262044",  # 18th century
        "1101011987032620440",  # 19 digits
    ],
)
def test_numbers_that_are_no_resident_number(number: str) -> None:
    assert resident_id(f"编号{number}。") == []


def test_check_digit_of_the_standard() -> None:
    """GB 11643-1999 gives 11010519491231002X and 440524188001010014 as its examples."""
    assert valid("11010519491231002X")
    assert valid("440524188001010014")
    assert [digit for digit in "0123456789X" if valid(f"11010519491231002{digit}")] == ["X"]


@pytest.mark.parametrize(
    "text",
    [
        "每次口服500mg,每日3次,血压120/80mmHg,心率72次/分",
        "2019年做过一次胃镜,2021年复查",
        "HBV-DNA 1.38×10^6,ICD-10编码I10.x00,国药准字H20030104",
        "条形码6901234567892,订单号139123456789012",
        "编号139123456789,A139123456789,139123456789B",
        "P=0.13912345678,０.13912345678,比值0.02161234870",
        "139.1234,13.912345678,版本139.1234.5678.9,10.1016/j.cell.2019.12.039",
        "2019.1012.1380,ICD-10:I10.x00139,M54.505,NCT03912345,ChiCTR1900026863",
        "电话12345678901,010-1234567,0000-12345678",
        "@所有人,a@b,价格@20.5",
        "阿司匹林肠溶片100mg×30片,2023-10-12 08:30",
    ],
)
def test_figures_of_medicine_and_codes_stay(text: str) -> None:
    assert masked(text) == text


def test_placeholders_have_types() -> None:
    text = "我叫张三,身份证110101198703262044,手机139 1234 5678或010-61234870,邮箱a.b@qq.com。"
    assert masked(text) == "我叫[姓名],身份证[身份证号],手机[电话]或[电话],邮箱[邮箱]。"


def test_what_shows_only_once_something_else_is_gone_is_found_too() -> None:
    text = "请发a@b.com010@qq.com"
    assert [text[span.start : span.end] for span in MASKER.mask(text).spans] == ["a@b.com", "010@qq.com"]


def test_overlaps_are_one_stretch_with_the_kind_of_the_longest() -> None:
    assert masked("发到13912345678@163.com谢谢") == "发到[邮箱]谢谢"
    spans = [Span(4, 9, "b", "r2"), Span(0, 5, "a", "r1"), Span(8, 10, "c", "r3"), Span(12, 13, "d", "r4")]
    assert resolve(spans) == [Span(0, 10, "a", "r1"), Span(12, 13, "d", "r4")]
    assert resolve(spans[::-1]) == resolve(spans)


def test_touching_spans_stay_apart() -> None:
    assert resolve([Span(2, 4, "b", "r"), Span(0, 2, "a", "r")]) == [Span(0, 2, "a", "r"), Span(2, 4, "b", "r")]


def test_offsets_count_code_points() -> None:
    assert mobile("𠮷🙂13912345678") == [Span(2, 13, "phone", "mobile")]


@given(st.text(alphabet="0138619@.-+() ax中１（）＠X[]", max_size=60))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


PIECES = [
    "13912345678",
    "+86",
    "(+86)",
    "@",
    "@qq.com",
    " ",
    "-",
    "a@b.com",
    "010",
    "61234870",
    "(0755)",
    "110101198703262044",
    "号",
    ".",
    "x",
    "86",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_masking_twice_is_masking_once_on_pieces_of_numbers(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


def test_unknown_recogniser() -> None:
    with pytest.raises(ConfigError, match=r"unknown recogniser 'mobil': did you mean 'mobile'\?"):
        RECOGNISERS.load("mobil")


def test_everything_planted_in_the_demo_is_found_and_nothing_else() -> None:
    planted = json.loads((ROOT / "tests/data").joinpath("demo_planted.json").read_text("utf-8"))
    rows = [row for name in ("queries", "corpus") for row in lines(resources.demo() / f"{name}.jsonl")]
    fields = [(row["_id"], str(row.get(field) or "")) for row in rows for field in ("title", "text")]
    found = {(name, text[span.start : span.end]) for name, text in fields for span in MASKER.mask(text).spans}
    assert found == {(entry["id"], entry["value"]) for key in ("pii", "names_of_people") for entry in planted[key]}


def test_what_is_planted_in_real_texts_is_found_at_its_place_and_nothing_more(shared_data: Path) -> None:
    count = 0
    for row in lines(shared_data / "pii" / "positives.jsonl"):
        spans = row["spans"]
        assert isinstance(spans, list)
        planted = [(span["start"], span["end"], LABELS[span["label"]]) for span in spans]
        found = [(span.start, span.end, span.kind) for span in MASKER.mask(str(row["text"])).spans]
        assert found == planted
        count += len(planted)
    assert count == 480


def test_real_texts_without_personal_data_stay(shared_data: Path) -> None:
    rows = lines(shared_data / "pii" / "hard_negatives.jsonl")
    assert len(rows) == 315
    assert [row["id"] for row in rows if masked(str(row["text"])) != row["text"]] == []
