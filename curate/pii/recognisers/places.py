"""Patterns of places and address parts, shared by the recognisers of addresses and institutions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from curate.pii.patterns import narrow
from curate.pii.words import compiled, one_of, words

NUMBER = r"(?:[0-9]{1,5}|[一二三四五六七八九十百零〇两]{1,6})"
"""A number in an address or a hospital's name."""


@cache
def _simplified() -> dict[int, str]:
    return {ord(pair[0]): pair[1] for pair in words("places")["traditional"]}


_traditional = compiled(lambda: f"[{''.join(map(chr, _simplified()))}]")


@lru_cache(maxsize=8)
def fold(text: str) -> str:
    """Return the narrowed text with traditional characters simplified one by one; offsets are unchanged."""
    narrowed = narrow(text)
    return narrowed.translate(_simplified()) if _traditional().search(narrowed) else narrowed


@cache
def place() -> str:
    """Return a pattern for a sequence of province, cities, counties and district, with or without their type words."""
    lists = words("places")
    province = f"{one_of(lists['provinces'])}{one_of(lists['province_endings'])}?"
    city = f"{one_of(lists['cities'], lists['counties'])}(?:自治州|地区|市|州|盟|县)?"
    return f"(?:{province} ?(?:{city}){{0,2}}|(?:{city}){{1,2}})(?:{one_of(lists['districts'])}区?)?"


def written(texts: Iterable[str]) -> str:
    """Return a pattern for one of the words in traditional or simplified characters, digits full-width or not."""
    forms = _forms()
    return f"(?:{'|'.join(''.join(f'[{c}{forms[c]}]' if c in forms else c for c in text) for text in texts)})"


def one_character(characters: Iterable[str]) -> str:
    """Return a pattern for one of the characters, in the same variants as `written`."""
    return f"[{''.join(sorted(character + _forms().get(character, '') for character in set(characters)))}]"


@cache
def _forms() -> dict[str, str]:
    forms = {str(digit): chr(0xFF10 + digit) for digit in range(10)}
    for pair in words("places")["traditional"]:
        forms[pair[1]] = forms.get(pair[1], "") + pair[0]
    return forms


# The parts of an address and what each looks like, from the province down to the door.

CITY, COUNTY, TOWN, PLACE, ESTATE, DOOR = range(1, 7)
"""Rank of a part of an address, from large to small; provinces rank as CITY, roads and villages as PLACE."""

_SMALL_WORDS = "的了是我你您他她它们这那哪么吗呢吧啊没很请说吃喝问去在到看给把被叫做就也都还又些种每几各住昨今刚个"
NAME = f"(?:(?![{_SMALL_WORDS}])[一-龥]|(?<=[魏成首古帝江武丰望昌商洛])都)"
"""A character of an unlisted name; 都 only in names such as `魏都大道`."""

_COUNT = rf"[A-Za-z甲乙丙丁第附增]?{NUMBER}[A-Za-z]?"
BARE = (
    r"(?:[A-Za-z]?[0-9]{1,4}(?:-[0-9]{1,4}){1,3}|[A-Za-z]?[0-9]{3,4})(?![0-9A-Za-z.%年月日天次岁])"
    r"(?! ?[号楼室层房户栋幢座弄组单门元块斤克毫多个cmk/])"
)
"""A door number that no word for door follows: `2单元301`, `幸福小区5-2-301`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Pattern of a part of an address, with its rank, and whether it is a listed place.

    If the pattern's group `ending` matches, the part ends in a word for its type: `上海市`, not `上海`.
    """

    pattern: re.Pattern[str]
    rank: int
    known: bool = False


@cache
def _ends(name: str) -> str:
    return one_of(words("places")[name])


def door() -> str:
    """Return a pattern for a house, a building, a floor or a door."""
    house = "(?!(?<=号)(?:线|染色|元素|位点|基因|管|方|病))"
    counted = rf"{_COUNT}(?: ?[-~至、/] ?(?:{_COUNT}|[A-Z](?=[座栋幢]))){{0,3}} ?{_ends('doors')}{house}(?:之{NUMBER})?"
    lettered = f"[A-Za-z]{{1,2}}{_ends('lettered_doors')}|[东西南北中]{{1,2}}(?:单元|[座栋幢户])"
    gate = rf"{_COUNT}门(?=[0-9])|(?<=[楼栋幢座]){_COUNT}门(?![诊口卫店])"
    return rf"(?:{counted}|之{NUMBER}|{lettered}|{gate}|地下室|底商|[0-9]{{1,2}}[Ff](?![A-Za-z0-9]))"


@cache
def shapes() -> tuple[Shape, ...]:
    """Return the patterns of all parts of an address, listed places first."""
    return (*_listed_shapes(), *_unlisted_shapes())


def _listed_shapes() -> tuple[Shape, ...]:
    lists = words("places")
    cities, districts = one_of(lists["cities"], lists["counties"]), one_of(lists["districts"])
    not_inside = "(?![路街道巷镇乡村]|大街|大道|社区|小区|花园)"  # 中关村大街 is no 中关村
    return (
        Shape(re.compile(f"{one_of(lists['provinces'])}(?P<ending>{_ends('province_endings')})?"), CITY, known=True),
        Shape(re.compile(f"{cities}(?:(?P<ending>自治州|地区|[市州盟县])|{not_inside})"), CITY, known=True),
        Shape(re.compile(f"{districts}(?:(?P<ending>新区|区)|{not_inside})"), COUNTY, known=True),
    )


def _unlisted_shapes() -> tuple[Shape, ...]:
    quarter = "(?:小区|公寓|社区|[东南西北]区|[一二三四五六七八0-9][期区])?"
    numbered = rf"(?={quarter}[ ,，]?{door()})"
    not_inside = "(?![大东西南北中]?[路街道]|[镇乡])"
    road = rf"(?:{_ends('roads')}|道(?![一-龥])|{_ends('roads_with_number')}{numbered})"
    section = f"(?:[东南西北中]?(?:{NUMBER}|[东南西北中])段|[东南西北中](?!段))?"
    village = f"(?:{_ends('villages')}|{_ends('villages_with_number')}{numbered})"
    estate = f"(?:{_ends('estates')}{not_inside}|{_ends('estates_with_number')}{numbered})"
    return (
        Shape(re.compile(f"{NAME}{{1,5}}?(?P<ending>自治州|地区|[市盟])"), CITY),
        Shape(
            re.compile(f"{NAME}{{1,6}}?(?P<ending>自治[县旗]|[新林]区|开发区|高新区|(?<![小社校园院])区|[县旗])"),
            COUNTY,
        ),
        Shape(re.compile(f"{NAME}{{1,6}}?{_ends('towns')}(?!(?<=镇)[静痛惊咳定压])|[一-龥]{{1,8}}?苏木"), TOWN),
        Shape(re.compile(f"{NAME}{{1,8}}?{road}{section}(?![道头面口村镇乡])"), PLACE),
        Shape(re.compile(f"{NAME}{{1,6}}?{village}(?:委会|居委会)?{not_inside}"), PLACE),
        Shape(re.compile(f"(?:[A-Za-z0-9]{{0,6}}{NAME}{{1,8}}?|[A-Za-z]{{1,6}}){estate}{quarter}"), ESTATE),
        Shape(re.compile(door()), DOOR),
        Shape(re.compile(BARE), DOOR),
    )


def no_name() -> str:
    """Return a pattern for words that no name begins with (`患者`, `附近`)."""
    return f"(?!新建[东西南北中]?[路街]){_ends('no_names')}"


@cache
def no_place() -> re.Pattern[str]:
    """Return a pattern for words with the ending of an address part that are none (`消化道`, `农村`)."""
    return re.compile(rf"{_ends('no_places_alone')}\Z|{no_name()}|.{{0,8}}{_ends('no_places')}\Z")


@cache
def anchor() -> re.Pattern[str]:
    """Return a pattern for the end of a name and a number after it, in addresses that begin without a listed place."""
    estate = f"(?:{_ends('estates')}|社区|[苑庭园城])"
    return re.compile(
        rf"(?:[路街巷弄道]|胡同)[东南西北中]?(?:{NUMBER}段)? ?[甲乙丙丁]?{NUMBER}(?:-[0-9]{{1,3}})?[号弄巷]"
        rf"|(?<![各全市郊山社])[县旗区]{NAME}{{1,5}}?(?:[镇乡村]|街道|苏木)(?![静痛医卫])"
        rf"|{estate}[东南西北]?区? ?(?:{NUMBER} ?(?:号楼|栋|幢|单元|座|号)|[A-Z](?:座|栋|幢)"
        r"|[0-9]{1,2}-[0-9]{1,2}-[0-9]{3,4}(?![0-9]))"
        rf"|[村庄屯寨沟湾营堡坪查] ?(?:第?{NUMBER} ?(?:村民小?组|[组队社号]))"
    )


HOUSE = re.compile(
    rf"[住家](?:在|址[:：]?)? ?(?P<house>{NUMBER}(?:号楼|栋|幢) ?{NUMBER}单元(?: ?{NUMBER}(?:室|号)?)?(?![0-9病区床]))"
)
"""A house without its road, after a word for living: `住5号楼2单元301`."""
CAPITAL = r"[A-Z][A-Za-z'’]{0,20}"
ENGLISH = re.compile(
    r"(?:(?:Room|Rm|Flat|Unit|Suite|Apt)\.? ?[A-Z]?[0-9]{1,5}[A-Z]?, ?)?"
    r"(?<![A-Za-z0-9.,/$-])(?:No\.? ?)?[0-9]{1,5}(?:-[0-9]{1,4})?[A-Z]?,? "
    rf"(?:(?:[NSEW]\.?|{CAPITAL}|[0-9]{{1,3}}(?:st|nd|rd|th)) ){{1,4}}"
    r"(?:Street|Avenue|Road|Boulevard|Lane|Drive|Highway"
    r"|(?:St|Ave|Rd|Blvd|Ln|Dr|Way|Court|Ct|Place|Pl|Hwy|Lu|Jie)(?=\.?,? ?(?:[A-Z#]|$)))(?![A-Za-z])\.?"
    r"(?: [NS][EW](?![A-Za-z]))?"
    r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Room|Floor|#)\.? ?[A-Za-z0-9-]{1,6}(?![A-Za-z]))?"
    rf"(?:, ?{CAPITAL}(?: {CAPITAL}){{0,2}}(?![a-z])){{0,4}}(?:,? [A-Z]{{2}}(?![A-Za-z]))?"
    r"(?:,? (?:[0-9]{5}(?:-[0-9]{4})?|[0-9]{6})(?![0-9]))?"
)
"""An address in English: `Room 502, No. 88 Jianguo Road, Chaoyang District, Beijing 100022`."""

_CODE = "(?:邮编|邮政编码|邮递区号)(?:号码|是|为)?[:： ]{0,2}"
POSTCODE = re.compile(rf"[ ,，;；。(（]{{0,2}}(?:{_CODE})?(?P<code>[1-9][0-9]{{5}})(?![0-9])")
"""A postcode after an address."""
POSTCODE_ALONE = re.compile(rf"{_CODE}(?P<code>[0-9]{{6}})(?![0-9])")
