"""Names of persons that say that they are names: introduced, asked for by a form, signed, written with a dot.

Surnames, titles and words that look like names are in person.yaml; what is a name at a place, in naming.py.
"""

import re
from collections.abc import Callable, Iterator

from curate.pii.naming import (
    AGED,
    CALLED,
    CJK,
    COLON,
    FIELD,
    LOOSE,
    Trust,
    Words,
    bounded,
    is_chinese,
    known,
    lists,
    name_at,
    surnames,
)
from curate.pii.text import narrow, trigger
from curate.records import Span

_SKIP = r"[:：\s\"'“‘「『(]{0,4}"
_FIRST = f"[{surnames()}]"
_GIVEN = f"[{''.join(sorted(known().given))}]"
_DOT = "[·•・‧∙]"


def either(words: list[str]) -> str:
    """Return a pattern of any of the words, the longest first."""
    return "(?:" + "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word))) + ")"


_LETTER = f"[{''.join(sorted(set(lists().foreign.replace(' ', ''))))}]"
_FOREIGN = f"(?:{either(lists().sounds)}|{_LETTER})"
_PERSONS = either(lists().introductions.persons)
_KIN = either(lists().introductions.kin)
_PATIENTS = either(lists().introductions.patients)
_LABELS = either(lists().labels.plain + lists().labels.colon)
_PLAIN_LABELS = frozenset(lists().labels.plain)

_CALL = re.compile(
    rf"(?:{_PERSONS}(?:的(?:名字|姓名|真名|全名|大名|小名))?(?:就|是|也)?(?:叫做|叫作|叫|取名叫|取名|起名叫|起名)"
    r"|(?<![药藥病学别俗书品牌商症])名(?:叫做|叫|为)|[我他她子儿公婆妈爸者](?:的)?(?:名字|姓名|大名|小名|全名|真名)[就]?[是为]"
    rf"|叫我|叫俺|本人姓名|小名|乳名|昵称){_SKIP}"
)
_NO_PERSON = re.compile(r"[药藥病症品菌种剂片丸汤膏素草花术][的]?$")
"""A medicine or a disease is called so, no person: 这种药的名字叫金水宝."""
_SURNAME = re.compile(rf"(?<![百同尊复异改随隐外单双])姓(?:氏?[是为])?{_SKIP}")
_STATE = re.compile(
    rf"(?:(?:我|俺|本人|他|她|医生|大夫|医师|主任|名字|姓名)[就乃]?[是系]|这[里边]?是|本人|(?:主刀|接诊|手术|主治|看病|开药|管床)的(?:医生|大夫)?是|{_PATIENTS}|[我她他的家]{_KIN}){_SKIP}"
)
_LABEL = re.compile(
    rf"(?P<label>{_LABELS})(?P<open>[】\])）]?)(?P<colon>[\s\"“_|*]{{0,3}}[:：=][\s\"“_|*]{{0,6}})?(?P<gap>[\s|_（(\[]{{0,3}})"
)
_SPACED = re.compile(rf"([{CJK}])([ .]{{1,4}})([{CJK}])(?:[ .]{{1,4}}(?![男女])([{CJK}]))?(?![{CJK}])")
_SEX_OR_AGE = re.compile(r"[,，、;； (（]{0,3}(?:性别[:：]?)?(?:[男女]|\d{1,3} ?岁)")
_CASE = re.compile(
    r"[,，、;；\s(（]{1,3}(?:[男女]性?[,，、;；\s]{0,3}\d{1,3} ?(?:岁|周岁|歲)|\d{1,3} ?(?:岁|周岁|歲)[,，、;；\s]{0,3}[男女](?![\u3400-\u9fff]))"
)
_CASE_SEEN = r"[,，、;；\s(（]{1,3}(?:[男女]性?[,，、;；\s]{0,3}\d|\d{1,3}[ \u00a0\u2007\u202f\u3000]?[岁周歲])"
"""张三，男，45岁: how a report of a case begins."""
_DOTTED = re.compile(rf"(?<![《{CJK}]·)(?:{_FOREIGN}{{1,8}}|[A-Z])(?:{_DOT}(?:{_FOREIGN}{{1,9}}|[A-Z]\.?)){{1,3}}")
_ANY_DOTTED = re.compile(rf"[{CJK}]{{1,9}}(?:{_DOT}[{CJK}]{{1,9}}){{1,3}}(?![{CJK}])")
_PEOPLE = either(lists().minority)
_PEOPLES = re.compile(f"{_PEOPLE}{_FOREIGN}{{0,6}}(?![{CJK}·])")
_ABROAD = re.compile(f"{_FOREIGN}{{3,6}}(?![{CJK}·])")
_NICK = re.compile(rf"(?:[小老阿大][{CJK}]|([{CJK}])\1)")
_SIGNED = re.compile(
    r"(?:[—–-]{2,}|[—–]|此致\s{0,4}敬礼[!！.。]?|敬礼[!！.。]|祝好[!！.。]?|落款|署名|敬上[:：])[\s:：]{0,6}(?:您的|你的|爱你的)?(?:患者|病人|学生|朋友|家属|儿子|女儿)?[:： ]{0,2}"
)
_BEFORE_SIGN = re.compile(r"[ ,，]{0,2}(?:敬上|谨上|拜上|敬启|谨启|拜谢|叩谢|留言|手书|亲笔)")
_LAST = re.compile(
    r"(?:\n[ \t]{0,8}|(?:谢谢|感谢|拜托|多谢|盼复|谢谢您|谢谢你|謝謝|感谢您|万分感谢)(?:了|啦|医生|大夫|您|你)?[!！.。,，~ \n]{1,4})(?=[\u3400-\u9fff])"
)
_CLOSE = re.compile(r"[ \t]{0,4}[!！.。]?\s{0,6}(?:(?:19|20)?\d\d[-./年]\d{1,2}[-./月]\d{1,2}日?)?\s{0,6}\Z")


def _found(ends: Iterator[tuple[int, int]], name: str) -> list[Span]:
    """Return spans in their order; of those that overlap the first."""
    spans: list[Span] = []
    for start, end in sorted(set(ends), key=lambda found: (found[0], -found[1])):
        if not spans or start >= spans[-1].end:
            spans.append(Span(start, end, "name", name))
    return spans


def _any_name(text: str, start: int, trust: Trust) -> int | None:
    """Return where a Chinese, minority or foreign name ends that stands where one must stand."""
    if not is_chinese(text, start) and not _DOTTED.match(text, start):
        return None
    if match := _ANY_DOTTED.match(text, start) or _DOTTED.match(text, start) or _PEOPLES.match(text, start):
        return match.end()
    return name_at(text, start, trust)


@trigger(
    rf"叫|名[为是]|名字是|小名|乳名|昵称|本人姓名|{_FIRST}[{CJK}]{{1,3}}{_CASE_SEEN}|姓(?:氏?[是为])?{_SKIP}{_FIRST}|{_STATE.pattern}(?:{_FIRST}{_GIVEN}|[小老]{_FIRST}|{_PEOPLE}|{_FOREIGN}{{1,8}}{_DOT}|[A-Z]{_DOT})"
)
def introduced(text: str) -> list[Span]:
    """Return names after 我叫, 我是, 我姓, 患者, 我女儿 and the like, also 小李 after 叫我; words there stay."""
    text = narrow(text)
    return _found(_introduced(text), "name_introduced")


def _introduced(text: str) -> Iterator[tuple[int, int]]:
    for match in _CALL.finditer(text):
        if _NO_PERSON.search(text, max(0, match.start() - 3), match.start()) is None:
            trust = LOOSE if match[0].startswith("叫") else CALLED
            end = _any_name(text, match.end(), trust) or _nick(text, match.end())
            yield from _spanned(match.end(), end or _abroad(text, match))
    for match in _CASE.finditer(text):
        yield from _ending(text, match.start())
    for match in _SURNAME.finditer(text):
        yield from _spanned(match.end(), _surname(text, match.end()))
    for match in _STATE.finditer(text):
        yield from _spanned(match.end(), _stated(text, match.end()))


def _abroad(text: str, cue: re.Match[str]) -> int | None:
    """Return where a name ends that is written as foreign ones are; what is only named so may be a medicine."""
    match = None if cue[0].startswith("名") else _ABROAD.match(text, cue.end())
    return match.end() if match else None


def _spanned(start: int, end: int | None) -> Iterator[tuple[int, int]]:
    if end is not None:
        yield start, end


def _stated(text: str, start: int) -> int | None:
    end = name_at(text, start, AGED)
    if end is not None and _SEX_OR_AGE.match(text, end):
        return end
    if (
        text[start : start + 1] in ("小", "老")
        and text[start + 1 : start + 2] in known().sure
        and bounded(text, start + 2)
    ):
        return start + 2
    match = _PEOPLES.match(text, start) or _DOTTED.match(text, start)
    return match.end() if match else name_at(text, start, LOOSE)


def _nick(text: str, start: int) -> int | None:
    """Return where 小李, 阿珍 or 乐乐 ends; None if it is a word."""
    match = _NICK.match(text, start)
    if match is None or match[0] in _NO_NICKS:
        return None
    if not bounded(text, match.end()) and not known().called.after(text, match.end()):
        return None
    last = match[0][1]
    surname = last in known().sure or last in known().plain
    return match.end() if last in known().given or surname else None


_NO_NICKS = Words(
    "爸爸 妈妈 爷爷 奶奶 哥哥 姐姐 弟弟 妹妹 叔叔 伯伯 公公 婆婆 姥姥 舅舅 姑姑 宝宝 小心 小时 老师 老公 老婆 大家 大夫 大哥 大姐 大爷 大伯 老大 老二 小三 老板 多多 小便 大便 老人 小孩 小声 大声 天天 年年 常常 好好 慢慢 小姐 大妈 大叔 大娘 小康 大方 阿姨 小白 大小 老小 老实 小朋友".split()
)


def _surname(text: str, start: int) -> int | None:
    length = 2 if text[start : start + 2] in known().compounds else 1
    first = text[start : start + length]
    if length == 1 and first not in known().usual:
        return None
    end = start + length
    if bounded(text, end) or known().titles.after(text, end) or text[end : end + 1] in tuple("的名叫今也是，"):
        return end
    return None


@trigger(rf"{_LABELS}[】\])）]?[\s\"“_|*:：=（(\[]{{0,12}}(?:{_FIRST}|{_FOREIGN}|[{CJK}]{{1,9}}{_DOT})")
def labelled(text: str) -> list[Span]:
    """Return names that a form asks for: 姓名：张三, 主治医生: 张 三, 联系人张三, 审核：张三、李四."""
    return _found(_labelled(narrow(text)), "name_labelled")


def _labelled(text: str) -> Iterator[tuple[int, int]]:
    for match in _LABEL.finditer(text):
        asked = match["label"] in _PLAIN_LABELS
        if not asked and not match["colon"]:
            continue
        trust = (FIELD if match["colon"] or match["gap"] else LOOSE) if asked else COLON
        start, end = match.end(), _value(text, match.end(), trust)
        while end is not None:
            yield start, end
            start = end + 1
            end = name_at(text, start, LOOSE) if text[end : end + 1] in ("、", "/") else None


def _value(text: str, start: int, trust: Trust) -> int | None:
    end = _any_name(text, start, trust)
    if end is None and (match := _SPACED.match(text, start)) and _is_spaced(match):
        return match.end()
    return end


def _is_spaced(match: re.Match[str]) -> bool:
    letters = [letter for letter in match.group(1, 3, 4) if letter]
    first = letters[0] in known().sure or letters[0] in known().plain
    return (first or letters[0] in known().doubtful) and not any(letter in known().function for letter in letters[1:])


@trigger(
    rf"(?:[—–-]|敬礼|敬禮|祝好|落款|署名|敬上|谢|謝|托|盼复|了|啦|医生|大夫|您|你|\n)[\s:：!！.。,，~]{{0,10}}(?:您的|你的|爱你的)?(?:患者|病人|学生|朋友|家属|儿子|女儿)?[:： ]{{0,2}}{_FIRST}[{CJK}]{{1,3}}(?:\s|[!！.。\d\u3000]|$)|{_FIRST}[{CJK}]{{1,3}}[ ,，]{{0,2}}(?:敬上|谨上|拜上|敬启|谨启|拜谢|叩谢|留言|手书|亲笔)"
)
def signed(text: str) -> list[Span]:
    """Return names under a letter: after a long dash, after 此致敬礼, before 敬上, alone in the last line, after the last thanks."""
    text = narrow(text)
    return _found(_signed(text), "name_signed")


def _signed(text: str) -> Iterator[tuple[int, int]]:
    for match in _SIGNED.finditer(text):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and re.compile(r"\s*(?:$|\n|\d|[。.!！]\s*$)").match(text, end):
            yield match.end(), end
    for match in _BEFORE_SIGN.finditer(text):
        yield from _ending(text, match.start())
    for match in _LAST.finditer(text, max(0, len(text) - 60)):
        end = name_at(text, match.end(), LOOSE)
        if end is not None and _CLOSE.match(text, end):
            yield match.end(), end


def _ending(text: str, end: int) -> Iterator[tuple[int, int]]:
    for start in (end - 4, end - 3, end - 2):
        free = start == 0 or (start > 0 and bounded(text, start - 1))
        if free and name_at(text[start:end], 0, LOOSE) == end - start:
            yield start, end
            return


@trigger(rf"(?:{_FOREIGN}|[A-ZＡ-Ｚ]){_DOT}(?:{_FOREIGN}|[A-ZＡ-Ｚ])")
def dotted(text: str) -> list[Span]:
    """Return minority and foreign names in Chinese characters with a dot: 买买提·吐尔逊, 约翰·史密斯; not those of institutions."""
    return [
        Span(match.start(), match.end(), "name", "name_dotted")
        for match in _DOTTED.finditer(narrow(text))
        if len(match[0]) > 3 and _person(match, narrow(text))
    ]


def _person(match: re.Match[str], text: str) -> bool:
    institution = re.compile(either(lists().institutions)).match(text, match.end())
    return (
        institution is None
        and not re.fullmatch(rf"[A-Z.{'·•・‧∙'}]*", match[0])
        and text[match.start() - 1 : match.start()] != "《"
    )


Parser = Callable[[str, int], int | None]
