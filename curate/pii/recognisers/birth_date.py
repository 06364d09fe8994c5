"""Dates of birth: dates with a month, next to a word for birth. A year or an age alone is not masked."""

import re

from curate.core.records import Span
from curate.pii.patterns import FULL_WIDTH, TWO_SIGNS, narrow, trigger
from curate.pii.spans import in_order

_DIGIT = "[〇零○一二三四五六七八九]"
_YEAR = rf"(?:(?:18|19|20)\d\d|{_DIGIT}{{4}})"
_MONTH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九正腊]|元)"
_DAY = r"(?:3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|初?[一二三四五六七八九十])"
_LUNAR = "(?:农历|阴历|旧历|農曆|陰曆|公历|阳历|新历|國曆)?"
_WRITTEN = rf"(?:{_YEAR}|\d\d|{_DIGIT}{{2}}) ?年 ?{_LUNAR}闰?{_MONTH} ?月份?(?: ?{_DAY} ?[日号號]?(?!\d))?"
_NUMBERS = (
    r"(?:(?:18|19|20)\d\d|\d\d)(?P<{0}>[-./ ])(?:1[0-2]|0?[1-9])(?P={0})(?:3[01]|[12]\d|0?[1-9])(?!\d)"
    r"|(?:18|19|20)\d\d[-./](?:1[0-2]|0?[1-9])(?![\d.-])"
)
_SOLID = r"(?:19|20)\d\d(?:1[0-2]|0[1-9])(?:3[01]|[12]\d|0[1-9])(?!\d)"
_NO_YEAR = rf"{_LUNAR}{_MONTH} ?月 ?{_DAY} ?[日号號]?(?!\d)"
_MONTH_NAMES = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS = rf"(?:{_MONTH_NAMES})[a-z]{{0,6}}\.?"
_ENGLISH = (
    rf"(?:{_MONTHS} ?\d{{1,2}}(?:st|nd|rd|th)?,? ?(?:18|19|20)\d\d"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[ -](?:of )?{_MONTHS},?[ -](?:18|19|20)\d\d"
    rf"|{_MONTHS},? (?:18|19|20)\d\d|\d{{1,2}}[/.-]\d{{1,2}}[/.-](?:18|19|20)\d\d(?!\d))"
)
_SAYS = (
    r"(?:出生年月日?|出生日期|出生时间|出生日|出生于|出生在|出生[:：]|出生是|降生于|诞生于|诞辰|生辰八字|生辰|(?<![发产])生于|生日|出生年份|出生"
    r"|(?<![A-Za-z])(?:DOB|D\.O\.B\.?|dob|Dob|[Dd]ate of [Bb]irth|DATE OF BIRTH|[Bb]irth ?[Dd]ate|[Bb]irthday|BIRTHDAY"
    r"|[Bb]orn(?: on| in)?))"
)
_JOIN = r"(?:[\s:：,，|=(（]|是|为|為|在|于|阳历|阴历|农历|公历|新历|旧历|農曆|身份证上|is|was){0,4}"
_AFTER = re.compile(rf"{_SAYS}{_JOIN}(?P<date>{_WRITTEN}|(?:{_NUMBERS.format('a')})|{_SOLID}|{_NO_YEAR}|{_ENGLISH})")
_HOUR = r"(?:[上下]午|早上|凌晨|晚上)?(?:在[\u3400-\u9fff]{2,8})?(?:剖[腹宫]产|顺产)?"
_BEFORE = re.compile(
    rf"(?<![\d.])(?P<date>{_WRITTEN}|(?:{_NUMBERS.format('b')})|{_SOLID}|{_NO_YEAR})日?[ ,，]?{_HOUR}"
    r"(?:出生(?!缺陷|证)|出世|降生|诞生|生人|生日|生的(?![孩宝小女儿二大一])|的(?=[,，]?属)|生(?=[,，。;；、!！?？)）\s]|$))"
)


@trigger(r"出生|生于|诞|生辰|生日|出世|降生|生人")
@trigger(
    r"(?:[Dd]\.?[Oo]\.?[Bb]\.?|[Bb][Ii][Rr][Tt][Hh](?:[Dd][Aa][Yy]|\s?[Dd][Aa][Tt][Ee])?|[Bb]orn(?:\s(?:on|in))?)"
    rf"(?:[\s:：,，|=(（是为為在于阳阴农公历新旧農曆身份证上]|is|was)*(?:[\d正腊元初农農阴陰旧公阳新國]|{_DIGIT}|十|{_MONTH_NAMES})"
    rf"|{FULL_WIDTH}",
    needs=TWO_SIGNS,
)
@trigger(rf"[日号號十一二三四五六七八九月廿\d][\s,，]?{_HOUR}(?:生的|的[,，]?属)", needs="生的|的[,，]?属")
@trigger(
    rf"[日号號十一二三四五六七八九月廿\d][\s,，]?{_HOUR}生(?:[,，。;；、!！?？)）\s]|$)",
    needs=r"生(?:[,，。;；、!！?？)）\s]|$)",
)
def birth_date(text: str) -> list[Span]:
    """Return dates of birth: dates after 出生日期, 生日, 生于, DOB or born on, or before 出生 or 生.

    A date has at least year and month, or month and day. A word for the calendar (农历) after the cue is not included.
    """
    narrowed = narrow(text)
    matches = (match for pattern in (_AFTER, _BEFORE) for match in pattern.finditer(narrowed))
    return in_order((match.span("date") for match in matches), "birth_date", "birth_date")
