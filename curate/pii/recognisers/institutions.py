"""Names of hospitals and schools, listed or not.

The words that occur in no name are removed from the characters before the ending. If a name is left, its typical
characters and the words before and after it count as evidence.
"""

import re
from collections.abc import Iterator
from functools import cache

from curate.core.records import Span
from curate.pii.patterns import CHINESE, FULL_WIDTH, TWO_SIGNS, trigger
from curate.pii.recognisers.institutions_short import behind, in_front
from curate.pii.rules import rules
from curate.pii.spans import in_order
from curate.pii.words import compiled, fold, one_of, words, written

_PLACE, NUMBER = map(rules("places").source, ("place", "number"))
_RUN = re.compile(r"[一-龥]{2,10}\Z")
_LONGEST = 7
_ENOUGH = 3
"""Minimum total weight of a name and its context."""


@cache
def no_name() -> re.Pattern[str]:
    """Return a pattern for words that occur in no name (`决定`, `出生后`)."""
    small = "".join(words("institutions")["small_words"])
    return re.compile(f"[{small}]|{one_of(word for word in words('institutions')['no_proper'] if len(word) > 1)}")


@cache
def _kinds() -> re.Pattern[str]:
    lists = words("institutions")
    common = [lists[name] for name in ("hospital_kinds", "disease_kinds", "generic", "hospital_endings")]
    return re.compile(rf"{one_of(*common)}|{_PLACE}|第?{NUMBER}")


_PROPER = frozenset("".join(words("institutions")["proper_characters"]))
_last_kinds = compiled(lambda: rf"(?:{_kinds().pattern})+\Z")
_small = compiled(lambda: one_of(word for word in words("institutions")["no_proper"] if len(word) == 1))


def unknown(text: str, ending: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of unlisted names of hospitals."""
    for last in ending.finditer(text):
        run = _RUN.search(text, max(0, last.start() - 10), last.start())
        if run is None or last[0][-1] not in "院部所":
            continue
        kinds = _last_kinds().search(text, run.start(), last.start())
        end = kinds.start() if kinds else last.start()
        start = _start(text, run.start(), end)
        evidence = min(2, in_front(text, start)) + min(2, behind(text, last.end()))
        if _is_name(text[start:end], kinds[0] if kinds else "", evidence):
            yield start, last.end()


def _start(text: str, start: int, end: int) -> int:
    """Return the start of a name: after the last word that occurs in no name."""
    for match in no_name().finditer(text, start, end):
        start = match.end()
    for match in _small().finditer(text, start, max(start, end - 2)):
        start = match.end()
    return start


def _is_name(stem: str, kinds: str, evidence: int) -> bool:
    """Return whether a stem, the hospital kinds after it, and the evidence of the context make a name."""
    if not 2 <= len(stem) <= _LONGEST or len(_kinds().sub("", stem)) < 2 or not evidence:
        return False
    proper = set(stem) <= _PROPER and len(stem) <= 4
    telling = any(kind in kinds for kind in words("institutions")["telling_kinds"])
    if not proper and _small().search(stem):
        return False
    return 2 * (proper or telling) + evidence >= (_ENOUGH if proper or telling else _ENOUGH + 1)


# Names of hospitals and schools: `长沙市中心医院`, `就读于育才中学`, but not `正规医院` or `上大学`.

_STOPS = (
    "的了是我你您他她它们在到去来往看这那哪么吗呢吧啊没很请说问想吃喝个家些种次几每各某该此怎什谁何昨今有或跟给被让把叫带做就"
    "也还又只最妈爸婆爷奶"
)
_HOME = "家(?=[屯庄村镇湾坡沟湖口堡河嘴桥塘集港渡汇坪岭寨洼圩浜宅角堰坝店铺营坟墩棚峪岗巷弄园井沱房])"
_NAME = f"(?:(?![{_STOPS}])[一-龥]|{_HOME})"
_UNIT = f"(?:(?![和院科室转送由据等找问换说]|从(?![化江])){_NAME}|(?<=[马李王张刘陈杨郑吴孙赵周何高宋白石胡曹许罗])家)"
_BEFORE = r"(?:(?<![一-龥])|(?<=[的了在到去于从来往至过经是和与]))"
"""Lookbehind for the start of a name: no Chinese character, or a particle."""
_REACH = 26
"""Maximum length of a hospital's name without its ending."""
_SIGNS = "，。！？；\n"
"""Signs that occur in no name; the search stops at them."""
_SMALL = "县|(?<![社山城市郊病地辖治老军])区|旗|(?<![乡城村])镇|乡(?!镇)|街道"


@cache
def _list(*names: str) -> str:
    return one_of(*(words("institutions")[name] for name in names))


@cache
def _hospital() -> re.Pattern[str]:
    """Return the pattern of a hospital's name; its group `own` must be a proper name."""
    numbered = f"第?{NUMBER}"
    kinds = f"(?:{_list('hospital_kinds')}|{numbered}|附属|市|省|中(?=医院))"
    every = f"(?:{_list('hospital_kinds', 'disease_kinds')}|{numbered}|中(?=医院))"
    unit = f"(?P<unit>{_BEFORE}{_UNIT}{{1,4}}|{_UNIT}{{2}})(?:自治[县州旗]|{_SMALL}|市|省)"
    lower = f"{_NAME}{{1,5}}?(?:自治[县州旗]|{_SMALL}|市|[路街](?=社区))"
    lists = words("places")
    small = one_of(lists["small_counties"])
    region = "(?:华北|华东|华南|华中|东北|西北|西南|中原|胜利|江汉|辽河|大港|长庆)(?=石油|油田|矿|铁路|电)"
    known_place = f"{_PLACE}(?:{small}县?)?|{small}县?"
    where = rf"(?:(?:{known_place}|{unit}|{region}|{one_of(lists['regions'])})(?: ?{lower}){{0,2}})"
    ending = _list("hospital_endings")
    army = f"{_PLACE}军区(?:{_PLACE})?(?:总|第?{NUMBER})?医院"
    university = f"(?:{_list('universities')}|{_PLACE}(?:{_list('school_kinds')}){{0,3}})(?:大学|学院|医学院)"
    short = "[浙苏郑吉山川中武南西复北哈厦青兰同交]大|[哈安皖温徐贵昆重川广福南首新河内]医大?|北医|医科?大"
    health = _list("public_health")
    larger = one_of(lists["provinces"], lists["cities"])
    nested_place = f"{larger}市?{one_of(lists['districts'], lists['counties'], lists['like_districts'])}区?"
    disease = "(?<![病炎症癌瘤痛疮疹癣疡疣疝石毒药片汤丸膏剂素])"
    shapes = (
        f"{where}(?:{kinds}{{1,5}}{ending}|(?:(?<=[市县区旗镇乡省道])|(?<=治州)){every}{{1,4}}{ending}|(?<=[县区旗镇乡])(?:医院|诊所|门诊部)|(?:社区|中心)?{health})",
        f"(?:{_PLACE})?{_list('hospital_names')}{every}{{0,3}}{ending}",
        f"{nested_place}医院",  # a place inside a larger one is sufficient: 苏州九龙医院
        rf"{_BEFORE}(?P<quarter>{_UNIT}{{2,4}})(?:社区卫生服务(?:中心|站)|村(?:卫生室|卫生所))",
        f"{university}(?:{_NAME}{{0,6}}学院)?的?{_NAME}{{0,8}}{ending}",
        f"中国(?:医学|中医)科学院{_NAME}{{1,6}}医院",
        rf"解放军(?:陆军|海军|空军)?(?:{numbered}|总|{_NAME}{{2,6}})(?:中心)?医院",
        r"(?<![0-9第.])(?!120)(?:[0-9]{3}|第[一二三四五六七八九〇零]{3})(?:军区|部队|中心)?医院",
        rf"(?:武警|陆军|海军|空军)(?:{_PLACE}|{_NAME}{{2}}|总|特色)(?:总队|部队|支队)?医院|{army}",
        rf"(?:{_PLACE}(?:(?:{short})附?属?)?|(?:{short})附?属?)第?{_NUMBERED}",
        rf"{_NAME}氏{every}{{0,2}}(?:诊所|门诊部|医院)|{_NAME}{{1,3}}(?:医生|大夫)诊所",
        rf"(?:{_PLACE}|(?:{_PLACE})?{small}县?)(?P<own>{_NAME}{{2,7}}){disease}{ending}",
        rf"{_PLACE}(?P<brand>{_NAME}{{2,3}}){every}{{1,2}}{ending}",
        rf"(?<=[在到去往至进于经回])(?P<alone>(?:(?![行住以治]){_NAME}){{2,5}}){disease}{ending}",
    )
    return re.compile(rf"(?:{'|'.join(shapes)})\Z")


@cache
def _ending() -> re.Pattern[str]:
    last = "|".join(f"(?<={preceding})" for preceding in _LAST)
    first = "".join({word[0] for word in _OTHER_ENDINGS})
    # the lookahead on one character saves `re` the lookbehinds at every position
    return re.compile(rf"(?=[医{first}一二三四五六七八九1-9])(?:(?:{last})医院|{one_of(_OTHER_ENDINGS)}|{_NUMBERED})")


_LAST = (
    "[^去到的规在了上个送往进是这那业级型些次诊院家科病痫威甲大地]",
    "睦家",
    "[^专]科",
    "[^痫]病",
    "[^权]威",
    "[^二三]甲",
    "[^各当的些上去到]大",
    "[^当各外本]地",
)
"""Patterns of the characters before 医院 in a name; most other words before it are no names (`去医院`, `三甲医院`)."""
_NUMBERED = "[一二三四五六七八九1-9]附?属?医?院"
_ENGLISH_WORD = r"(?:(?:St|Ste|Mt)\.? )?[A-Z][A-Za-z'’-]{0,20}(?<=[A-Za-z'’])"
_ENGLISH = re.compile(
    rf"(?<![A-Za-z])(?P<words>(?:{_ENGLISH_WORD} (?:(?:of|the|and|&|for|de|la|del) ){{0,2}}){{1,7}})"
    r"(?:Hospitals?|Infirmary|Medical Cent(?:er|re)s?"
    r"|(?P<small>Clinic|Health Cent(?:er|re)|Hospice|(?:Nursing|Care) Home))(?![A-Za-z-])"
)
_TELLING = re.compile(r"(?:^| )(?:St|Ste|Mt|Saint|Mount|Our Lady)(?:\.| )|['’]s? |[a-z]-[A-Z]")
"""A saint, a possessive or a double name: by it a clinic or a home is one of them; `Asthma Clinic` is none."""
_ILLNESS = re.compile("Syndrome|Disease|Disorder")
"""Words that make an illness of a possessive, as in `Sjogren's Syndrome Clinic`."""
_OTHER_ENDINGS = words("institutions")["hospital_endings"][1:]
_REGION = f"(?:{_PLACE}|{one_of(words('places')['districts'], words('institutions')['branch_regions'])})"
_BRANCH = re.compile(
    rf"(?:(?<=医学中心)医院|{_REGION}(?:医院|分院|院区)|[东西南北新老]院区?|[东西南北]区(?!域)|{_NAME}{{2,4}}院区|(?!开设|成立|设立|新建|其他|所有|附近){_NAME}{{2,3}}分院|分院|总院|本部|第?{NUMBER}(?:医学中心|分院|院区|门诊部))(?!长)"
)
"""Possible continuations of a hospital's name, such as a branch."""


@trigger(
    f"(?:{'|'.join(_LAST)})[医醫]院|(?:[卫衛]生|保健|[疗療][养養]|防治)院"
    "|[一-龥][一二三四五六七八九1-9１-９]附?[属屬]?[医醫]?院",
    needs="院",
)
@trigger(
    r"[A-Z][A-Za-z'’-]*\s(?:(?:of|the|and|&|for)\s)*(?:Hospital|Infirmary|Medical\sCent)"
    r"|(?:(?:St|Mt|Mount|Saint)\.?|['’]s?|[a-z]-[A-Z][a-z]*)(?:\s[A-Z][a-z]*)*"
    r"\s(?:Clinic|Health\sCent|Hospice|Nursing|Care\sH)",
    FULL_WIDTH,
    needs=TWO_SIGNS,
)
@trigger(
    written(word for word in _OTHER_ENDINGS if not word.endswith("院")),
    needs=CHINESE,
)
def hospital(text: str) -> list[Span]:
    """Return named hospitals, clinics and health centres, but not generic ones (`三甲医院`, `当地的县医院`)."""
    folded = fold(text)
    names = [_longer(_BRANCH, folded, *extent) for extent in _longest_names(folded, _ending(), _hospital(), _common())]
    others = (
        (start, end)
        for start, end in unknown(folded, _ending())
        if all(end <= first or last <= start for first, last in names)
    )
    return in_order([*names, *others, *_english(folded)], "hospital", "hospital")


def _english(text: str) -> Iterator[tuple[int, int]]:
    """Yield English names such as Xiangya Hospital, St. Mary's Hospital and Mount Sinai Medical Center."""
    for match in _ENGLISH.finditer(text):
        proper = [word for word in re.findall(r"[A-Za-z'’-]+", match["words"]) if not _is_plain(word)]
        told = _TELLING.search(match["words"]) and not _ILLNESS.search(match["words"])
        if proper and (told or not match["small"]):
            yield match.start() + (4 if match[0].startswith("The ") else 0), match.end()


@cache
def _plain_words() -> frozenset[str]:
    generic = (*words("institutions")["english_generic"], *words("clinical")["common"])
    return frozenset(word.casefold() for word in generic)


def _is_plain(word: str) -> bool:
    """Return whether a word of an English name tells nothing about which hospital it is."""
    return word.islower() or re.sub("['’]s?$", "", word.casefold()) in _plain_words()


def _longest_names(
    text: str, ending: re.Pattern[str], shapes: re.Pattern[str], common: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """Yield the longest name before every ending, unless it consists of common words."""
    last_end = 0
    for last in ending.finditer(text):
        low = max(0, last.start() - _REACH)
        clause = 1 + max(text.rfind(sign, low, last.start()) for sign in _SIGNS)
        match = shapes.search(text, max(last_end, low, clause), last.end())
        while match and not _proper(match, common):
            match = shapes.search(text, match.start() + 1, last.end())
        if match:
            last_end = match.end()
            inside = (match.start() + 1, match.end("unit") + 1) if match["unit"] else None
            known_place = re.compile(_PLACE).search(text, *inside) if inside else None
            yield (known_place or match).start(), last_end  # 长沙市 in 妈妈长沙市, which is an unknown place


def _longer(branches: re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    """Return (start, end) of a name, extended by a larger place before it and a branch (`东院`) after it."""
    branch = branches.match(text, end)
    larger = _larger().search(text, max(0, start - 8), start)
    return larger.start() if larger else start, branch.end() if branch else end


@cache
def _larger() -> re.Pattern[str]:
    """Return a pattern for a place before a name that itself begins with a place (`贵阳` + `贵州省骨科医院`)."""
    return re.compile(rf"{_PLACE}\Z")


def _proper(match: re.Match[str], common: re.Pattern[str]) -> bool:
    """Return whether the unlisted words of a match are a proper name, that is, not only kinds and qualities."""
    proper_name, unit = match["own"], match["unit"]
    alone = match["alone"] or match.groupdict().get("brand") or match.groupdict().get("quarter")
    if alone:
        return len(common.sub("", alone)) >= 2 and not no_name().match(alone)
    if unit and no_name().search(unit):  # 治疗首选县医院
        return False
    return not (proper_name or unit) or common.sub("", proper_name or unit) != ""


@cache
def _common() -> re.Pattern[str]:
    lists = words("institutions")
    kinds = [lists[name] for name in ("hospital_kinds", "disease_kinds", "generic", "hospital_endings")]
    return re.compile(rf"{one_of(*kinds)}|{_PLACE}|第?{NUMBER}|[上下里外中大小好前后市县区省镇乡村]")


_FACULTY = re.compile(rf"{_NAME}{{0,8}}?(?:学院|附中|附小|附属中学|附属小学|小学部|中学部)")


@cache
def _school() -> re.Pattern[str]:
    """Return the pattern of a school's name; its group `own` must be a proper name."""
    unit = f"(?P<unit>{_BEFORE}{_UNIT}{{1,4}}|{_UNIT}{{2}})(?:{_SMALL}|市|省)"
    ending = f"(?:{_list('school_endings')}|中)"
    proper_name = f"(?P<own>(?:(?![上读]){_NAME}){{0,9}}?)"
    shapes = (
        f"(?:国立)?{_list('universities')}(?:大学|学院)",
        f"(?:国立)?(?:{_PLACE}|{unit})(?:{_NAME}{{1,5}}?(?:{_SMALL}))?(?:(?:{_list('school_kinds')}|第?{NUMBER}){{0,4}}|{proper_name}){ending}",
        f"(?:{_list('school_named')}|第?{NUMBER}){{1,2}}{ending}",
        f"(?:{_BEFORE}|(?<=[读入考取校]))(?P<alone>(?:(?![于读上考入]){_NAME}){{2,9}}){ending}",
        _list("school_short"),
    )
    return re.compile(rf"(?:{'|'.join(shapes)})\Z")


_school_ending = compiled(
    lambda: f"{_list('school_short')}(?!学|大学|附)|{_list('school_endings')}|[一二三四五六七八九十0-9]中(?!学)"
)


@cache
def _common_school() -> re.Pattern[str]:
    lists = words("institutions")
    return re.compile(rf"{one_of(lists['school_kinds'], lists['school_generic'])}|{_PLACE}|第?{NUMBER}")


_cue = compiled(lambda: rf"{_list('school_cues')}[了的]?[:： ]{{0,2}}\Z")
_after = compiled(lambda: rf"的?{_list('school_after')}")


@trigger(
    f"{written(words('institutions')['school_cues'])}"
    f"|(?:{written([*words('institutions')['school_endings'], *words('institutions')['school_short']])}"
    f"|[一二三四五六七八九十0-9０-９]中)的?{written(words('institutions')['school_after'])}",
    needs=CHINESE,
)
def school(text: str) -> list[Span]:
    """Return names of schools and universities that a person attends or attended (`就读于…`, `在…读书`)."""
    folded = fold(text)
    names = (
        _longer(_FACULTY, folded, *extent)
        for extent in _longest_names(folded, _school_ending(), _school(), _common_school())
    )
    attended = (
        (start, end)
        for start, end in names
        if _cue().search(folded, max(0, start - 10), start) or _after().match(folded, end)
    )
    return in_order(attended, "school", "school")
