"""Telephone numbers and e-mail addresses: every written form is found, figures of medicine and public lines stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contacting import FORMS, covered, found, places

MOBILES = [*FORMS["mobiles"], "139\u00a01234\u00a05678", "139\u20091234\u20095678", "139\u200b1234\u200b5678"]
SAID = [
    "139 12 34 56 78",
    "13 9123 45678",
    "1 3912345678",
    "0139 1234 5678",
    "13912 345678",
    "139,1234,5678",
    "139 1234 567 8",
]
SPOKEN = FORMS["spoken"]
LANDLINES = FORMS["landlines"]
OVERSEAS = FORMS["overseas"]
EMAILS = FORMS["emails"]


@pytest.mark.parametrize("number", [*MOBILES, *SPOKEN, *LANDLINES, *OVERSEAS])
def test_numbers_in_every_form(number: str) -> None:
    for text in places(number):
        assert covered(text, number), text
    assert covered(f"电话：{number}。", number)


@pytest.mark.parametrize("number", SAID)
@pytest.mark.parametrize("word", ["电话", "手机号：", "联系方式是", "電話：", "Tel: ", "ｔｅｌ："])
def test_any_grouping_of_a_mobile_after_a_word_for_telephone(word: str, number: str) -> None:
    assert covered(f"我的{word}{number}谢谢", number)


@pytest.mark.parametrize(
    "number", ["61234870", "8261409", "6123-4870", "6123 4870", "６１２３４８７０", "61234870转12", "六一二三四八七零"]
)
@pytest.mark.parametrize("word", ["电话", "家里座机：", "联系方式：", "固话 ", "電話:", "Tel:", "传真（"])
def test_local_numbers_only_after_a_word_for_telephone(word: str, number: str) -> None:
    assert covered(f"我的{word}{number}谢谢", number)
    assert found(f"我的{number}谢谢") == set()


def test_several_numbers_in_a_row() -> None:
    assert found("电话010-61234870、61234871或61234872") == {"010-61234870", "61234871", "61234872"}
    assert found("13912345678/13812345678、13712345678") == {"13912345678", "13812345678", "13712345678"}
    assert found("手機0912345678 電話02 2345 6789") == {"0912345678", "02 2345 6789"}


def test_words_that_only_look_like_units_or_codes_do_not_hide_a_number() -> None:
    for behind in ("单位电话没人接", "人工服务", "元旦前联系", "万分感谢", "次日再打", "个人电话", "年底前打"):
        assert found(f"我的手机13912345678{behind}") == {"13912345678"}
    assert found("预约13912345678或QQ：123456789位") == {"13912345678", "123456789"}


def test_a_numeral_may_touch_a_number_in_numerals() -> None:
    assert found("打一三八零零一三八零零零一天都没人接") == {"一三八零零一三八零零零"}
    assert found("138OO138OOO") == {"138OO138OOO"}


@pytest.mark.parametrize("address", EMAILS)
def test_addresses_in_every_form(address: str) -> None:
    for text in places(address):
        assert found(text, "email") == {address}, text


def test_addresses_that_touch_others_and_long_ones() -> None:
    assert found(f"发到{'a' * 200}@qq.com谢谢", "email") == {f"{'a' * 200}@qq.com"}
    assert found("a@b.com;c@d.org，e@f.net", "email") == {"a@b.com", "c@d.org", "e@f.net"}
    assert found("张三zhang@qq.com收", "email") == {"zhang@qq.com"}


STAY = FORMS["stay"]


@pytest.mark.parametrize("text", STAY)
def test_what_is_no_contact_stays(text: str) -> None:
    assert found(text) == set()
    assert found(f"检查结果{text}，请问严重吗") == set()


def test_toll_free_lines_of_english_text_stay_and_mobiles_like_them_do_not() -> None:
    assert found("For more information about the study, call 18004516434 or write to us.") == set()
    assert found("我的手机是18004516434") == {"18004516434"}
    assert found("18884516434") == {"18884516434"}


DIGIT = st.sampled_from("0123456789")
HEADS = st.sampled_from("3456789")
MOBILE = st.tuples(HEADS, st.text(DIGIT, min_size=9, max_size=9)).map(lambda parts: "1" + "".join(parts))
NUMERALS = st.sampled_from(
    ["零一二三四五六七八九", "〇幺二三四五六七八九", "零壹贰叁肆伍陆柒捌玖", "零壹貳參肆伍陸柒捌玖"]
)
GROUPS = st.sampled_from([(3, 4, 4), (4, 3, 4), (11,)])
BETWEEN = st.sampled_from(["", " ", "-", "—", "－", "\u3000", " - ", "\u00a0"])
PREFIX = st.sampled_from(["", "+86", "+86 ", "(+86)", "0086", "86-", "＋８６-"])
AROUND = st.tuples(
    st.sampled_from(["", "电话", "我的号码：", "加", "，", "tel"]), st.sampled_from(["", "谢谢", "。", "，急", "vx"])
)


def grouped(digits: str, sizes: tuple[int, ...], between: str) -> str:
    parts, done = [], 0
    for size in sizes:
        parts.append(digits[done : done + size])
        done += size
    return between.join(parts)


@settings(max_examples=100)
@given(MOBILE, GROUPS, BETWEEN, PREFIX, st.booleans(), AROUND)
def test_mobiles_that_were_made_up(
    digits: str, sizes: tuple[int, ...], between: str, prefix: str, wide: bool, around: tuple[str, str]
) -> None:
    round_figures = len(sizes) == 3 and digits[5:7] == "00" == digits[9:]
    value = prefix + grouped(digits, sizes, between)
    value = value.translate({48 + value: 0xFF10 + value for value in range(10)}) if wide else value
    assert value in found(around[0] + value + around[1], "mobile") or round_figures


@pytest.mark.slow
@settings(max_examples=100)
@given(MOBILE, NUMERALS, st.data(), st.sampled_from(["", " ", "-", "·"]), AROUND)
def test_mobiles_in_numerals_that_were_made_up(
    digits: str, numerals: str, data: st.DataObject, between: str, around: tuple[str, str]
) -> None:
    """Some digits stay as they are; 一 alone among digits would be a dash."""
    kept = data.draw(st.sets(st.integers(0, 10), max_size=7))
    spelt = "".join(digit if place in kept else numerals[int(digit)] for place, digit in enumerate(digits))
    value = grouped(spelt, (3, 4, 4), between)
    dash = not spelt.strip("0123456789一") and kept
    assert found(around[0] + value + around[1], "spoken") == {value} or dash


@settings(max_examples=50)
@given(MOBILE, st.sampled_from(["-", ".", "·", "_", "*", "️⃣"]), AROUND)
def test_mobiles_with_every_digit_apart(digits: str, between: str, around: tuple[str, str]) -> None:
    value = between.join(digits)
    assert value in found(around[0] + value + around[1], "spoken", "mobile")


AREAS = st.sampled_from(["010", "020", "021", "029", "0755", "0531", "0371", "0991", "0898"])


@settings(max_examples=100)
@given(AREAS, st.sampled_from("2345678"), st.text(DIGIT, min_size=7, max_size=7), st.sampled_from("- （/+0"), AROUND)
def test_landlines_that_were_made_up(area: str, head: str, rest: str, form: str, around: tuple[str, str]) -> None:
    local = head + rest
    number = {"（": f"（{area}）{local}", "+": f"+86-{area[1:]}-{local}", "0": f"{area}{local}"}.get(
        form, area + form + local
    )
    assert found(around[0] + number + around[1], "landline") == {number}


LOCAL = st.text(st.sampled_from("abcxyz019._%+-"), min_size=1, max_size=80).filter(lambda name: name[0].isalnum())
DOMAIN = st.sampled_from(["qq.com", "163.com", "mail.hospital.org.cn", "x-y.edu", "a.b.c.d.io"])


@pytest.mark.slow
@settings(max_examples=200)
@given(LOCAL, DOMAIN, st.booleans())
def test_addresses_that_were_made_up(name: str, domain: str, wide: bool) -> None:
    address = f"{name}@{domain}"
    address = "".join(chr(ord(sign) + 0xFEE0) if wide and sign != "%" else sign for sign in address)
    assert found(f"我的邮箱{address}，谢谢", "email") == {address}
