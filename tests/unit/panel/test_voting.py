"""From votes to verdicts: a table to read by eye, and the definition again in plain Python."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.core.errors import DataError
from curate.core.records import TABLES
from curate.core.scale import FIVE
from curate.panel.voting import POLICIES, Policy, codes, decide, sides, unanimous, votes

JUDGES = ["a", "b", "c"]
SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "judge": pl.String, "grade": pl.String}


def rated(*pairs: str, judges: str = "abc") -> pl.DataFrame:
    """Return ratings of documents 0, 1, ...: a letter a judge, `-` where it gave no grade, `.` where it has no row."""
    rows = [
        ("q", str(number), judge, None if grade == "-" else grade)
        for number, pair in enumerate(pairs)
        for judge, grade in zip(judges, pair, strict=True)
        if grade != "."
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


TABLE = {
    "SAA": "relevant",
    "AAA": "relevant",
    "SSS": "relevant",
    "BCD": "not relevant",
    "DDD": "not relevant",
    "SAB": "contested",
    "ABB": "contested",
    "SDD": "contested",
    "SD-": "contested",
    "-AB": "contested",
    "A.B": "contested",
    "SA-": "incomplete",
    "-CD": "incomplete",
    "S--": "incomplete",
    "--D": "incomplete",
    "---": "incomplete",
    "..D": "incomplete",
}


@pytest.mark.parametrize(("grades", "verdict"), TABLE.items())
def test_what_a_panel_of_three_decides(grades: str, verdict: str) -> None:
    assert unanimous(rated(grades), JUDGES, FIVE)["verdict"].to_list() == [verdict]


@pytest.mark.parametrize(("grade", "verdict"), [*zip("SAB", ["relevant", "relevant", "not relevant"], strict=True)])
def test_a_panel_of_one_decides_alone(grade: str, verdict: str) -> None:
    assert unanimous(rated(grade, judges="a"), ["a"], FIVE)["verdict"].to_list() == [verdict]


def test_a_judge_without_a_single_rating_is_missed() -> None:
    ratings = rated("SA", "CD", "SD", judges="ab")
    assert unanimous(ratings, ["a", "b"], FIVE)["verdict"].to_list() == ["relevant", "not relevant", "contested"]
    assert unanimous(ratings, JUDGES, FIVE)["verdict"].to_list() == ["incomplete", "incomplete", "contested"]


def test_who_is_not_on_the_panel_has_no_vote() -> None:
    assert unanimous(rated("SAD"), ["a", "b"], FIVE)["verdict"].to_list() == ["relevant"]


@pytest.mark.parametrize(("grades", "verdict"), [("DDE", "incomplete"), ("SAs", "incomplete"), ("SDE", "contested")])
def test_a_letter_that_is_no_grade_is_no_vote(grades: str, verdict: str) -> None:
    [row] = unanimous(rated(grades), JUDGES, FIVE).rows(named=True)
    assert (row["verdict"], row["votes"][2]["grade"]) == (verdict, None)


def test_votes_hold_the_whole_panel_by_name() -> None:
    verdicts = unanimous(rated("S-.", judges="cab"), ["c", "b", "a"], FIVE)
    assert verdicts.schema == pl.Schema(TABLES["verdicts"])
    [row] = verdicts.rows(named=True)
    grades = [{"judge": "a", "grade": None}, {"judge": "b", "grade": None}, {"judge": "c", "grade": "S"}]
    assert (row["votes"], row["policy"]) == (grades, "unanimous")


def test_pairs_are_sorted_as_texts() -> None:
    ratings = pl.DataFrame([("q2", "d1"), ("q10", "d9"), ("q10", "d10")], ["query_id", "doc_id"], orient="row")
    ratings = ratings.with_columns(judge=pl.lit("a"), grade=pl.lit("S"))
    assert unanimous(ratings, ["a"], FIVE).select("query_id", "doc_id").rows() == [
        ("q10", "d10"),
        ("q10", "d9"),
        ("q2", "d1"),
    ]


def test_nothing_rated_is_an_empty_table() -> None:
    empty = unanimous(rated(), JUDGES, FIVE)
    assert (len(empty), empty.schema) == (0, pl.Schema(TABLES["verdicts"]))
    assert codes(rated(), JUDGES, FIVE).shape == (0, 3)


def test_codes_are_places_on_the_scale_and_sides_of_the_cut() -> None:
    matrix = codes(rated("SAB", "CD-", ".S."), [*JUDGES, "absent"], FIVE)
    assert matrix.tolist() == [[0, 1, 2, -1], [3, 4, -1, -1], [-1, 0, -1, -1]]
    assert sides(matrix, FIVE).tolist() == [[0, 0, 1, -1], [1, 1, -1, -1], [-1, 0, -1, -1]]
    assert votes(rated("SAB"), ["c", "a"], FIVE).rows() == [("q", "0", "B", "S")]


# Policy by policy: r relevant, n not relevant, c contested, i incomplete.
SIDE_BY_SIDE = {
    "SSS": "rrr",
    "SAA": "rcr",
    "SAB": "ccr",
    "ABB": "ccn",
    "BCD": "ncn",
    "DDD": "nnn",
    "SA-": "icr",  # for `unanimous-grade` S and A already disagree; a majority of three is reached by two
    "SS-": "iir",
    "DD-": "iin",
    "SD-": "ccc",
    "-AB": "ccc",
    "S--": "iii",
    "---": "iii",
}
WORDS = {"r": "relevant", "n": "not relevant", "c": "contested", "i": "incomplete"}


@pytest.mark.parametrize(("grades", "verdicts"), SIDE_BY_SIDE.items())
def test_policies_side_by_side(grades: str, verdicts: str) -> None:
    policies: tuple[Policy, ...] = ("unanimous", "unanimous-grade", "majority")
    found = [decide(rated(grades), JUDGES, policy, FIVE) for policy in policies]
    assert [table["verdict"].item() for table in found] == [WORDS[letter] for letter in verdicts]
    assert [table["policy"].item() for table in found] == list(policies)


@pytest.mark.parametrize(
    ("grades", "verdict"),
    [("SSDD", "contested"), ("SSSD", "relevant"), ("SSD-", "contested"), ("SDDD", "not relevant")],
)
def test_ties_and_open_votes_of_four_are_contested(grades: str, verdict: str) -> None:
    assert decide(rated(grades, judges="abcd"), list("abcd"), "majority", FIVE)["verdict"].item() == verdict


@pytest.mark.parametrize(
    ("policy", "grades", "verdict"),
    [
        ("unanimous", "D..", "not positive"),
        ("unanimous", "CD.", "not positive"),
        ("unanimous", "SD.", "contested"),
        ("unanimous-grade", "D..", "not positive"),
        ("unanimous-grade", "CD.", "contested"),
        ("majority", "D..", "incomplete"),
        ("majority", "CD.", "not relevant"),
        ("majority", "SD.", "contested"),
        ("dawid-skene", "D..", "incomplete"),
        ("dawid-skene", "SD.", "contested"),
    ],
)
def test_what_a_cascade_stopped_is_what_no_further_vote_can_change(policy: Policy, grades: str, verdict: str) -> None:
    """A negative only if the rule is met without the judges who were not asked, not positive if it can find no more."""
    spared = [("q", "0", judge, None, "stopped") for judge, grade in zip("abc", grades, strict=True) if grade == "."]
    asked = rated(grades).with_columns(status=pl.lit("rated"))
    ratings = pl.concat([asked, pl.DataFrame(spared, asked.schema, orient="row")])
    assert decide(ratings, JUDGES, policy, FIVE)["verdict"].item() == verdict


def test_dawid_skene_weighs_judges_by_what_they_show() -> None:
    """A judge who is alone against two that always agree is outvoted; pairs that lack a grade stay undecided."""
    ratings = rated(*["SSS"] * 20, *["DDD"] * 20, *["DSS"] * 5, "SD-", "SS-")
    found = decide(ratings, JUDGES, "dawid-skene", FIVE).sort(pl.col("doc_id").cast(pl.Int64))["verdict"].to_list()
    assert found[:45] == ["relevant"] * 20 + ["not relevant"] * 20 + ["relevant"] * 5
    assert found[45:] == ["contested", "incomplete"]


def test_dawid_skene_needs_three_judges() -> None:
    with pytest.raises(DataError, match="found 2 raters"):
        decide(rated("SA", judges="ab"), ["a", "b"], "dawid-skene", FIVE)


pairs_of_grades = st.lists(st.text("SABCD-.", min_size=3, max_size=3), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=60)
@given(pairs_of_grades, st.permutations(JUDGES), st.randoms(use_true_random=False))
def test_the_definition_again_whatever_the_order(
    grades: list[str], panel: list[str], chance: np.random.Generator
) -> None:
    ratings = rated(*grades)
    found = unanimous(ratings.sample(fraction=1, shuffle=True, seed=chance.randint(0, 99)), panel, FIVE)  # type: ignore[attr-defined]
    expected = {}
    for number, pair in enumerate(grades):
        said = [grade for grade in pair if grade in FIVE.labels]
        yes = [grade in "SA" for grade in said]
        if pair == "...":
            continue  # nobody has a row: the pair is not known
        if any(yes) and not all(yes):
            expected[str(number)] = "contested"
        elif len(said) < 3:
            expected[str(number)] = "incomplete"
        else:
            expected[str(number)] = "relevant" if all(yes) else "not relevant"
    assert dict(found.select("doc_id", "verdict").iter_rows()) == expected
    assert found.equals(unanimous(ratings, JUDGES, FIVE))


@pytest.mark.slow
@settings(max_examples=60)
@given(pairs_of_grades, st.permutations(JUDGES))
def test_majority_and_one_grade_again(grades: list[str], panel: list[str]) -> None:
    ratings = rated(*grades)
    found = {
        policy: dict(decide(ratings, panel, policy, FIVE).select("doc_id", "verdict").rows())
        for policy in POLICIES[1:3]
    }
    for number, pair in enumerate(grades):
        said = [grade for grade in pair if grade in FIVE.labels]
        yes = sum(grade in "SA" for grade in said)
        no = len(said) - yes
        if pair == "...":
            continue
        majority = (
            "relevant" if yes >= 2 else "not relevant" if no >= 2 else "contested" if yes and no else "incomplete"
        )
        one = "contested" if len(set(said)) > 1 else "incomplete"
        if len(said) == 3 and len(set(said)) == 1:
            one = "relevant" if yes else "not relevant"
        assert found["majority"][str(number)] == majority
        assert found["unanimous-grade"][str(number)] == one
