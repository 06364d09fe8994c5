"""Names in Latin letters, English or pinyin, that a word calls names: Dr. Smith, 我叫Linda, Wang Xiaoming医生."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.digits import TWO_SIGNS
from curate.pii.person_names.words import lists, titles
from curate.pii.spans import in_order
from curate.pii.text import narrow, trigger
from curate.pii.words import either

_WORD = r"[A-Z][a-z]{1,15}(?:[-'][A-Z]?[a-z]{2,15})?"
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
    rf"|[A-Za-z]\s?{_TITLES}|[\uff21-\uff3a\uff41-\uff5a]",
    needs=TWO_SIGNS,
)
def latin(text: str) -> list[Span]:
    """Return names in Latin letters after My name is, 我叫, Dr., Name:, and before 医生, 女士 and the like."""
    return in_order(_places(narrow(text)), "name", "name_latin")


def _places(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_ASKED, _SMALL, _CAPITALS, _CALLED, _CLOSED, _TITLED):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastindex or 1)
            words = text[start:end].split()
            if words[0] not in _NOT and words[0].capitalize() not in _NOT and _EPONYMS.isdisjoint(words):
                yield start, end
    for match in _STATED.finditer(text):
        if _known(match[1].split()):
            yield match.span(1)


def _known(words: list[str]) -> bool:
    """Say whether the words begin with a given name of the list, or are a surname and a given name in pinyin."""
    return words[0] in _GIVEN or (len(words) == 2 and not _SURNAMES.isdisjoint(words) and _NOT.isdisjoint(words))
