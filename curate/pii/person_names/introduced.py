"""Chinese names that an introduction, a label of a form or a signature tells."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, RAW_DASH, THREE_DIGITS, narrow, trigger
from curate.pii.person_names.foreign import DOT, LETTER, PEOPLE, any_name_at, foreign_at, sounds_at
from curate.pii.person_names.lexicon import (
    AGED,
    CALLED,
    CJK,
    COLON,
    FIELD,
    LOOSE,
    Trust,
    bounded,
    known,
    lists,
    name_at,
    name_before,
    surnames,
)
from curate.pii.person_names.sought import GIVEN
from curate.pii.spans import in_order
from curate.pii.words import either

# Names that introductions precede or follow: 我叫王小明, 我是王小明, 我姓王, 患者王小明，男，45岁.

_SKIP = r"[:：\s\"'“‘「『(（]{0,4}"
_FIRST = f"[{surnames()}]"

_OWN = "(?:名字|姓名|真名|全名|大名|小名)"
_CALL = re.compile(
    rf"(?:{either(lists()['introductions.persons'])}(?:的{_OWN})?[就是也]?(?:叫做|叫作|叫|取名叫|取名|起名叫|起名)"
    rf"|(?<![药藥病学别俗书品牌商症])名(?:叫做|叫|为)|[我他她子儿公婆妈爸者]的?{_OWN}就?[是为]"
    rf"|叫我|叫俺|本人姓名|小名|乳名|昵称){_SKIP}"
)
_NO_PERSON = re.compile(r"[药藥病症品菌种剂片丸汤膏素草花术]的?$")
"""Endings of words for medicines and diseases, whose names are not personal: 这种药的名字叫金水宝."""
_FAMILY = re.compile(rf"(?<![百同尊复异改随隐外单双])姓(?:氏?[是为])?{_SKIP}")
_AFTER_FAMILY = tuple("的名叫今也是")
_PATIENTS = lists()["introductions.patients"]
_STATE = (
    rf"(?:(?:我|俺|本人|他|她|医生|大夫|医师|主任|名字|姓名)[就乃]?[是系]|这[里边]?是|本人"
    rf"|(?:主刀|接诊|手术|主治|看病|开药|管床)的(?:医生|大夫)?是|{either(_PATIENTS)}"
    rf"|[我她他的家]{either(lists()['introductions.kin'])}){_SKIP}"
)
_STATED = re.compile(f"(?=[我俺本他她医大主名姓这接手看开管的家{''.join(word[0] for word in _PATIENTS)}]){_STATE}")
"""Lookahead for the first characters of the words; without it `re` tries all words at every position."""
_SEX_OR_AGE = re.compile(r"[,，、;； (（]{0,3}(?:性别[:：]?)?(?:[男女]|\d{1,3} ?岁)")
_PAUSE = r"[,，、;；\s(（]"
_YEARS = r"\d{1,3} ?(?:周岁|岁|歲)"
_NEAR = 16
"""Maximum number of characters from the start of a name to sex or age."""
_CASE = re.compile(rf"{_PAUSE}{{1,3}}(?:[男女]性?{_PAUSE}{{0,3}}{_YEARS}|{_YEARS}{_PAUSE}{{0,3}}[男女](?![{CJK}]))")
"""Start of a case report after a name: 张三，男，45岁."""
_CASE_SEEN = rf"{_PAUSE}{{1,3}}(?:[男女]性?{_PAUSE}{{0,3}}\d|\d{{1,3}}\s?[周岁歲])"
_OWNED = re.compile(
    r"[ ,，、:：;；\t|(]{0,3}(?<![0-9])(?:1[3-9][0-9]{9}|[1-9][0-9]{5}(?:18|19|20)[0-9]{9}[0-9Xx])(?![0-9])"
)
"""A mobile or identity number directly after a name: 王小明 138..."""
_OWNER = re.compile(r"[0-9](?:[ -]?[0-9]){6,22} ?\(")
"""A person's number before a name in brackets."""
_LONG_NUMBER = re.compile(r"[0-9](?:[ -]?[0-9]){6}")
_YEARS_OLD = re.compile(r"[,，] ?\d{1,3} ?(?:周岁|岁|歲)(?![以上下左前后至到的-])")
_NICK = re.compile(rf"[小老阿大][{CJK}]|([{CJK}])\1")


@trigger(rf"叫|[取起]名|名[为是]|名字是|小名|乳名|昵称|本人姓名|姓(?:氏?[是为])?{_SKIP}{_FIRST}", needs=CHINESE)
@trigger(rf"{_FIRST}[{CJK}]{{1,3}}{_CASE_SEEN}", needs="[岁歲]")
@trigger(
    rf"{_FIRST}[{CJK}]{{1,3}}[\s,，、:：;；|｜(（]{{0,3}}\d{{11}}|\d[(（]{_FIRST}[{CJK}]{{1,3}}[)）]",
    needs=(THREE_DIGITS, r"\d{11}"),
)
@trigger(rf"{_STATE}(?:{_FIRST}{GIVEN}|[小老]{_FIRST}|{PEOPLE}|{LETTER}{{1,8}}{DOT}|[A-ZＡ-Ｚ]{DOT})", needs=CHINESE)
def introduced(text: str) -> list[Span]:
    """Return names after 我叫, 我是, 我姓, 患者, 我女儿 and similar words, and nicknames such as 小李 after 叫我."""
    return in_order(_introduced_names(narrow(text)), "name", "name_introduced")


def _introduced_names(text: str) -> Iterator[tuple[int, int]]:
    if "岁" in text or "歲" in text:
        for match in _CASE.finditer(text):
            start = name_before(text, match.start(), AGED)
            if start is not None:
                yield start, match.start()
    yield from _owners(text)
    for pattern, signs, end_of in _WAYS:
        seen = not signs or any(sign in text for sign in signs)
        for match in pattern.finditer(text) if seen else ():
            end = end_of(text, match)
            if end is not None:
                yield match.end(), end


def _owners(text: str) -> Iterator[tuple[int, int]]:
    """Yield names next to a person's number; at the start of a sentence, names with a sure surname before an age."""
    if _LONG_NUMBER.search(text):
        yield from _beside_numbers(text)
    for match in _YEARS_OLD.finditer(text) if "岁" in text or "歲" in text else ():
        start = name_before(text, match.start(), LOOSE)
        if (
            start is not None
            and text[start] in known().sure
            and text[max(0, start - 1) : start] in ("", "\n", "。", ";")
        ):
            yield start, match.start()


def _beside_numbers(text: str) -> Iterator[tuple[int, int]]:
    for match in _OWNED.finditer(text):
        start = name_before(text, match.start(), LOOSE)
        if start is not None:
            yield start, match.start()
    for match in _OWNER.finditer(text):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and text[end : end + 1] in (")", "）"):
            yield match.end(), end


def _called(text: str, cue: re.Match[str]) -> int | None:
    start = cue.end()
    if _NO_PERSON.search(text, max(0, cue.start() - 3), cue.start()):
        return None
    end = any_name_at(text, start, LOOSE if cue[0].startswith("叫") else CALLED) or _nick(text, start)
    return end if end is not None or cue[0].startswith("名") else sounds_at(text, start)


def _nick(text: str, start: int) -> int | None:
    """Return the end of a nickname such as 小李, 阿珍 or 乐乐; None for an ordinary word."""
    match = _NICK.match(text, start)
    if match is None or match[0] in known().no_nicks:
        return None
    if not bounded(text, match.end()) and not known().called.after(text, match.end()):
        return None
    last = match[0][1]
    return match.end() if last in known().given | known().sure | known().plain else None


def _family(text: str, cue: re.Match[str]) -> int | None:
    start = cue.end()
    end = start + (2 if text[start : start + 2] in known().compounds else 1)
    if end == start + 1 and text[start:end] not in known().usual:
        return None
    follows = bounded(text, end) or known().titles.after(text, end) or text[end : end + 1] in _AFTER_FAMILY
    return end if follows else None


def _stated(text: str, cue: re.Match[str]) -> int | None:
    start = cue.end()
    if _SEX_OR_AGE.search(text, start, start + _NEAR):
        end = name_at(text, start, AGED)
        if end is not None and _SEX_OR_AGE.match(text, end):
            return end
    if text[start : start + 1] in ("小", "老") and text[start + 1 : start + 2] in known().sure | known().plain:
        known_word = text[start : start + 2] in known().no_nicks
        return start + 2 if bounded(text, start + 2) and not known_word else None
    return foreign_at(text, start) or name_at(text, start, LOOSE)


_WAYS = ((_CALL, "叫名昵", _called), (_FAMILY, "姓", _family), (_STATED, "", _stated))
"""Tuples: pattern, characters of which every matching text has one, function that returns the end of the name."""


# Names after labels of forms: 姓名：张三, 主治医生: 张 三, 联系人张三, 审核：张三、李四.

_ALL = either(lists()["labels.plain"] + lists()["labels.colon"])
_PLAIN = frozenset(lists()["labels.plain"])
"""Labels that may precede a name without a colon."""
_LABEL = re.compile(
    rf"(?P<label>{_ALL})[】\])）]?(?P<colon>[\s\"“_|*]{{0,3}}[:：=][\s\"“_|*]{{0,6}})?(?P<gap>[\s|_（(\[]{{0,3}})"
)
_SPACED = re.compile(rf"([{CJK}])[ .]{{1,4}}([{CJK}])(?:[ .]{{1,4}}(?![男女])([{CJK}]))?(?![{CJK}])")
"""A spaced name, such as 张 三 and 王.小.明."""


_PLACEHOLDER = "[姓名]"
"""A masked name; no further name follows it."""
_OPEN = r"[】\])）］]?"
_FIRST_LABELLED = rf"(?:[{surnames()}]|{LETTER}|[{CJK}]{{1,9}}{DOT}|[A-ZＡ-Ｚ]{DOT})"


def _spaced_pattern(pattern: str) -> str:
    return pattern.replace(re.escape(" "), r"\s")


@trigger(rf"{_spaced_pattern(either(_PLAIN))}{_OPEN}[\s\"“_＿|｜*:：=（(\[［]{{0,12}}{_FIRST_LABELLED}", needs=CHINESE)
@trigger(
    rf"{_spaced_pattern(_ALL)}{_OPEN}[\s\"“_＿|｜*]{{0,3}}[:：=][\s\"“_＿|｜*（(\[［]{{0,9}}{_FIRST_LABELLED}",
    needs=(CHINESE, "[:：=]"),
)
def labelled(text: str) -> list[Span]:
    """Return names after labels of forms and reports, also several names separated by 、 or /."""
    return in_order(_labelled_names(narrow(text)), "name", "name_labelled")


def _labelled_names(text: str) -> Iterator[tuple[int, int]]:
    for match in _LABEL.finditer(text):
        trust = _trust(match)
        start, end = match.end(), _value(text, match.end(), trust) if trust else None
        while end is not None:
            yield start, end
            start = end + 1
            end = name_at(text, start, LOOSE) if text[end : end + 1] in ("、", "/") else None


def _trust(match: re.Match[str]) -> Trust | None:
    if match.string[max(0, match.start() - 1) : match.end("label") + 1] == _PLACEHOLDER and not match["colon"]:
        return None
    if match["label"] not in _PLAIN:
        return COLON if match["colon"] else None
    return FIELD if match["colon"] or match["gap"] else LOOSE


def _value(text: str, start: int, trust: Trust) -> int | None:
    end = any_name_at(text, start, trust)
    if end is None and (match := _SPACED.match(text, start)):
        surname, *given_letters = [letter for letter in match.groups() if letter]
        if surname in known().usual and known().function.isdisjoint(given_letters):
            return match.end()
    return end


# Signatures: names at the end of a letter (——王小明, 此致敬礼 王小明, 王小明敬上).

_WRITER = r"(?:您的|你的|爱你的)?(?:患者|病人|学生|朋友|家属|儿子|女儿)?[:： ]{0,2}"
_CLOSING = r"(?:敬上|谨上|拜上|敬启|谨启|拜谢|叩谢|留言|手书|亲笔)"
_SIGN = re.compile(rf"(?:-{{2,}}|敬[礼禮][!！.。]?|祝好[!！.。,，]?|落款|署名|敬上[:：])[\s:：]{{0,6}}{_WRITER}")
_SIGNED = re.compile(r"\s*(?:$|\n|\d|[。.!！]\s*$)")
_BEFORE = re.compile(rf"[ ,，]{{0,2}}{_CLOSING}")
_THANKS = "(?:谢谢|感谢|拜托|多谢|盼复|謝謝)(?:了|啦|医生|大夫|您|你)?"
_LAST = re.compile(rf"(?:\n[ \t]{{0,8}}|{_THANKS}[!！.。,，~ \n]{{1,4}})(?=[{CJK}])")
_CLOSE = re.compile(r"[ \t]{0,4}[!！.。]?\s{0,6}(?:(?:19|20)?\d\d[-./年]\d{1,2}[-./月]\d{1,2}日?)?\s{0,6}\Z")
_TAIL = 60
"""Maximum number of characters from a name to the end of the text: a date may follow the name."""
_SEEN = rf"[{surnames()}][{CJK}]{{1,3}}"


_BLANK = r"[ \t\u00a0\u2007\u202f\u3000]"
_TAILED = rf"{_SEEN}{_BLANK}{{0,4}}[!！.．。]?[\s\d年月日./．\u2010-\u2015\u2212\uff0d-]{{0,24}}$"


@trigger(_CLOSING)
@trigger(rf"(?:敬[礼禮]|祝好|落款|署名|敬上[:：])[!！.．。,，]?[\s:：]{{0,6}}{_WRITER}\s{{0,2}}{_SEEN}")
@trigger(rf"{RAW_DASH}{{2,}}[\s:：]{{0,6}}{_WRITER}\s{{0,2}}{_SEEN}", needs=(CHINESE, RAW_DASH))
@trigger(rf"\n{_BLANK}{{0,8}}{_TAILED}", needs=(CHINESE, "\n"))
@trigger(rf"[谢謝托复了啦生夫您你][!！.．。,，~\s]{{1,4}}{_TAILED}", needs="[谢謝托盼]")
def signed(text: str) -> list[Span]:
    """Return signatures: names after a long dash or 敬礼, before 敬上, alone in the last line, after final thanks."""
    return in_order(_signed_names(narrow(text)), "name", "name_signed")


def _signed_names(text: str) -> Iterator[tuple[int, int]]:
    for match in _SIGN.finditer(text):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _SIGNED.match(text, end):
            yield match.end(), end
    for match in _BEFORE.finditer(text):
        start = name_before(text, match.start(), COLON)
        if start is not None:
            yield start, match.start()
    for match in _LAST.finditer(text, max(0, len(text) - _TAIL)):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _CLOSE.match(text, end):
            yield match.end(), end
