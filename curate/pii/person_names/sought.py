"""Trigger patterns of names in free text, which exclude most texts by one automaton."""

from collections.abc import Iterable

from curate.pii.person_names.evidence import LISTS, characters, groups, never, scarce, weight
from curate.pii.person_names.lexicon import CJK, known, titles
from curate.pii.words import either

LEADS = 3.5
"""Minimum weight of a preceding word that permits any word after a nickname."""
_CLASSES = tuple("为為系是名")
_FRONT, _BEHIND = groups("front"), groups("behind")
CUE_WORDS = [word for group in ("label", "kin", "role") for word in _FRONT[group] if word not in _CLASSES]
TITLE_WORDS = [word for group in ("title", "short", "family") for word in _BEHIND[group]]


def _class(characters: Iterable[str]) -> str:
    """Return a character class with ranges, so that the automaton stays small."""
    codes = sorted(set(map(ord, characters)))
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in ranges)


_FIRST = {*known().usual, *characters("rare"), *(word[0] for word in known().compounds)}
_SURNAME = f"[{_class(_FIRST)}]"
_EVERYDAY = known().rare - _FIRST
"""Surnames that are everyday characters; accepted only at the start of a clause or after a leading word."""
_NONE = never()
GIVEN = f"[\u3400-\u4dbf{_class(letter for letter in map(chr, range(0x4E00, 0xA000)) if letter not in _NONE)}]"
"""A possible character of a given name; excludes characters that no name has, for fewer candidates."""
_BLANK = "[ \u00a0\u3000]?"
_LASTS = _class("".join(word[-1] for group in _FRONT.values() for word in group))
_FIRSTS = _class("".join(word[0] for group in _BEHIND.values() for word in group))
_FREE, _ENDED = f"(?:^|[^{CJK}]|[{_LASTS}])", f"(?:$|[^{CJK}]|[{_FIRSTS}])"
_SIGNS = '[\\s:：,，、(（)）\\["“@＠]{0,3}'

OFTEN = ("患者", "病人", "就是", "医生", "麻醉")
"""Frequent beginnings of sentences; after them, without a sign, only the surest surnames are searched."""
_SURE = f"[{_class(known().sure)}]"
LED = (
    f"{either(word for word in CUE_WORDS if word not in OFTEN)}{_SIGNS}{_SURNAME}{GIVEN}"
    f"|{either(OFTEN)}(?:[:：(（]{_SURNAME}|{_SIGNS}{_SURE}){GIVEN}"
)
KIN_WORDS = sorted(_FRONT["kin"], key=lambda word: (-len(word), word))
AFTER_KIN = f"(?:{either(LISTS['called'])}|[{_class(''.join(LISTS['homely']))}]{{2}})"
DOUBLED = f"{either(_FRONT['kin'])}{_SIGNS}{either(LISTS['doubled'])}"
GIVEN_ALONE = f"{either(KIN_WORDS)}{AFTER_KIN}"
LED_OR_KIN = f"{LED}|{DOUBLED}|{GIVEN_ALONE}"
"""Trigger of all three patterns, searched in one scan."""

SCARCE = f"[{_class(scarce())}]"
BEFORE_SCARCE = f"{_SURNAME}{GIVEN}?{SCARCE}"

_LIKELY = f"[{_class(''.join(known().sure | known().plain))}]"
_ALONE = either(_BEHIND["title"], titles("doctors", "people"))
_EVERY = either(TITLE_WORDS, titles("doctors", "people", "kin", "one"))
ANY_TITLE = f"[{_class(_FIRST | _EVERYDAY)}](?:{GIVEN}{{0,3}}|[{CJK}]){_BLANK}{_EVERY}"
BEFORE_TITLE = (
    f"(?:{_SURNAME}|{either(known().compounds)})(?:{_BLANK}{_ALONE}|{GIVEN}{{1,3}}{_BLANK}{_EVERY})"
    f"|{_SURE}(?:[{CJK}]{_ALONE}|{either(titles('one'))})"
    f"|{_LIKELY}{either(_BEHIND['short'])}|{_SURNAME}[{characters('kindred')}]"
)
"""Narrower than `ANY_TITLE`, the faster scan that must match first."""
EVERYDAY_BEFORE_TITLE = f"{_FREE}[{_class(_EVERYDAY)}]{GIVEN}{{0,3}}{_BLANK}{_EVERY}"

_SEX = r"[男女](?:[\s,，、;；|/(（。.0-9０-９]|$)"
SEX_OR_YEARS = f"[岁歲]|月龄|{_SEX}"
BEFORE_AGE = (
    rf"{_FREE}[{_class(_FIRST | _EVERYDAY)}]{GIVEN}{{1,3}}[\s,，、;；:：/|(（]{{0,3}}(?:性别[:：]?)?"
    rf"(?:{_SEX}|[0-9０-９]{{1,3}}\s?(?:周?岁|歲|个?月龄))"
)
_STRONG = _class(word[-1] for group, listed in _FRONT.items() if weight(f"front.{group}") >= LEADS for word in listed)
_NICK = f"(?:[小老][{_class(known().usual | set(characters('rare')))}]|[小阿][{_class(known().given)}])"
NICK = f'{_FREE}{_NICK}{_ENDED}|[{_STRONG}][\\s:：,，、(（@＠"“]{{0,3}}{_NICK}'
SEPARATOR = "[ \u00a0\u3000]?[·•・‧∙･⋅˙●ㆍ.．=＝_＿ \u2010-\u2015\u2212\uff0d\u00a0\u3000-][ \u00a0\u3000]?"
SEPARATED = f"[{CJK}]{SEPARATOR}[{CJK}]"
"""Two Chinese characters with a space or another separator between them."""
