"""Short names of hospitals, recognised by the words before, after and near them.

The words have weights, read from institutions_short.yaml.
"""

from collections.abc import Iterator
from functools import cache

from curate.pii.rules import RuleRecogniser, rules
from curate.pii.spans import behind_found
from curate.pii.words import fold
from curate.pii.words import words as word_lists

_PATTERN = rules("institutions_short").pattern
_LISTS = word_lists("institutions_short")
ENOUGH = int(_LISTS["enough"][0])
"""Minimum total weight of a name and its context."""


@cache
def weights(name: str) -> dict[str, int]:
    """Return word -> weight of a weighted list."""
    keys = sorted(key for key in _LISTS if key.startswith(f"{name}."))
    return {word: int(key[-1]) for key in keys for word in _LISTS[key]}


@cache
def words(name: str) -> frozenset[str]:
    """Return the words of a list without weights."""
    return frozenset(_LISTS[name])


_DEPARTMENT, _UNIT, _DONE = 3, 2, 1
"""Weights after a name: of a department, of a department without 科 or a doctor's name, and of a treatment."""
_NO_MORE = 3
"""Maximum number of words after a name that are examined."""
_NEAR = 12
"""Number of characters around a name that are examined."""


def in_front(text: str, start: int) -> int:
    """Return the weight of the word directly before a name; 0 for other words."""
    shorter = start - (text[max(0, start - 1) : start] in ("了", "过"))
    words_in_front = (text[max(0, end - reach) : end] for end in (start, shorter) for reach in range(1, 5))
    return max(weights("front").get(word, 0) for word in words_in_front)


def brought(text: str, start: int, end: int) -> bool:
    """Return whether the words around a place say that a person was brought there (`送浙二了`)."""
    return text.startswith(("了", "去", "抢救"), end) and text.endswith(tuple(words("brought")), 0, start)


def behind(text: str, end: int) -> int:
    """Return the total weight of the words directly after a name."""
    total = 0
    for _ in range(_NO_MORE):
        match = _PATTERN("behind").match(text, end)
        if not match:
            break
        if match["word"]:
            total += weights("behind")[match["word"]]
        else:
            total += _DEPARTMENT if match["department"] else _UNIT if match["unit"] else _DONE
        end = match.end()
    return total


def near(text: str, start: int, end: int) -> int:
    """Return 1 if the rest of the sentence has words of treatment or a disease, or another hospital; else 0."""
    around = _sentence_around(text, start, end)
    return int(any(map(_PATTERN("cure").search, around)) or any(map(_PATTERN("other").search, around)))


def counts(text: str, start: int, end: int) -> bool:
    """Return whether a number that looks like a hospital's is that of a room, or a measured value."""
    before, after = _sentence_around(text, start, end)
    return bool(_PATTERN("room").search(before) or _PATTERN("room").search(after) or _PATTERN("value").search(before))


def _sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    sentence_end = _PATTERN("sentence_end")
    return sentence_end.split(text[max(0, start - _NEAR) : start])[-1], sentence_end.split(text[end : end + _NEAR])[0]


# Short names of hospitals: `我爸在省立做的支架`, `三〇一的专家`, `市一院拍的片`.

_BEFORE = "".join(words("before"))
_NUMBERED = {"four": 4, "three": 3, "two": 2, "one": 1}
"""Group of the pattern of numbered names -> their weight."""


def _weight(name: str) -> int:
    """Return the weight of a name without context; 0 if it is unknown."""
    if name in weights("names"):
        return weights("names")[name] - (name in words("doubtful"))
    numbered = _PATTERN("numbered_name").match(name)
    return _NUMBERED[str(numbered.lastgroup)] if numbered else 0


def _can_begin(text: str, start: int) -> bool:
    """Return whether a name can begin at `start`: not inside a word or a number."""
    preceding = text[max(0, start - 1) : start]
    if text[start].isdigit() and ((preceding.isalnum() and preceding.isascii()) or preceding in tuple("第号编.:-/")):
        return False
    return not "一" <= preceding <= "龥" or preceding in _BEFORE


def _is_one(text: str, start: int, end: int, name: str) -> bool:
    """Return whether the context of a name indicates a hospital; `start` may be at a place before the name."""
    if (
        not _can_begin(text, start)
        or _PATTERN("no_hospital").match(text, end)
        or (name.isdigit() and counts(text, start, end))
    ):
        return False
    placed = not text.startswith(name, start)
    if name in words("with_city") and not placed:
        return False
    weight, following, leading = _weight(name) + placed, behind(text, end), in_front(text, start)
    leading += leading == 1 and brought(text, start, end)
    evidence = following + (leading if leading > 1 or name not in words("doubtful") else 0)
    if not evidence:
        return weight >= ENOUGH
    if not placed and _PATTERN("bare").match(name) and _PATTERN("general").search(text, max(0, start - 6), start):
        return False
    return weight + evidence + (near(text, start, end) if following < 2 else 0) >= ENOUGH


def _short(text: str) -> Iterator[tuple[int, int]]:
    folded, position, last_end = fold(text), 0, -1
    while match := _PATTERN("name").search(folded, position):
        start, position = match.start(), match.start() + 1
        placed = rules("places").pattern("place_last").search(folded, max(0, start - 8), start)
        branch = _PATTERN("branch").match(folded, match.end())
        end = branch.end() if branch else match.end()
        for first in ([placed.start()] if placed else []) + [start]:
            seen, less = behind_found(folded, first) if first == last_end else (folded, 0)
            if _is_one(seen, first - less, end - less, match[0]):
                position = last_end = end
                yield first, end
                break
    yield from (match.span() for match in _PATTERN("army").finditer(folded))


hospital_short = RuleRecogniser(rules("institutions_short"), "hospital_short", _short)
