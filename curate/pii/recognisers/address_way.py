"""The way from a crossing to a house: `中山路与人民路交叉口往东200米路北`.

A crossing is one road or more and a word for it; a way is a row of directions, distances and sides of the road. Both
are parts of an address in any context.
"""

import re
from functools import cache

from curate.pii.recognisers.address_parts import NAME, door, no_place
from curate.pii.recognisers.places import NUMBER
from curate.pii.words import compiled, one_of, words

_CROSSED = (
    " ?的?(?:大|小)?(?:[十丁T三]字?[岔叉]?路口|[十丁]字街?口?|交叉(?:路口|口|处|点)?|交[汇会](?:处|口|点)?"
    "|交界(?:处|口)?|交接处|[交相]口|相交处?|[路街道]口|[三岔][岔叉]?口"
    "|(?:大?转盘|环岛|红绿灯|立交桥?)(?:路口|处)?|(?<=[路街道巷])口|[拐转]角处?)"
)
"""The word for a crossing behind its roads."""
CROSSED_WRITTEN = (
    "交[叉汇匯会會口界接]|相[交口]|[路街巷道]口|岔口"
    "|[路街巷道](?:的?[大小]?[十丁T三]字|[拐转轉]角|[环環][岛島]|大?[转轉][盘盤]|[红紅][绿綠]|立交)"
)
"""What no crossing is written without, for a trigger."""
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
    other = f"(?:(?![与跟及、]){NAME}){{1,6}}?(?:大?桥(?![东西南北]?[路街巷])|村(?= ?[与和跟及]))"
    road = f"[A-Za-z0-9]{{0,4}}(?:(?![与跟及、]){NAME}){{1,8}}?{ends}{section}"
    return f"(?:(?:{numbered}|{coded}|{road}|{other})(?:{NUMBER}号)?)"


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
"""With one road these are no crossing."""
_no_road = compiled(lambda: one_of(words("places")["no_roads"]))


@cache
def crossed() -> re.Pattern[str]:
    """Return a pattern for the words behind the roads of a crossing."""
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
    """Return where the first road's name begins: behind words that are in none (`诊所新址`)."""
    while other := _other_road().search(text, max(0, start - 12), start):
        start = other.start()
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


def crossing(text: str, at: int) -> int | None:
    """Return where a crossing ends that begins here."""
    match = _crossing().match(text, at)
    if not match or no_place().match(match["road"]) or _no_road().search(match["road"]):
        return None
    if not match["other"] and _ALONE_NONE.search(match[0]):
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


_estate = compiled(lambda: f"{NAME}{{2,8}}?(?= ?{door()}|[0-9]{{1,3}}-[0-9])")


def estate(text: str, at: int) -> int | None:
    """Return where a name ends that begins here and has a house's or a door's number behind it (`万达B座`)."""
    match = _estate().match(text, at)
    return match.end() if match and not no_place().match(match[0]) else None


@cache
def _last_place() -> re.Pattern[str]:
    stops = "".join(words("places")["no_way_ends"])
    return re.compile(rf"(?:(?![{stops}]){NAME}){{0,6}}?{one_of(words('places')['way_ends'])}(?:院?内)?")


DASHED = re.compile("[0-9]{1,3}-[0-9]")


def last_place(text: str, at: int) -> int | None:
    """Return where a shop or the like ends that stands right behind a way (`东北角广场`)."""
    match = _last_place().match(text, at)
    return match.end() if match else None
