"""Names of persons: every way in which they show, and the words that look like names and stay."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii import RECOGNISERS
from curate.pii.person_names.lexicon import known, lists
from curate.pii.settings import Masking, masker
from curate.pii.sieve import mask_all
from tests.support import recognising

NAMES = [name for name in RECOGNISERS.names() if name.startswith("name_")]
ALL = [RECOGNISERS.load(name) for name in NAMES]
MASKER = masker(Masking(recognisers=NAMES), "zh", b"key")


def found(text: str) -> list[str]:
    for recogniser in ALL:
        recognising.promised(recogniser, text)
    return [text[span.start : span.end] for span in MASKER.mask(text).spans]


SURE, GIVEN = "".join(sorted(known().sure)), "".join(sorted(known().given - set("男女")))
NAME = st.builds(str.__add__, st.sampled_from(SURE), st.text(GIVEN, min_size=1, max_size=2)).filter(
    lambda name: (
        name not in known().words
        and not known().stems.after(name, 0)
        and not known().titles.after(name, 1)
        and name[1:] not in lists()["compounds.sure"]  # a doctor of the name 欧阳, with a word before it
    )
)
WRITTEN = [
    "我叫{}，",
    "姓名：{}",
    "患者{}，男，45岁",
    "，{}医生您好",
    "请找{}主任",
    "主治医师：{}\n",
    "本人{}，女",
    "谢谢！\n{}",
    "我是{}。",
]


@pytest.mark.slow
@settings(max_examples=150)
@given(NAME, st.sampled_from(WRITTEN))
def test_any_common_name_in_every_form(name: str, form: str) -> None:
    text = form.format(name)
    assert name in found(text)


@settings(max_examples=100)
@given(st.sampled_from([*SURE, *lists()["compounds.sure"]]), st.sampled_from(lists()["titles.doctors"]))
def test_any_sure_surname_before_a_title(surname: str, title: str) -> None:
    assert surname in found(f"，{surname}{title}您好")


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_real_texts_name_eleven_people(shared_data: Path) -> None:
    """Two doctors, six friends, a neighbour and two patients are named in real texts; no word is taken for a name."""
    texts = [
        f"{row.get('title', '')}\n{row['text']}"
        for file in ("queries", "corpus")
        for row in rows(shared_data / "zh_legacy" / f"{file}.jsonl")
    ]
    counts = Counter(span.recogniser for each in mask_all(MASKER, texts) for span in each.spans)
    assert counts == {
        "name_titled": 1,
        "name_called": 2,
        "name_familiar": 4,
        "name_nick": 2,
        "name_introduced": 1,
        "name_scarce": 1,
    }
    assert [row["id"] for row in rows(shared_data / "pii" / "hard_negatives.jsonl") if found(str(row["text"]))] == []
