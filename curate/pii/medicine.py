"""What looks like a name and is medicine: drugs, herbs, points, illnesses called after somebody, and numbers compared.

One veto for every recogniser of names, so that no rule of names has exceptions of its own for medicine.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from curate.core.records import Span
from curate.pii.patterns import narrow
from curate.pii.person_names.lattice import is_verb, is_word
from curate.pii.person_names.lexicon import is_chinese
from curate.pii.recognisers.places import place
from curate.pii.words import longest_first, one_of, words

_LABELLED = re.compile(r"(?:叫|[姓真全本]?名字?[是为]?|联系人|签[名字]|落款|署名)[\s:：\"“_|*]{0,6}\Z")
_SEX_OR_AGE = re.compile(
    r"[\s,，、;；:：/|(（]{0,3}(?:性别[:：]?)?(?:[男女](?![性方])|[0-9]{1,3} ?(?:周?岁|歲|个?月龄))"
)
_BEFORE_TITLE = frozenset(("name_titled", "name_called"))
"""Recognisers of names that are told by the title after them."""
_DONE = re.compile(
    r"(?P<verb>[\u4e00-\u9fff]{2})[过为了]?(?:县|镇|乡|村|社区|人民|中心|基层|当地)*(?:医院|卫生[院室所])\Z"
)
"""A verb and a hospital of no name: 接受过社区医院, 确诊为县医院."""
_SPELT_ON = 3
"""Number of characters after 阿 and another one in which the rest of a drug's name may begin: 阿托|伐他汀."""


def spared(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Yield the spans of a text without names that are medicine and hospitals of a kind.

    A name that ran into a comparator ends before it.
    """
    narrowed = narrow(text)
    for span in spans:
        if span.recogniser.startswith("hospital") and _is_any_hospital(
            narrowed, span.start, span.end, short=span.recogniser == "hospital_short"
        ):
            continue
        if not span.recogniser.startswith("name_"):
            yield span
            continue
        end = _before_comparator(narrowed, span)
        if end - span.start >= 2 - (end == span.end) and not is_medicine(narrowed, span.start, end, span.recogniser):
            yield replace(span, end=end)


def is_medicine(text: str, start: int, end: int, recogniser: str) -> bool:
    """Return whether a possible name in a narrowed text is a medicine, a finding, a point, or part of an eponym."""
    if recogniser in ("name_labelled", "name_handle") or not "\u3400" <= text[start] <= "\u9fff":
        return False
    if _LABELLED.search(text, max(0, start - 8), start):
        return False
    if (
        _ends_a_word(text, start, end)
        or _substance(text, start, end)
        or _eponym(text, start, end)
        or _asked_of_a_thing().match(text, end)
    ):
        return True
    term = _term(text, start, end)
    if term is None or (recogniser in _BEFORE_TITLE and not text.startswith(" ", end)):
        return False
    return term not in _lexicon()[1] or not _SEX_OR_AGE.match(text, end)


def _is_any_hospital(text: str, start: int, end: int, *, short: bool) -> bool:
    """Return whether a place and a kind name no hospital (上海类风湿医院, 广州整形医院排行榜), or 305 is a time."""
    if text[start:end].isdecimal():
        return _unit().match(text, end) is not None
    done = None if short else _DONE.match(text, start, end)
    if _is_of_an_illness(text[start:end]) or (done is not None and is_verb(done["verb"])):
        return True
    if text[max(0, start - 1) : start] in tuple("和与跟、") or _one_hospital().search(text, start, end):
        return False
    return bool(_asked_for().match(text, end) or _asked_for_before().search(text, max(0, start - 8), start))


@cache
def _unit() -> re.Pattern[str]:
    return re.compile(rf" ?{one_of(words('medicine')['units'])}")


def _is_of_an_illness(name: str) -> bool:
    """Return whether a name is a place, an illness and 医院; a town's hospital for tumours is one of a name."""
    match = _illness_hospital().fullmatch(name)
    return match is not None and (not match["organ"] or is_word(match["organ"]))


@cache
def _illness_hospital() -> re.Pattern[str]:
    lists = words("medicine")
    public = "".join(f"(?<!{illness})" for illness in lists["public_illnesses"])
    return re.compile(rf"(?:{place()})?(?P<organ>[\u4e00-\u9fff]{{0,5}}?){one_of(lists['illnesses'])}{public}医院")


@cache
def _one_hospital() -> re.Pattern[str]:
    lists = words("medicine")
    return re.compile(f"{one_of(lists['one_hospital'], words('institutions')['hospital_names'])}|[0-9]")


@cache
def _asked_for() -> re.Pattern[str]:
    return re.compile(rf"[的 ,，]{{0,2}}{one_of(words('medicine')['asked_for'])}")


@cache
def _asked_for_before() -> re.Pattern[str]:
    return re.compile(rf"{one_of(words('medicine')['asked_for_before'])}的?\Z")


def _ends_a_word(text: str, start: int, end: int) -> bool:
    """Return whether a surname is the end of something else: 四君子汤 医生推荐, 305周医生."""
    if text[start - 1 : start].isdecimal() and _unit().match(text, start):
        return True
    return end == start + 1 and text.startswith(" ", end) and is_chinese(text, start - 1)


def _before_comparator(text: str, span: Span) -> int:
    """Return the end of a name without the beginning of a comparator that stands before a number: 李明|小于18岁."""
    for position in range(span.start, span.end):
        if _comparator().match(text, position) and position + 1 >= span.end - 1:
            return position
    return span.end


@cache
def _comparator() -> re.Pattern[str]:
    return re.compile(
        rf"{one_of(words('medicine')['comparators'])}(?:等于|或等于)?[\s约为]{{0,2}}[0-9一二三四五六七八九十百两≤≥<>]"
    )


def _substance(text: str, start: int, end: int) -> bool:
    """Return whether a name, or 阿 and what follows it, holds what names of substances and illnesses are made of."""
    beyond = (
        _SPELT_ON if text[start] == "阿" else 2 * (not any(is_word(text[end:stop]) for stop in range(end + 2, end + 5)))
    )
    last = min(end + beyond, len(text))
    if not _substances().isdisjoint(text[start:end]) or (last > end and _spelt_on(text[end:last])):
        return True
    found = (_ending().match(text, position) for position in range(start + 1, last))
    return any(match.end() >= end and (len(match[0]) > 1 or match.end() == end > start + 2) for match in found if match)


def _spelt_on(rest: str) -> bool:
    """Return whether what follows a name goes on in the name of a substance, as in 吉法|酯."""
    return not (_substances() - set("".join(words("medicine")["elements"]))).isdisjoint(rest)


@cache
def _substances() -> frozenset[str]:
    return frozenset("".join(words("medicine")["substances"]))


@cache
def _asked_of_a_thing() -> re.Pattern[str]:
    return re.compile(f"[^，。,.！？!?\\s]{{0,2}}?{one_of(words('medicine')['asked_of_things'])}")


@cache
def _ending() -> re.Pattern[str]:
    return re.compile(one_of(words("medicine")["endings"]))


def _eponym(text: str, start: int, end: int) -> bool:
    """Return whether a name is that of a discoverer: a listed one, or one that a word such as 综合征 follows."""
    parts = re.split(r"[^\u3400-\u9fff]+", text[start:end])
    return _heads().match(text, end) is not None or all(part in _lexicon()[2] for part in parts)


@cache
def _heads() -> re.Pattern[str]:
    return re.compile(one_of(words("medicine")["eponym_heads"]))


def _term(text: str, start: int, end: int) -> str | None:
    """Return the longest term of medicine that covers a possible name; None without one."""
    terms, longest = _lexicon()[0], _longest_term()
    for low in range(max(0, start - 3), start + 1):
        for high in range(min(len(text), low + longest), end - 1, -1):
            if text[low:high] in terms:
                return text[low:high]
    return None


@cache
def _lexicon() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the terms of medicine, those that are names of people too, and the persons of eponyms."""
    lists = words("medicine")
    return frozenset((*lists["terms"], *lists["names_too"])), frozenset(lists["names_too"]), frozenset(lists["eponyms"])


@cache
def _longest_term() -> int:
    return len(longest_first(_lexicon()[0])[0])
