"""Short names of hospitals: `我爸在省立做的支架`, `三〇一的专家`, `市一院拍的片`.

Such names are everyday words, numbers and places too. So words around one have to say that a hospital is meant: what
stands right in front (`转到`), one thing after the other behind it (`的 专家 门诊`), and what place it stands behind.
All of them have weights in the data file, as have the names.
"""

import re
from collections.abc import Iterator
from functools import cache

from curate.config import Section, parse_yaml
from curate.pii.name_words import surnames
from curate.pii.places import fold, place, written
from curate.pii.spans import in_order
from curate.pii.text import trigger
from curate.pii.words import one_of
from curate.records import Span
from curate.resources import data_file


class _Lists(Section):
    """The file institutions_short.yaml; what each list means is said there."""

    enough: int
    names: dict[int, str]
    doubtful: str
    front: dict[int, str]
    behind: dict[int, str]
    between: str
    departments: str
    before: str
    general: str
    no_hospital: str
    numbers: str
    chiefs: str
    rooms: str
    ills: str
    titles: str
    done: str
    plain: str
    joins: str


@cache
def _lists() -> _Lists:
    return _Lists.model_validate(parse_yaml(data_file("pii/institutions_short.yaml").read_text(encoding="utf-8")))


def _weights(words: dict[int, str]) -> dict[str, int]:
    return {word: weight for weight, each in words.items() for word in each.split()}


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
    "三[〇零Oo0][一二四五七九]": 2,
    rf"[省市]{_N}": 2,
    rf"附{_N}": 2,
    f"{_N}(?:医院|院)": 2,
}
"""Names with a number, and their weights."""
_ARMY = "(?:联勤保障部队|解放军)?第?[一二三四五六七八九][一二三四五六七八九〇零Oo0]{2}(?:中心)?医院|火箭军特色医学中心"
"""Hospitals of the army by their number; they need no more."""
_NUMBER_NAME = re.compile(r"[0-9]{3}\Z")
_BARE = re.compile(rf"{_N}(?:医院|院)|[省市县区]")
"""Names that say nothing without their city."""
_END = re.compile("[。！？!?；;\n]")
_DEPARTMENT, _UNIT, _DONE = 3, 2, 1
"""What a department behind a name weighs, one without its 科 or a doctor's name, and something that was done."""
_NO_MORE = 3
"""So many words behind a name are looked at, so many characters around it."""
_NEAR = 12
_PART = re.compile("[东西南北新老]院区?|(?![的在有住])[一-龥]{2,4}院区")
"""What a name may go on with."""


@cache
def _names() -> re.Pattern[str]:
    known = _weights(_lists().names)
    numbered = "|".join(_NUMBERED)
    return re.compile(f"{numbered}|{one_of(known)}")


@cache
def _where() -> re.Pattern[str]:
    return re.compile(rf"{place()}\Z")


@cache
def _numbered() -> list[tuple[re.Pattern[str], int]]:
    return [(re.compile(rf"(?:{pattern})\Z"), weight) for pattern, weight in _NUMBERED.items()]


def _weight(name: str) -> int:
    """Return how much a name says by itself."""
    known = _weights(_lists().names)
    if name in known:
        return known[name] - (name in _lists().doubtful.split())
    return next((weight for pattern, weight in _numbered() if pattern.match(name)), 0)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    lists = _lists()
    split = {key: getattr(lists, key).split() for key in ("between", "departments", "general", "no_hospital", "numbers", "chiefs", "rooms")}
    # a science or a book is no department
    department = rf"{one_of(split['departments'])}(?:[一二三四]?科|门诊|病房|中心|专家|一区|二区)(?![学技普幻])"
    unit = one_of(each for each in split["departments"] if len(each) > 1 and each not in lists.plain.split())
    joined = f"{one_of(lists.joins.split())}(?={one_of(_weights({2: lists.names[4], 3: lists.names[3], 1: lists.names[2]}))}|{_UPPER}{_N}院)"
    titled = f"[{surnames()}][一-龥]?{one_of(lists.titles.split())}"
    done = f"{one_of(lists.done.split())}(?:的|过|了)(?!是)"
    return {
        "front": re.compile(rf"(?P<word>{one_of(_weights(lists.front))})\Z"),
        "behind": re.compile(
            rf"{one_of(split['between'])}{{0,3}}?(?:(?P<department>{department})|(?P<word>{one_of(_weights(lists.behind))})|(?P<unit>{unit}|{titled}|{joined})|{done})"
        ),
        "general": re.compile(rf"{one_of(split['general'])}\Z"),
        "no_hospital": re.compile(
            rf"{one_of(split['no_hospital'])}|(?<=[0-9一二三四五六七八九]) ?{one_of(split['numbers'])}|(?<=总){one_of(split['chiefs'])}"
        ),
        "rooms": re.compile(one_of(split["rooms"])),
        "cure": re.compile(one_of(word for word, weight in _weights({3: lists.behind[3], 2: lists.behind[2], 1: lists.ills}).items())),
    }


def evidence_in_front(text: str, start: int) -> int:
    """Return the weight of the word right in front of a name."""
    weights = _weights(_lists().front)
    start -= text[max(0, start - 1) : start] in ("了", "过")
    return max(weights.get(text[max(0, start - reach) : start], 0) for reach in range(1, 5))


def evidence_behind(text: str, end: int) -> int:
    """Return the weights of the words that follow one another behind a name."""
    weights, total = _weights(_lists().behind), 0
    for _ in range(_NO_MORE):
        match = _patterns()["behind"].match(text, end)
        if not match:
            break
        kinds = {"department": _DEPARTMENT, "unit": _UNIT, None: _DONE}
        total += weights[match["word"]] if match["word"] else kinds[match.lastgroup]
        end = match.end()
    return total


def _near(text: str, start: int, end: int) -> int:
    """Return what the rest of the sentence adds: a word of treatment speaks for a hospital, one of rooms against it."""
    before = _END.split(text[max(0, start - _NEAR) : start])[-1]
    after = _END.split(text[end : end + _NEAR])[0]
    found = [bool(_patterns()[name].search(before) or _patterns()[name].search(after)) for name in ("cure", "rooms")]
    digits = bool(_NUMBER_NAME.match(text[start:end]))
    return found[0] - 2 * (found[1] and digits)


def _fits(text: str, start: int) -> bool:
    """Say whether a name can begin here, and no general word stands in front."""
    before = text[max(0, start - 1) : start]
    if text[start : start + 1].isdigit() and (before.isalnum() and before.isascii() or before in list("第号编.:-/")):
        return False
    return not "一" <= before <= "龥" or before in _lists().before


def _is_one(text: str, start: int, end: int, name: str) -> bool:
    """Say whether the words around a name say that a hospital is meant; the name may begin behind its place."""
    if not _fits(text, start) or _patterns()["no_hospital"].match(text, end):
        return False
    placed = not text.startswith(name, start)
    weight, behind = _weight(name) + placed, evidence_behind(text, end)
    front = evidence_in_front(text, start)
    evidence = behind + (front if front > 1 or name not in _lists().doubtful.split() else 0)
    if not evidence:
        return weight >= _lists().enough
    if not placed and _BARE.match(name) and _patterns()["general"].search(text, max(0, start - 6), start):
        return False
    return weight + evidence + (behind < 2 and _near(text, start, end)) >= _lists().enough


def _short(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while match := _names().search(text, at):
        at = match.start() + 1
        place_in_front = _where().search(text, max(0, match.start() - 8), match.start())
        starts = [place_in_front.start()] if place_in_front else []
        part = _PART.match(text, match.end())
        end = part.end() if part else match.end()
        for start in [*starts, match.start()]:
            if _is_one(text, start, end, match[0]):
                at = end
                yield start, at
                break


def _army(text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(rf"(?<![一二三四五六七八九十〇零百])(?P<name>{_ARMY})", text):
        yield match.span()


_NAMES = list(_weights(_lists().names))
_TRIGGERS = (
    written(name for name in _NAMES if not any(other in name for other in _NAMES if other != name)),
    "火箭[军軍]|三[〇零Oo0０][一二四五七九]|[医醫][大附]|川北|[医醫学學大交]第?[一二三四五六七八九]附?[医醫院]|[省市附][一二三四五六七八九]|附[属屬]?第?[一二三四五六七八九]|[一二三四五六七八九〇零Oo0](?:中心)?[医醫]?院",
)


@trigger(*_TRIGGERS)
def hospital_short(text: str) -> list[Span]:
    """Return short names of hospitals (`省立`, `301`, `附一院`) that somebody is treated in; all others stay."""
    folded = fold(text)
    return in_order([*_short(folded), *_army(folded)], "hospital", "hospital_short")
