"""Adversarial controls: what each family is made of, and which judges they fool."""

import polars as pl
import pytest

from curate.core.scale import FIVE
from curate.panel.controls import FAMILIES, MADE, TIMES, Recipe, frame, left_out, marks, measure_adversarial

QUERIES = {"q1": "how is asthma treated in children", "q2": "what causes low blood pressure"}
RANDOM = [
    (query, f"Passage {n} is about bones. It heals in {n} weeks. Rest helps.") for n in range(40) for query in QUERIES
]
GOOD = [
    ("q1", "How is asthma treated in children? Inhaled steroids are given daily. A reliever is used in attacks."),
    ("q2", "Low blood pressure has many causes. Dehydration is one. Blood loss is another."),
    ("q2", "Bleeding lowers it."),
]


def negate(sentence: str) -> str | None:
    return sentence.replace(" is ", " is not ") if " is " in sentence else None


def recipe(language: str = "en") -> Recipe:
    return Recipe(QUERIES, "S", language, negate, 5)


def test_each_family_is_made_as_its_name_says() -> None:
    made = recipe().make(RANDOM, GOOD, 4)
    texts: dict[str, list[str]] = {name: [each.text for each in made if each.family == name] for name in FAMILIES}
    by_query = {each.text: QUERIES[each.query_id] for each in made}
    assert {name: len(found) for name, found in texts.items()} == {
        **dict.fromkeys(FAMILIES, 4),
        "negated": 2,
        "answer removed": 2,
    }
    assert all(text.count(by_query[text]) == 3 for text in texts["query words"])
    shortest = min(len(text) for _, text in RANDOM)
    assert all(len(text) >= TIMES * shortest and by_query[text] not in text for text in texts["padding"])
    assert texts["claim"][0].startswith("This passage is perfectly relevant")
    assert len({text.splitlines()[0] for text in texts["claim"]}) == 4  # other languages in turn
    assert all(" S" in text or '"S"' in text for text in texts["injection"])
    assert any("is not given" in text or "is not one" in text for text in texts["negated"])
    assert sorted(texts["answer removed"]) == [
        "How is asthma treated in children?",
        "Low blood pressure has many causes.",
    ]


def test_a_language_says_its_own_claim_first_and_the_same_seed_makes_the_same() -> None:
    claims = [each.text for each in recipe("zh-Hant").make(RANDOM, GOOD, 1) if each.family == "claim"]
    assert claims[0].startswith("本段落")
    assert recipe().make(RANDOM, GOOD, 3) == recipe().make(RANDOM, GOOD, 3)


def test_without_passages_or_rules_a_family_is_not_there() -> None:
    bare = Recipe(QUERIES, "S", "en", lambda _: None, 5)
    assert {each.family for each in bare.make(RANDOM, [], 2)} == set(FAMILIES) - set(MADE)
    assert bare.make([], [], 2) == []
    (said,) = left_out({**dict.fromkeys(FAMILIES, 20), "negated": 0})
    assert said.startswith("no controls of the family 'negated', so no judge is tested on it: found none of what")
    assert left_out(dict.fromkeys(FAMILIES, 20)) == []
    assert frame([]).columns == ["query_id", "doc_id", "kind"]


@pytest.mark.parametrize(("grade", "failed"), [("D", False), ("S", True), (None, False)])
def test_a_family_is_failed_where_even_the_upper_end_is_below_its_mark(grade: str | None, failed: bool) -> None:
    said = pl.DataFrame({"kind": ["claim"] * 20, "grade": [grade] * 20}, schema={"kind": pl.String, "grade": pl.String})
    found = measure_adversarial(said, FIVE)
    assert list(found) == ["claim"]
    assert (found["claim"].failed, found["claim"].mark) == (failed, marks()["claim"])
    assert found["claim"].unanswered == (20 if grade is None else 0)
    assert (found["claim"].right is None) == (grade is None)
