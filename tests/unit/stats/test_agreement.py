"""Cases that are not defined or seen by eye; `commands/agree/test_agree.py` holds published figures."""

from dataclasses import asdict

import numpy as np
import pytest

from curate.stats.agreement import (
    ac,
    alpha,
    cohen,
    fleiss,
    measure,
    prevalence,
    randolph,
    scalar,
    specific,
)
from curate.stats.tally import Codes, crosstab, tally


@pytest.mark.parametrize("missing", [False, True])
def test_one_category_only(missing: bool) -> None:
    found = measure([[2, 2, 2], [2, 2, -1 if missing else 2]], 5)
    assert (found.fleiss, found.alpha_nominal, found.alpha_ordinal) == (None, None, None)
    assert (found.percent, found.ac1, found.unanimous) == (1, 1, 2)
    assert list(found.prevalence) == [0, 0, 1, 0, 0]
    assert list(found.specific) == [None, None, 1, None, None]
    sums = tally([[2, 2]], 5).sums()
    assert scalar(alpha(sums, "interval")) is None
    assert scalar(fleiss(sums, "drop")) is None
    assert scalar(randolph(sums)) == 1
    assert scalar(cohen(crosstab([2, 2], [2, 2], 5))) is None


def test_other_category_in_a_single_rating_defines_no_kappa() -> None:
    found = measure([[1, 1], [0, -1]], 2)
    assert (found.fleiss, found.alpha_nominal, found.percent) == (None, None, 1)
    assert found.prevalence == (0.5, 0.5)


@pytest.mark.parametrize("codes", [[[0], [1]], [[0, None], [None, 1]], [[-1, 0], [1, -1]]])
def test_no_two_ratings_anywhere(codes: Codes) -> None:
    found = measure(codes, 2)
    measures = (found.percent, found.fleiss, found.alpha_nominal, found.alpha_ordinal, found.ac1)
    assert measures == (None, None, None, None, None)
    assert (found.items, found.under_two, found.unanimous) == (2, 2, 0)
    assert found.prevalence == (0.5, 0.5)
    assert found.specific == (None, None)
    assert np.isnan(randolph(tally(codes, 2).sums()))


@pytest.mark.parametrize("codes", [np.empty((0, 3)), np.empty((4, 0)), np.full((1, 2), np.nan)])
def test_no_rating_at_all(codes: Codes) -> None:
    found = measure(codes, 3)
    assert found.items == found.under_two == len(np.asarray(codes))
    assert {found.percent, found.fleiss, found.alpha_nominal, found.ac1, *found.prevalence} == {None}


def test_cohen_needs_a_common_item_and_two_categories() -> None:
    assert scalar(cohen(crosstab([0, None], [None, 1], 2))) is None
    assert scalar(cohen(crosstab([0, 0], [1, 1], 2))) == 0


def test_unrated_items_leave_the_rest_complete() -> None:
    pairs = [[0, 0], [0, 1], [1, 1]]
    rated, more = measure(pairs, 2), measure([*pairs, [-1, -1]], 2)
    assert more.estimator == "complete"
    assert (more.items, more.under_two) == (4, 1)
    assert asdict(more) | {"items": 3, "under_two": 0} == asdict(rated)


def test_disagreement_by_eye() -> None:
    """Two raters agree on half of four items, half of the ratings are 1: kappa 0, and AC1 as well."""
    found = measure([[0, 0], [1, 1], [0, 1], [1, 0]], 2)
    assert (found.percent, found.fleiss, found.ac1, found.unanimous) == (0.5, 0, 0, 2)
    assert found.specific == (0.5, 0.5)
    opposed = measure([[0, 1], [1, 0]], 2)
    assert (opposed.percent, opposed.fleiss, opposed.specific) == (0, -1, (0, 0))


def test_weighted_agreement_forgives_neighbours() -> None:
    """D against C is a fifth of the way on a scale of six, so AC2 sees four fifths of agreement."""
    sums = tally([[0, 1], [4, 5]], 6).sums()
    observed = float((sums.pairs * (1 - np.abs(np.subtract.outer(range(6), range(6))) / 5)).sum() / sums.paired)
    assert observed == pytest.approx(0.8)
    assert float(ac(sums)) < 0 < float(ac(sums, "linear")) < float(ac(sums, "quadratic"))


def test_specific_agreement_weighs_items_alike() -> None:
    """Three raters split 2 to 1: of the pairs that hold a 0, one in two is 0 and 0; those with a 1 never agree."""
    sums = tally([[0, 0, 1]], 2).sums()
    assert specific(sums).tolist() == [0.5, 0]
    assert prevalence(sums).tolist() == pytest.approx([2 / 3, 1 / 3])
