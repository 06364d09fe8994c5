"""Dates of birth: every written form, and the dates that are none."""

import re
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.birth_date import birth_date
from curate.pii.settings import Masking, masker
from tests.support import recognising

MASKER = masker(Masking(recognisers=["birth_date"]), "zh", b"key")

FORMS = [
    "出生日期：〈1985-03-12〉",
    "出生日期 〈1985.3.12〉",
    "出生日期：〈19850312〉",
    "出生年月：〈1985年3月〉",
    "出生年月日:〈1985年03月12日〉",
    "生日：〈1985/3/12〉",
    "生日是〈1985年3月12日〉",
    "我生于〈1985年3月12日〉",
    "出生于〈一九八五年三月十二日〉",
    "宝宝〈2019年3月2日〉出生",
    "孩子〈2019年3月2号〉出生，现在",
    "〈1985年3月〉生，",
    "〈85年3月12日〉生。",
    "〈1985年3月12日〉生人",
    "〈农历八月十五〉生，",
    "我是〈1990年5月6日〉生的",
    "DOB: 〈1985-03-12〉",
    "DOB:〈12/03/1985〉",
    "Date of birth: 〈March 12, 1985〉",
    "born on 〈12 March 1985〉",
    "〈１９８５年３月１２日〉出生",
    "〈1985.3.12〉出生",
    "〈1985-03-12〉生",
    "出生：〈1985-3〉",
    "生日：〈3月12日〉",
    "生日农历〈八月初八〉",
    "出生时间：〈2019年3月2日〉 08:30",
    "出生年月：〈1985.03〉",
    "出生日期:〈１９８５－０３－１２〉",
    "性别男出生日期〈1985年3月12日〉民族汉",
    "女儿〈2015年6月1日〉上午出生",
    "（〈1985年3月12日〉出生）",
    "birthday: 〈1985-03-12〉",
    "Birth date 〈03/12/1985〉",
    "〈二〇〇八年八月八日〉出生",
    "出生日期 : 〈1985 年 3 月 12 日〉",
    "生日〈1985年3月〉",
]
STAY = [
    "就诊日期：2019-03-12",
    "2019年做过胃镜",
    "末次月经2019年3月2日",
    "预产期2019年12月3日",
    "1985年出生",
    "1985年生",
    "85年生",
    "1985年生人",
    "出生于1985年",
    "出生3个月",
    "出生3月后",
    "出生后3月龄",
    "宝宝出生12天",
    "出生体重3.2kg",
    "2019年3月生了个儿子",
    "2019年3月生病住院",
    "2019年3月生产",
    "2019年3月2日剖腹产",
    "3月2日生孩子",
    "我8月15号生的孩子",
    "2018年5月生的宝宝",
    "2019年3月2日确诊",
    "2019年3月2日出生缺陷筛查",
    "2019年3月2日生化检查",
    "2019年3月2日生命体征",
    "2019年3月2日生二胎",
    "生日快乐",
    "生日那天",
    "出生日期不详",
    "3月份出生率",
    "发生于2019年3月",
    "产生于2019年3月",
    "2019年3月发生",
    "住院2019年3月2日",
    "出生时脐带绕颈3周",
    "于2019年3月12日入院，出生地北京",
    "2019-03-12生长激素5.6",
    "3-5生理盐水",
    "1.5生理盐水100ml",
    "born in 1985",
    "born at 38 weeks",
    "birthday party",
    "1985年3月12日复查",
    "出生缺陷2012年",
    "出生证明2019年3月",
    "一月生一次",
    "三月生",
    "每天二十三生",
]


def found(text: str) -> list[str]:
    return recognising.found(birth_date, text)


@pytest.mark.parametrize("text", FORMS)
def test_dates_of_birth_are_found(text: str) -> None:
    """What is in brackets 〈〉 is the date."""
    value = re.findall("〈(.*?)〉", text)
    plain = text.replace("〈", "").replace("〉", "")
    for around in (plain, f"胃痛。{plain}", f"（{plain}", f"{plain}。谢谢", f"{plain}\n性别男"):
        assert found(around) == value


@pytest.mark.parametrize("text", STAY)
def test_other_dates_years_and_ages_stay(text: str) -> None:
    for around in (text, f"{text}。", f"胃痛，{text}"):
        assert found(around) == []


WRITTEN = [
    "{0}-{1:02}-{2:02}",
    "{0}/{1}/{2}",
    "{0}.{1}.{2}",
    "{0}年{1}月{2}日",
    "{0}年{1:02}月{2:02}号",
    "{0}{1:02}{2:02}",
    "{0} 年 {1} 月 {2} 日",
]
AROUND = ["出生日期：{}", "生日是{}，", "我{}出生", "出生于{}。", "（{}生）", "DOB: {} ", "出生年月日{}性别"]


@settings(max_examples=200)
@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.sampled_from(WRITTEN), st.sampled_from(AROUND))
def test_any_day_in_every_written_form(day: date, written: str, around: str) -> None:
    value = written.format(day.year, day.month, day.day)
    text = around.format(value)
    assert found(text) == [value]
    wide = text.translate({ord(letter): ord(letter) + 0xFEE0 for letter in "0123456789"})
    assert len(found(wide)) == 1
