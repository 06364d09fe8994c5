"""Bank card numbers: every issuer and grouping is found, other long numbers stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.bank_card import bank_card, luhn
from curate.pii.resident_id import valid
from tests.support.recognising import found, surrounded

WIDE = str.maketrans("0123456789- ", "０１２３４５６７８９－　")
SPELLED = str.maketrans("0123456789", "〇一二三四五六七八九")
ISSUERS = [
    *[("62", length) for length in (16, 17, 18, 19)],
    *[
        (str(start), 16)
        for start in (4, 51, 52, 53, 54, 55, 2221, 2229, 2230, 2299, 2300, 2699, 2700, 2720, 3528, 3589)
    ],
    *[("9558", 19), ("9559", 19), ("9559", 16)],
]


@st.composite
def cards(draw: st.DrawFn) -> str:
    start, length = draw(st.sampled_from(ISSUERS))
    rest = length - len(start) - 1
    number = f"{start}{draw(st.integers(0, 10**rest - 1)):0{rest}d}"
    return next(number + digit for digit in "0123456789" if luhn(number + digit))


def by_four(number: str, cut: str) -> str:
    return cut.join(number[start : start + 4] for start in range(0, len(number), 4))


def test_check_digit_of_the_standard() -> None:
    """ISO/IEC 7812-1, annex B, has 49927398716 as its example."""
    assert luhn("49927398716")
    assert [digit for digit in "0123456789" if luhn(f"4992739871{digit}")] == ["6"]


@settings(max_examples=200)
@given(cards(), st.sampled_from([" ", "-", "–", "  ", "　"]))
def test_every_written_form(number: str, cut: str) -> None:
    if len(number) == 18 and valid(number):
        return
    grouped = by_four(number, cut)
    pair = number[:6] + cut + number[6:]
    for written in (number, grouped, pair, number.translate(WIDE), grouped.translate(WIDE), number.translate(SPELLED)):
        assert found(bank_card, f"我的{written}，谢谢") == [written]
        assert found(bank_card, f"银行卡号：{written}") == [written]
        assert found(bank_card, f"请打到{written}\n") == [written]


@settings(max_examples=100)
@given(cards(), st.integers(1, 9))
def test_a_wrong_check_digit_needs_the_word(number: str, shift: int) -> None:
    wrong = number[:-1] + str((int(number[-1]) + shift) % 10)
    assert found(bank_card, f"我的{wrong}。") == []
    if len(wrong) != 18 or not valid(wrong):
        assert found(bank_card, f"银行卡{wrong}。") == [wrong]


@pytest.mark.parametrize(
    "marked",
    """
银行卡|6222021234567890128|
卡号：|6222 0212 3456 7890 128|
账号:|6222021234567890128|
工商银行|6222021234567890128|
开户行：招商银行，账号：|6222021234567890128|
信用卡号是|4111 1111 1111 1111|
Visa: |4111-1111-1111-1111|
visa |4222222222222|
Card Number: |5555555555554444|
card no. |3530111333300000|
储蓄卡号为|9558801234567890123|
賬號：|6222021234567890128|
建行卡号|4367421234567890123|
|3782 822463 10005|
信用卡|378282246310005|
|６２２２０２１２３４５６７８９０１２８|
工资卡六二二二〇二一二三四五六七八九〇一二八
""".strip()
    .replace("工资卡六二二二〇二一二三四五六七八九〇一二八", "工资卡|六二二二〇二一二三四五六七八九〇一二八|")
    .split("\n"),
)
def test_forms_in_their_surroundings(marked: str) -> None:
    for text, value in surrounded(marked):
        assert found(bank_card, text) == [value]


def test_a_number_after_the_last_group_is_not_of_the_card() -> None:
    assert found(bank_card, "卡4111 1111 1111 1111 30岁") == ["4111 1111 1111 1111"]
    assert found(bank_card, "银行卡4111 1111 1111 1111 30岁") == ["4111 1111 1111 1111"]
    assert found(bank_card, "2019 0101 4111 1111 1111 1111") == ["4111 1111 1111 1111"]


@pytest.mark.parametrize(
    "text",
    """
订单号4111111111111111
快递单号：6222021234567890128
流水号 6222021234567890128
编号:6222021234567890128
SN6222021234567890128
No.6222021234567890128
A6222021234567890128
6222021234567890128A
3.6222021234567890128
0.4111111111111111
4111111111111111.5
4111 1111 1111 1112
6222021234567890129
378282246310005
4222222222222
1234567890123456
银行卡0222021234567890128
微信账号6222021234567890127
银行卡后四位0128
银行卡1234567890
账号13912345678901
620102198703262048
""".strip().split("\n"),
)
def test_other_numbers_stay(text: str) -> None:
    assert found(bank_card, text) == []
