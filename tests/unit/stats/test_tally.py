"""Codes in every guise, by clusters, in great numbers, and refused."""

from dataclasses import astuple
from functools import partial

import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from curate.core.errors import DataError
from curate.stats import tally as tallies
from curate.stats.agreement import Agreement, cohen, fleiss, measure, percent
from curate.stats.tally import Codes, crosstab, tally


def flat(found: Agreement) -> list[object]:
    """Return all figures of an agreement in one list."""
    return [x for part in astuple(found) for x in (part if isinstance(part, tuple) else [part])]


def close(found: Agreement, want: Agreement) -> bool:
    """Say whether two agreements are the same but for the order in which floats were added."""
    return all(x == pytest.approx(y, abs=1e-12) for x, y in zip(flat(found), flat(want), strict=True))


def test_codes_in_every_guise() -> None:
    want = measure([[0, 1, 1], [2, 2, -1]], 3)
    holes: list[list[int | None]] = [[0, 1, 1], [2, 2, None]]
    guises: list[Codes] = [
        holes,
        np.array([[0, 1, 1], [2, 2, np.nan]]),
        np.array([[0, 1, 1], [2, 2, -1]], dtype=np.int8),
    ]
    assert [measure(guise, 3) for guise in guises] == [want] * 3
    assert measure(np.array([[True, False]]), 2) == measure([[1, 0]], 2)


@pytest.mark.slow
def test_a_million_items_equal_statsmodels() -> None:
    random = np.random.default_rng(7)
    truth = random.integers(0, 5, (1_000_000, 1))
    codes = np.where(random.random((1_000_000, 3)) < 0.7, truth, random.integers(0, 5, (1_000_000, 3)))
    table = np.stack([(codes == code).sum(axis=1) for code in range(5)], axis=1)
    found = measure(codes, 5)
    assert found.fleiss == pytest.approx(float(fleiss_kappa(table)), abs=1e-12)
    assert float(fleiss(tally(codes, 5).sums())) == pytest.approx(found.fleiss, abs=1e-12)


def test_many_raters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns that do not fit a small table are renumbered, or sorted, and nothing else changes."""
    codes = np.random.default_rng(3).integers(-1, 4, (300, 15))
    want = measure(codes, 4)
    for dense in (1, 100):
        monkeypatch.setattr(tallies, "DENSE", dense)
        assert close(measure(codes, 4), want)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (partial(tally, [[0, -1], [1, 7]], 5), "row 1, column 1: found 7, expected a code from 0 to 4"),
        (partial(tally, [[0, -2]], 5), "row 0, column 1: found -2"),
        (partial(tally, [[0.5, 1]], 3), "row 0, column 0: found 0.5, expected a whole number"),
        (partial(tally, [["S", "A"]], 5), "give grades as codes"),
        (partial(tally, np.array([["S", None]], dtype=object), 5), "give grades as codes"),
        (partial(tally, [[1, 2], [1]], 5), "rows of unequal length"),
        (partial(tally, [1, 2], 5), "found 1 axes, expected 2"),
        (partial(tally, [[0, 0]], 0), "expected at least one"),
        (partial(crosstab, [0, 1], [0], 2), "found 1 codes of the second rater, expected 2"),
        (partial(tally([[0, 0]], 1).by_cluster, ["a", "b"]), "found 2 cluster labels, expected 1"),
    ],
)
def test_refused(act: partial[object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        act()


def test_clusters_are_stacked_by_label() -> None:
    """Query b holds one agreed pair, query a one split and one agreed: half and all."""
    stacked = tally([[0, 0], [0, 1], [1, 1]], 2).by_cluster(["b", "a", "a"])
    assert len(stacked) == 2
    assert percent(stacked).tolist() == [0.5, 1]
    assert stacked.pairs.shape == (2, 2, 2)
    assert tally(np.empty((0, 2)), 3).by_cluster([]).counts.shape == (0, 3)
    tables = crosstab([0, 1, 1, None], [0, 0, 1, 1], 2, ["b", "a", "a", "c"])
    assert tables.table.tolist() == [[[0, 0], [1, 1]], [[1, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert cohen(tables).tolist()[0] == 0
    assert np.isnan(cohen(tables)[1:]).all()
