"""Cards, documents, dates and numbers of patients, made up: every written form is found, check digits count."""

from datetime import date, timedelta
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.recognisers.check_digits import hong_kong, luhn, resident, taiwan
from curate.pii.recognisers.numbers import (
    bank_card,
    bed_number,
    birth_date,
    hong_kong_id,
    medical_record,
    passport,
    permit,
    plate,
    resident_id,
    resident_id_15,
    taiwan_id,
)
from curate.pii.words import words
from tests.support.recognising import found

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WIDE = str.maketrans({sign: chr(ord(sign) + 0xFEE0) for sign in f"0123456789-(){LETTERS}"} | {" ": "\u3000"})
SPELLED = str.maketrans("0123456789", "零一二三四五六七八九")


def grouped(number: str, sizes: tuple[int, ...], cut: str) -> str:
    return cut.join(number[start:end] for start, end in pairwise(accumulate(sizes, initial=0)))


# bank cards

STARTS = (4, 51, 52, 53, 54, 55, 2221, 2229, 2230, 2299, 2300, 2699, 2700, 2720, 3528, 3589, 9559)
ISSUERS = [("62", 16), ("62", 17), ("62", 18), ("62", 19), ("9558", 19), ("9559", 19), *((str(n), 16) for n in STARTS)]


@st.composite
def cards(draw: st.DrawFn) -> str:
    start, length = draw(st.sampled_from(ISSUERS))
    rest = length - len(start) - 1
    number = f"{start}{draw(st.integers(0, 10**rest - 1)):0{rest}d}"
    return next(number + digit for digit in "0123456789" if luhn(number + digit))


def test_check_digit_of_cards() -> None:
    """ISO/IEC 7812-1, annex B, has 49927398716 as its example."""
    assert [digit for digit in "0123456789" if luhn(f"4992739871{digit}")] == ["6"]


@pytest.mark.slow
@settings(max_examples=100)
@given(cards(), st.sampled_from([" ", "-", "–", "  ", "\u3000"]))
def test_every_form_of_a_card(number: str, cut: str) -> None:
    if len(number) == 18 and resident(number):
        return
    by_four = grouped(number, (4, 4, 4, 4, 4), cut).removesuffix(cut)
    pair = grouped(number, (6, 13), cut)
    spelled = number.translate(SPELLED).replace("零", "〇")
    for written in (number, by_four, pair, number.translate(WIDE), by_four.translate(WIDE), spelled):
        for text in (f"我的{written}，谢谢", f"银行卡号：{written}", f"请打到{written}\n"):
            assert found(bank_card, text) == [written]


@settings(max_examples=100)
@given(cards(), st.integers(1, 9))
def test_a_card_with_a_wrong_check_digit_needs_the_word(number: str, shift: int) -> None:
    wrong = number[:-1] + str((int(number[-1]) + shift) % 10)
    assert found(bank_card, f"我的{wrong}。") == []
    if len(wrong) != 18 or not resident(wrong):
        assert found(bank_card, f"银行卡{wrong}。") == [wrong]


# resident identity numbers

PROVINCES = [
    *range(11, 16),
    *range(21, 24),
    *range(31, 38),
    *range(41, 47),
    *range(50, 55),
    *range(61, 66),
    71,
    *range(81, 84),
]
GROUPS = [
    *[(6, 8, 4), (6, 8, 3, 1), (14, 4), (6, 12), (3, 3, 4, 4, 4), (6, 4, 4, 4), (6, 4, 2, 2, 4), (4, 4, 4, 4, 2)],
    *[(3,) * 6, (2,) * 9, (1,) * 18],
]
CUTS = [" ", "-", "–", "—", "\u3000", ".", "·", "_", "/", " - ", "\u200b"]


@st.composite
def residents(draw: st.DrawFn) -> str:
    day = date(1930, 1, 1) + timedelta(days=draw(st.integers(0, 35_000)))
    place, serial = draw(st.integers(100, 9999)), draw(st.integers(0, 999))
    start = f"{draw(st.sampled_from(PROVINCES))}{place:04d}{day:%Y%m%d}{serial:03d}"
    return next(start + digit for digit in "0123456789X" if resident(start + digit))


def test_check_digit_of_residents() -> None:
    """GB 11643-1999 gives 11010519491231002X and 440524188001010014 as its examples."""
    assert resident("440524188001010014")
    assert [digit for digit in "0123456789X" if resident(f"11010519491231002{digit}")] == ["X"]


@settings(max_examples=100)
@given(residents(), st.sampled_from(GROUPS), st.sampled_from(CUTS))
def test_every_form_of_a_resident_number(number: str, sizes: tuple[int, ...], cut: str) -> None:
    apart = grouped(number, sizes, cut)
    for written in (number, number.lower(), apart, apart.translate(WIDE), number.translate(SPELLED)):
        assert found(resident_id, f"我的是{written}，谢谢") == [written]
        assert found(resident_id, f"身份证号：{written}") == [written]


@settings(max_examples=100)
@given(residents(), st.integers(1, 9))
def test_old_numbers_and_wrong_check_digits(number: str, shift: int) -> None:
    old = number[:2] + "0" + str(1 + int(number[3]) % 9) + number[4:6] + number[8:17]
    assert found(resident_id, f"身份证{old}。") == [old]
    assert found(resident_id_15, f"我是{old}。") == ([] if old[6:].startswith("000229") else [old])
    wrong = number[:17] + "0123456789X"[("0123456789X".index(number[17]) + shift) % 11]
    assert found(resident_id, f"编号{wrong}。") == []
    assert found(resident_id, f"身份证号{wrong}。") == [wrong]


@given(st.integers(0, 10**12 - 1))
def test_pseudonyms_of_residents_stay(number: int) -> None:
    assert found(resident_id, f"身份证号000000{number:012d}，身份证 000000 {number:012d}") == []


# passports, permits, Hong Kong, Taiwan


def test_check_digits_of_hong_kong_and_taiwan() -> None:
    """The examples of the two offices: A123456(3) and A123456789."""
    assert hong_kong("A123456(3)")
    assert [digit for digit in "0123456789A" if hong_kong(f"AB987654({digit})")] == ["3"]
    assert [digit for digit in "0123456789" if taiwan(f"A12345678{digit}")] == ["9"]
    assert taiwan("A800000014")


@settings(max_examples=25)
@given(st.text(LETTERS, min_size=1, max_size=2), st.integers(0, 999999), st.sampled_from(["", " "]))
def test_every_number_of_hong_kong(start: str, number: int, cut: str) -> None:
    body = f"{start}{number:06d}"
    right = [digit for digit in "0123456789A" if hong_kong(f"{body}({digit})")]
    assert len(right) == 1
    for digit in "0123456789A":
        written = f"{body}{cut}({digit})"
        assert found(hong_kong_id, f"我{written}，") == [written] * (digit in right)
        wide = written.translate(WIDE)
        assert found(hong_kong_id, f"身份证{wide}，") == [wide]


@settings(max_examples=25)
@given(st.sampled_from(LETTERS), st.sampled_from("1289ABCD"), st.integers(0, 10**7 - 1))
def test_every_number_of_taiwan(letter: str, second: str, number: int) -> None:
    body = f"{letter}{second}{number:07d}"
    right = [digit for digit in "0123456789" if taiwan(body + digit)]
    assert len(right) == 1
    for digit in "0123456789":
        assert found(taiwan_id, f"我在台湾，{body}{digit}。") == [body + digit] * (digit in right)
        assert found(taiwan_id, f"身分證字號{body}{digit}。".translate(WIDE)) == [f"{body}{digit}".translate(WIDE)]
        assert found(taiwan_id, f"标本{body}{digit}。") == []


@settings(max_examples=100)
@given(st.sampled_from(["E", "G", *(f"E{letter}" for letter in "ABCDEFGHJKLMN")]), st.integers(0, 10**7 - 1))
def test_every_passport_of_china(start: str, number: int) -> None:
    written = f"{start}{number:0{9 - len(start)}d}"
    for form in (written, written.lower(), written.translate(WIDE)):
        assert found(passport, f"护照号{form}，谢谢") == [form]
        assert found(passport, f"Passport No: {form}") == [form]


@settings(max_examples=100)
@given(st.sampled_from(["C", "CA", "CD", "W", "L", "T", "H", "M"]), st.integers(0, 10**7 - 1))
def test_every_permit(start: str, number: int) -> None:
    written = f"{start}{number:0{9 - len(start)}d}"
    for form in (written, written.translate(WIDE)):
        assert found(permit, f"我的通行证号码：{form}，谢谢") == [form]


# plates

AREAS = st.sampled_from("京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼")
SIGNS = LETTERS.replace("I", "").replace("O", "")
CITIES, DIGITS = st.sampled_from(SIGNS), st.sampled_from("0123456789")


@st.composite
def serials(draw: st.DrawFn) -> str:
    """Five signs with at most two letters, or six for new energy."""
    any_sign = st.sampled_from(SIGNS + "0123456789")
    plain = st.tuples(any_sign, DIGITS, DIGITS, DIGITS, any_sign)
    small = st.tuples(st.sampled_from("DFABCEGHJK"), any_sign, DIGITS, DIGITS, DIGITS, DIGITS)
    large = st.tuples(DIGITS, DIGITS, DIGITS, DIGITS, DIGITS, st.sampled_from("DF"))
    return "".join(draw(st.one_of(plain, small, large)))


@pytest.mark.slow
@settings(max_examples=100)
@given(AREAS, CITIES, st.sampled_from(["", *"·•・ -—.\u3000", "· "]), serials(), st.booleans())
def test_every_form_of_a_plate(province: str, city: str, cut: str, serial: str, spaced: bool) -> None:
    written = f"{province}{' ' * spaced}{city}{cut}{serial}"
    for form in (written, written.lower(), f"{written[0]}{written[1:].translate(WIDE)}"):
        for text in (f"昨天{form}，撞了", f"车牌号：{form}", form):
            assert found(plate, text) == [form]


@settings(max_examples=100)
@given(AREAS, CITIES, st.text(SIGNS, min_size=3, max_size=4), st.text("0123456789", min_size=2, max_size=2))
def test_many_letters_need_the_word(province: str, city: str, many: str, last: str) -> None:
    serial = (many + last)[:5]
    assert found(plate, f"我的车牌是{province}{city}{serial}，") == [f"{province}{city}{serial}"]
    assert found(plate, f"{province}{city}{serial}的车") == [f"{province}{city}{serial}"]
    assert found(plate, f"新{city}{serial}检测") == []


@given(AREAS, CITIES, st.integers(0, 9999), st.sampled_from("IO"))
def test_pseudonyms_of_plates_stay(province: str, city: str, number: int, letter: str) -> None:
    assert found(plate, f"车牌{province}{city}{letter}{number:04d}，{province}{city}{number:04d}{letter}") == []


# numbers of patients, and beds

PATIENTS = words("patients")
LINKS = ["", ":", "：", " ", "： ", "是", "为：", "码：", "#", " No.", "No：", "＝", "（", "】", "\n", '":"', "_", "-"]
CODES = st.one_of(
    st.from_regex(r"[0-9]{5,14}", fullmatch=True),
    st.from_regex(r"[ABCXYZ]{1,3}[0-9]{4,12}", fullmatch=True),
    st.from_regex(r"[0-9]{4,8}-[0-9]{1,5}", fullmatch=True),
    st.from_regex(r"[ABCXYZ][0-9]{2}-[0-9]{3,6}", fullmatch=True),
    st.from_regex(r"[0-9]{4}[ABCXYZ][0-9]{4}", fullmatch=True),
).filter(lambda code: not code.startswith(("69", "97")))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.sampled_from([*PATIENTS["numbers"], *PATIENTS["english"]]), st.sampled_from(LINKS), CODES)
def test_every_form_of_a_record(word: str, link: str, code: str) -> None:
    if word in PATIENTS["english"] and not link:
        link = " "
    for form in (code, code.lower(), code.translate(WIDE)):
        for name in (word, word.upper()):
            assert found(medical_record, f"患者，{name}{link}{form}，女") == [form]


@settings(max_examples=100)
@given(st.sampled_from(PATIENTS["cards"]), st.sampled_from(LINKS), st.from_regex(r"[0-9]{6,20}", fullmatch=True))
def test_cards_and_numbers_spelled(word: str, link: str, code: str) -> None:
    code += "0" * (len(code) == 13)
    for form in (code, code.translate(SPELLED)):
        assert found(medical_record, f"{word}{link}{form}。") == [form]


@settings(max_examples=100)
@given(
    st.integers(1, 2000),
    st.sampled_from(["床", "号床"]),
    st.sampled_from(PATIENTS["people"]),
    st.sampled_from(PATIENTS["counting"]),
)
def test_beds_in_which_somebody_lies_and_counts_of_beds(number: int, bed: str, who: str, count: str) -> None:
    for value in (f"{number}{bed}", f"{number}{bed}".translate(WIDE)):
        assert found(bed_number, f"昨晚，{value}{who}") == [value]
        assert found(bed_number, f"昨晚，{value}的{who}") == [value]
    assert found(bed_number, f"我科{count}{number}床，{count}{number}张床") == []


# dates of birth

WRITTEN = [
    *("{0}-{1:02}-{2:02}", "{0}/{1}/{2}", "{0}.{1}.{2}", "{0}年{1}月{2}日", "{0}年{1:02}月{2:02}号"),
    *("{0}{1:02}{2:02}", "{0} 年 {1} 月 {2} 日"),
]
AROUND = ["出生日期：{}", "生日是{}，", "我{}出生", "出生于{}。", "（{}生）", "DOB: {} ", "出生年月日{}性别"]


@settings(max_examples=100)
@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.sampled_from(WRITTEN), st.sampled_from(AROUND))
def test_any_day_in_every_written_form(day: date, written: str, around: str) -> None:
    value = written.format(day.year, day.month, day.day)
    assert found(birth_date, around.format(value)) == [value]
    assert len(found(birth_date, around.format(value.translate(WIDE)))) == 1
