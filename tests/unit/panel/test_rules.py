"""Consensus rules: what a declaration must say, what it decides by hand, and again in plain Python for any scale."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from curate.core.errors import ConfigError
from curate.core.scale import FIVE, Scale
from curate.panel import cascade
from curate.panel.rules import ConsensusRule
from curate.panel.voting import PAIR, Policy, decide, dumped, loaded
from tests.support.scales import scales

JUDGES = list("abcde")
FOUR_OF_FIVE = {"positive": {"at_least": 4, "of": 5}, "negative": {"at_least": 3}}
LACK = ("refused", "unparsed", "failed")


def table(*pairs: Sequence[str | None], judges: Sequence[str] = JUDGES) -> pl.DataFrame:
    """Return ratings of documents 0, 1, ...: per judge a grade, a status that means none, or None for no row."""
    rows = [
        ("q", f"{number:03}", judge, None if said in LACK else said, said if said in LACK else "rated")
        for number, pair in enumerate(pairs)
        for judge, said in zip(judges, pair, strict=True)
        if said is not None
    ]
    return pl.DataFrame(rows, dict.fromkeys([*PAIR, "judge", "grade", "status"], pl.String), orient="row")


def rule(**settings: Any) -> ConsensusRule:
    return ConsensusRule.model_validate({**FOUR_OF_FIVE, **settings})


@pytest.mark.parametrize(
    ("grades", "verdict"),
    [
        ("SSSSS", "relevant"),
        ("SAASD", "relevant"),
        ("SAABB", "contested"),
        ("SADDD", "not relevant"),
        ("DDDDD", "not relevant"),
    ],
)
def test_four_of_five(grades: str, verdict: str) -> None:
    assert decide(table(grades), JUDGES, rule(), FIVE)["verdict"].item() == verdict


@pytest.mark.parametrize(
    ("said", "open_", "contested"),
    [
        (["S", "S", "S", "S", "refused"], "relevant", "relevant"),
        (["S", "S", "S", "D", "refused"], "incomplete", "contested"),
        (["S", "S", "D", "D", "unparsed"], "incomplete", "contested"),
        (["S", "S", "S", "D", "failed"], "incomplete", "incomplete"),
        (["D", "D", "D", "refused", "refused"], "not relevant", "not relevant"),
        (["refused"] * 5, "incomplete", "contested"),
    ],
)
def test_an_abstention_is_no_vote_and_counts_as_the_rule_says(said: list[str], open_: str, contested: str) -> None:
    for abstentions, verdict in (("open", open_), ("contested", contested)):
        assert decide(table(said), JUDGES, rule(abstentions=abstentions), FIVE)["verdict"].item() == verdict


def test_votes_have_weights() -> None:
    weighted = rule(positive={"at_least": 2.5}, negative={"at_least": 2}, weights={"a": 2, "b": 0.5, "c": 0.5})
    found = decide(table("SSDDD"[:3], "DSS", "SDD", judges="abc"), list("abc"), weighted, FIVE)
    assert found["verdict"].to_list() == ["relevant", "not relevant", "contested"]
    assert found["policy"].unique().to_list() == ["2.5, negative 2, weighted"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"positive": {"at_least": 6}}, "positive.at_least: found 6, but all votes together weigh 5"),
        ({"positive": {"at_least": 4, "of": 4}}, "positive.of: found 4, but the panel has 5 judges"),
        (
            {"positive": {"at_least": 2}, "negative": {"at_least": 3}},
            "2 votes for and 3 against can stand side by side",
        ),
        ({"weights": {"z": 2}}, "weights: z is no judge of the panel"),
        ({"positive": {"at_least": 2.5}}, "positive.at_least: found 2.5; votes without weights are whole numbers"),
    ],
)
def test_a_rule_that_does_not_fit_the_panel_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        rule(**change).bound(JUDGES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"positive": {"at_least": 0}},
        {"positive": {"at_least": float("nan")}},
        {"negative": None},
        {"weights": {"a": -1}},
        {"abstentions": "yes"},
        {"positiv": {"at_least": 4}},
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule(**wrong)


def test_a_policy_comes_back_from_a_manifest() -> None:
    assert loaded(dumped(rule())) == rule()
    assert loaded("majority") == "majority"
    with pytest.raises(ConfigError, match="did you mean 'majority'"):
        loaded("mayority")


@pytest.mark.parametrize(
    ("mode", "policy", "refused"),
    [
        ("exact", "dawid-skene", True),
        ("positives", "dawid-skene", True),
        ("exact", rule(weights={"a": 2}), True),
        ("positives", rule(weights={"a": 2}), False),
        ("exact", rule(), False),
        (None, "dawid-skene", False),
    ],
)
def test_a_cascade_refuses_what_it_cannot_keep(
    mode: cascade.Mode | None, policy: Policy | ConsensusRule, refused: bool
) -> None:
    if refused:
        with pytest.raises(ConfigError, match=r"judge\.cascade"):
            cascade.refuse(mode, policy)
    else:
        cascade.refuse(mode, policy)


@st.composite
def panels(draw: st.DrawFn) -> tuple[Scale, list[str], Policy | ConsensusRule, list[list[str]]]:
    scale, size = draw(scales()), draw(st.integers(1, 5))
    judges = JUDGES[:size]
    simple: st.SearchStrategy[Policy | ConsensusRule] = st.sampled_from(["unanimous", "unanimous-grade", "majority"])
    weights = draw(st.dictionaries(st.sampled_from(judges), st.sampled_from([0.5, 1.0, 2.0])))
    whole = sum(weights.get(judge, 1.0) for judge in judges)
    for_ = draw(st.sampled_from([whole, whole * 0.75, whole / 2] if weights else [whole, max(whole - 1, 1.0)]))
    least = whole - for_ + (0.25 if weights else 1.0)  # so that no pair can be both
    against = draw(st.sampled_from([whole, least])) if least <= whole else whole
    made = ConsensusRule.model_validate(
        {
            "positive": {"at_least": for_},
            "negative": {"at_least": against},
            "weights": weights,
            "abstentions": draw(st.sampled_from(["open", "contested"])),
        }
    )
    said = st.sampled_from([*scale.labels, *scale.labels, *LACK])
    pairs = draw(st.lists(st.lists(said, min_size=size, max_size=size), min_size=1, max_size=20))
    return scale, judges, draw(st.one_of(simple, st.just(made))), pairs


def by_hand(said: Mapping[str, str], policy: Policy | ConsensusRule, scale: Scale) -> str:
    """Return the verdict of one pair by the definition: every outcome that the missing votes can still bring about."""
    votes = {
        judge: scale.labels.index(grade) <= scale.labels.index(scale.relevant_from)
        for judge, grade in said.items()
        if grade not in LACK
    }
    if policy == "unanimous-grade":
        grades = {grade for grade in said.values() if grade not in LACK}
        if len(grades) > 1:
            return "contested"
        return ("relevant" if votes[min(said)] else "not relevant") if len(votes) == len(said) else "incomplete"
    if isinstance(policy, ConsensusRule):
        weights, for_, against = policy.weights, policy.positive.at_least, policy.negative.at_least
    else:
        weights, for_ = {}, len(said) if policy == "unanimous" else len(said) // 2 + 1
        against = for_
    weight = {judge: weights.get(judge, 1.0) for judge in said}
    yes, no = (sum(weight[judge] for judge, vote in votes.items() if vote is side) for side in (True, False))
    final = (
        {"refused", "unparsed"} if isinstance(policy, ConsensusRule) and policy.abstentions == "contested" else set()
    )
    left = sum(weight[judge] for judge, grade in said.items() if grade in LACK and grade not in final)
    if yes >= for_ or no >= against:
        return "relevant" if yes >= for_ else "not relevant"
    split = policy == "majority" and yes > 0 and no > 0
    return "contested" if split or (yes + left < for_ and no + left < against) else "incomplete"


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(panels())
def test_any_rule_on_any_scale_again(panel: tuple[Scale, list[str], Policy | ConsensusRule, list[list[str]]]) -> None:
    scale, judges, policy, pairs = panel
    found = decide(table(*pairs, judges=judges), judges, policy, scale)
    expected = [by_hand(dict(zip(judges, said, strict=True)), policy, scale) for said in pairs]
    assert found.sort("doc_id")["verdict"].to_list() == expected


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(panels(), st.data())
def test_a_cascade_keeps_what_the_whole_panel_would_say(
    panel: tuple[Scale, list[str], Policy | ConsensusRule, list[list[str]]], data: st.DataObject
) -> None:
    """`exact`: every verdict; `positives`: every positive, and nothing else for one."""
    scale, judges, policy, pairs = panel
    ratings = table(*pairs, judges=judges)
    everything = ratings.select(PAIR).unique().sort(PAIR)
    always = everything.head(data.draw(st.integers(0, 3)))
    whole = decide(ratings, judges, policy, scale).select(*PAIR, "verdict")
    for mode in ("exact", "positives"):
        rows: list[pl.DataFrame] = []
        for judge in data.draw(st.permutations(judges)):
            wanted = cascade.wanted(everything, rows, mode, always, judges, policy, scale)
            answers = ratings.filter(pl.col("judge") == judge)
            spared = answers.join(wanted, on=PAIR, how="anti").with_columns(
                grade=pl.lit(None, pl.String), status=pl.lit("stopped")
            )
            rows.append(pl.concat([answers.join(wanted, on=PAIR, how="semi"), spared]))
        found = decide(pl.concat(rows), judges, policy, scale).select(*PAIR, "verdict")
        if mode == "exact":
            assert found.equals(whole)
        else:
            positive = pl.col("verdict") == "relevant"
            assert found.filter(positive).equals(whole.filter(positive))
            other = whole.join(found, on=PAIR, suffix="_found").filter(pl.col("verdict") != pl.col("verdict_found"))
            assert set(other["verdict_found"]) <= {"not positive", "contested"}
