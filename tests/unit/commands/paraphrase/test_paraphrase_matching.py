"""Matching of overlap, splits of near-duplicates, and floors: pure functions of the stage `paraphrase`."""

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.ask.writing import Written
from curate.commands.paraphrase import RankWindow
from curate.commands.paraphrase.figures import MatchItem, floors, matched, overlap_alone, paired
from curate.commands.paraphrase.making import grouped, near_duplicates, sides
from curate.commands.paraphrase.pairs import CandidatePair, draw
from curate.commands.paraphrase.prompts import ParaphraseTask, WantedParaphrase, writing
from curate.core.messages import Reply
from curate.core.sampling import generator
from tests.support.small import context

ITEMS = st.lists(
    st.builds(
        lambda source, label, family, overlap: (source, label, family, overlap),
        st.sampled_from("abcdefgh"),
        st.sampled_from([0, 1]),
        st.sampled_from(["neighbour", "edit"]),
        st.floats(0, 1).map(lambda value: round(value, 3)),
    ),
    max_size=60,
)


def built(rows: list[tuple[str, int, str, float]]) -> list[MatchItem]:
    return [MatchItem(str(at), *row) for at, row in enumerate(rows)]


@pytest.mark.slow
@given(ITEMS, st.integers(1, 12), st.integers(0, 40))
def test_every_class_has_as_many_of_each_label(
    rows: list[tuple[str, int, str, float]], classes: int, most: int
) -> None:
    items = built(rows)
    chosen = matched(items, classes, most, 3, "x")
    known = {each.pair_id: each for each in items}
    assert len(chosen) <= most
    edges = np.quantile([each.overlap for each in items] or [0.0], np.arange(1, classes) / classes)
    counts = Counter(
        (int(np.searchsorted(edges, known[name].overlap, side="right")), known[name].label) for name in chosen
    )
    assert all(counts[at, 0] == counts[at, 1] for at, _ in counts)
    assert matched(items[::-1], classes, most, 3, "x") == chosen, "the order of items does not matter"


def test_as_many_as_there_can_be_are_chosen() -> None:
    items = built([("a", 1, "p", 0.1)] * 5 + [("b", 0, "neighbour", 0.1)] * 3 + [("c", 0, "edit", 0.9)] * 4)
    assert len(matched(items, 2, 100, 0, "x")) == 6
    assert len(matched(items, 2, 4, 0, "x")) == 4


def test_sources_with_both_labels_come_first_and_families_take_turns() -> None:
    rows = [(f"s{n}", 1, "paraphrase", 0.5) for n in range(20)]
    rows += [(f"s{n}", 0, family, 0.5) for n in range(10, 20) for family in ("neighbour", "edit")]
    items = built(rows)
    chosen = matched(items, 1, 20, 1, "x")
    kept = [each for each in items if each.pair_id in chosen]
    assert {each.source for each in kept if each.label} <= {f"s{n}" for n in range(10, 20)}
    assert paired(kept) >= 5
    families = Counter(each.family for each in kept if not each.label)
    assert abs(families["neighbour"] - families["edit"]) <= 2


def test_overlap_is_at_chance_after_matching() -> None:
    random = generator(5, "test")
    pairs = []
    for at in range(600):
        text = "".join(random.choice("高血压痛风胃溃疡白内障能喝酒吗") for _ in range(12))
        label = at % 2
        cut = random.randrange(4, 12) if label else random.randrange(1, 9)
        pairs.append(
            CandidatePair(str(at), f"q{at}", text, text[:cut] + "天" * (12 - cut), ("neighbour", "paraphrase")[label])
        )
    items = [MatchItem(each.pair_id, each.query_id, each.label, each.family, each.overlap) for each in pairs]
    chosen = matched(items, 10, 600, 0, "x")
    before, after = overlap_alone(pairs), overlap_alone([each for each in pairs if each.pair_id in chosen])
    assert before is not None
    assert after is not None
    assert before > 0.7
    assert abs(after - 0.5) < 0.05


def test_a_word_that_edits_alone_have_is_found_by_the_floors() -> None:
    made = []
    for at in range(60):
        text = f"病症{at:02}能喝酒吗"
        made.append(CandidatePair(f"p{at}", f"q{at}", text, f"请问病症{at:02}能喝酒吗", "paraphrase"))
        made.append(CandidatePair(f"n{at}", f"q{at}", text, f"病症{at:02}不能喝酒吗", "negation"))
    found = floors(made)
    assert found["edits"] == found["sentence2"] == 1
    assert floors(made[:2])["edits"] is None, "too few queries to learn on others"
    assert floors([])["overlap"] is None
    assert overlap_alone(made[::2]) is None, "one label"


def test_near_duplicates_are_one_group_in_one_split() -> None:
    texts = {"a": "高血压能喝酒吗", "b": "高血压能喝酒吗？", "c": "痛风要忌口吗", "d": "白内障要手术吗"}
    pairs = near_duplicates(texts, [{"a": ["b", "c"], "c": ["d"], "d": []}])
    assert pairs == [("a", "b")]
    group = grouped(texts, pairs)
    assert group == {"a": "a", "b": "a", "c": "c", "d": "d"}
    assert grouped("abcd", [("c", "d"), ("b", "c")]) == {"a": "a", "b": "b", "c": "b", "d": "b"}
    side = sides(group, {"test": 2, "train": 2}, 0)
    assert side["a"] == side["b"]
    assert set(side.values()) == {"test", "train"}
    assert set(sides(group, {"test": 1, "train": 0}, 0).values()) == {"test"}


def test_neighbours_are_drawn_from_the_window_of_each_retriever_in_turn() -> None:
    names = [f"q{n}" for n in range(8)]
    ranked = {name: [other for other in names if other != name] for name in names}
    lists = {"one": ranked, "two": {name: each[::-1] for name, each in ranked.items()}}
    side = {name: "train" if name == "q7" else "test" for name in names}
    drawn = draw(lists, names[:6], side, RankWindow(first=2, last=6), 2, 9)
    assert {each.retriever for each in drawn} == {"one", "two"}
    for each in drawn:
        assert lists[each.retriever][each.query_id][each.rank - 1] == each.other
        assert 2 <= each.rank <= 6
        assert side[each.other] == side[each.query_id]
    met = [frozenset((each.query_id, each.other)) for each in drawn]
    assert len(set(met)) == len(met)
    assert draw({"one": {}}, ["q0"], side, RankWindow(), 1, 9) == []


def test_a_reply_is_one_sentence_under_its_key_and_nothing_else(tmp_path: Path) -> None:
    task = ParaphraseTask(writing(context(tmp_path)))

    def said(text: str, finish: Literal["stop", "length", "refusal"] = "stop") -> Written:
        return task.read(WantedParaphrase("q", "能不能喝酒"), Reply(text, finish, "m", None))

    assert said('{"paraphrase": " 能喝酒吗 "}').texts == {"paraphrase": "能喝酒吗"}
    for text in ("能喝酒吗", '{"paraphrase": ""}', '{"paraphrase": "a\\nb"}', '{"paraphrase": 3}', '{"a": "b"}'):
        assert said(text).status == "unparsed"
    assert said('{"paraphrase": "能"}', "length").status == "unparsed"
    assert said("", "refusal").status == "refused"
