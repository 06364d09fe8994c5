"""Passports, permits, identity cards of Hong Kong, Macao and Taiwan, social security: found by form and word."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.documents import (
    hong_kong_id,
    macao_id,
    passport,
    permit,
    social_security,
    taiwan_id,
    valid_hong_kong,
    valid_taiwan,
)
from tests.support.recognising import Recogniser, found, surrounded

ALL = [passport, permit, hong_kong_id, macao_id, taiwan_id, social_security]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WIDE = str.maketrans(
    "0123456789()" + LETTERS, "０１２３４５６７８９（）" + "".join(chr(ord(letter) + 0xFEE0) for letter in LETTERS)
)

FORMS: dict[Recogniser, str] = {
    passport: """
护照|E12345678|
护照号码：|E12345678|
护照号|EA1234567|
护照（|G12345678|）
護照號碼：|K12345678|
护照号码是|e12345678|
护照号：|Ｅ１２３４５６７８|
Passport No.: |E12345678|
passport number is |PE1234567|
PASSPORT |AB1234567|
Passport#|123456789|
护照号码|E 1234 5678|
日本护照|TR1234567|
韩国护照：|M12345678|
护照E12345678，护照|E12****78|
|E13579246|
|EA1357924|
我的|E13579246|到期了
旅行证号|L1234567|""",
    permit: """
港澳通行证|C12345678|
往来港澳通行证号码：|CA1234567|
港澳通行证：|W12345678|
台湾通行证号|L12345678|
大陆居民往来台湾通行证 |T12345678|
通行證號碼|C12345678|
回乡证|H12345678|
回乡证号：|M1234567890|
回鄉證|H1234567800|
台胞证|12345678|
台胞证号码：|0123456789|
台胞证号|12345678(A)|
臺胞證：|01234567|
通行证号：|Ｃ１２３４５６７８|
永久居留证|USA110080010101|
外国人永久居留身份证号：|CAN310075061501|
出生医学证明编号|A123456789|
出生证号：|R310123456|
军官证号|军字第1234567|号
军官证|12345678|
士兵证：|南字第0123456|
结婚证字号|J110101-2010-000123|
residence permit no. |C12345678|""",
    hong_kong_id: """
|A123456(3)|
|A123456（3）|
|G123456(A)|
香港身份证|A123456(3)|
香港身份證號碼：|A1234563|
HKID: |A123456(3)|
HKID |A123456-3|
身份证|A123456(7)|
香港永久性居民身份证号|a123456(7)|
港身份证AB987654(1)和身份证|AB987654(3)|
|Ａ１２３４５６（３）|""",
    macao_id: """
澳门身份证|1234567(8)|
澳门居民身份证号码：|5123456（7）|
澳門身份證：|1/234567/8|
澳门永久性居民身份证|71234567|
身份证号|1234567(8)|
Macau ID: |7123456(0)|""",
    taiwan_id: """
身分證字號：|A123456789|
身分證|A123456780|
國民身分證統一編號：|F131104093|
台湾身份证|a123456789|
统一证号|AB12345677|
居留证号：|A800000014|
我是台湾同胞，|A123456789|
National ID: |Ｆ１３１１０４０９３|""",
    social_security: """
社保号|123456789|
社保卡号：|A12345678|
社会保障卡卡号：|A12345678|
社保编号 |0123456789|
社会保障号码：|123456789012345|
社会保障卡号|AB1234567|
医保号|12345678|
医保编号：|3101234567|
医保账号为|00123456|
医療保険番号，社保账号|12-345678|
公积金账号：|123456789012|
公积金账户|20112345678|
参保号：|1234567|
新农合号|320123456789|
合作医疗证号：|320123-456789|
保单号：|P123456789|
SSN: |123-45-6789|
Social Security Number: |123-45-6789|
NHS number |943-476-5919|
社保号一二三四五六七八""",
}
FORMS[social_security] = FORMS[social_security].replace("一二三四五六七八", "|一二三四五六七八|")


@pytest.mark.parametrize(
    ("recogniser", "marked"),
    [(recogniser, marked) for recogniser, forms in FORMS.items() for marked in forms.strip().split("\n")],
)
def test_forms_in_their_surroundings(recogniser: Recogniser, marked: str) -> None:
    for text, value in surrounded(marked):
        assert found(recogniser, text)[-1:] == [value]


def test_check_digits() -> None:
    """The examples of the two offices: A123456(3) and A123456789."""
    assert valid_hong_kong("A123456(3)")
    assert [digit for digit in "0123456789A" if valid_hong_kong(f"AB987654({digit})")] == ["3"]
    assert valid_taiwan("A123456789")
    assert [digit for digit in "0123456789" if valid_taiwan(f"A12345678{digit}")] == ["9"]
    assert valid_taiwan("A800000014")


@settings(max_examples=25)
@given(st.text(LETTERS, min_size=1, max_size=2), st.integers(0, 999999), st.sampled_from(["", " "]))
def test_every_number_of_hong_kong(start: str, number: int, cut: str) -> None:
    body = f"{start}{number:06d}"
    right = [digit for digit in "0123456789A" if valid_hong_kong(f"{body}({digit})")]
    assert len(right) == 1
    for digit in "0123456789A":
        written = f"{body}{cut}({digit})"
        assert found(hong_kong_id, f"我{written}，") == [written] * (digit in right)
        assert found(hong_kong_id, f"身份证{written}，".translate(WIDE)) == [written.translate(WIDE)]


@settings(max_examples=25)
@given(st.sampled_from(LETTERS), st.sampled_from("1289ABCD"), st.integers(0, 10**7 - 1))
def test_every_number_of_taiwan(letter: str, second: str, number: int) -> None:
    body = f"{letter}{second}{number:07d}"
    right = [digit for digit in "0123456789" if valid_taiwan(body + digit)]
    assert len(right) == 1
    for digit in "0123456789":
        assert found(taiwan_id, f"我在台湾，{body}{digit}。") == [body + digit] * (digit in right)
        assert found(taiwan_id, f"身分證字號{body}{digit}。".translate(WIDE)) == [f"{body}{digit}".translate(WIDE)]
        assert found(taiwan_id, f"标本{body}{digit}。") == []


@settings(max_examples=200)
@given(st.sampled_from(["E", "G", *(f"E{letter}" for letter in "ABCDEFGHJKLMN")]), st.integers(0, 10**7 - 1))
def test_every_passport_of_china(start: str, number: int) -> None:
    written = f"{start}{number:0{9 - len(start)}d}"
    for form in (written, written.lower(), written.translate(WIDE)):
        assert found(passport, f"护照号{form}，谢谢") == [form]
        assert found(passport, f"Passport No: {form}") == [form]


@settings(max_examples=200)
@given(st.sampled_from(["C", "CA", "CD", "W", "L", "T", "H", "M"]), st.integers(0, 10**7 - 1))
def test_every_permit(start: str, number: int) -> None:
    written = f"{start}{number:0{9 - len(start)}d}"
    for form in (written, written.translate(WIDE)):
        assert found(permit, f"我的通行证号码：{form}，谢谢") == [form]


@pytest.mark.parametrize(
    "text",
    """
批号E13579246
编号：E13579246
型号EA1357924
LOT E13579246
E20190123
EP1357924
E1357924
AE13579246
E13579246A
E13579246.5
G13579246
国食健字G20040123
护照2019年
护照 20190102
护照[护照号]
护照，E药
通行证20190102
通行证2019年
台胞证20190102
permit 2019
A123456(4)
A123456(3
1234567(8)
2019;1234567(8)
身份证12345678
A123456789
编号A123456789
台湾产B190123456
[身份证号]，A123456789
社保12345
社保20190123
医保120000元
公积金1234567元
医保目录2020
""".strip().split("\n"),
)
def test_other_codes_stay(text: str) -> None:
    assert [(recogniser, values) for recogniser in ALL if (values := found(recogniser, text))] == []
