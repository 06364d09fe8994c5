"""Vehicle plates: every province, separator and mark is found; codes that look like plates stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.plate import plate
from tests.support.recognising import found, surrounded

PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
WIDE = str.maketrans(
    "0123456789" + LETTERS, "０１２３４５６７８９" + "".join(chr(ord(letter) + 0xFEE0) for letter in LETTERS)
)
CUTS = ["", "·", "•", "・", " ", "-", "—", ".", "　", "· "]

provinces, letters, signs = (
    st.sampled_from(PROVINCES),
    st.sampled_from(LETTERS),
    st.sampled_from(LETTERS + "0123456789"),
)
digits = st.sampled_from("0123456789")


@st.composite
def serials(draw: st.DrawFn) -> str:
    """Five signs with at most two letters, or six for new energy."""
    plain = st.tuples(signs, digits, digits, digits, signs)
    small = st.tuples(st.sampled_from("DFABCEGHJK"), signs, digits, digits, digits, digits)
    large = st.tuples(digits, digits, digits, digits, digits, st.sampled_from("DF"))
    return "".join(draw(st.one_of(plain, small, large)))


@settings(max_examples=200)
@given(provinces, letters, st.sampled_from(CUTS), serials(), st.booleans())
def test_every_written_form(province: str, city: str, cut: str, serial: str, spaced: bool) -> None:
    written = f"{province}{' ' * spaced}{city}{cut}{serial}"
    for form in (written, written.lower(), written.translate(WIDE)):
        assert found(plate, f"昨天{form}，撞了") == [form]
        assert found(plate, f"车牌号：{form}") == [form]
        assert found(plate, form) == [form]


@settings(max_examples=100)
@given(provinces, letters, st.text(LETTERS, min_size=3, max_size=4), st.data())
def test_many_letters_need_the_word(province: str, city: str, many: str, data: st.DataObject) -> None:
    serial = (many + data.draw(st.text("0123456789", min_size=2, max_size=2)))[:5]
    assert found(plate, f"我的车牌是{province}{city}{serial}，") == [f"{province}{city}{serial}"]
    assert found(plate, f"{province}{city}{serial}的车") == [f"{province}{city}{serial}"]
    assert found(plate, f"新{city}{serial}检测") == []


@given(provinces, letters, st.integers(0, 9999))
def test_made_up_plates_stay(province: str, city: str, number: int) -> None:
    for letter in "IO":
        assert found(plate, f"车牌{province}{city}{letter}{number:04d}，{province}{city}{number:04d}{letter}") == []


@pytest.mark.parametrize(
    "marked",
    """
车牌|京A·12345|
车牌号|京A 12345|
|京 A12345|
|京a12345|
|粤BD12345|
|粤B12345D|
|沪AF12345|
|沪A12345F|
|沪AA12345|
|鲁B1234挂|
|鲁B12345挂|
|京A1234学|
|京A1234警|
|粤Z1234港|
|粤Z1234澳|
|粤Z·1234港|
|沪A1234领|
|WJ京12345|
|WJ京·1234A|
车牌号|军A12345|
车牌|使014578|
车牌：|使014·578|
牌照|海A12345|
|京Ａ１２３４５|
|川A88888|
|新A12345|
我开|粤B12345|出去
""".strip().split("\n"),
)
def test_forms_in_their_surroundings(marked: str) -> None:
    for text, value in surrounded(marked):
        assert found(plate, text) == [value]


@pytest.mark.parametrize(
    "text",
    """
最新A12345
新CYP2C9
[车牌号]新CYP2C9[车牌号]
宁CYP2D6
全新B12345
京A1234
京A123456
京A12345678
京A12345.6
京A12345-6
京A12345型
苏A12345批号
京A12345例
京I12345
京ABCDEF
新A1234学生
京A1234学习
使120000人
使100000
军A12345
南A12345
京12345
A12345
[车牌号]
京[车牌号]12345
京■12345
北京A组12345例
""".strip().split("\n"),
)
def test_what_only_looks_like_a_plate_stays(text: str) -> None:
    assert found(plate, text) == []
