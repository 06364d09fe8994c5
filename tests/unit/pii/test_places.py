"""Addresses and hospitals that were made up: every number on every road, every kind in every city, found whole."""

import random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.recognisers.address import address
from curate.pii.recognisers.institutions import hospital
from curate.pii.settings import Masking, masker
from tests import ROOT
from tests.support.recognising import found

MASKER = masker(Masking(), "zh", b"k" * 32)

ROADS = st.sampled_from(["中山路", "解放北路", "人民大道", "建设大街", "学院路", "青年街", "长江西路"])
ABOVE = st.sampled_from(
    ["", "北京市海淀区", "湖南省长沙市", "浙江杭州西湖区", "江苏省徐州市沛县", "广西南宁市", "重庆市"]
)
DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
CHINESE = st.text("一二三四五六七八九十", min_size=1, max_size=3)
BELOW = st.sampled_from(["", "3号楼", "2单元", "5栋2单元301室", "A座1203", "12楼", "502室"])


@settings(max_examples=100)
@given(ABOVE, ROADS, st.one_of(st.integers(1, 9999).map(str), CHINESE), BELOW, st.booleans())
def test_every_number_on_every_road(above: str, road: str, number: str, below: str, wide: bool) -> None:
    written = f"{above}{road}{number}号{below}"
    written = written.translate(DIGITS) if wide else written
    assert found(address, f"我家在{written}，") == [written]


CITIES = st.sampled_from(
    ["长沙市", "徐州", "河南省周口市", "乌鲁木齐市", "台北市", "湖北宜昌", "海淀区", "大悟县", "深圳市龙岗区"]
)
KINDS = st.sampled_from(
    ["中心", "第一人民", "第十二人民", "中医", "妇幼保健", "儿童", "肿瘤", "传染病", "第3人民", "口腔"]
)
IN_FRONT = st.sampled_from(["", "我在", "去了", "转到", "，", "患者于", "复诊："])
BEHIND = st.sampled_from(["", "看过", "，", "的医生", "住院5天", "确诊"])


@settings(max_examples=100)
@given(CITIES, KINDS, IN_FRONT, BEHIND)
def test_every_kind_in_every_city(city: str, kind: str, before: str, behind: str) -> None:
    name = f"{city}{kind}医院"
    assert found(hospital, f"{before}{name}{behind}") == [name]


# in free text, drawn from parts

FORMS = yaml.safe_load((ROOT / "tests/data/places_free.yaml").read_text("utf-8"))


def places(text: str) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.kind) for span in MASKER.mask(text).spans]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_drawn_forms_are_found_whole_and_general_words_stay(form: str) -> None:
    draw = random.Random(15)
    kind = FORMS[form]["kind"]
    for _ in range(FORMS[form]["draws"]):
        front, *parts, behind = (draw.choice(words or [""]) for words in FORMS[form]["parts"])
        value = "".join(parts)
        found_at = [(len(front), len(front) + len(value), kind)] if kind else []
        assert places(front + value + behind) == found_at, front + value + behind
