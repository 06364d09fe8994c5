"""Numbers of patients, beds and staff, by the word in front of them."""

import re

from curate.core.records import Span
from curate.pii.number_labels import CODE, NUMERALS, RAW_DASH, RAW_SPACE, SPACE, WORD_ENDED, labelled, loosely, matches
from curate.pii.patterns import THREE_DIGITS, TWO_SIGNS, narrow, trigger
from curate.pii.recognisers.phone import counted
from curate.pii.spans import value_spans
from curate.pii.words import either, words

# Numbers that identify a patient: records, admissions, visits, examinations, specimens, and hospital beds.

_LISTS = words("medical_record")
_WORDS = [*_LISTS["numbers"], *_LISTS["english"]]
_NUMBERS = (labelled(_WORDS, CODE), labelled(_LISTS["cards"], rf"(?=(?:[^0-9]{{0,6}}[0-9]){{6}}){CODE}"))
_OTHERS = re.compile(f"(?:{'|'.join(_LISTS['others'])})(?:受理|平台)?\\Z")
_COUNTED = re.compile(f"[{SPACE}]?(?:{'|'.join(_LISTS['counted'])})")
_STUDY = re.compile("(?:NCT|CHICTR|CTR|ISRCTN|EUCTR|JPRN|UMIN|DRKS|ACTRN|KCT|CRD|GS[EM]|SR[RXS]|PRJNA|SAMN)-?[0-9]")
"""Prefixes of registers of clinical trials, reviews and sequences; numbers with them identify no patient."""
_HELPLINES = {"110", "119", "120", "122", "999"}

_SOME = "(?:[0-9]{1,4}|[一二三四五六七八九十百]{1,4})"
_START = "(?<![0-9A-Za-z.一二三四五六七八九十百])"
_WARD = f"(?:{_SOME}[{SPACE}]?号?(?:病房|病室|病区|单元|房间|房|室|区|楼|层)[{SPACE},，-]?(?:第|加)?)"
_BED = f"(?!一床|百床){_SOME}[{SPACE}]?床"
_NO_THING = "(?![垫单架品罩帘])"
_IN = f"(?:(?!院)[一-鿿]{{0,8}}[科区部室房楼]|[A-Z]{{0,2}}[IC]CU)?[{SPACE}]?(?:第|加)?"
_COUNT = "(?!位|规模|以[上下内外]|左右|[/至到~-])"
_PEOPLE, _LYING = ("|".join(_LISTS[name]) for name in ("people", "lying"))
_WHO = f"{_PEOPLE}|[{''.join(_LISTS['surnames'])}](?:[一-鿿]{{0,2}}(?:{_PEOPLE})|某)"
_MORE = f"(?:[、,，和及][{SPACE}]?{_SOME}[{SPACE}]?床){{0,5}}"
_BEDS = (
    labelled(
        _LISTS["beds"],
        rf"(?:加床?)?(?:[A-Za-z]{{1,2}}-?)?{_SOME}(?:-[0-9]{{1,3}})?(?:号床|床)?(?![0-9A-Za-z]|[{SPACE}]?[张个元米])",
    ),
    re.compile(rf"{_START}(?P<value>{_WARD}{{1,3}}{_SOME}[{SPACE}]?[号#]?床){_NO_THING}"),
    re.compile(rf"{_START}(?P<value>{_SOME}[{SPACE}]?[号號#]病?床){_NO_THING}"),
    re.compile(
        rf"{_START}(?P<value>{_BED})(?={_MORE}(?:[{SPACE}]?[的之]?[{SPACE}:：]?(?:{_WHO})|[{SPACE},，]{{1,2}}[男女][{SPACE},，]))"
    ),
    re.compile(rf"(?:{_LYING}){_IN}(?P<value>{_BED}){_NO_THING}{_COUNT}"),
    re.compile(rf"(?:^|[\n;；。])[{SPACE}]?(?P<value>[0-9]{{1,4}}[{SPACE}]?床)(?=[:：])"),
    re.compile(
        rf"(?<![A-Za-z])[Bb](?:ed|ED)[{SPACE}]?(?:[Nn][Oo][.:]?|[Nn]umber|#)[{SPACE}]?(?P<value>[A-Z]?[0-9]{{1,4}}){WORD_ENDED}"
    ),
)
_ENGLISH_BEDS = ["bed no", "bed number", "bed #"]
_COUNTING = re.compile(f"(?:{'|'.join(_LISTS['counting'])})[{SPACE}了着]?\\Z")


_EVERY = [*_WORDS, *_LISTS["cards"]]
_LAST = "".join(sorted({word[-1] for word in _EVERY if not word[-1].isascii()}))
_BETWEEN = f"{RAW_SPACE}字号號码碼编編是为為第卡\r\n:：=＝#＃№\"“”'’‘】>＞|._．＿()（）{RAW_DASH}"
_LETTER, _DIGIT = "A-Za-zＡ-Ｚａ-ｚ", rf"[\d{NUMERALS}]"
_ANNOUNCED = (
    rf"(?:{loosely(_LAST)})[{_LETTER}{_BETWEEN}]*{_DIGIT}"
    rf"|(?:{loosely(word for word in _EVERY if word[-1].isascii())})"
    rf"(?:[{_BETWEEN}]|{loosely(['id', 'no', 'number', 'is'])})*[{_LETTER}]*[{RAW_DASH}]?{_DIGIT}"
)
"""Trigger: the last character of a Chinese word (a smaller automaton than all words), separators and a digit.

English words are complete, because most texts contain their last letters.
"""


@trigger(_ANNOUNCED, needs=TWO_SIGNS)
@trigger(_ANNOUNCED, needs=THREE_DIGITS)
def medical_record(text: str) -> list[Span]:
    """Return numbers of records, admissions, visits, examinations and specimens after words for them: 3 digits or more.

    Numbers of trials, products and companies are excluded, and so are short numbers that only count (门诊号20元).
    """
    hits = (match for match in matches(_NUMBERS, text) if _of_patient(match))
    return value_spans(hits, "medical_record", "medical_record")


@trigger(rf"[\d一二三四五六七八九十百][{RAW_SPACE}]?[号號#]?病?床", needs="床")
@trigger(loosely(_LISTS["beds"]), needs="[号號]")
@trigger(loosely(_ENGLISH_BEDS), needs=TWO_SIGNS)
def bed_number(text: str) -> list[Span]:
    """Return beds in which a patient lies: `床号12`, `3号床`, `1203病房5床`, `12床患者`, `住12床`.

    A count of beds (开放12床) and things that belong to a bed (3号床垫) are excluded.
    """
    beds = (match for pattern in _BEDS for match in pattern.finditer(narrow(text)))
    occupied = (
        bed for bed in beds if not _COUNTING.search(bed.string[max(0, bed.start("value") - 4) : bed.start("value")])
    )
    return value_spans(occupied, "medical_record", "bed_number")


def _of_patient(match: re.Match[str]) -> bool:
    number = match["value"]
    if len(re.findall("[0-9]", number)) < 3 or _OTHERS.search(match.string[max(0, match.start() - 10) : match.start()]):
        return False
    if number in _HELPLINES or (len(number) <= 4 and _COUNTED.match(match.string, match.end())):
        return False
    return not _STUDY.match(number.upper()) and not _of_product(number)


def _of_product(number: str) -> bool:
    """Return whether a number is the bar code of a product (EAN-13 with the prefix 69 of China, or 97 of books)."""
    if len(number) != 13 or not number.isdigit() or number[:2] not in {"69", "97"}:
        return False
    return (sum(map(int, number[0:12:2])) + 3 * sum(map(int, number[1:12:2])) + int(number[12])) % 10 == 0


# Staff numbers after a word for them: 工号 20731, 胸牌号 0826, staff ID N48213, badge #5521.

_STAFF_WORDS = words("network")["staff"]
_STAFF_NUMBERS = [labelled(_STAFF_WORDS, CODE)]
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?=\s?(?:[年届版]|\Z|[,.，。)]))|[0-9]{1,6}(?=\s?位)")
_STAFF_LAST = "".join(sorted({entry[-1] for entry in _STAFF_WORDS if not entry[-1].isascii()}))
_WESTERN = [entry for entry in _STAFF_WORDS if entry[-1].isascii()]
_STAFF_COUNTED = re.compile(rf"\s{either(words('network')['counted'])}(?![a-z])", re.IGNORECASE)


_STAFF_ANNOUNCED = (
    rf"(?:[{_STAFF_LAST}]|{loosely(_WESTERN)})"
    rf"[{RAW_SPACE}字号號码碼编編是为為第卡A-Za-zＡ-Ｚａ-ｚ\r\n:：=＝#＃№\"“”'’‘】>＞|._．＿()（）{RAW_DASH}]*[\d{NUMERALS}]"
)


@trigger(_STAFF_ANNOUNCED, needs=TWO_SIGNS)
@trigger(_STAFF_ANNOUNCED, needs=THREE_DIGITS)
def staff_number(text: str) -> list[Span]:
    """Return staff numbers after a word for them: three digits or more, with letters before them; no year, no count."""
    return value_spans(
        (match for match in matches(_STAFF_NUMBERS, text) if _of_staff(match)), "staff_number", "staff_number"
    )


def _of_staff(match: re.Match[str]) -> bool:
    number, (start, end) = match["value"], match.span("value")
    if sum(character.isdigit() for character in number) < 3:
        return False
    if _STAFF_COUNTED.match(match.string, end):
        return False
    return not counted(match.string, start, end) and _YEAR.match(match.string, start) is None
