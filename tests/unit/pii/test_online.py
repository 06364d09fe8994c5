"""WeChat ids, QQ numbers, pages and handles are found beside their word; plain pages and other codes stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.contacting import ALL, FORMS, found, places

WECHAT = FORMS["wechat"]
QQ = FORMS["qq"]
PAGES = FORMS["pages"]
HANDLES = FORMS["handles"]


@pytest.mark.parametrize("form", WECHAT)
def test_wechat_ids_beside_their_word(form: str) -> None:
    word, name = form.split("~")
    for text in (f"{word}{name}", f"大夫你好，{word}{name}谢谢", f"{word}{name}。急", f"（{word}{name}）"):
        assert found(text, "wechat", "mobile", "url") == {name}, text


@pytest.mark.parametrize(
    "text", ["abc12345是我的微信", "abc12345（微信）", "请加wxid_abcdef123456ab谢谢", "abc12345(VX)"]
)
def test_wechat_ids_that_stand_in_front_or_alone(text: str) -> None:
    assert found(text, "wechat") in ({"abc12345"}, {"wxid_abcdef123456ab"})


def test_a_mobile_as_wechat_id_is_a_telephone() -> None:
    assert found("微信同号13912345678", "mobile") == {"13912345678"}
    assert found("微信：13912345678") == {"13912345678"}
    assert ALL["wechat"]("加微信13912345678") == []


@pytest.mark.parametrize("form", QQ)
def test_qq_numbers_beside_their_word(form: str) -> None:
    word, number = form.split("~")
    for text in (f"{word}{number}", f"大夫你好，{word}{number}谢谢", f"{word}{number}。急"):
        assert found(text, "qq") == {number}, text


@pytest.mark.parametrize("text", ["12345678是我的QQ", "12345678（QQ）", "发到12345678@qq谢谢"])
def test_qq_numbers_that_stand_in_front(text: str) -> None:
    assert found(text, "qq") == {"12345678"}


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_name_somebody(page: str) -> None:
    for text in places(page):
        assert found(text, "url") == {page}, text
    assert found(f"见{page}.", "url") == {page}


def test_a_member_whose_name_is_chinese() -> None:
    assert found("见weibo.com/n/张三，谢谢") == {"weibo.com/n/张三"}


@pytest.mark.parametrize("form", HANDLES)
def test_handles_beside_the_name_of_their_service(form: str) -> None:
    word, name = form.split("~")
    assert found(f"我的{word}{name}，谢谢", "url") == {name}
    assert found(f"{word}{name}", "url") == {name}


STAY = FORMS["nobody"]


@pytest.mark.parametrize("text", STAY)
def test_what_names_nobody_stays(text: str) -> None:
    assert found(text, "wechat", "qq", "url") == set()
    assert found(f"请问{text}，可以吗", "wechat", "qq", "url") == set()


ASCII = "abcdefghijkmnpqrstuvwxyz"
NAME = st.tuples(
    st.sampled_from(ASCII),
    st.text(st.sampled_from(ASCII + "0123456789_-"), min_size=4, max_size=17),
    st.sampled_from("0123456789"),
).map("".join)
NUMBER = st.tuples(st.sampled_from("123456789"), st.text(st.sampled_from("0123456789"), min_size=5, max_size=9)).map(
    "".join
)
AFTER = st.sampled_from(["", "谢谢", "。", "，急", "）", "\n", " 谢谢"])


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.sampled_from(["微信", "微信号", "加我微信", "加vx", "VX：", "我的微信号是", "薇信 ", "wx:", "V信"]),
    st.sampled_from(["", "：", ": ", " "]),
    NAME,
    AFTER,
)
def test_wechat_ids_that_were_made_up(word: str, link: str, name: str, after: str) -> None:
    assert found(f"你好{word}{link}{name}{after}", "wechat") == {name}


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.sampled_from(["QQ", "qq", "QQ号", "我的QQ", "扣扣", "QQ群", "Q号"]),
    st.sampled_from(["：", ":", " ", "号：", "是"]),
    NUMBER,
    AFTER,
    st.booleans(),
)
def test_qq_numbers_that_were_made_up(word: str, link: str, number: str, after: str, wide: bool) -> None:
    shown = number.translate({48 + value: 0xFF10 + value for value in range(10)}) if wide else number
    date = number[:2] in {"19", "20"} and len(number) == 8
    assert found(f"你好{word}{link}{shown}{after}", "qq") == {shown} or date


HOSTS = st.sampled_from(
    [
        "https://weibo.com/u/",
        "https://www.zhihu.com/people/",
        "https://x.com/",
        "http://a.edu.cn/~",
        "https://b.com/p?phone=",
    ]
)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    HOSTS,
    st.text(st.sampled_from(ASCII + "0123456789_"), min_size=3, max_size=20),
    AFTER.filter(lambda after: after != "）"),
)
def test_pages_that_were_made_up(host: str, name: str, after: str) -> None:
    value = f"{host}z9{name}"
    assert found(f"见{value}{after}", "url") == {value}
