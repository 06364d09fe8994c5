"""The way from a crossing to a house: `中山路与人民路交叉口往东200米路北`.

A crossing is one road or more and a word for it; a way is a row of directions, distances and sides of the road. Both
are parts of an address, whatever stands in front of them and follows.
"""

import re
from functools import cache

from curate.pii.address_parts import NAME, door, no_place
from curate.pii.places import NUMBER
from curate.pii.words import one_of, words

_CROSSED = (
    " ?的?(?:大|小)?(?:[十丁T三]字?[岔叉]?路口|[十丁]字街?口?|交叉(?:路口|口|处|点)?|交[汇会](?:处|口|点)?"
    "|交界(?:处|口)?|交接处|[交相]口|相交处?|[路街道]口|[三岔][岔叉]?口|(?<=[路街道巷])口|[拐转]角处?)"
)
"""The word for a crossing behind its roads."""
CROSSED_WRITTEN = "交[叉汇匯会會口界接]|相[交口]|[路街巷道]口|[路街巷道](?:的?[大小]?[十丁T三]字|[拐转轉]角)|岔口"
"""What no crossing is written without, for a trigger."""
_JOINED = " ?(?:[与和同跟及、,，/&×+-]|交)? ?"
_SIDE = "[东南西北]{1,2}"
_FAR = (
    f"(?:约|大约|大概)?{NUMBER}(?:余|多|来)? ?(?:米|公尺|公里|千米|里地|里路|里|步|[mM](?![A-Za-z²]))"
    "(?:左右|远|处|开外|多|许|余)?"
)
_TURNED = f"(?:往|向|朝|以|沿|偏|靠|[沿顺]?路往){_SIDE}(?:方向|边|面|侧|头)?(?:走|行|直行|前行|前进|拐|进)?"
_TOWARDS = f"{_SIDE}(?:方向|边|面|侧|头|角|部|行|走|拐)(?:走|行)?"


@cache
def _road() -> str:
    lists = words("places")
    ends = f"(?:{one_of(lists['roads'])}|{one_of(lists['roads_with_number'])})"
    numbered = "[A-Za-z]?[0-9]{2,3}(?:国道|省道|县道|乡道)"
    section = f"(?:[东南西北中]?(?:{NUMBER}|[东南西北中])段|[东南西北]头)?"
    return f"(?:{numbered}|[A-Za-z0-9]{{0,4}}(?:(?![与跟及、]){NAME}){{1,8}}?{ends}{section})"


@cache
def _crossing() -> re.Pattern[str]:
    return re.compile(rf"(?P<road>{_road()})(?P<other>{_JOINED}{_road()}){{0,2}}{_CROSSED}")


@cache
def _way() -> re.Pattern[str]:
    ahead = "(?:[往向朝][里前内]|[左右][侧边转拐])(?:面|边)?(?:走|行)?"
    turn = f"(?:{_TURNED}|{_TOWARDS})(?: ?{_FAR})?|(?:{ahead}|{_SIDE}) ?{_FAR}"
    side = "(?:马路|路|街|道)的?[东南西北]{1,2}(?:边|侧|面)?(?![东南西北]?[路街])"
    then = "(?:再|又|然后|[,，] ?(?=[往向朝路再]))?"
    step = f"{then}(?:{turn}|第{NUMBER}(?:家|排)|{_SIDE}(?= ?{door()})|{side}|{_FAR})"
    return re.compile(
        rf"(?:村[口头尾东西南北]|口(?=[往向东西南北])|中段|[东西南北]段)? ?(?: ?{step}){{1,6}}(?:走?到底)?"
    )


_BESIDE = re.compile("的?(?:斜对[面过]|正?对[面过]|旁边?|隔壁|附近|院内|里侧|内侧|临街)的?(?=[一-龥0-9A-Za-z])")


@cache
def _no_road() -> re.Pattern[str]:
    return re.compile(one_of(words("places")["no_roads"]))


@cache
def crossed() -> re.Pattern[str]:
    """Return a pattern for the words behind the roads of a crossing."""
    return re.compile(f"(?<=[一-龥 ]){_CROSSED}")


@cache
def _lead() -> re.Pattern[str]:
    leads = words("places")["crossing_leads"]
    long, short = (one_of(word for word in leads if (len(word) > 1) is many) for many in (True, False))
    return re.compile(rf"(?:{long}|\A(?!开[发元封平]|经[一二三四五六七八九十]){short}(?=[一-龥]{{3}}))")


@cache
def _other_road() -> re.Pattern[str]:
    return re.compile(rf"{_road()}(?: ?[、,，/&×+-] ?| [与和同跟及] ?| )\Z")


def behind_leads(text: str, start: int, end: int) -> int:
    """Return where the first road's name begins: behind words that are in none (`诊所新址`)."""
    while other := _other_road().search(text, max(0, start - 12), start):
        start = other.start()
    if number := re.search("[A-Za-z]?[0-9]{2,3}\\Z", text[max(0, start - 4) : start]):
        start -= len(number[0]) if text.startswith(("国道", "省道", "县道", "乡道"), start) else 0
    road = re.compile(_road()).match(text, start)
    end = road.end() if road else end
    while match := _lead().search(text[start:end]):
        start += match.end()
    return start


def crossing(text: str, at: int) -> int | None:
    """Return where a crossing ends that begins here."""
    match = _crossing().match(text, at)
    if not match or no_place().match(match["road"]) or _no_road().search(match["road"]):
        return None
    return match.end() if match["other"] or len(match["road"]) > 2 else None  # 沿路口 is no 沿路


def way(text: str, at: int) -> int | None:
    """Return where the way ends that begins here."""
    match = _way().match(text, at)
    return match.end() if match else None


def beside(text: str, at: int) -> int | None:
    """Return where words for standing beside something end (`对面`)."""
    match = _BESIDE.match(text, at)
    return match.end() if match else None


@cache
def _estate() -> re.Pattern[str]:
    return re.compile(f"{NAME}{{2,8}}?(?= ?{door()}|[0-9]{{1,3}}-[0-9])")


def estate(text: str, at: int) -> int | None:
    """Return where a name ends that begins here and has a house's or a door's number behind it (`万达B座`)."""
    match = _estate().match(text, at)
    return match.end() if match and not no_place().match(match[0]) else None
