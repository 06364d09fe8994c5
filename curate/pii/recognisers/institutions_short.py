"""Short names of hospitals, recognised by the words before, after and near them.

The words have weights, read from institutions_short.yaml.
"""

import re
from collections.abc import Iterator
from functools import cache

from curate.core.records import Span
from curate.pii.patterns import trigger
from curate.pii.person_names.lexicon import surnames
from curate.pii.rules import rules
from curate.pii.spans import behind_found, in_order
from curate.pii.words import compiled, fold, one_of, written
from curate.pii.words import words as word_lists

_PLACE = rules("places").source("place")
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
_END = re.compile("[。！？!?；;\n]")


@cache
def _behind() -> re.Pattern[str]:
    # 学, 技, 普 or 幻 after 科 makes it a science or a book, not a department
    kind = f"(?:小儿|新生儿|儿童|成人|老年|干部)?{one_of(words('departments'))}"
    department = f"{kind}(?:[一二三四五六]?科|门诊|病房|中心|专家|[一二三四五六]区|监护室)(?![学技普幻])"
    unit = one_of(name for name in words("departments") - words("plain") if len(name) > 1)
    titled = f"[{surnames()}][一-龥]?{one_of(words('titles'))}"
    joined = f"{one_of(words('joins'))}(?={one_of(words('joined'))}|[省市县区州][一二三四五六七八九]院)"
    treatment = f"{one_of(words('done'))}(?:的|过|了)(?!是)"
    return re.compile(
        f"{one_of(words('between'))}{{0,3}}?(?:(?P<department>{department})|(?P<word>{one_of(weights('behind'))})"
        f"|(?P<unit>{unit}|{titled}|{joined})|{treatment})"
    )


_rooms = compiled(lambda: one_of(words("rooms")))
_values = compiled(lambda: rf"{one_of(words('values'))}[^，,、。在去转挂找送往]{{0,4}}\Z")
_cure = compiled(lambda: one_of((word for word, weight in weights("behind").items() if weight > 1), words("ills")))
_others = compiled(lambda: one_of(word for word, weight in weights("names").items() if weight > 1))


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
    """Return 1 if the rest of the sentence has words of treatment or a disease, or another hospital; else 0."""
    around = _sentence_around(text, start, end)
    return int(any(map(_cure().search, around)) or any(map(_others().search, around)))


def counts(text: str, start: int, end: int) -> bool:
    """Return whether a number that looks like a hospital's is that of a room, or a measured value."""
    before, after = _sentence_around(text, start, end)
    return bool(_rooms().search(before) or _rooms().search(after) or _values().search(before))


def _sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    return _END.split(text[max(0, start - _NEAR) : start])[-1], _END.split(text[end : end + _NEAR])[0]


# Short names of hospitals: `我爸在省立做的支架`, `三〇一的专家`, `市一院拍的片`.

_N = "[一二三四五六七八九]"
_UPPER = "(?:[省市县区州]|地区)"
_SCHOOLS = (
    "(?:[安温徐蚌皖昆贵重广福南桂遵泸滨潍济锦牡佳齐青延河新包宁兰石承华冀晋赣湘滇黔苏浙鲁豫鄂吉辽哈中大首北山郑武复交同川锡扬通常]"
    "(?:医大|医|大)|哈医大|南医大|首医大|海医大|西交大?|西南医大|川北|医大|医科大|医学院)"
)
_NUMBERED = {
    rf"{_UPPER}(?:立|人民|中医)?第?(?:十{_N}?|{_N})院": 3,
    rf"{_SCHOOLS}(?:附属?{_N}(?:医?院|医)|第?{_N}附?属?医?院|附属?医?院)": 4,
    rf"{_SCHOOLS}(?:附{_N}|{_N}附|附儿)": 3,
    rf"附属?{_N}(?:院|医院|医)|附第{_N}(?:院|医院)|{_N}附属?院": 3,
    rf"(?:人民|中医|妇幼|大){_N}院": 3,
    rf"广医{_N}": 3,
    r"[^\W\d_最很太巨重肿变长扩较强伟老]大(?:附[一二三四儿]|[一二三四]附)": 3,
    "(?:[北武川浙中山吉郑]大|[二三四]军大|复旦|首医|哈医大|重医|南医大|温医|上交大?|西交大?|四川大学|北京大学)"
    "(?:口腔|眼科|妇产|妇儿|妇院|儿院|儿童|肿瘤|人民|眼耳鼻喉|五官|长海|长征|西京|唐都"
    "|新桥|西南|大坪|华西|中南|齐鲁|瑞金|仁济|新华)": 3,
    "[中北复浙哈省津豫湘天苏川]肿(?!瘤)": 2,
    "[北上重复省市浙]儿(?![童保医研])|[北东海浙国]妇(?![幼保婴产儿])": 2,
    f"[哈沈石济青郑杭锡厦广深珠佛昆贵渝兰津沪]{_N}院": 3,
    f"十{_N}?院": 2,
    f"武警{_N}院|解放军(?:30|三[〇零])[1-9一二四五七九]": 3,
    f"{_PLACE}(?:儿童|妇儿|胸科|肺科|脑科)": 1,
    "三[〇零Oo0][一二四五七九]": 2,
    rf"[省市]{_N}": 2,
    rf"附{_N}": 2,
    f"{_N}(?:医院|院)": 2,
}
"""Pattern of a numbered name -> its weight."""
_ARMY = re.compile(
    "(?<![一二三四五六七八九十〇零百])(?:联勤保障部队|解放军)?第?[一二三四五六七八九][一二三四五六七八九〇零Oo0]{2}(?:中心)?医院"
    "|火箭军特色医学中心"
)
"""Numbered army hospitals, which need no further evidence."""
_BEFORE = "".join(words("before"))
_BARE = re.compile(rf"{_N}(?:医院|院)|[省市县区]")
"""Names that are not specific without the name of their city."""
_PART = re.compile(rf"{_PLACE}(?:分院|院区)|[东西南北新老]院区?|(?![的在有住])[一-龥]{{2,4}}院区")
"""Possible continuations of a name, such as a branch."""
_names = compiled(lambda: f"{'|'.join(_NUMBERED)}|{one_of(weights('names'))}")
_where = compiled(lambda: rf"{_PLACE}\Z")


@cache
def _numbered() -> list[tuple[re.Pattern[str], int]]:
    return [(re.compile(rf"(?:{pattern})\Z"), weight) for pattern, weight in _NUMBERED.items()]


@cache
def _no_hospital() -> re.Pattern[str]:
    number = f"(?<=[0-9一二三四五六七八九]) ?{one_of(words('numbers'))}"
    return re.compile(
        f"{one_of(words('no_hospital'))}|{number}|(?<=肿){one_of(words('swollen'))}|(?<=[儿妇]){one_of(words('children'))}"
        f"|(?<=总){one_of(words('chiefs'))}|(?<=医){one_of(words('medical'))}"
    )


_general = compiled(lambda: rf"{one_of(words('general'))}\Z")


def _weight(name: str) -> int:
    """Return the weight of a name without context; 0 if it is unknown."""
    if name in weights("names"):
        return weights("names")[name] - (name in words("doubtful"))
    return next((weight for pattern, weight in _numbered() if pattern.match(name)), 0)


def _can_begin(text: str, start: int) -> bool:
    """Return whether a name can begin at `start`: not inside a word or a number."""
    preceding = text[max(0, start - 1) : start]
    if text[start].isdigit() and ((preceding.isalnum() and preceding.isascii()) or preceding in tuple("第号编.:-/")):
        return False
    return not "一" <= preceding <= "龥" or preceding in _BEFORE


def _is_one(text: str, start: int, end: int, name: str) -> bool:
    """Return whether the context of a name indicates a hospital; `start` may be at a place before the name."""
    if not _can_begin(text, start) or _no_hospital().match(text, end) or (name.isdigit() and counts(text, start, end)):
        return False
    placed = not text.startswith(name, start)
    if name in words("with_city") and not placed:
        return False
    weight, following, leading = _weight(name) + placed, behind(text, end), in_front(text, start)
    leading += leading == 1 and brought(text, start, end)
    evidence = following + (leading if leading > 1 or name not in words("doubtful") else 0)
    if not evidence:
        return weight >= ENOUGH
    if not placed and _BARE.match(name) and _general().search(text, max(0, start - 6), start):
        return False
    return weight + evidence + (near(text, start, end) if following < 2 else 0) >= ENOUGH


def _short(text: str) -> Iterator[tuple[int, int]]:
    position, last_end = 0, -1
    while match := _names().search(text, position):
        start, position = match.start(), match.start() + 1
        placed = _where().search(text, max(0, start - 8), start)
        branch = _PART.match(text, match.end())
        end = branch.end() if branch else match.end()
        for first in ([placed.start()] if placed else []) + [start]:
            seen, less = behind_found(text, first) if first == last_end else (text, 0)
            if _is_one(seen, first - less, end - less, match[0]):
                position = last_end = end
                yield first, end
                break


_NAMES = sorted(weights("names"))
_SHORTEST = written(name for name in _NAMES if not any(shorter in name for shorter in _NAMES if shorter != name))
_WITH_NUMBER = (
    "火箭[军軍]|三[〇零Oo0０][一二四五七九]|[医醫][大附]|川北|[医醫学學大交院]第?[一二三四五六七八九]附?[医醫院]|附[属屬]?[医醫]?院"
    "|[省市附][一二三四五六七八九]|[中北复複浙哈省津豫湘天苏蘇川][肿腫]|[北上重复複省市浙][儿兒]|[北东東海浙国國][妇婦]|[一-龥][京海津庆慶州圳汉漢都安沙肥南岛島连連阳陽滨濱春明昌门門锡錫波](?:[儿兒]童|[妇婦][儿兒]|胸科|肺科|[脑腦]科)|[军軍大](?:口腔|妇|婦|儿|兒|眼科|五官|肿|腫|附)|复旦|首[医醫]|温[医醫]|[上西]交|十[一二三四五六七八九]?院|附[属屬]?第?[一二三四五六七八九]|[一二三四五六七八九〇零Oo0](?:中心)?[医醫]?院"
)


@trigger(f"{_SHORTEST}|{_WITH_NUMBER}")
def hospital_short(text: str) -> list[Span]:
    """Return short names of hospitals (`省立`, `301`, `附一院`) in a context of treatment."""
    folded = fold(text)
    army = (match.span() for match in _ARMY.finditer(folded))
    return in_order([*_short(folded), *army], "hospital", "hospital_short")
