"""What says around a name that it is a hospital: words in front of it, one thing after the other behind, words near by.

All have weights in institutions_short.yaml.
"""

import re
from functools import cache

from curate.pii.person_names.words import surnames
from curate.pii.words import compiled, one_of
from curate.pii.words import words as word_lists

_LISTS = word_lists("institutions_short")
ENOUGH = int(_LISTS["enough"][0])
"""What a name and the words around it weigh together at least."""


@cache
def weights(name: str) -> dict[str, int]:
    """Return the words of a list with weights."""
    keys = sorted(key for key in _LISTS if key.startswith(f"{name}."))
    return {word: int(key[-1]) for key in keys for word in _LISTS[key]}


@cache
def words(name: str) -> frozenset[str]:
    """Return the words of a list without weights."""
    return frozenset(_LISTS[name])


_DEPARTMENT, _UNIT, _DONE = 3, 2, 1
"""What a department behind a name weighs, one without its 科 or a doctor's name, and something that was done."""
_NO_MORE = 3
"""So many words behind a name are looked at."""
_NEAR = 12
"""So many characters around it."""
_END = re.compile("[。！？!?；;\n]")


@cache
def _behind() -> re.Pattern[str]:
    # a science or a book is no department
    kind = f"(?:小儿|新生儿|儿童|成人|老年|干部)?{one_of(words('departments'))}"
    department = f"{kind}(?:[一二三四五六]?科|门诊|病房|中心|专家|[一二三四五六]区|监护室)(?![学技普幻])"
    unit = one_of(each for each in words("departments") - words("plain") if len(each) > 1)
    titled = f"[{surnames()}][一-龥]?{one_of(words('titles'))}"
    joined = f"{one_of(words('joins'))}(?={one_of(words('joined'))}|[省市县区州][一二三四五六七八九]院)"
    done = f"{one_of(words('done'))}(?:的|过|了)(?!是)"
    return re.compile(
        f"{one_of(words('between'))}{{0,3}}?(?:(?P<department>{department})|(?P<word>{one_of(weights('behind'))})"
        f"|(?P<unit>{unit}|{titled}|{joined})|{done})"
    )


_rooms = compiled(lambda: one_of(words("rooms")))
_values = compiled(lambda: rf"{one_of(words('values'))}[^，,、。在去转挂找送往]{{0,4}}\Z")
_cure = compiled(lambda: one_of((word for word, weight in weights("behind").items() if weight > 1), words("ills")))
_others = compiled(lambda: one_of(word for word, weight in weights("names").items() if weight > 1))


def in_front(text: str, start: int) -> int:
    """Return the weight of the word right in front of a name."""
    shorter = start - (text[max(0, start - 1) : start] in ("了", "过"))
    words_in_front = (text[max(0, at - reach) : at] for at in (start, shorter) for reach in range(1, 5))
    return max(weights("front").get(word, 0) for word in words_in_front)


def brought(text: str, start: int, end: int) -> bool:
    """Say whether a person was brought to what is named (`送浙二了`)."""
    return text.startswith(("了", "去", "抢救"), end) and text.endswith(tuple(words("brought")), 0, start)


def behind(text: str, end: int) -> int:
    """Return the weights of the words that follow one another behind a name."""
    total = 0
    for _ in range(_NO_MORE):
        match = _behind().match(text, end)
        if not match:
            break
        if match["word"]:
            total += weights("behind")[match["word"]]
        else:
            total += _DEPARTMENT if match["department"] else _UNIT if match["unit"] else _DONE
        end = match.end()
    return total


def near(text: str, start: int, end: int) -> int:
    """Return what the rest of the sentence adds: a word of treatment or a disease speaks for a hospital."""
    around = _around(text, start, end)
    return int(any(map(_cure().search, around)) or any(map(_others().search, around)))


def counts(text: str, start: int, end: int) -> bool:
    """Say whether a number is that of a room or a measured value."""
    before, after = _around(text, start, end)
    return bool(_rooms().search(before) or _rooms().search(after) or _values().search(before))


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    return _END.split(text[max(0, start - _NEAR) : start])[-1], _END.split(text[end : end + _NEAR])[0]
