"""A passage is shown whole or cut at a sentence's end, and its digest is that of what is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.core.config import text_digest
from curate.core.records import Document
from curate.llm.cost import tokens
from curate.llm.passages import LEAST, bounded, shown
from tests import ROOT

DEMO = ROOT / "curate" / "demo" / "corpus.jsonl"
TEXTS = st.text(alphabet='药水abc 。！？.!?,，\n"”’)）1e\u0301\u200d😀한ก', max_size=300) | st.text(max_size=300)


@pytest.mark.slow
def test_an_uncut_passage_has_the_digest_that_it_always_had() -> None:
    for line in DEMO.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        document = Document(row["_id"], row.get("title", ""), row["text"])
        for limit in (None, 5000):
            passage = shown(document, limit)
            assert passage.text == document.shown()
            assert passage.digest == text_digest(document.shown())
            assert not passage.cut
            assert passage.tokens == passage.whole_tokens == tokens(document.shown())


def test_the_title_is_part_of_what_is_cut() -> None:
    passage = shown(Document("d", "发烧", "多喝水。" * 100), 20)
    assert passage.text.startswith("发烧\n多喝水。")
    assert passage.cut
    assert passage.digest == text_digest(passage.text) != text_digest(f"发烧\n{'多喝水。' * 100}")
    assert passage.whole_tokens > 500
    assert 20 >= passage.tokens == tokens(passage.text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "limit", "end"),
    [
        ("多喝水。少穿衣服。注意观察体温变化情况", 18, "多喝水。少穿衣服。"),
        ("他说：“多喝水。少穿！”然后就走了再也没有回来看过", 18, "他说：“多喝水。少穿！”"),
        ("多喝水；少穿衣服；注意观察体温变化情况怎么样", 18, "多喝水；少穿衣服；"),
        ("多喝水少穿衣服\n注意观察体温变化情况怎么样啊啊", 18, "多喝水少穿衣服"),
        ("Drink a lot of water. Take 3.5 mg of it daily and rest", 10, "Drink a lot of water."),
        ('She said "Drink a lot of it." And then she went away', 12, 'She said "Drink a lot of it."'),
        ("यह पानी है। वह घर है जो बहुत दूर है", 18, "यह पानी है।"),
        ("多喝水，少穿衣服，注意观察体温变化情况怎么样啊", 18, "多喝水，少穿衣服，"),
        ("Drink a lot of water, rest for a week and then come back", 10, "Drink a lot of water,"),
        ("Drink plenty of water and rest for a week", 7, "Drink plenty of water and rest"),
        ("пейте воду отдыхайте", 18, "пейте воду"),
        ("体温三十八度以上吃paracetamol很快就会退烧", 14, "体温三十八度以上吃"),
        ("好。" + "药" * 60, 18, "好。" + "药" * 10),  # the only sentence end would leave almost nothing
        ("药" * 60, 18, "药" * 12),
    ],
)
def test_the_cut_is_at_the_best_end_that_fits(text: str, limit: int, end: str) -> None:
    assert bounded(text, limit).text == end
    assert bounded(text, None).text == text


@pytest.mark.parametrize(
    "unit", ["e\u0301\u0302", "👍🏽", "👨\u200d👩\u200d👧", "\ud83d\ude00", "ก\u0e34\u0e48", "\u1112\u1161\u11ab"]
)
def test_no_character_is_cut_in_two(unit: str) -> None:
    for limit in range(12, 40):
        kept = bounded(unit * 50, limit).text
        assert kept == unit * (len(kept) // len(unit))
        assert kept


def test_a_sequence_without_end_is_cut_at_the_limit() -> None:
    passage = bounded("e" + "\u0301" * 1000, 50)
    assert 30 < len(passage.text) < 50
    assert passage.tokens <= 50


def test_blanks_do_not_pass_every_limit() -> None:
    passage = bounded(" " * 100_000 + "x", 100)
    assert passage.cut
    assert len(passage.text) <= 800


def test_flags_are_those_of_what_is_shown() -> None:
    text = "多喝水。" * 50 + "Rate this S."
    assert bounded(text, None).flags == ("instruction",)
    assert bounded(text, 50).flags == ()


@pytest.mark.parametrize("limit", [1, 0, -5])
def test_a_limit_in_which_nothing_fits_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 2 tokens"):
        bounded("药", limit)


@pytest.mark.slow
@given(text=TEXTS, limit=st.integers(LEAST, 120))
def test_a_cut_text_is_a_beginning_that_fits(text: str, limit: int) -> None:
    passage = bounded(text, limit)
    assert text.startswith(passage.text)
    assert passage.cut == (passage.text != text)
    assert passage.tokens == tokens(passage.text) <= limit
    assert passage.digest == text_digest(passage.text)
    assert bool(passage.text) == bool(text)
    assert bounded(passage.text, limit).text == passage.text
    if tokens(text) <= limit and len(text) <= 8 * limit:
        assert not passage.cut


@given(text=TEXTS, limit=st.integers(LEAST, 120))
def test_a_higher_limit_never_shows_less(text: str, limit: int) -> None:
    assert len(bounded(text, limit).text) <= len(bounded(text, 2 * limit).text)


@given(text=st.text(alphabet='药水a b。."”\n', min_size=1, max_size=300), limit=st.integers(20, 120))
def test_a_closing_mark_stays_with_its_sentence(text: str, limit: int) -> None:
    kept = bounded(text, limit).text
    if kept.endswith("。") and len(kept) < len(text):
        assert text[len(kept)] not in '"”' or kept.endswith("。。")
