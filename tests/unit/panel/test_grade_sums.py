"""Sums of grades: the frame, the labels by a threshold, and contested pairs that one judge settles."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.core.errors import DataError
from curate.core.scale import FIVE
from curate.panel import voting
from curate.panel.voting import ACCEPTED, SETTLED, by_policy, unanimous
from curate.system.files import frame

GRADES = st.sampled_from([*FIVE.labels, None])


def verdicts(*votes: tuple[str | None, ...]) -> pl.DataFrame:
    """Return the unanimous verdicts of pairs by their grades."""
    rows = [
        {"query_id": "q", "doc_id": f"d{at:02}", "judge": f"j{judge}", "grade": grade}
        for at, grades in enumerate(votes)
        for judge, grade in enumerate(grades)
    ]
    schema = dict.fromkeys(("query_id", "doc_id", "judge", "grade"), pl.String)
    return unanimous(pl.DataFrame(rows, schema), [f"j{at}" for at in range(len(votes[0]))], FIVE)


def test_the_frame_goes_down_to_a_mean_gain_of_one_and_holds_whole_votes() -> None:
    found = verdicts(("S", "S", "S"), ("C", "C", "C"), ("C", "C", "D"), ("S", None, "S"))
    assert voting.frame(found, FIVE).select("doc_id", "sum").rows() == [("d00", 12), ("d01", 3)]


def test_a_threshold_makes_relevant_what_reaches_it_and_nothing_else() -> None:
    found = verdicts(("S", "S", "B"), ("A", "A", "A"), ("B", "B", "B"), ("D", "D", "D"), ("S", "A", None))
    assert found["verdict"].to_list() == ["contested", "relevant", "not relevant", "not relevant", "incomplete"]
    published = voting.publish(found, FIVE, 10)
    assert published["verdict"].to_list() == ["relevant", "contested", "not relevant", "not relevant", "incomplete"]
    assert published["policy"].to_list() == [ACCEPTED, ACCEPTED, "unanimous", "unanimous", "unanimous"]
    assert published.columns == found.columns
    assert voting.publish(found, FIVE, 6)["verdict"].to_list()[2] == "relevant", "all pairs from the sum on"


def test_a_pair_that_lacks_a_grade_cannot_be_proved() -> None:
    one = verdicts(("S", None, "S")).with_columns(verdict=pl.lit("relevant"))  # of a majority
    assert voting.publish(one, FIVE, 8)["verdict"].to_list() == ["incomplete"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=8), st.integers(2, 8))
def test_relevant_is_exactly_what_reaches_the_threshold(votes: list[tuple[str | None, ...]], least: int) -> None:
    found = voting.publish(verdicts(*votes), FIVE, least)
    wanted = [None not in pair and sum(FIVE.gain(each) for each in pair if each) >= least for pair in votes]
    assert (found["verdict"] == "relevant").to_list() == wanted


def test_a_threshold_below_the_sampled_frame_is_refused() -> None:
    with pytest.raises(DataError, match="threshold 2, below the lowest sum 3 of the frame"):
        voting.publish(verdicts(("S", "S", "S")), FIVE, 2)


def test_one_judge_settles_contested_pairs_alone_and_is_named() -> None:
    found = verdicts(("S", "D"), ("S", "S"), ("A", "C"), ("S", "B"))
    said = [("q", f"d{at:02}", grade) for at, grade in enumerate(("A", "D", "C", None))]
    grades = pl.DataFrame(said, dict.fromkeys(("query_id", "doc_id", "grade"), pl.String), orient="row")
    settled = voting.settle(found, grades, FIVE, f"{SETTLED}m")
    assert settled["verdict"].to_list() == ["relevant", "relevant", "not relevant", "contested"]
    assert settled["policy"].to_list() == ["settled-by-m", "unanimous", "settled-by-m", "unanimous"]
    assert settled.filter(by_policy()).height == 2


def test_pairs_that_a_cascade_spared_may_belong_to_the_frame_only_as_far_as_their_grades_allow() -> None:
    found = verdicts(("D", None, None), ("D", "D", None), ("S", "S", "S"))
    stopped = frame("samples", [{"query_id": "q", "doc_id": each} for each in ("d00", "d01")])
    assert voting.open_sums(found, stopped, FIVE) == 2, "D D and an S make 4"
    assert voting.open_sums(verdicts(("D", "D", "D", "D", None)), stopped.head(1), FIVE) == 0
