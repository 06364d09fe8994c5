"""Dawid and Skene's model: recovered where raters err independently, fooled where they do not, and derived again."""

import math
from functools import partial
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.core.errors import DataError
from curate.stats.dawid_skene import Fit, fit

K = 3
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
PREVALENCE = np.array([0.2, 0.3, 0.5])
CONFUSION = np.array(
    [
        [[0.85, 0.10, 0.05], [0.10, 0.80, 0.10], [0.02, 0.08, 0.90]],
        [[0.70, 0.25, 0.05], [0.05, 0.75, 0.20], [0.05, 0.05, 0.90]],
        [[0.90, 0.05, 0.05], [0.15, 0.70, 0.15], [0.05, 0.15, 0.80]],
        [[0.60, 0.30, 0.10], [0.10, 0.80, 0.10], [0.10, 0.20, 0.70]],
    ]
)


def drawn(random: np.random.Generator, truth: Codes, confusion: Floats) -> Codes:
    """Return what a rater with these chances says of items of these categories."""
    return np.asarray((random.random((len(truth), 1)) > np.cumsum(confusion[truth], axis=1)).sum(axis=1))


def simulated(items: int, seed: int) -> tuple[Codes, Codes]:
    random = np.random.default_rng(seed)
    truth = random.choice(K, items, p=PREVALENCE)
    return truth, np.stack([drawn(random, truth, table) for table in CONFUSION], axis=1)


def chances(parameters: Floats) -> Floats:
    """Return the chance of every pattern of four ratings, given the free parameters: the last of each row is left."""
    rows = parameters.reshape(-1, K - 1)
    whole = np.concatenate([rows, 1 - rows.sum(axis=1, keepdims=True)], axis=1)
    prevalence, tables = whole[0], whole[1:].reshape(-1, K, K)
    patterns = product(range(K), repeat=len(tables))
    said = [
        np.prod([table[:, code] for table, code in zip(tables, pattern, strict=True)], axis=0) for pattern in patterns
    ]
    return np.asarray(np.stack(said) @ prevalence)


def errors(parameters: Floats, items: int) -> Floats:
    """Return the standard errors that no unbiased estimate can undercut: those of the information in the patterns."""
    step = 1e-6 * np.eye(len(parameters))
    slope = np.stack([(chances(parameters + each) - chances(parameters - each)) / 2e-6 for each in step])
    information = items * (slope / chances(parameters)) @ slope.T
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(information))))


@pytest.mark.parametrize("seed", range(5))
def test_independent_raters_are_recovered(seed: int) -> None:
    """Every free chance lies within four standard errors of the truth, and together they are as far off as theory says.

    The sum of 26 squared distances in standard errors is about 26 if they were independent; their correlation makes it
    vary more, so the bound is generous: a wrong model is off by hundreds.
    """
    items = 20_000
    truth, codes = simulated(items, seed)
    found = fit(codes, K)
    assert found.converged
    free = np.concatenate([PREVALENCE[:-1], CONFUSION[:, :, :-1].ravel()])
    estimate = np.concatenate([found.prevalence[:-1], found.confusion[:, :, :-1].ravel()])
    distance = (estimate - free) / errors(free, items)
    assert np.abs(distance).max() < 4
    assert (distance**2).sum() < 3 * len(free)
    right = (found.posterior.argmax(axis=1) == truth).mean()
    votes = np.stack([(codes == code).sum(axis=1) for code in range(K)], axis=1)
    assert right > (votes.argmax(axis=1) == truth).mean()
    # The posterior says itself how often it is right: the mean of its largest chance is its expected accuracy.
    assert found.posterior.max(axis=1).mean() == pytest.approx(right, abs=4 * math.sqrt(right * (1 - right) / items))


def test_clones_outvote_a_better_rater() -> None:
    """Two copies of one weak rater beat a strong one: the model calls the copies perfect, and its labels are theirs."""
    random = np.random.default_rng(3)
    truth = random.choice(2, 5_000, p=[0.4, 0.6])
    strong, weak = (drawn(random, truth, np.array([[hit, 1 - hit], [1 - hit, hit]])) for hit in (0.95, 0.75))
    found = fit(np.stack([strong, weak, weak], axis=1), 2)
    labels = found.posterior.argmax(axis=1)
    assert (labels == weak).all()
    assert (labels == truth).mean() == pytest.approx(0.75, abs=4 * math.sqrt(0.75 * 0.25 / 5_000))
    assert np.diagonal(found.confusion[1:], axis1=1, axis2=2) == pytest.approx(1.0)
    assert np.diagonal(found.confusion[0]).max() < 0.85
    # With two weak raters who err each on their own the model finds the strong one, and follows it.
    other = drawn(random, truth, np.array([[0.75, 0.25], [0.25, 0.75]]))
    apart = fit(np.stack([strong, weak, other], axis=1), 2)
    assert np.diagonal(apart.confusion[0]).min() > 0.9
    assert (apart.posterior.argmax(axis=1) == truth).mean() > 0.92


def literal(codes: list[list[int]], rounds: int) -> tuple[list[float], list[list[float]], float]:
    """Return prevalence, posteriors and likelihood after so many rounds of EM, in plain loops over items."""
    rated = [row for row in codes if any(code >= 0 for code in row)]
    posterior = [[row.count(t) / sum(code >= 0 for code in row) for t in range(K)] for row in rated]
    likelihood = -math.inf
    prevalence: list[float] = []

    def parameters() -> tuple[list[float], dict[tuple[int, int, int], float]]:
        chance: dict[tuple[int, int, int], float] = {}
        for rater, t in product(range(len(rated[0])), range(K)):
            seen = [(p[t], row[rater]) for p, row in zip(posterior, rated, strict=True) if row[rater] >= 0]
            mass = sum(weight for weight, _ in seen)
            for code in range(K):
                said = sum(weight for weight, found in seen if found == code)
                chance[rater, t, code] = said / mass if mass else 1.0
        return [sum(p[t] for p in posterior) / len(rated) for t in range(K)], chance

    prevalence, chance = parameters()
    for _ in range(rounds):
        likelihood, after = 0.0, []
        for row in rated:
            joint = [
                prevalence[t] * math.prod(chance[rater, t, code] for rater, code in enumerate(row) if code >= 0)
                for t in range(K)
            ]
            likelihood += math.log(sum(joint))
            after.append([each / sum(joint) for each in joint])
        posterior = after
        prevalence, chance = parameters()
    return prevalence, posterior, likelihood


MATRICES = st.lists(st.lists(st.integers(-1, K - 1), min_size=3, max_size=3), min_size=2, max_size=10).filter(
    lambda codes: any(code >= 0 for row in codes for code in row)
)


@pytest.mark.slow
@settings(max_examples=60)
@given(MATRICES, st.integers(1, 6))
def test_literal_loops(codes: list[list[int]], rounds: int) -> None:
    found = fit(codes, K, iterations=rounds, tolerance=-1)
    prevalence, posterior, likelihood = literal(codes, rounds)
    rated = [any(code >= 0 for code in row) for row in codes]
    assert found.prevalence.tolist() == pytest.approx(prevalence, abs=1e-9)
    assert found.posterior[np.array(rated)] == pytest.approx(np.array(posterior), abs=1e-9)
    assert found.likelihood == pytest.approx(likelihood, abs=1e-9)
    assert np.isnan(found.posterior[~np.array(rated)]).all()


@pytest.mark.slow
@settings(max_examples=60)
@given(MATRICES)
def test_the_likelihood_never_falls(codes: list[list[int]]) -> None:
    steps = [fit(codes, K, iterations=n, tolerance=-1).likelihood for n in range(1, 8)]
    assert all(after >= before - 1e-9 for before, after in pairwise(steps))


def same(one: Fit, other: Fit, raters: list[int], names: list[int]) -> bool:
    return bool(
        np.allclose(one.prevalence, other.prevalence[names], atol=1e-9)
        and np.allclose(one.confusion, other.confusion[raters][:, names][:, :, names], atol=1e-9, equal_nan=True)
        and np.allclose(one.posterior, other.posterior[:, names], atol=1e-9, equal_nan=True)
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(MATRICES, st.permutations(range(3)), st.permutations(range(K)))
def test_names_of_raters_and_categories_do_not_matter(
    codes: list[list[int]], raters: list[int], names: list[int]
) -> None:
    run = partial(fit, categories=K, iterations=20, tolerance=-1)
    moved = [[-1 if row[rater] < 0 else names[row[rater]] for rater in raters] for row in codes]
    assert same(run(np.array(codes)[:, raters]), run(codes), raters, list(range(K)))
    assert same(run(codes), run(moved), np.argsort(raters).tolist(), names)
    twice = run(codes + codes)
    assert np.allclose(twice.posterior[: len(codes)], run(codes).posterior, atol=1e-9, equal_nan=True)
    assert twice.prevalence == pytest.approx(run(codes).prevalence)


def test_a_category_that_nobody_uses_has_no_chances() -> None:
    found = fit([[0, 0, 0], [1, 1, 1], [0, 1, 0]], 3)
    assert found.prevalence[2] == 0
    assert np.isnan(found.confusion[:, 2]).all()
    assert found.posterior[:2, :2].tolist() == [[1, 0], [0, 1]]


def test_nothing_rated_is_no_number() -> None:
    found = fit(np.full((2, 3), -1), 2)
    assert np.isnan(found.prevalence).all()
    assert np.isnan(found.posterior).all()
    assert found.converged


def test_two_raters_are_too_few() -> None:
    with pytest.raises(DataError, match="found 2 raters, expected at least 3"):
        fit([[0, 1]], 2)
