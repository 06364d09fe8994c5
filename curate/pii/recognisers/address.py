"""Postal addresses, including directions from a crossing to a house: `中山路与人民路交叉口往东200米路北`.

A crossing consists of one or more roads and a word for a crossing. A way consists of directions, distances and sides of
the road. Both are parts of an address in any context.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from curate.core.records import Span
from curate.pii.patterns import CHINESE, RAW_DASH, TWO_SIGNS, trigger
from curate.pii.recognisers.places import (
    BARE,
    CITY,
    COUNTY,
    DOOR,
    ENGLISH,
    ESTATE,
    HOUSE,
    NAME,
    NUMBER,
    PLACE,
    POSTCODE,
    POSTCODE_ALONE,
    TOWN,
    Shape,
    anchor,
    door,
    fold,
    no_name,
    no_place,
    one_character,
    shapes,
    written,
)
from curate.pii.spans import in_order
from curate.pii.words import compiled, one_of, words

_CROSSED = (
    " ?的?(?:大|小)?(?:[十丁T三]字?[岔叉]?路口|[十丁]字街?口?|交叉(?:路口|口|处|点)?|交[汇会](?:处|口|点)?"
    "|交界(?:处|口)?|交接处|[交相]口|相交处?|[路街道]口|[三岔][岔叉]?口"
    "|(?:大?转盘|环岛|红绿灯|立交桥?)(?:路口|处)?|(?<=[路街道巷])口|[拐转]角处?)"
)
"""Words for a crossing, after the names of its roads."""
CROSSED_WRITTEN = (
    "交[叉汇匯会會口界接]|相[交口]|[路街巷道]口|岔口"
    "|[路街巷道](?:的?[大小]?[十丁T三]字|[拐转轉]角|[环環][岛島]|大?[转轉][盘盤]|[红紅][绿綠]|立交)"
)
"""Trigger of crossings."""
_JOINED = " ?(?:[与和同跟及、,，/&×+-]|交)? ?"
_SIDE = "[东南西北]{1,2}"
_FAR = (
    f"(?:约|大约|大概)?{NUMBER}(?:余|多|来)? ?(?:米|公尺|公里|千米|里地|里路|里|步|[mM](?![A-Za-z²]))"
    "(?:左右|远|处|开外|多|许|余)?"
)
_TURNED = (
    f"(?:往|向|朝|以|沿|偏|靠|[沿顺]?路往){_SIDE}(?:方向|边|面|侧|头)?(?:行驶|步行|骑行|直行|前行|前进|走|行|拐|进)?"
)
_TOWARDS = f"{_SIDE}(?:方向|边|面|侧|头|角|部|行|走|拐)(?:走|行)?"


@cache
def _road() -> str:
    lists = words("places")
    ends = f"(?:{one_of(lists['roads'])}|{one_of(lists['roads_with_number'])})"
    numbered = "(?:[A-Za-z]?[0-9]{2,3}(?:国道|省道|县道|乡道)|[国省县乡]道[0-9]{2,3})"
    section = f"(?:[东南西北中]?(?:{NUMBER}|[东南西北中])段|[东南西北]头)?"
    coded = "[GSXY][0-9]{2,4}(?:国道|省道|县道|乡道|线|高速)?"
    bridge_or_village = f"(?:(?![与跟及、]){NAME}){{1,6}}?(?:大?桥(?![东西南北]?[路街巷])|村(?= ?[与和跟及]))"
    road = f"[A-Za-z0-9]{{0,4}}(?:(?![与跟及、]){NAME}){{1,8}}?{ends}{section}"
    return f"(?:(?:{numbered}|{coded}|{road}|{bridge_or_village})(?:{NUMBER}号)?)"


_crossing = compiled(lambda: rf"(?P<road>{_road()})(?P<other>{_JOINED}{_road()}){{0,2}}{_CROSSED}")


@cache
def _way() -> re.Pattern[str]:
    ahead = "(?:[往向朝](?:里|前|内|左|右)|[左右](?:手|侧|边|转|拐)|对面|路对过)(?:面|边)?(?:走|行|数)?的?"
    count = f"(?:数|[至到])?第{NUMBER}个?(?:家|排|门|院子?|小区|户|[栋幢间](?:楼|房子?)?|楼|胡同|巷子?|路口|单元|小楼)"
    over = "过(?:了)?(?:桥|马路|红绿灯|铁路|河|天桥|街)|(?:走|行)?到[头底]|尽头|里面?(?=第)"
    inside = f"(?:胡同|巷子?|弄堂|院|大院|小院)[里内](?= ?{door()}|[^一-龥]|$)"
    turn = f"(?:{_TURNED}|{_TOWARDS})(?: ?{_FAR})?|(?:{ahead}|{_SIDE}) ?{_FAR}"
    side = "(?:马路|路|街|道)的?[东南西北]{1,2}(?:边|侧|面)?(?![东南西北]?[路街])"
    then = "(?:再|又|然后|[,，] ?(?=[往向朝路再]))?"
    step = f"{then}(?:{turn}|{ahead} ?{count}|{count}|{over}|{inside}|{_SIDE}(?= ?{door()})|{side}|{_FAR})"
    step = rf"(?:{step}|[(（] ?(?:{step}){{1,3}} ?[)）])"
    return re.compile(
        rf"(?:村[口头尾东西南北]|口(?=[往向东西南北])|中段|[东西南北]段)? ?(?: ?{step}){{1,6}}(?:走?到[底头])?"
    )


_BESIDE = re.compile(
    f"的?(?:(?!从|在){NAME}{{2,5}}?)?(?:楼[上下]|斜对[面过]|正?对[面过]|旁边?|隔壁|附近|院内|里侧|内侧|临街|左手边?|右手边?|[左右]侧)的?(?=[一-龥0-9A-Za-z])"
)


_ALONE_NONE = re.compile("[盘岛灯桥处]\\Z|桥[路街道]?口|村口|立交|红绿灯")
"""Endings that do not denote a crossing if only one road precedes them."""
_no_road = compiled(lambda: one_of(words("places")["no_roads"]))


@cache
def crossed() -> re.Pattern[str]:
    """Return a pattern for the words that mark a crossing after the names of its roads (`交叉口`)."""
    return re.compile(f"(?<=[一-龥 ]){_CROSSED}")


@cache
def _lead() -> re.Pattern[str]:
    leads = words("places")["crossing_leads"]
    long, short = (one_of(word for word in leads if (len(word) > 1) is many) for many in (True, False))
    verbs = "[送寄写填租搬]|邮(?![电政])"
    return re.compile(rf"(?:{long}|{verbs}|\A(?!开[发元封平]|经[一二三四五六七八九十]){short}(?=[一-龥]{{3}}))")


_other_road = compiled(lambda: rf"{_road()}(?: ?[、,，/&×+-] ?| [与和同跟及] ?| )\Z")
_joined_road = compiled(lambda: rf"{_road()}[与和同跟及]\Z")


def behind_leads(text: str, start: int, end: int) -> int:
    """Return the start of the first road's name at a crossing, after words that occur in no name (`诊所新址`)."""
    while other_road := _other_road().search(text, max(0, start - 12), start):
        start = other_road.start()
    if number := re.search("[A-Za-z]?[0-9]{2,4}\\Z", text[max(0, start - 5) : start]):
        coded = number[0][0] in "GSXY"
        start -= len(number[0]) if coded or text.startswith(("国道", "省道", "县道", "乡道"), start) else 0
        if joined := _joined_road().search(text, max(0, start - 12), start):
            start = joined.start()
    road = re.compile(_road()).match(text, start)
    end = road.end() if road else end
    while match := _lead().search(text[start:end]):
        start += match.end()
    return start


def crossing(text: str, start: int) -> int | None:
    """Return the end of a crossing that begins at `start`; None if there is none."""
    match = _crossing().match(text, start)
    if not match or no_place().match(match["road"]) or _no_road().search(match["road"]):
        return None
    if not match["other"] and _ALONE_NONE.search(match[0]):
        return None
    return match.end() if match["other"] or len(match["road"]) > 2 else None  # 沿路口 is no 沿路


def way(text: str, start: int) -> int | None:
    """Return the end of the directions that begin at `start` (`往东200米路北`); None if there are none."""
    match = _way().match(text, start)
    return match.end() if match else None


def beside(text: str, start: int) -> int | None:
    """Return the end of a word for a position at `start`, such as "opposite" (`对面`); None if there is none."""
    match = _BESIDE.match(text, start)
    return match.end() if match else None


_estate = compiled(lambda: f"{NAME}{{2,8}}?(?= ?{door()}|[0-9]{{1,3}}-[0-9])")


def estate(text: str, start: int) -> int | None:
    """Return the end of a name at `start` that a house or door number follows (`万达B座`); None if there is none."""
    match = _estate().match(text, start)
    return match.end() if match and not no_place().match(match[0]) else None


@cache
def _last_place() -> re.Pattern[str]:
    stops = "".join(words("places")["no_way_ends"])
    return re.compile(rf"(?:(?![{stops}]){NAME}){{0,6}}?{one_of(words('places')['way_ends'])}(?:院?内)?")


DASHED = re.compile("[0-9]{1,3}-[0-9]")


def last_place(text: str, start: int) -> int | None:
    """Return the end of a shop's or similar name directly after directions (`东北角广场`); None if there is none."""
    match = _last_place().match(text, start)
    return match.end() if match else None


# Addresses, from the largest unit that is named down to the door: `广东省深圳市南山区科技园南路12号`.

_GAP = re.compile(r"[ ·/-]|[,，] ?(?=[一-龥A-Za-z0-9]{1,12}[号栋幢区县镇路])")
_RUN = re.compile(rf"[A-Za-z]{{0,6}}{NAME}{{0,20}}\Z")
_PARTS = 16
"""Maximum number of parts of an address."""


class _Part(NamedTuple):
    end: int
    rank: int
    known: bool
    firm: bool
    """Whether the part ends in a word for its type: `上海市`, not `上海`."""
    led: bool = False
    """Whether the part is a crossing followed by directions."""


_DIGIT = "[0-9０-９一二三四五六七八九十百零〇两兩]"
_SPACE = r"[ \u00a0\u2007\u202f\u3000]"
_ROADS = "[镇鎮乡鄉村][^静靜痛医醫]|[镇鎮乡鄉村]$|街道|[^走思尿]路|[街巷]|[^知味尿阴陰肠腸胆膽气氣通管化]道"
_HOMES = (
    "[苏蘇]木|[农農林牧团團][场場]|公社|胡同|居委|嘎查|[小社][区區]|公寓|家[园園属屬]|花[园園苑]|大[厦廈]|新城"
    "|公[馆館]|山[庄莊]"
)
_ESTATES = ("estates", "estates_with_number")
_HOUSE = "[号號弄巷栋棟幢座单單楼樓室組组隊队社村]"


def _hints(many: str, district: str) -> dict[str, str | tuple[str, ...]]:
    """Return trigger -> triggers that it needs; every address matches one.

    `many` is the quantifier of the characters between the words of an address.
    """
    inside = rf"(?:{_DIGIT}|[A-Za-zＡ-Ｚａ-ｚ段至、~/村小]|{_SPACE}|{RAW_DASH})"
    number = rf"{_SPACE}?[A-Za-zＡ-Ｚ甲乙丙丁第附增]?{_DIGIT}{inside}{many}"
    upper = rf"(?:[省市县縣区區州旗盟]|{district})(?:[一-龥·/]|{_SPACE}|{RAW_DASH}){many}"
    word = "[A-Za-zＡ-Ｚａ-ｚ0-9０-９.．'’]"
    street = "Street|St|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Way|C(?:our)?t|Pl|Highway|Hwy|Lu|Jie"
    return {
        rf"[一-龥]{number}{_HOUSE}": CHINESE,
        rf"[一-龥]{_SPACE}?[A-ZＡ-Ｚ][座栋棟幢塔]": "[座栋棟幢塔]",
        rf"{_ESTATE_ENDS}{number}{RAW_DASH}{_DIGIT}": (CHINESE, RAW_DASH),
        rf"{written(words('places')['address_cues'])}|地址|[邮郵](?:[编編]|政[编編]|[递遞][区區])": CHINESE,
        rf"住[^院宿][一-龥]{many}[区區县縣旗镇鎮乡鄉村路街道巷园園苑寓厦廈城庄莊号號]": "住",
        rf"{upper}(?:{_ROADS})": "[镇鎮乡鄉村街巷路道]",
        rf"{upper}(?:{_HOMES})": _HOMES,
        CROSSED_WRITTEN: CHINESE,
        rf"[0-9０-９][A-ZＡ-Ｚ]?,?{_SPACE}(?:{word}*{_SPACE}){{0,3}}{word}*[A-Za-z.]{_SPACE}(?:{street})": TWO_SIGNS,
    }


_ESTATE_ENDS = one_character("区寓期" + "".join(word[-1] for name in _ESTATES for word in words("places")[name]))
"""Last characters of estates; a bare number with dashes is a door number only after an estate or another door."""
_DISTRICTS = words("places")["districts"]
_LIKE_DISTRICTS = "".join(one_character(name[index] for name in _DISTRICTS) for index in (0, 1))
"""Pattern of the first two characters of districts, a small automaton."""
_FIRST_LOOK = re.compile("|".join(_hints("{0,18}", f"(?={_LIKE_DISTRICTS}){written(_DISTRICTS)}")))
"""Pattern with bounded quantifiers of the hints of an address.

With unbounded ones, `re` would scan a long line again from every position; `regex` is fast only with unbounded ones.
"""


def address(text: str) -> list[Span]:
    """Return addresses that are specific to a town, road, village or estate at least, or to a county after `家住`."""
    if not _FIRST_LOOK.search(text):
        return []
    return in_order(_addresses(fold(text)), "address", "address")


for _pattern, _needs in _hints("*", _LIKE_DISTRICTS).items():
    trigger(_pattern, needs=_needs)(address)


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    last_end = 0
    for start, cued in sorted(_starts(text), key=lambda start: (start[0], not start[1])):
        components = _read(text, start) if start >= last_end else []
        if _identifies(components, cued):
            code = POSTCODE.match(text, components[-1].end)
            last_end = code.end("code") if code else components[-1].end
            yield start, last_end
    yield from (match.span("house") for match in HOUSE.finditer(text))
    yield from (match.span() for match in ENGLISH.finditer(text))
    yield from (match.span("code") for match in POSTCODE_ALONE.finditer(text))


def _starts(text: str) -> Iterator[tuple[int, bool]]:
    """Yield (start of a possible address, whether a word for living precedes it)."""
    yield from ((match.end(), True) for match in _cue().finditer(text))
    yield from ((match.start(), False) for match in _known().finditer(text))
    yield from ((_name_start(text, match.start()), False) for match in anchor().finditer(text))
    for match in crossed().finditer(text):  # of two roads, the last of which ends here
        yield behind_leads(text, _name_start(text, match.start()), match.start()), False


@cache
def _cue() -> re.Pattern[str]:
    cues = one_of(words("places")["address_cues"])
    lives = "住(?![院宿])(?=[一-龥]{2,17}?[区县旗镇乡村路街道巷园苑寓厦城庄号])"
    return re.compile(
        rf"(?:{cues}|{lives}|(?<![Pp网接载站箱页录])地址)"
        r"(?:上?(?:写|填|登记|改|变更|更新|换)(?:的|了)?)?(?:是|为|在|于|成|到)?[:： ]{0,3}"
    )


_known = compiled(lambda: one_of(*(words("places")[name] for name in ("provinces", "cities", "counties", "districts"))))


def _name_start(text: str, end: int) -> int:
    """Return the start of a name that ends at `end`: after words that occur in no name, or at a known place."""
    run = _RUN.search(text, max(0, end - 24), end)
    start = run.start() if run else end
    for match in _before_names().finditer(text, start, end):
        start = match.start("place") if match["place"] else match.end()
        if match["place"]:
            break
    return start + 1 if text[max(0, start - 1) : start + 1] in ("我家", "你家", "他家", "她家") else start


@cache
def _before_names() -> re.Pattern[str]:
    lists = words("places")
    known_place = one_of(lists["provinces"], lists["cities"], lists["counties"])
    return re.compile(
        f"{one_of(lists['address_cues'])}|地址|{no_name()}|(?P<place>{known_place}(?=[省市区县州]|{known_place}))"
    )


def _read(text: str, position: int) -> list[_Part]:
    """Return the parts of the address that begins at `position`, the largest first."""
    components: list[_Part] = []
    while len(components) < _PARTS:
        gap = _GAP.match(text, position) if components else None
        rank = components[-1].rank if components else CITY
        component = _crossing_part(text, position, rank) or _next(text, gap.end() if gap else position, rank)
        if component is None:
            break
        components.append(component)
        position = component.end
    return components


def _crossing_part(text: str, start: int, rank: int) -> _Part | None:
    """Return the address part at `start` that is a crossing or directions; None without one.

    Directions may follow a crossing, a road or a village.
    """
    cross = crossing(text, start) if rank <= PLACE else None
    if cross is None and rank not in (TOWN, PLACE):
        return None
    led = way(text, start if cross is None else cross) or cross or start
    beyond = beside(text, led)
    doored = beyond and _next(text, beyond, ESTATE)
    if beyond and (doored or _next(text, beyond, PLACE)):
        led = beyond
    landmark_end = estate(text, led + text.startswith("的", led)) if cross and cross < led != beyond else None
    if cross and cross < led and not landmark_end:
        landmark_end = last_place(text, led)
    end = landmark_end or led
    return (
        _Part(
            end,
            ESTATE if landmark_end or (doored and end == beyond) or (cross and DASHED.match(text, end)) else PLACE,
            False,
            False,
            led=bool(cross) and end > (cross or 0),
        )
        if end > start
        else None
    )


def _next(text: str, start: int, rank: int) -> _Part | None:
    """Return the next part of an address at `start`: a known place or a door, else the part that ends first."""
    candidates: list[_Part] = []
    for shape in shapes():
        match = shape.pattern.match(text, start) if _follows(shape, rank) else None
        if match and (shape.known or shape.rank == DOOR or not no_place().match(match[0])):
            component = _Part(match.end(), shape.rank, shape.known, firm=bool(match.groupdict().get("ending")))
            if shape.known:
                return component
            candidates.append(component)
    return min(
        candidates,
        key=lambda component: (
            component.rank != DOOR,
            -component.end if component.rank == DOOR else component.end,
            -component.rank,
        ),
        default=None,
    )


def _follows(shape: Shape, rank: int) -> bool:
    """Return whether a part may follow one of this rank: never a larger part, and a door only after a house."""
    if shape.rank == DOOR:
        return rank >= (ESTATE if shape.pattern.pattern == BARE else TOWN)
    if rank == DOOR:
        return shape.rank == ESTATE
    return shape.rank >= rank or (rank == ESTATE and shape.rank == PLACE)


def _identifies(components: list[_Part], cued: bool) -> bool:
    """Return whether the parts are specific enough to identify where a person lives."""
    lowest = max((component.rank for component in components), default=0)
    if lowest == DOOR or cued:
        return lowest >= COUNTY
    if any(component.led for component in components):
        return True
    fixed = [component for component in components if component.rank <= COUNTY and (component.firm or component.known)]
    if lowest == TOWN and fixed:
        return components[-1].end - components[-2].end >= 3  # 东莞长安镇, no 北京城镇
    return lowest >= TOWN and (
        any(component.firm for component in fixed) or (len(fixed) >= 2 and fixed[-1].rank == COUNTY)
    )
