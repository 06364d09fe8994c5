"""Names in free text that nothing announces: nicknames, names of scarce characters, spaced names."""

from collections.abc import Iterator

from curate.pii.patterns import narrow
from curate.pii.person_names.evidence import LEADS, LISTS, PATTERN, RULES, around, ordinary
from curate.pii.person_names.lattice import is_word, lattice, single
from curate.pii.person_names.lexicon import is_chinese, known, surnames
from curate.pii.person_names.weights import (
    NAME,
    behind,
    behind_word,
    front,
    full,
    gain,
    given_weight,
    run_at,
    surname_weight,
)
from curate.pii.rules import RuleRecogniser
from curate.pii.spans import behind_found

# Nicknames in free text: 老高 and 阿珍, weighed against words such as 小时 and 老是; 婷婷 after a kinship word.

_NICK = -7.5
"""Log probability of a nickname in place of a word."""
_NICK_BAR, _WORD_BAR = 4.3, 5.0
"""Minimum total weight of a nickname; the second value is for one that is also a word."""
_OWNED = 1.5
"""Additional weight of a preceding kinship word with a possessive (我弟, 她儿子)."""
_GIVEN_LESS = 4.0
"""Penalty of nicknames made from given names: 小敏 and 阿珍 are rarer than 小王."""
_AT_HOME = frozenset(LISTS["doubled"])
_FAMILY = ("女", "子", "家")
"""Characters that exclude a nickname if they follow it: 小孙女 is a granddaughter, 小王子 a prince, 小马家 a brand."""


def _nick(original: str) -> Iterator[tuple[int, int]]:
    text = narrow(original)
    yield from _prefixed(text)
    yield from _doubled(text)


name_nick = RuleRecogniser(RULES, "name_nick", _nick)


def _prefixed(text: str) -> Iterator[tuple[int, int]]:
    last_end = -1
    for match in PATTERN("prefixed").finditer(text):
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
    for match in PATTERN("doubled").finditer(text):
        kin = around().kin.before(text, match.start())
        if not kin or match[0] not in _AT_HOME:
            continue
        if _vouched(text, *match.span(), _NICK - 8):
            yield match.span()


# Names in free text with a character that is scarce outside names: 刘燚说, 高祎的片子; no title or label needed.

_SCARCE_BAR = 5.5
"""Minimum total weight of characters and context."""
_GAIN = 0.5
"""Minimum gain of the characters alone over ordinary words."""
_FIRST = frozenset(surnames())


def _scarce(original: str) -> Iterator[tuple[int, int]]:
    text, last_end = narrow(original), 0
    for match in PATTERN("scarce").finditer(text):
        if match.start() < last_end or text[match.start() - 1 : match.end()] in known().compounds:
            continue
        best = max(_weighed(text, match.start(), last_end), default=None)
        if best is not None:
            _, start, last_end = best
            yield start, last_end


def _weighed(text: str, position: int, last_end: int) -> Iterator[tuple[float, int, int]]:
    """Yield (weight, start, end) of the names around a scarce character that reach the minimum weight."""
    for start in range(max(last_end, position - 3), position):
        if text[start] not in _FIRST:
            continue
        seen, less = behind_found(text, start) if start == last_end else (text, 0)
        for end in range(position + 1, min(position + 3, len(text) + 1)):
            is_run = all(is_chinese(text, index) for index in range(start, end))
            weights = full(seen, start - less, end - less) if is_run else None
            if weights is not None and weights.front >= 0 and weights.gain >= _GAIN and weights.total >= _SCARCE_BAR:
                yield weights.total, start, end


name_scarce = RuleRecogniser(RULES, "name_scarce", _scarce)

# Spaced names in free text: 张 小明 with any white space, weighed against words such as 白 细胞 and 高 血压.

_SPACED_BAR = 3.5
_ALONE = 3.0
"""Weight of a surname between a boundary and a space, where a single character is rarely a word."""
_INSIDE = 4.0
"""Penalty of a surname that ends a word, as in 麻醉医师 雷崟."""
_SPREAD = 4.0
"""Penalty if all characters are separated by spaces, as in tables and headings."""


def _spaced(original: str) -> Iterator[tuple[int, int]]:
    text, last_end = narrow(original), -1
    for match in PATTERN("spaced").finditer(text):
        for length in (1, 2):
            start, end = match.end("surname") - length, match.end("given")
            seen, less = behind_found(text, start) if start == last_end else (text, 0)
            offsets = (offset - less for offset in (start, match.end("surname"), match.start("given"), end))
            if start >= match.start() and _spaced_weight(seen, *offsets) >= _SPACED_BAR:
                last_end = end
                yield start, end
                break


def _spaced_weight(text: str, start: int, middle: int, given_start: int, end: int) -> float:
    """Return the weight of a name; minus infinity if a part cannot be one."""
    first, second = surname_weight(text[start:middle]), given_weight(text[given_start:end].replace(" ", ""))
    if first is None or second is None:
        return float("-inf")
    left, right = run_at(text, start)[0], run_at(text, given_start)[1]
    before, after = lattice(text[left:middle]), lattice(text[given_start:right])
    gained = before.gain(start - left, middle - left, NAME + first)
    gained -= _INSIDE * (middle - start == 1 and behind_word(text, middle))
    if " " in text[given_start:end]:
        gained += second - sum(single(letter) for letter in text[given_start:end] if letter != " ") - _SPREAD
    else:
        gained += after.gain(0, end - given_start, second)
    apart = start == 0 or not is_chinese(text, start - 1)
    return gained + (_ALONE if apart else 0.0) + front(text, start) + behind(text, end)


name_spaced = RuleRecogniser(RULES, "name_spaced", _spaced)
