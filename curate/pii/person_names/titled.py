"""Names with a title or an introduction: Dr. Smith, 我叫Linda, 王医生, 张三主任医师, 老王."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, FULL_WIDTH, TWO_SIGNS, narrow, trigger
from curate.pii.person_names.evidence import around
from curate.pii.person_names.lexicon import (
    CJK,
    WordList,
    bounded,
    common,
    is_chinese,
    is_word,
    known,
    lists,
    surnames,
    titles,
)
from curate.pii.person_names.sought import ANY_TITLE, BEFORE_TITLE
from curate.pii.spans import in_order
from curate.pii.words import either

_WORD = r"(?:[OD]['’][A-Z][a-z]{1,15}|(?:Mc)?[A-Z][a-z]{1,15}(?:[-'][A-Z]?[a-z]{2,15})?)"
_NAME = rf"(?:[A-Z]\. ?){{0,2}}{_WORD}(?: (?:[A-Z]\. ?)?{_WORD}(?! ?[:：])){{0,2}}"
_TITLES = either(titles("doctors", "people"))
_NOT = frozenset(lists()["latin.no_names"])
_SURNAMES = frozenset(lists()["latin.surnames"])
_EPONYMS = frozenset(lists()["latin.eponyms"])
_GIVEN = frozenset(lists()["latin.given"])
_END = r"(?![A-Za-z0-9])"

_CUES = (
    r"(?:(?:我|名字|名|他|她|孩子|儿子|女儿|老公|老婆)就?叫|叫我|名字[是为:]|姓名[:：]?|英文名[是叫:]?"
    r"|联系人[:：]|患者[:：]|医生[:：]|签名[:：])"
)
_ENGLISH = (
    r"(?<![A-Za-z])(?:[Mm]y name(?: is|'s|’s)|(?:[Pp]atient(?:'s)? |[Ff]ull )[Nn]ame ?:|(?<![A-Za-z] )[Nn]ame[\"']? ?:"
    r"|[Cc]all me|[Ss]igned ?:?|[Ss]ignature ?:|(?:[Bb]est |[Kk]ind )?[Rr]egards,|[Ss]incerely,)"
)
_ASKED = re.compile(rf"(?:{_CUES}|{_ENGLISH})[ :：\n\"']{{0,3}}({_NAME}){_END}")
_SMALL = re.compile(
    rf"(?:我叫|名叫|叫我|名字叫|名字是|姓名[:：])[ :：]{{0,2}}([a-z]{{3,12}}(?: [a-z]{{2,12}})?){_END}"
    r"(?=[,，.。;；!！、\s]|$)"
)
_CAPITALS = re.compile(rf"(?:姓名|NAME|Name) ?[:：] ?([A-Z]{{2,12}},? [A-Z]{{2,12}}){_END}")
_STATED = re.compile(
    rf"(?:我是|这是|这里是|本人|患者|(?<![A-Za-z])(?:I am|I'm|I’m|[Tt]his is|[Pp]atient ?:)) ?"
    rf"({_WORD}(?: {_WORD})?){_END}"
)
_CALLED = re.compile(
    rf"(?<![A-Za-z])(?:Dr|Mr|Mrs|Ms|Miss|Prof|Professor|DR|MR|MRS|dr|mr|mrs)(?:\. ?| )({_NAME}){_END}"
    rf"|(?<![A-Za-z])(?:Dr|Mr|Mrs|Ms)({_WORD}){_END}"
)
_CLOSED = re.compile(rf"(?:Best(?: wishes)?|Thanks|Thank you|Cheers|Yours(?: truly)?),? ?\n ?({_NAME})[ .]?(?=\n|$)")
_TITLED = re.compile(rf"(?<![A-Za-z0-9.-])({_NAME}) ?(?={_TITLES})")


@trigger(
    r"叫|名字[是为]|姓名|英文名|(?:我是|这是|这里是|本人|患者)\s?[A-Z]|(?:联系人|患者|医生|签名)[:：]\s{0,3}[A-Z]"
    r"|[Nn]ame[\"']?\s?[:：]|NAME|[Nn]ame\sis|[Nn]ame['’]s|[Cc]all\sme|[Ss]igned|[Ss]ignature|[Rr]egards,|[Ss]incerely,"
    r"|(?:[Bb]est|[Ww]ishes|[Tt]hanks|[Yy]ou|[Cc]heers|[Yy]ours|truly),? ?\n ?[A-Z]"
    r"|(?:I\sam|I['’]m|[Tt]his\sis|[Pp]atient\s?[:：])\s?[A-Z]"
    r"|(?:[DdMm]r|DR|MR|MRS|[Mm]rs|Ms|Miss|Prof|Professor)(?:\.\s?|\s)[A-Z]|(?:Dr|Mr|Mrs|Ms)[A-Z]"
    rf"|[A-Za-z]\s?{_TITLES}|{FULL_WIDTH}",
    needs=TWO_SIGNS,
)
def latin(text: str) -> list[Span]:
    """Return Latin names after cues such as My name is, 我叫, Dr. and Name:, before titles such as 医生, 女士."""
    return in_order(_name_extents(narrow(text)), "name", "name_latin")


def _name_extents(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_ASKED, _SMALL, _CAPITALS, _CALLED, _CLOSED, _TITLED):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastindex or 1)
            words = text[start:end].split()
            if words[0] not in _NOT and words[0].capitalize() not in _NOT and _EPONYMS.isdisjoint(words):
                yield start, end
    for match in _STATED.finditer(text):
        words = match[1].split()
        # a listed given name, or a surname and a given name in pinyin
        if words[0] in _GIVEN or (len(words) == 2 and not _SURNAMES.isdisjoint(words) and _NOT.isdisjoint(words)):
            yield match.span(1)


# Names that show by a title after them, 王医生 and 张三主任医师, or by 老 and 小 before them.

_TITLE = re.compile(either(titles("doctors", "people", "kin", "one")))
_KIN = frozenset(titles("kin"))
_ONE = frozenset(titles("one"))
_FIRST = frozenset(surnames())
_SPLITS = ((2, 2), (2, 1), (2, 0), (1, 2), (1, 1), (1, 0))
"""Lengths of surname and given name, in the order of the attempts."""
_LEADERS, _CALLS = WordList(lists()["leaders"]), WordList(lists()["calls"])
_PLAIN_COMPOUNDS = frozenset(lists()["compounds.plain"])
_GREETED = re.compile(r"[,，、!！ ]{0,2}(?:您好|你好|好[,，!！。]|[:：])")
_SAID = re.compile(r"[说您你好的也在和今是让给帮告就]")
_FAMILIAR = re.compile(rf"[小老](?=[{CJK}])")


@trigger(BEFORE_TITLE, needs=(CHINESE, ANY_TITLE))
def titled(text: str) -> list[Span]:
    """Return names before a title, without it: 王医生, 欧阳教授, 王小明同学; surnames that are words need context."""
    text = narrow(text)
    spans: list[Span] = []
    for match in _TITLE.finditer(text):
        if _FIRST.isdisjoint(text[max(0, match.start() - 4) : match.start()]):
            continue
        start = _start(text, match.start(), match[0])
        if start is not None and (not spans or start >= spans[-1].end):
            spans.append(Span(start, match.start(), "name", "name_titled"))
    return spans


def _start(text: str, end: int, title: str) -> int | None:
    for surname_length, given_length in _SPLITS:
        start = end - surname_length - given_length
        if (
            start >= 0
            and _is_full_name(text, start, surname_length, end)
            and _stands(text, start, surname_length, end, title)
        ):
            return start
    return None


def _is_full_name(text: str, start: int, surname: int, end: int) -> bool:
    """Return whether a piece is a surname and a given name of common characters, and not a word."""
    first = text[start : start + surname]
    if surname == 2 and first not in known().compounds:
        return False
    if surname == 1 and first not in known().usual:
        return False
    if not _is_given_name(text, start, start + surname, end) or is_word(text, start, end):
        return False
    if surname == 2:
        return True
    pair = first not in known().sure and text[start + 1 : start + 2] in known().sure and end > start + 1
    return not pair and not known().endings.before(text, start + 1)


def _is_given_name(text: str, start: int, middle: int, end: int) -> bool:
    """Return whether `middle` to `end` is a given name.

    After a sure surname with evidence, any single character is one.
    """
    given_name = text[middle:end]
    if common(given_name):
        return True
    odd = (
        len(given_name) == 1
        and text[start] in known().sure
        and is_chinese(text, middle)
        and given_name not in known().function
    )
    return odd and _has_lead(text, start)


def _has_lead(text: str, start: int) -> bool:
    free = start == 0 or (bounded(text, start - 1) and not text[start - 1].isdigit())
    return free or bool(_LEADERS.before(text, start))


def _stands(text: str, start: int, surname: int, end: int, title: str) -> bool:
    """Return whether title and context indicate that a possible surname, or full name, is a name."""
    alone = end == start + surname
    after = end + len(title)
    if alone and title in _KIN:
        return False
    free = start == 0 or (bounded(text, start - 1) and not text[start - 1].isdigit())
    led = _has_lead(text, start)
    first = text[start : start + surname]
    if title in _ONE:
        return (
            led and alone and first in known().sure and (bounded(text, after) or _SAID.match(text, after) is not None)
        )
    if first in known().sure or (surname == 2 and first not in _PLAIN_COMPOUNDS):
        return True
    if first in known().doubtful and around().asked.after(text, after):
        return False
    if first in known().doubtful:
        called = bool(_CALLS.before(text, start))
        return called or (free and (not alone or _GREETED.match(text, after) is not None))
    return led


@trigger(rf"[小老][{''.join(sorted(known().sure))}]")
def familiar(text: str) -> list[Span]:
    """Return names such as 老王 and 小张 between a boundary and a boundary or a word such as 说."""
    text = narrow(text)
    return [
        Span(match.start(), match.start() + 2, "name", "name_familiar")
        for match in _FAMILIAR.finditer(text)
        if _stands_alone(text, match.start())
    ]


def _stands_alone(text: str, start: int) -> bool:
    end = start + 2
    if text[start + 1] not in known().sure or known().endings.before(text, end) or text[start:end] in known().endings:
        return False
    if start and is_chinese(text, start - 1) and not _LEADERS.before(text, start):
        return False
    if text[end : end + 1] in ("女", "子", "家"):
        return False
    return bounded(text, end) or known().called.after(text, end) > 0
