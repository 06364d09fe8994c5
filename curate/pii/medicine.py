"""What looks like a name and is medicine: drugs, herbs, points, eponyms, and numbers that are compared.

One veto for every recogniser of names and hospitals, by the word lists of medicine.yaml, so that no rule of names has
exceptions of its own for medicine.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from curate.core.records import Span
from curate.pii.patterns import narrow
from curate.pii.person_names.lattice import is_verb, is_word
from curate.pii.person_names.lexicon import is_chinese
from curate.pii.rules import rules
from curate.pii.words import one_of, words

_LABELLED = re.compile(r"(?:叫|[姓真全本]?名字?[是为]?|联系人|签[名字]|落款|署名)[\s:：\"“_|*]{0,6}\Z")
_ON_A_FORM = frozenset(("name_labelled", "name_handle"))
"""Recognisers whose names stand in a field for a name."""
_BEFORE_TITLE = frozenset(("name_titled", "name_called"))
"""Recognisers of names that are told by the title after them."""
_PERSON_FOLLOWS = re.compile(
    r"[\s,，、;；:：/|(（]{0,3}(?:性别[:：]?)?(?:[男女](?![性方])|[0-9]{1,3} ?(?:周?岁|歲|个?月龄))|先生|女士|小姐"
)
"""Sex, age or a form of address directly after a name."""
_TREATED = re.compile(
    r"(?P<verb>[\u4e00-\u9fff]{2})[过为了]?(?:县|镇|乡|村|社区|人民|中心|基层|当地)*(?:医院|卫生[院室所])\Z"
)
"""A verb and a hospital of no name: 接受过社区医院, 确诊为县医院."""
_REST_OF_A_DRUG = 3
"""Number of characters after 阿 and another one in which the rest of a drug's name may begin: 阿托|伐他汀."""


@dataclass(frozen=True)
class _Lexicon:
    """Words and patterns of medicine.yaml."""

    terms: frozenset[str]
    longest_term: int
    names_too: frozenset[str]
    """Terms that are names of people, too."""
    substances: frozenset[str]
    compounds: frozenset[str]
    """The substances without those that people name alone: 孩子王明碘过敏."""
    eponyms: frozenset[str]
    comparator: re.Pattern[str]
    ending: re.Pattern[str]
    eponym_head: re.Pattern[str]
    asked_of_thing: re.Pattern[str]
    unit: re.Pattern[str]
    illness_hospital: re.Pattern[str]
    one_hospital: re.Pattern[str]
    asked_for: re.Pattern[str]
    asked_for_before: re.Pattern[str]


@cache
def _lexicon() -> _Lexicon:
    lists = words("medicine")
    substances, terms = frozenset("".join(lists["substances"])), frozenset((*lists["terms"], *lists["names_too"]))
    public = "".join(f"(?<!{illness})" for illness in lists["public_illnesses"])
    return _Lexicon(
        terms=terms,
        longest_term=max(map(len, terms)),
        names_too=frozenset(lists["names_too"]),
        substances=substances,
        compounds=substances - set("".join(lists["elements"])),
        eponyms=frozenset(lists["eponyms"]),
        comparator=re.compile(
            rf"{one_of(lists['comparators'])}(?:等于|或等于)?[\s约为]{{0,2}}[0-9一二三四五六七八九十百两≤≥<>]"
        ),
        ending=re.compile(one_of(lists["endings"])),
        eponym_head=re.compile(one_of(lists["eponym_heads"])),
        asked_of_thing=re.compile(rf"[^，。,.！？!?\s]{{0,2}}?{one_of(lists['asked_of_things'])}"),
        unit=re.compile(f" ?{one_of(lists['units'])}"),
        illness_hospital=re.compile(
            rf"(?:{rules('places').source('place')})?(?P<organ>[\u4e00-\u9fff]{{0,5}}?){one_of(lists['illnesses'])}{public}医院"
        ),
        one_hospital=re.compile(f"{one_of(lists['one_hospital'], words('institutions')['hospital_names'])}|[0-9]"),
        asked_for=re.compile(f"[的 ,，]{{0,2}}{one_of(lists['asked_for'])}"),
        asked_for_before=re.compile(rf"{one_of(lists['asked_for_before'])}的?\Z"),
    )


def spared(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Yield the spans of a text without names that are medicine, and without hospitals that are none of a name.

    A name that ran into a comparator ends before it.
    """
    narrowed = narrow(text)
    for span in spans:
        if span.recogniser.startswith("name_"):
            end = _before_comparator(narrowed, span)
            whole = end == span.end and end > span.start
            if (whole or end - span.start > 1) and not is_medicine(narrowed, replace(span, end=end)):
                yield replace(span, end=end)
        elif not (span.recogniser.startswith("hospital") and _is_no_hospital(narrowed, span)):
            yield span


def is_medicine(text: str, name: Span) -> bool:
    """Return whether a possible name in a narrowed text is a medicine, a finding, a point, or part of an eponym."""
    start, end, lexicon = name.start, name.end, _lexicon()
    on_form = name.recogniser in _ON_A_FORM or _LABELLED.search(text, max(0, start - 8), start)
    if on_form or not is_chinese(text, start):
        return False
    if (
        _ends_a_word(text, start, end)
        or _is_substance(text, start, end)
        or lexicon.eponym_head.match(text, end)
        or lexicon.asked_of_thing.match(text, end)
    ):
        return True
    if name.recogniser in _BEFORE_TITLE and not text.startswith(" ", end):
        return False
    term, person = _term(text, start, end), _PERSON_FOLLOWS.match(text, end) is not None
    if term is not None and not (person and term in lexicon.names_too):
        return True
    return not person and lexicon.eponyms.issuperset(re.split(r"[^\u3400-\u9fff]+", text[start:end]))


def _is_no_hospital(text: str, hospital: Span) -> bool:
    """Return whether a place and a kind name none (上海类风湿医院, 广州整形医院排行榜), or 305 is a number of weeks."""
    start, end, lexicon = hospital.start, hospital.end, _lexicon()
    if text[start:end].isdecimal():
        return lexicon.unit.match(text, end) is not None
    of_illness = lexicon.illness_hospital.fullmatch(text, start, end)
    if of_illness and (not of_illness["organ"] or is_word(of_illness["organ"])):
        return True
    treated = _TREATED.match(text, start, end) if hospital.recogniser == "hospital" else None
    if treated and is_verb(treated["verb"]):
        return True
    if text[max(0, start - 1) : start] in tuple("和与跟、") or lexicon.one_hospital.search(text, start, end):
        return False
    return bool(lexicon.asked_for.match(text, end) or lexicon.asked_for_before.search(text, max(0, start - 8), start))


def _ends_a_word(text: str, start: int, end: int) -> bool:
    """Return whether a surname is the end of something else: 四君子汤 医生推荐, 305周医生."""
    if text[start - 1 : start].isdecimal() and _lexicon().unit.match(text, start):
        return True
    return end == start + 1 and text.startswith(" ", end) and is_chinese(text, start - 1)


def _before_comparator(text: str, name: Span) -> int:
    """Return the end of a name without the beginning of a comparator that stands before a number: 李明|小于18岁."""
    for position in range(name.start, name.end):
        if position + 2 >= name.end and _lexicon().comparator.match(text, position):
            return position
    return name.end


def _is_substance(text: str, start: int, end: int) -> bool:
    """Return whether a name holds, or goes on in, what names of substances and illnesses are made of: 吉法|酯."""
    lexicon = _lexicon()
    if text[start] == "阿":
        beyond = _REST_OF_A_DRUG
    else:
        word_follows = any(is_word(text[end:stop]) for stop in range(end + 2, end + 5))
        beyond = 0 if word_follows else 2
    last = min(end + beyond, len(text))
    if not (lexicon.substances.isdisjoint(text[start:end]) and lexicon.compounds.isdisjoint(text[end:last])):
        return True
    endings = (lexicon.ending.match(text, position) for position in range(start + 1, last))
    return any(
        ending.end() >= end and (len(ending[0]) > 1 or ending.end() == end > start + 2) for ending in endings if ending
    )


def _term(text: str, start: int, end: int) -> str | None:
    """Return the longest term of medicine that covers a possible name; None without one."""
    lexicon = _lexicon()
    for low in range(max(0, start - 3), start + 1):
        for high in range(min(len(text), low + lexicon.longest_term), end - 1, -1):
            if text[low:high] in lexicon.terms:
                return text[low:high]
    return None
