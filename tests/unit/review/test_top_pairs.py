"""Samples of the top tens of evaluated models: strata by votes, allocation, sizes for a margin, what is refused."""

from typing import Any

import polars as pl
import pytest

from curate.commands.review.scores_sample import planned
from curate.core.errors import ConfigError
from curate.core.scale import FIVE
from curate.panel.voting import PAIR
from curate.review.drawing import SampleOptions
from curate.review.planning import of_scores
from curate.review.top_pairs import TopPairs, strata
from curate.system.files import frame


def verdicts(rows: dict[str, tuple[str, str]]) -> pl.DataFrame:
    """Return verdicts on documents of one query: document -> verdict, and a letter per judge, - for none."""
    return frame(
        "verdicts",
        [
            {
                "query_id": "q",
                "doc_id": doc,
                "verdict": verdict,
                "votes": [
                    {"judge": f"j{at}", "grade": None if each == "-" else each} for at, each in enumerate(grades)
                ],
                "policy": "unanimous",
            }
            for doc, (verdict, grades) in rows.items()
        ],
    )


def test_strata_are_the_votes_for_a_pair() -> None:
    known = verdicts(
        {"a": ("relevant", "SAS"), "b": ("contested", "SDB"), "c": ("not relevant", "BDD"), "d": ("incomplete", "S-A")}
    )
    pairs = pl.DataFrame({"query_id": ["q"] * 5, "doc_id": list("abcde")})
    assert strata(pairs, known, FIVE)["stratum"].to_list() == [
        "3 of 3 votes",
        "1 of 3 votes",
        "0 of 3 votes",
        "votes missing",
        "not judged",
    ]
    with pytest.raises(ConfigError, match="found 1 pairs of which a cascade asked only some judges"):
        strata(pairs, pl.concat([known, verdicts({"e": ("not positive", "D")})]), FIVE)


def top(queries: int = 40) -> TopPairs:
    """Return three models that share half of their documents, in the strata of three judges."""
    rows = [
        ("t", f"q{query:02}", f"m{model}", rank, f"d{(rank - 1 + 5 * model)}")
        for query in range(queries)
        for model in range(3)
        for rank in range(1, 11)
    ]
    tops = pl.DataFrame(rows, ["task", "query_id", "model", "rank", "doc_id"], orient="row")
    pairs = tops.select(PAIR).unique().sort(PAIR)
    votes = ("0 of 3 votes", "0 of 3 votes", "1 of 3 votes", "2 of 3 votes", "3 of 3 votes")
    return TopPairs(pairs.with_columns(stratum=pl.Series([votes[at % 5] for at in range(pairs.height)])), tops)


def test_answers_go_by_size_and_spread_with_five_at_least() -> None:
    made = top()
    assert made.sizes == {f"{votes} of 3 votes": count for votes, count in enumerate((320, 160, 160, 160))}
    assert made.allocate(328) == {
        "0 of 3 votes": 96,
        "1 of 3 votes": 80,
        "2 of 3 votes": 80,
        "3 of 3 votes": 72,
    }, "N x (.3, .5, .5, .45)"
    assert set(made.allocate(20).values()) == {5}
    with pytest.raises(ConfigError, match="--size 20"):
        made.allocate(19)


def test_a_margin_gives_the_smallest_size_and_the_plan_says_when_only_queries_help() -> None:
    made = top()
    for margin in (0.1, 0.05):
        size = made.needed({"level": margin})
        here, less = made.widest(size)["level"], made.widest(size - 1)["level"]
        assert here is not None
        assert less is not None
        assert here[0] <= margin < less[0]
    assert made.needed({"level": 0.05}) < made.needed({"difference": 0.05})
    whole = made.widest(made.pairs.height)["level"]
    assert whole is not None
    assert whole[0] == 0
    plan = planned(made, 100, {})
    assert sum(each.drawn for each in plan.strata) == 100
    assert plan.verdicts["precision at 10 of a model"] == pytest.approx(made.widest(100)["level"][0])  # type: ignore[index]
    assert f"more than {made.enough:,} answers narrow nothing by 5 %" in plan.notes[1]
    limit = whole[1] or 0
    assert ((made.widest(made.enough)["level"] or (0, 0))[1] or 0) <= 1.05 * limit


def test_margins_are_of_a_level_or_a_difference() -> None:
    assert of_scores(["0.1"]) == {"level": 0.1}
    assert of_scores(["level=0.1", "difference = 0.2"]) == {"level": 0.1, "difference": 0.2}
    for wrong in (["recall=0.1"], ["0.1", "level=0.2"], ["level=2"], ["x"]):
        with pytest.raises(ConfigError, match="--margin"):
            of_scores(wrong)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"target": "recall", "size": 9}, "--target"),
        ({}, "--size N"),
        ({"margins": ["recall=0.1"]}, "level or"),
    ],
)
def test_what_a_sample_for_scores_cannot_have_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        SampleOptions(of="scores", **given)
    assert SampleOptions(of="scores", size=9).aims == {}
