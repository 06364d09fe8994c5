"""Masking: placeholders, pseudonyms and tags, recognisers of a user's own, and that nothing is masked twice."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.config import check
from curate.core.errors import ConfigError
from curate.core.records import Span
from curate.pii.masking import (
    PSEUDONYMS,
    Masked,
    Masker,
    kinds,
    last_resort,
    link,
    placeholder,
    placeholders,
    tag,
    writer,
)
from curate.pii.pseudonyms import secret
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all, suspects
from curate.pii.texts import mask_batches

KEY = b"0123456789abcdef"
TEXT = "我叫张三,手机139 1234 5678或13912345678,另一个13712345678,邮箱a.b@qq.com,身份证110101198703262044。"


def masking(**settings: Any) -> Masker:
    return masker(check(Masking, settings, "mask"), "zh", KEY)


def finding(pattern: str, kind: str = "private") -> Callable[[str], list[Span]]:
    return lambda text: [Span(*match.span(), kind, pattern) for match in re.finditer(pattern, text)]


def careless(*patterns: str) -> Masker:
    """Return a masker whose recognisers look at everything, and whose pseudonyms are found again."""
    write = last_resort("zh")
    return Masker([finding(each) for each in patterns], lambda _kind, _value: "0000", write, placeholders(["private"]))


# modes


def test_pseudonyms_are_the_same_for_the_same_value_however_written() -> None:
    text = masking(mode="pseudonym", recognisers=["mobile", "email"]).mask(TEXT).text
    phones = re.findall(r"12\d{9}", text)
    assert len(phones) == 3
    assert phones[0] == phones[1] != phones[2]
    assert re.search(r"邮箱user\d{9}@mail\.invalid,", text)


def test_another_key_gives_other_pseudonyms() -> None:
    write, other = writer("pseudonym", "zh", KEY), writer("pseudonym", "zh", KEY[::-1])
    assert all(write(kind, "张三") != other(kind, "张三") for kind in ("phone", "email", "id_card"))
    assert write("address", "某路1号") == "[地址]"


@pytest.mark.slow
@given(st.sampled_from(sorted(PSEUDONYMS)), st.integers(0, 2**256 - 1))
def test_no_recogniser_takes_a_pseudonym_for_real(kind: str, number: int) -> None:
    value = PSEUDONYMS[kind](number)
    for text in (value, f"请找{value}谢谢", f"{value}。", f"，{value}，"):
        assert masking().mask(text) == Masked(text)


def test_tags_keep_the_length() -> None:
    masked = masking(mode="tag").mask(TEXT)
    assert len(masked.text) == len(TEXT)
    assert "手机[电话＊＊＊＊＊＊＊＊＊]或" in masked.text
    assert [tag("name", "zh", length) for length in (1, 3, 4, 6)] == ["■", "■■■", "[姓名]", "[姓名＊＊]"]


def test_placeholders_speak_two_languages() -> None:
    assert masking(placeholders="en", recognisers=["mobile"]).mask("请打13912345678").text == "请打[PHONE]"
    assert placeholder("staff", "zh") == placeholder("staff", "en") == "[staff]"
    for kind in kinds():
        for language in ("zh", "en"):
            assert placeholders().fullmatch(placeholder(kind, language))
            assert placeholders().fullmatch(tag(kind, language, 30))


# idempotence


@pytest.mark.parametrize("mode", ["placeholder", "pseudonym", "tag"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_masking_twice_changes_nothing(mode: str, language: str) -> None:
    mask = masking(mode=mode, placeholders=language)
    once = mask.mask(TEXT)
    assert len(once.spans) >= 5
    assert mask.mask(once.text) == Masked(once.text)


PARTS = ["[电话]", "[", "]", "13912345678", "电话", "a", "■", "[private]", "0000", "＊", "中", "[姓名＊]"]


@pytest.mark.slow
@given(st.lists(st.sampled_from(PARTS), max_size=10).map("".join))
def test_recognisers_that_find_anything_mask_once_and_end(text: str) -> None:
    for mask in (careless(r".+"), careless(r"\[.*?\]", r"0+"), careless(r"[^电]", r"电话?", "00"), careless(r"\S")):
        once = mask.mask(text)
        assert mask.mask(once.text) == Masked(once.text)
        assert all(left.end <= right.start for left, right in zip(once.spans, once.spans[1:], strict=False))
        assert all(0 <= span.start < span.end <= len(text) for span in once.spans)


def test_what_is_found_again_becomes_a_placeholder() -> None:
    assert careless("1", "0").mask("a1b").text == "a[private]b"
    assert careless("1", "b0+b").mask("b1b") == Masked("[private]", (Span(0, 3, "private", "b0+b"),))


def test_spans_that_are_known_join_what_rules_find() -> None:
    masked = masking(recognisers=["mobile"]).mask("王五13912345678", [Span(0, 2, "name", "model")])
    assert masked.text == "[姓名][电话]"
    assert masking(recognisers=["mobile"]).mask("王五", [Span(0, 2, "name", "model")]).text == "[姓名]"


# a user's own recognisers


def test_patterns_and_words_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "staff.txt").write_text("\ufeff陈晓明\n陈晓\nAnn\n\n", encoding="utf-8")
    mask = masking(
        recognisers=[],
        patterns={"case": {"pattern": r"案号(?P<value>\d{4})", "kind": "case_number"}},
        words={"staff": {"words": ["Bo Li"], "file": str(tmp_path / "staff.txt"), "kind": "name"}},
    )
    assert mask.mask("案号１２３４由陈晓明、陈晓和Ann办").text == "案号[case_number]由[姓名]、[姓名]和[姓名]办"
    assert mask.mask("Anna, Joann, xBo Li, Bo Lin").spans == ()
    assert [span.recogniser for span in mask.mask("Bo Li,Ann1,案号1234").spans] == ["staff", "case"]


@pytest.mark.slow
@given(st.sets(st.text(alphabet="ab王李1 ", min_size=1, max_size=4).map(str.strip).filter(bool), min_size=1), st.data())
def test_words_are_found_as_by_one_alternation(words: set[str], data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet="ab王李1 ,", max_size=30))
    edge = r"[A-Za-z0-9]"
    one_by_one = [
        (rf"(?<!{edge})" if re.match(edge, word) else "")
        + re.escape(word)
        + (rf"(?!{edge})" if re.match(edge, word[-1]) else "")
        for word in sorted(words, key=len, reverse=True)
    ]
    spans = masking(recognisers=[], words={"w": {"words": sorted(words)}}).recognisers[0](text)
    assert [(span.start, span.end) for span in spans] == [m.span() for m in re.finditer("|".join(one_by_one), text)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recognisers": ["mobil"]}, "unknown recogniser 'mobil': did you mean 'mobile'?"),
        ({"without": ["mobil"]}, "unknown recogniser 'mobil': did you mean 'mobile'?"),
        ({"patterns": {"x": {"pattern": "("}}}, "mask.patterns.x.pattern: no regular expression"),
        ({"patterns": {"x": {"pattern": "a*"}}}, "it matches the empty text"),
        ({"words": {"x": {}}}, "mask.words.x: no words"),
        ({"words": {"x": {"file": "/nowhere/staff.txt"}}}, "mask.words.x.file: /nowhere/staff.txt cannot be read"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        masking(**settings)


def test_recognisers_can_be_left_out() -> None:
    assert masking(without=["mobile"]).mask("13912345678").text == "13912345678"
    both = masking(recognisers=["email", "mobile"], without=["mobile"])
    assert both.mask("13912345678 a@b.cn").text == "13912345678 [邮箱]"


# many texts


TEXTS = [TEXT, "没有号码", "", "电话 010-61234870", "１３９１２３４５６７８", "a@b.cn" * 3] * 20


@pytest.mark.slow
def test_many_texts_are_masked_as_one_is() -> None:
    mask = masking()
    known = {1: [Span(0, 2, "name", "model")]}
    expected = [mask.mask(text, known.get(row, ())) for row, text in enumerate(TEXTS)]
    assert mask_all(mask, TEXTS, known) == expected
    assert expected[1].text == "[姓名]号码"


def test_only_what_may_hold_something_is_looked_at() -> None:
    mask = masking()
    found = suspects(mask.recognisers, pl.Series(TEXTS))
    assert 0 < len(found) < len(TEXTS)
    for row, text in enumerate(TEXTS):
        assert {each for each in mask.recognisers if each(text)} <= set(found.get(row, ()))


@pytest.mark.slow
def test_processes_give_what_one_gives_in_order() -> None:
    settings = Masking(mode="pseudonym", recognisers=["mobile", "landline", "email", "resident_id"])
    batches = [(number, (TEXTS[number : number + 7], {0: [Span(0, 1, "name", "m")]})) for number in range(0, 112, 7)]
    one, two = (list(mask_batches(settings, "zh", KEY, batches, processes)) for processes in (1, 2))
    assert one == two
    assert [number for number, _ in two] == list(range(0, 112, 7))


# the key


def test_the_key_is_drawn_once_and_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURATE_PII_KEY", raising=False)
    key = secret(tmp_path / "home")
    assert secret(tmp_path / "home") == key != secret(tmp_path / "other")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["pii.key"]
    assert sys.platform == "win32" or (tmp_path / "home" / "pii.key").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("CURATE_PII_KEY", "x" * 16)
    assert secret(tmp_path / "home") == b"x" * 16
    monkeypatch.setenv("CURATE_PII_KEY", "short")
    with pytest.raises(ConfigError, match="found 5 characters, expected at least 16"):
        secret(tmp_path / "home")


def test_links_are_equal_for_equal_values_and_hide_them() -> None:
    assert link(KEY, "phone", "+86 139-1234-5678") == link(KEY, "phone", "１３９１２３４５６７８")
    assert link(KEY, "phone", "13912345678") != link(KEY, "qq", "13912345678")
    assert link(KEY, "email", "a.b@c.cn") != link(KEY, "email", "ab@c.cn")
    assert re.fullmatch(r"[0-9a-f]{16}", link(KEY, "name", "张三\ud800"))
