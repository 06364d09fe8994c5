"""Leading dimensions bound similarities from above, and change no decision of the diversity rule."""

from typing import Any

import numpy as np
import pytest

from curate import alike, leading
from curate.alike import Alike
from curate.diversity import diversify
from curate.protocols import Vectors
from curate.search import unit


def flat(rows: int, dim: int, own: float, seed: int = 1) -> Vectors:
    """Return vectors in a plane of 12 dimensions, with `own` of them in all others; many are near an earlier one."""
    draw = np.random.default_rng(seed)
    found = draw.standard_normal((rows, 12)) @ draw.standard_normal((12, dim))
    found = unit(found) + own * unit(draw.standard_normal((rows, dim)))
    for row in np.flatnonzero(draw.random(rows) < 0.1)[1:]:
        found[row] = found[draw.integers(0, row)] + 0.1 * unit(draw.standard_normal((1, dim)))[0]
    return unit(found)


@pytest.mark.parametrize("own", [0.0, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("dimensions", [1, 32, 128])
def test_the_bound_holds_for_any_vectors(own: float, dimensions: int) -> None:
    vectors = np.concatenate([flat(300, 512, own), unit(np.eye(512))[:50], np.zeros((1, 512), np.float32)])
    lead = leading._of(leading._directions(vectors)[:, :dimensions])
    rows = lead.rows(vectors).astype(np.float64)
    exact = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    assert (rows @ rows.T + lead.slack - exact).min() >= 0
    assert lead.slack < 0.01


def test_directions_are_used_where_they_pay() -> None:
    few = leading.leading(flat(3000, 512, 0.2), 0.95)
    assert few is not None
    assert few.basis.shape[1] <= 64
    assert leading.leading(flat(3000, 512, 5.0), 0.5) is None, "vectors that are spread over all dimensions"
    assert leading.leading(flat(3000, 512, 0.2), 0.1) is None, "a threshold that many pairs reach"
    assert leading.leading(flat(3000, 64, 0.2), 0.95) is None, "too few dimensions to leave any out"
    assert leading.leading(3 * flat(3000, 512, 0.2), 0.95) is None, "not of length 1"
    assert leading.leading(np.empty((0, 512), np.float32), 0.95) is None


@pytest.mark.parametrize("t", [0.8, 0.9, 0.97])
def test_decisions_are_the_same(t: float, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = flat(2500, 512, 0.2)
    plain = diversify(vectors, t, 0)
    monkeypatch.setattr(alike, "LEADING", 0)
    monkeypatch.setattr(alike, "CHUNK", 512)
    looked, by_lead = [], Alike._by_lead

    def look(*given: Any) -> Any:
        looked.append(by_lead(*given))
        return looked[-1]

    monkeypatch.setattr(Alike, "_by_lead", look)
    bounded = diversify(vectors, t, 0)
    assert bounded.kept.tolist() == plain.kept.tolist()
    assert bounded.nearest.tolist() == plain.nearest.tolist()
    assert bounded.similarity.tolist() == pytest.approx(plain.similarity.tolist(), nan_ok=True, abs=0)
    assert 0 < plain.kept.sum() < 2500
    assert t < 0.97 or any(found is not None for found in looked)


def test_directions_that_stop_paying_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pairs near the threshold, in the second half only."""
    vectors = flat(3000, 512, 0.2)
    vectors[2000:] = unit(3.9 * vectors[0] + unit(np.random.default_rng(2).standard_normal((1000, 512))))
    plain = diversify(vectors, 0.95)
    monkeypatch.setattr(alike, "LEADING", 0)
    monkeypatch.setattr(leading, "RARE", 2)
    given_up: list[bool] = []
    by_lead = Alike._by_lead

    def look(self: Alike, *given: Any) -> Any:
        found = by_lead(self, *given)
        given_up.append(found is None)
        return found

    monkeypatch.setattr(Alike, "_by_lead", look)
    assert diversify(vectors, 0.95).kept.tolist() == plain.kept.tolist()
    assert not given_up[0]
    assert given_up[-1]
