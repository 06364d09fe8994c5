"""Circularity of real judges: the figures, the warning, and who cannot take a judge's place."""

import random
from pathlib import Path

import polars as pl
import pytest

from curate.commands.check.circularity import SelfFavour, self_favour
from curate.core.errors import ConfigError
from curate.core.scale import FIVE
from curate.panel.rules import ConsensusRule, Negative, Positive
from tests.support.assessed import SCALE, Assessed


def effects(rows: list[SelfFavour]) -> list[float]:
    return [round(each.effect.value or 0, 4) for each in rows]


def test_real_judges_with_another_in_their_place_and_left_out(shared_data: Path) -> None:
    real = Assessed.read(shared_data)
    placed = self_favour(real.ratings, real.panel, "unanimous", SCALE, 1, "Olz-gpt4o")
    assert [(round(each.within, 4), round(each.without, 4)) for each in placed] == [
        (0.9435, 0.8944),
        (1.0, 0.8954),
        (0.7380, 0.6716),
    ]
    assert effects(placed) == [0.0143, 0.1046, 0.0317]
    assert [each.queries for each in placed] == [7, 7, 7]
    assert effects(self_favour(real.ratings, real.panel, "unanimous", SCALE, 1)) == [0.0, 0.0464, 0.0]


def test_a_panel_of_three_without_anybody_else_has_ranges(shared_data: Path) -> None:
    ratings = pl.read_csv(shared_data / "panel" / "ratings.tsv", separator="\t").rename({"assessor": "judge"})
    found = self_favour(ratings, sorted(ratings["judge"].unique()), "unanimous", FIVE, 1)
    assert [each.effect.value for each in found] == [None] * 3
    assert not any(each.warned for each in found)
    raw = [round(each.within - each.without, 4) for each in found]
    bounds = [(round(each.effect.low or 0, 4), round(each.effect.high or 0, 4)) for each in found]
    assert bounds == [tuple(sorted(pair)) for pair in zip(raw, [0.0113, 0.0205, 0.0189], strict=True)]
    assert {each.queries for each in found} == {26}


def opinionated(queries: int = 60, documents: int = 30) -> pl.DataFrame:
    """Return ratings of three judges who agree roughly, a fourth like them, and a loner whose order is its own."""
    chance, rows = random.Random(4), []
    for query in range(queries):
        for document in range(documents):
            truth = chance.random()
            for judge, noise in (("a", 0.3), ("b", 0.3), ("d", 0.3), ("e", 0.3), ("loner", 1.2)):
                level = truth + chance.uniform(-noise, noise)
                grade = "SABCD"[min(max(int(4 - 4 * level), 0), 4)]
                rows.append((f"q{query:02}", f"d{document:02}", judge, grade))
    return pl.DataFrame(rows, ["query_id", "doc_id", "judge", "grade"], orient="row")


def test_a_judge_with_an_order_of_its_own_is_warned_of_and_gains_most() -> None:
    one, two, loner = self_favour(opinionated(), ["a", "b", "loner"], "unanimous", FIVE, 1, "d")
    assert loner.warned
    assert (loner.effect.value or 0) > 3 * max(one.effect.value or 0, two.effect.value or 0)


def test_who_cannot_take_a_place_and_a_rule_that_cannot_lose_a_judge() -> None:
    ratings = opinionated(4)
    for other in ("a", "nobody"):
        with pytest.raises(ConfigError, match="cannot take a judge's place"):
            self_favour(ratings, ["a", "b", "loner"], "unanimous", FIVE, 1, other)
    rule = ConsensusRule(positive=Positive(at_least=2), negative=Negative(at_least=2))
    with pytest.raises(ConfigError, match="name one to take"):
        self_favour(ratings, ["a", "b", "loner"], rule, FIVE, 1)
    assert len(self_favour(ratings, ["a", "b", "loner"], rule, FIVE, 1, "d")) == 3


def test_without_a_query_that_both_panels_score_there_is_no_row() -> None:
    never = opinionated(3).with_columns(grade=pl.lit("D"))
    assert self_favour(never, ["a", "b", "loner"], "unanimous", FIVE, 1, "d") == []
