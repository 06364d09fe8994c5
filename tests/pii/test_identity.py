"""Resident identity numbers: every written form is found, other long numbers stay."""

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.resident_id import resident_id, resident_id_15, valid
from tests.support.recognising import found, surrounded

PROVINCES = [
    11,
    12,
    13,
    14,
    15,
    21,
    22,
    23,
    *range(31, 38),
    *range(41, 47),
    *range(50, 55),
    *range(61, 66),
    71,
    81,
    82,
    83,
]
SPELLED = str.maketrans("0123456789", "零一二三四五六七八九")
WIDE = str.maketrans("0123456789X-", "０１２３４５６７８９Ｘ－")


@st.composite
def numbers(draw: st.DrawFn) -> str:
    day = date(1930, 1, 1) + timedelta(days=draw(st.integers(0, 35_000)))
    place, serial = draw(st.integers(100, 9999)), draw(st.integers(0, 999))
    start = f"{draw(st.sampled_from(PROVINCES))}{place:04d}{day:%Y%m%d}{serial:03d}"
    return next(start + digit for digit in "0123456789X" if valid(start + digit))


def grouped(number: str, sizes: tuple[int, ...], cut: str) -> str:
    places = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    return cut.join(number[start:end] for start, end in pairwise(places))


GROUPS = [
    *[(6, 8, 4), (6, 8, 3, 1), (14, 4), (6, 12), (3, 3, 4, 4, 4), (6, 4, 4, 4), (6, 4, 2, 2, 4), (4, 4, 4, 4, 2)],
    *[(3,) * 6, (2,) * 9, (1,) * 18],
]
CUTS = [" ", "-", "–", "—", "　", ".", "·", "_", "/", " - ", "\u200b"]


@settings(max_examples=100)
@given(numbers(), st.sampled_from(GROUPS), st.sampled_from(CUTS))
def test_every_written_form(number: str, sizes: tuple[int, ...], cut: str) -> None:
    apart = grouped(number, sizes, cut)
    for written in (number, number.lower(), apart, apart.translate(WIDE), number.translate(SPELLED)):
        assert found(resident_id, f"我的是{written}，谢谢") == [written]
        assert found(resident_id, f"身份证号：{written}") == [written]


@pytest.mark.parametrize(
    "marked",
    [
        "身份证号|110101198703262044|",
        "身份证号码：|110101198703262044|",
        "身份证:|１１０１０１１９８７０３２６２０４４|",
        "公民身份号码 |110101198703262044|",
        "身份證號碼：|110101198703262044|",
        "身份证（|110101198703262044|）",
        "【身份证号】|110101198703262044|",
        "sfz|110101198703262044|",
        "SFZ：|110101198703262044|",
        "ID card No. |110101198703262044|",
        "IDCard:|110101198703262044|",
        "证件号码是|110101198703262044|",
        '"身份证号":"|110101198703262044|"',
        "身份证号\n|110101198703262044|",
        "驾驶证号|110101198703262044|",
        "身份证号|110101198703262045|",
        "身份证号码|110101198702302044|",
        "身份证：|110101********2044|",
        "身份证|1101011987****2044|",
        "身份证号|11010119870326204*|",
        "身份证号|11010119870326204|",
        "身份证号|1101011987032620|",
        "身份证号|110101870326204|",
        "身份证|11010119870326xxxx|",
        "身份证|110101XXXXXXXX2044|",
        "|110101********2044|",
        "|110101＊＊＊＊＊＊＊＊204X|",
        "身份证我的是|110101198703262045|",
        "身份证，|110101198703262045|",
        "身份证|一一零一零一一九八七零三二六二零四四|",
        "身份证号是|幺幺零幺零幺幺九八七零三二六二零四五|",
        "|一一〇一〇一一九八七〇三二六二〇四四|",
        "|11010519491231002X|",
        "|11010519491231002x|",
        "|11010519491231002×|",
        "|1101051949123100２Ｘ|",
        "|911124198108030024|",
    ],
)
def test_forms_in_their_surroundings(marked: str) -> None:
    for text, value in surrounded(marked):
        assert found(resident_id, text) == [value]


@pytest.mark.parametrize(
    "number", ["110101870326204", "110101 870326 204", "310115-490601-821", "３２０５０６９３０７０７６１６"]
)
def test_old_numbers(number: str) -> None:
    for text in (number, f"我是马伟，{number}，手机", f"请帮我查一下{number}谢谢", f"{number}.", f"老身份证{number}。"):
        assert found(resident_id_15, text) == [number]


@settings(max_examples=100)
@given(numbers())
def test_old_numbers_of_every_province(number: str) -> None:
    old = number[:2] + "0" + str(1 + int(number[3]) % 9) + number[4:6] + number[8:17]
    assert found(resident_id, f"身份证{old}。") == [old]
    assert found(resident_id_15, f"我是{old}。") == ([] if old[6:].startswith("000229") else [old])


@pytest.mark.parametrize(
    "text",
    [
        "编号110101870326204",
        "订单号：110101870326204",
        "批号110101870326204",
        "条码110101870326204",
        "No.110101870326204",
        "IMEI:353918051234567",
        "A110101870326204",
        "110101870326204A",
        "110101870326204个",
        "110101870326204.5",
        "0.110101870326204",
        "990101870326204",
        "110101871326204",
        "110101870230204",
        "110001870326204",
    ],
)
def test_other_numbers_of_15_digits_stay(text: str) -> None:
    assert found(resident_id_15, text) == []


@settings(max_examples=100)
@given(numbers(), st.integers(1, 9))
def test_a_wrong_check_digit_needs_the_word(number: str, shift: int) -> None:
    wrong = number[:17] + "0123456789X"[("0123456789X".index(number[17]) + shift) % 11]
    assert found(resident_id, f"编号{wrong}。") == []
    assert found(resident_id, f"身份证号{wrong}。") == [wrong]


@given(st.integers(0, 10**12 - 1))
def test_made_up_numbers_stay(number: int) -> None:
    assert found(resident_id, f"身份证号000000{number:012d}，身份证 000000 {number:012d}") == []
