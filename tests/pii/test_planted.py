"""Values that disguises hide or that only their family announces: found at exactly their place, and nothing else."""

import re

import pytest

from benchmarks.pii_planted import FOLDER, found, rows
from curate.pii.rewritten import rewrite
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all

MASKER = masker(Masking(), "zh", b"")
LEAST = {
    "first": {
        "kin_zh": 12,
        "kin_en": 12,
        "handle": 12,
        "staff": 12,
        "ip": 11,
        "base64": 12,
        "broken": 11,
        "entity": 12,
    },
    "second": {
        "kin_zh": 10,
        "kin_en": 12,
        "handle": 12,
        "staff": 10,
        "ip": 10,
        "base64": 10,
        "broken": 10,
        "entity": 10,
    },
    "third": {
        "kin_zh": 23,
        "kin_en": 23,
        "handle": 24,
        "staff": 23,
        "ip": 24,
        "base64": 21,
        "broken": 24,
        "entity": 41,
    },
    "fourth": {
        "kin_west": 22,
        "kin_link": 7,
        "kin_home": 8,
        "handle2": 10,
        "staff2": 10,
        "broken2": 8,
        "entity2": 8,
    },
}
"""Found in each class when the sets were last measured."""


@pytest.mark.parametrize("name", LEAST)
def test_what_was_planted_is_found(name: str) -> None:
    read = list(rows(FOLDER / f"{name}.tsv"))
    hits = dict.fromkeys(LEAST[name], 0)
    masked = found(read)
    for row, places in zip(read, masked, strict=True):
        for place in row.places:
            hits[row.name] += place in places
    assert {key: least for key, least in LEAST[name].items() if hits[key] < least} == {}
    assert sum(bool(places) for row, places in zip(read, masked, strict=True) if not row.places) <= 2


def test_bare_names_are_a_limit_that_the_rate_tells() -> None:
    read = list(rows(FOLDER / "bare.tsv"))
    hits = sum(place in places for row, places in zip(read, found(read), strict=True) for place in row.places)
    assert (hits, len(read)) == (8, 150), "docs/privacy.md states the rate"


@pytest.mark.parametrize(
    "text",
    [
        "我老公说这个药不能空腹吃",
        "我妈去医院",
        "@了医生一天也没回",
        "Windows 10.0.19045.2006",
        "ATGCCGTAGGCTAACGTTAGC",
        "see section 3.2.1.4",
        "EC 3.4.21.4",
        "my mother Nature Made vitamins",
        "Zm9vYmFyYmF6cXV4cXV1eA",
        "家里路由器192.168.1.1",
        "127.0.0.1",
        "192.0.2.17",
        "135\n4560\n1234",
        "138\n12345678",
        "看病 [at] 5pm",
        "@huawei 和 @baidu",
        "工号2024年换新",
        "v12.120.3.4",
        "ratio 120.80.70.60",
        "staff number 120 nurses",
        "my husband drew blood and my son will rest",
        "to my mother, Irish by birth, it was normal",
        "@许多人 都说好",
        "@李宁运动鞋怎么样",
        "my daughter called Kaiser and asked",
        "A&amp;#8805;B &amp;lt; 139",
        "look_at_page.html",
        "weil meine Tochter Fieber hat und hustet",
        "mi madre Dolores de cabeza",
        "ma mère Noël passé est tombée",
        "@欧阳",
        "咱家小子又发烧了",
        "国家代码:\n+86\n+852\n+1",
        "电话 1390-\n200-\n300 元",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert MASKER.mask(text).text == text == mask_all(MASKER, [text])[0].text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("电话&#49;&#51;&#56;62047715，谢谢", "电话[电话]，谢谢"),
        ("A&amp;B 139&nbsp;5521&nbsp;0934找我", "A&amp;B [电话]找我"),
        ("电话010-62830147\r\n2楼", "电话[电话]\r\n2楼"),
        ("联系电话1592038\r\n4471谢谢", "联系电话[电话]谢谢"),
        ("@王小明医生 您好", "@[姓名]医生 您好"),
        ("同意@许志强说的", "同意@[姓名]说的"),
        ("手机&amp;#49;&amp;#51;&amp;#56;62047715", "手机[电话]"),
        ("my daughter named Zuri has it", "my daughter named [NAME] has it"),
        ("my son liam won't eat", "my son [NAME] won't eat"),
        ("群里的@欧阳婷说要空腹", "群里的@[姓名]说要空腹"),
        ("手机139&shy;5521&shy;0935", "手机[电话]"),
        ("mon fils Mathéo tousse", "mon fils [NAME] tousse"),
        ("手机+86\n13720864415，谢谢", "手机[电话]，谢谢"),
        ("电话1591\n> 2345670谢谢", "电话[电话]谢谢"),
    ],
)
def test_a_disguise_goes_whole(text: str, masked: str) -> None:
    assert MASKER.mask(text).text == masked
    assert mask_all(MASKER, [text])[0].text == masked


def test_a_rewritten_text_knows_the_way_back() -> None:
    done = rewrite("a&#49;b&#50;c", re.compile("&#(..);"), lambda match: chr(int(match[1])))
    assert done.text == "a1b2c"
    assert [done.original(n, n + 1) for n in range(5)] == [(0, 1), (1, 6), (6, 7), (7, 12), (12, 13)]
    assert (done.original(0, 5), done.touches(0, 1), done.touches(6, 8)) == ((0, 13), False, True)
