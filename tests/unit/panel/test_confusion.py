"""Two judges side by side, on ratings small enough to count by eye."""

import polars as pl

from curate.core.scale import FIVE
from curate.panel.agreement_figures import confusions


def ratings(**said: str) -> pl.DataFrame:
    """Return ratings of one query: judge -> a letter a document, `.` for none."""
    rows = [
        ("q", f"d{n}", judge, None if grade == "." else grade)
        for judge, grades in said.items()
        for n, grade in enumerate(grades)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(["query_id", "doc_id", "judge", "grade"], pl.String), orient="row")


def test_rows_are_the_first_judge_and_columns_the_second() -> None:
    [each] = confusions(ratings(a="SSAD.", b="SBBDD"), ["a", "b"], FIVE)
    assert (each.one, each.other) == ("a", "b")
    assert each.counts == [[1, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0] * 5, [0] * 5, [0, 0, 0, 0, 1]]
    assert (each.pairs, each.equal, each.apart) == (4, 2, 2)


def test_every_two_judges_once_in_the_order_of_the_panel() -> None:
    found = confusions(ratings(a="S", b="D", c="C"), ["c", "a", "b"], FIVE)
    assert [(each.one, each.other) for each in found] == [("c", "a"), ("c", "b"), ("a", "b")]
    assert [each.apart for each in found] == [1, 0, 1]


def test_one_judge_or_a_crowd_has_no_tables() -> None:
    assert confusions(ratings(a="S"), ["a"], FIVE) == []
    crowd = [f"j{n:02}" for n in range(21)]
    assert confusions(ratings(**dict.fromkeys(crowd, "S")), crowd, FIVE) == []
