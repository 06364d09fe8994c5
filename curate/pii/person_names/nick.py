"""Nicknames in free text: 老高 and 阿珍, weighed against words such as 小时 and 老是; 婷婷 after a kinship word."""

import re
from collections.abc import Iterator

from curate.core.records import Span
from curate.pii.patterns import CHINESE, narrow, trigger
from curate.pii.person_names.evidence import LISTS, around, ordinary
from curate.pii.person_names.lattice import is_word
from curate.pii.person_names.lexicon import CJK, known
from curate.pii.person_names.sought import DOUBLED, LEADS, LED_OR_KIN, NICK
from curate.pii.person_names.weights import behind, front, gain, given_weight, surname_weight
from curate.pii.spans import behind_found, in_order

_NICK = -7.5
"""Log probability of a nickname in place of a word."""
_NICK_BAR, _WORD_BAR = 4.3, 5.0
"""Minimum total weight of a nickname; the second value is for one that is also a word."""
_OWNED = 1.5
"""Additional weight of a preceding kinship word with a possessive (我弟, 她儿子)."""
_GIVEN_LESS = 4.0
"""Penalty of nicknames made from given names: 小敏 and 阿珍 are rarer than 小王."""
_PREFIXED = re.compile(rf"[小老阿](?=[{CJK}])")
_DOUBLED = re.compile(rf"([{CJK}])\1(?!\1)")
_AT_HOME = frozenset(LISTS["doubled"])
_FAMILY = ("女", "子", "家")
"""Characters that exclude a nickname if they follow it: 小孙女 is a granddaughter, 小王子 a prince, 小马家 a brand."""


@trigger(DOUBLED, needs=(CHINESE, LED_OR_KIN))
@trigger(NICK, needs="[小老阿]")
def nick(text: str) -> list[Span]:
    """Return nicknames such as 老高 and 小黄, if a clause boundary, a person's role or a verb indicates a person."""
    text = narrow(text)
    return in_order([*_prefixed(text), *_doubled(text)], "name", "name_nick")


def _prefixed(text: str) -> Iterator[tuple[int, int]]:
    last_end = -1
    for match in _PREFIXED.finditer(text):
        start, end = match.start(), match.end() + 1
        weight = _nick_weight(text[start], text[start + 1])
        if (
            weight is None
            or text[start:end] in known().no_nicks
            or text[end : end + 1] in _FAMILY[: 2 if match[0] == "老" else 3]
        ):
            continue
        seen, less = behind_found(text, start) if start == last_end else (text, 0)
        if _vouched(seen, start - less, end - less, _NICK + weight):
            last_end = end
            yield start, end


def _nick_weight(prefix: str, letter: str) -> float | None:
    surname = surname_weight(letter) if prefix != "阿" else None
    if prefix == "老":
        return surname
    as_given = given_weight(letter) if letter in known().given else None
    if as_given is not None:
        as_given -= _GIVEN_LESS
    return max((weight for weight in (surname, as_given) if weight is not None), default=None)


def _vouched(text: str, start: int, end: int, weight: float) -> bool:
    before, after = front(text, start), behind(text, end)
    word = text[start:end] in ordinary()
    if before <= 0 or (word and after < 4 and before < LEADS) or (after <= 0 and before < LEADS):
        return False
    name = text[start:end]
    is_adverb = name[0] == name[1] and is_word(name)  # as 毛毛 and 静静 are
    owned = _OWNED * (not is_adverb and around().owned(text, start))
    return gain(text, start, end, weight) + before + after + owned >= (_WORD_BAR if word else _NICK_BAR)


def _doubled(text: str) -> Iterator[tuple[int, int]]:
    for match in _DOUBLED.finditer(text):
        kin = around().kin.before(text, match.start())
        if not kin or match[0] not in _AT_HOME:
            continue
        if _vouched(text, *match.span(), _NICK - 8):
            yield match.span()
