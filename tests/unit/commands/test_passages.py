"""Long documents are cut where sentences end; nothing of them is lost."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.commands.ingest import Config
from curate.core.config import check
from curate.llm.cost import tokens
from curate.tables.readers.items import Item
from curate.tables.readers.passages import extents_of, passages
from curate.tables.readers.settings import PassageSettings

GUIDE = (
    "高血压防治指南\n\n一、概述\n"
    + "高血压是最常见的慢性病。患者应定期测量血压！" * 12
    + "\n\n二、诊断\n"
    + "不低于140/90即可诊断；家庭以135.5为界。" * 15
)


def texts(text: str, tokens: int, overlap: int = 0) -> list[str]:
    return [text[start:end] for start, end in extents_of(text, PassageSettings(tokens=tokens, overlap=overlap))]


def test_passages_are_short_enough_and_end_with_sentences() -> None:
    parts = texts(GUIDE, tokens=120)
    assert "".join(parts) == GUIDE
    assert len(parts) > 5
    assert all(tokens(part) <= 120 for part in parts)
    assert all(part.strip()[-1] in "。！；" for part in parts)
    assert not [part for part in parts if part.strip().endswith(("一、概述", "二、诊断"))], (
        "a heading stays with its text"
    )


def test_a_passage_repeats_at_most_the_overlap() -> None:
    extents = [*extents_of(GUIDE, PassageSettings(tokens=120, overlap=40))]
    repeated = [GUIDE[start:end] for (_, end), (start, _) in itertools.pairwise(extents)]
    assert all(start < end for (_, end), (start, _) in itertools.pairwise(extents))
    assert all(0 < tokens(text) <= 40 for text in repeated[:3])


def test_ids_and_titles_are_those_of_the_document() -> None:
    parts = passages(Item(1, "g", "指南", GUIDE), PassageSettings(tokens=120))
    assert [part.id for part, _, _ in parts] == [f"g#{number}" for number in range(len(parts))]
    assert {part.title for part, _, _ in parts} == {"指南"}
    assert all(part.text == GUIDE[start:end].strip() for part, start, end in parts)
    short = Item(1, "s", "", "短文。")
    assert passages(short, PassageSettings()) == [(short, 0, 3)]


@pytest.mark.slow
@given(st.text(alphabet="ab 头痛。！?.\n,，1#", max_size=400), st.integers(20, 60), st.integers(0, 30))
def test_every_character_is_in_a_passage(text: str, most: int, overlap: int) -> None:
    extents = [*extents_of(text, PassageSettings(tokens=most, overlap=overlap))]
    ends = [0, *(end for _, end in extents)]
    assert ends[-1] == len(text)
    assert all(start <= before < end for before, (start, end) in zip(ends, extents, strict=False))


def test_settings_of_lengths_under_split_are_those_of_passages() -> None:
    cut = check(Config, {"source": "data", "split": {"tokens": 100}}, "ingest")
    assert (cut.split, cut.passages) == (None, PassageSettings(tokens=100))
    assert check(Config, {"source": "data", "split": "dev"}, "ingest").split == "dev"
