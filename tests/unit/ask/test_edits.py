"""Meaning-changing edits: what each kind does, what is left alone, and that one detail alone changes."""

import random
import re
from collections import Counter

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.ask.edits.confirmation import combined
from curate.ask.edits.rewriting import BROADER, DIGITS, KINDS, RULES, Amount, edit_rules, edits, has_rules, swaps
from curate.ask.edits.synonym_matcher import Lexer
from curate.ask.edits.synonyms import read
from curate.system import resources

DATA = yaml.safe_load(resources.data_file(RULES).read_text(encoding="utf-8"))
LEXERS = {
    language: Lexer(
        read(resources.find("annotations", f"synonyms-{language}.tsv").read_text(encoding="utf-8"), ".tsv", "x")
    )
    for language in ("zh", "en")
}

EXPECTED = [
    ("zh", "negation", "糖尿病能吃什么水果", "糖尿病不能吃什么水果"),
    ("zh", "negation", "乙肝怎么预防", "乙肝怎么治疗"),
    ("zh", "laterality", "左侧肾结石怎么办", "右侧肾结石怎么办"),
    ("zh", "dose", "布洛芬一天吃3片行吗", "布洛芬一天吃6片行吗"),
    ("zh", "dose", "结节4类的乳腺增生要紧吗", "结节3类的乳腺增生要紧吗"),
    ("zh", "dose", "孩子发烧吃两片药行吗", "孩子发烧吃四片药行吗"),
    ("zh", "drug", "头疼吃布洛芬好吗", "头疼吃阿司匹林好吗"),
    ("zh", "population", "60岁高血压吃什么药", "25岁高血压吃什么药"),
    ("zh", "population", "高血压患者能吃党参吗", "高血压患儿能吃党参吗"),
    ("zh", "time", "二甲双胍饭前吃可以吗", "二甲双胍饭后吃可以吗"),
    ("zh", "time", "发烧3天了怎么办", "发烧3个月了怎么办"),
    ("zh", "swap", "高血压能治好吗", None),
    ("en", "negation", "Who is at risk for gout?", "Who is not at risk for gout?"),
    ("en", "laterality", "Pain in the left arm", "Pain in the right arm"),
    ("en", "dose", "Can I take 3 tablets of it", "Can I take 6 tablets of it"),
    ("en", "dose", "What causes Type 2 diabetes?", "What causes Type 1 diabetes?"),
    ("en", "drug", "Is Aspirin safe?", "Is Ibuprofen safe?"),
    ("en", "population", "What causes asthma in children?", "What causes asthma in adults?"),
    ("en", "time", "Early signs of gout", "Late signs of gout"),
    ("en", "swap", "What causes hypertension?", None),
]


@pytest.mark.parametrize(("language", "kind", "text", "expected"), EXPECTED)
def test_each_kind_changes_its_detail(language: str, kind: str, text: str, expected: str | None) -> None:
    made = [each.text for each in edits(text, language, 7, kinds=[kind], lexer=LEXERS[language])]
    assert made
    assert text not in made
    assert expected is None or expected in made


LEFT_ALONE = [
    ("zh", "dose", "60岁能打疫苗吗"),  # doubled, nobody is 120
    ("zh", "dose", "发烧39度怎么办"),  # a temperature
    ("zh", "dose", "第3次发作怎么办"),
    ("zh", "dose", "回电15900003826片"),
    ("zh", "dose", "回kl8@x.com"),
    ("zh", "dose", "一次性治好吗"),
    ("zh", "time", "2012年查出高血压"),
    ("zh", "laterality", "左氧氟沙星好吗"),
    ("zh", "laterality", "左右为难"),
    ("zh", "population", "我妈妈64岁，能吃吗"),
    ("zh", "negation", "高血压能吃芝麻吗"),  # yes or no is one answer
    ("en", "laterality", "Choosing a treatment that is right for you"),
    ("en", "dose", "What are type 1 and type 2 diabetes?"),
    ("en", "population", "What are the symptoms of prostate cancer?"),
    ("en", "drug", "What is environmental health?"),  # no iron in it
]


@pytest.mark.parametrize(("language", "kind", "text"), LEFT_ALONE)
def test_what_would_be_nonsense_is_left_alone(language: str, kind: str, text: str) -> None:
    assert [each.text for each in edits(text, language, 7, kinds=[kind], lexer=LEXERS[language])] == []


def test_no_drug_is_replaced_by_another_name_of_itself() -> None:
    made = [each.text for each in edits("高血压吃倍他乐克好吗", "zh", 1, kinds=["drug"])]
    assert "高血压吃硝苯地平好吗" in made
    assert not any("美托洛尔" in each for each in made)
    groups = [[name for cell in group for name in cell.split("|")] for group in DATA["zh"]["drugs"]]
    assert all(len(set(group)) == len(group) for group in groups)


AMOUNTS = st.builds(
    lambda least, width, step: Amount(units="x", least=least, most=least + width, step=step),
    st.integers(1, 9),
    st.integers(0, 90),
    st.booleans(),
)


@pytest.mark.slow
@given(AMOUNTS, st.one_of(st.integers(0, 120).map(str), st.sampled_from([*DIGITS, "两"])))
def test_a_changed_amount_is_another_one_within_its_bounds(amount: Amount, number: str) -> None:
    changed = amount.other(number)
    if changed is not None:
        value = {"两": 2, **{each: at for at, each in enumerate(DIGITS, 1)}}
        old, new = (float(value.get(each, 0) or each) for each in (number, changed))
        assert amount.least <= new <= amount.most
        assert new != old
        assert new in ((old - 1, old + 1) if amount.step else (old * 2, old / 2))


WORDS = st.lists(
    st.sampled_from(
        ["高血压", "能", "不能", "吃", "什么", "3片", "60岁", "左侧", "早期", "患者", "阿司匹林", "吗", "，", "2型"]
    ),
    min_size=1,
    max_size=8,
).map("".join)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.integers(0, 5), st.data())
def test_edits_differ_are_repeatable_and_leave_what_is_kept(text: str, seed: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    every = (*KINDS, BROADER)
    made = list(edits(text, "zh", seed, kinds=every, keep=[(start, end)], lexer=LEXERS["zh"]))
    assert made == list(edits(text, "zh", seed, kinds=every, keep=[(start, end)], lexer=LEXERS["zh"]))
    assert len({each.text for each in made} | {text}) == len(made) + 1
    for each in made:
        assert text[start:end] in each.text
        assert each.kind in every
    assert {each.text for each in made} == {
        each.text for each in edits(text, "zh", seed + 1, kinds=every, keep=[(start, end)], lexer=LEXERS["zh"])
    } or any(each.kind == "swap" for each in made)


def test_swaps_are_of_another_group_and_like_length() -> None:
    lexer = LEXERS["zh"]
    for word in random.Random(3).sample(sorted(lexer.partners), 40):
        for other in swaps(lexer, word):
            assert lexer.groups[other] != lexer.groups[word]
            assert abs(len(other) - len(word)) <= 1


@pytest.mark.parametrize("language", DATA)
def test_rules_compile_and_are_of_known_kinds(language: str) -> None:
    rules = edit_rules(language)
    assert rules is not None
    assert set(rules.rewrites) <= {*KINDS, BROADER}
    for kind, rows in rules.rewrites.items():
        for row in rows:
            for pattern in (row[0], *row[2:]):
                assert re.compile(pattern), (kind, pattern)


def test_a_language_without_rules_has_swaps_alone() -> None:
    assert has_rules("zh-CN")
    assert not has_rules("fr")
    assert list(edits("3片", "fr", 1)) == []
    kinds = Counter(each.kind for each in edits("高血压60岁", "fr", 1, lexer=LEXERS["zh"]))
    assert set(kinds) == {"swap"}


def test_two_answers_make_one() -> None:
    yes = {"a": "yes", "b": "yes"}
    assert combined(yes, {"a": "yes", "b": "no"}) == {"a": "different", "b": "same"}
    assert combined({"a": "yes", "b": "no"}, {}) == {"a": "plausible", "b": "implausible"}
    assert combined({"a": "yes", "b": "refused"}, {}) == {"a": "plausible", "b": "refused"}
    assert combined(yes, {"a": "yes", "b": "unparsed"}) == {"a": "different", "b": "unparsed"}
