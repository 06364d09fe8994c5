"""Corrected means of an audit: by hand, and against populations whose truth is known."""

import math
import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from curate.commands.audit import labels
from curate.core.errors import DataError
from curate.panel.audit_design import LABELLED, REST, UNLABELLED, allocate
from curate.panel.sampling_design import guesses
from curate.review import audit_correction
from curate.stats.bootstrap import resamples
from tests.support.defined import defined

SEEDS = 2_000
DEPTH = 50
STRATA = sorted(
    f"{verdict}{ending}" for verdict in ("contested", "not relevant", "relevant") for ending in (LABELLED, UNLABELLED)
)


def rows(*counted: tuple[str, str, int]) -> pl.DataFrame:
    """Return one row per pair: query, stratum, and how many of them."""
    return pl.DataFrame(
        [(query, stratum) for query, stratum, count in counted for _ in range(count)],
        {"query_id": pl.String, "stratum": pl.String},
        orient="row",
    )


def test_by_hand() -> None:
    """Of 12 unlabelled pairs 4 were read, 1 was relevant: 3; of 6 claimed 3 were read, 2 were right: 4; so 7 in two."""
    pairs = rows(
        ("q1", f"relevant{UNLABELLED}", 4), ("q2", f"relevant{UNLABELLED}", 2),
        ("q1", f"not relevant{UNLABELLED}", 6), ("q2", f"not relevant{UNLABELLED}", 6),
        ("q1", f"not relevant{LABELLED}", 2),
    )  # fmt: skip
    said = [
        *[("q1", f"relevant{UNLABELLED}", True)] * 2, ("q2", f"relevant{UNLABELLED}", False),
        ("q1", f"not relevant{UNLABELLED}", True), *[("q2", f"not relevant{UNLABELLED}", False)] * 3,
        ("q1", f"not relevant{LABELLED}", True), ("q1", f"not relevant{LABELLED}", False),
    ]  # fmt: skip
    answers = pl.DataFrame(said, {"query_id": pl.String, "stratum": pl.String, "relevant": pl.Boolean}, orient="row")
    found = audit_correction.correct(pairs, answers, ["q1", "q2"])
    assert found.answered == 9
    assert found.false_negatives is not None
    assert found.false_negatives.value == pytest.approx((6 * 2 / 3 + 12 * 1 / 4) / 2)
    assert defined(found.false_positives).value == pytest.approx(2 * 1 / 2 / 2)
    assert defined(found.positives).value == pytest.approx((4 + 3 + 1) / 2)
    assert defined(found.precision).value == pytest.approx(2 / 3)
    assert 0 <= found.false_negatives.low < found.false_negatives.value < found.false_negatives.high


def test_a_sample_of_everything_is_the_count_of_everything() -> None:
    random = np.random.default_rng(1)
    size = random.integers(1, 9, (40, 3)).astype(float)
    hits = random.binomial(size.astype(int), 0.4).astype(float)
    found = defined(audit_correction.mean(size, size, hits))
    truth = hits.sum(axis=1)
    assert found.value == pytest.approx(truth.mean())
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * truth.std(ddof=1) / math.sqrt(40), rel=0.05)


def test_not_defined_without_answers_of_a_stratum() -> None:
    size = np.array([[3.0, 2.0], [1.0, 4.0]])
    none = np.zeros_like(size)
    assert audit_correction.mean(size, none, none) is None
    assert audit_correction.mean(size, np.array([[1.0, 0.0], [1.0, 0.0]]), none) is None
    assert audit_correction.mean(size[:1], size[:1], none[:1]) is None, "one query has no interval"
    empty = audit_correction.mean(np.array([[3.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]]), none)
    assert empty is not None, "a stratum without a pair needs no answer"
    assert empty.value == empty.low == 0 < empty.high


def test_answers_of_other_pairs_are_refused() -> None:
    pairs = rows(("q1", f"relevant{UNLABELLED}", 1), ("q2", f"relevant{UNLABELLED}", 1))
    many = rows(("q1", f"relevant{UNLABELLED}", 3)).with_columns(relevant=pl.lit(value=True))
    strange = rows(("q3", f"relevant{UNLABELLED}", 1)).with_columns(relevant=pl.lit(value=True))
    for answers in (many, strange):
        with pytest.raises(DataError, match="the pairs that the sample was drawn of"):
            audit_correction.correct(pairs, answers, ["q1", "q2"])


def test_a_plan_expects_the_width_of_its_guesses() -> None:
    """With 20 negatives in each of 200 queries a half width of the mean is 1.96 N / Q sqrt(p (1 - p) / n)."""
    queries = [f"q{number:03}" for number in range(200)]
    pairs = rows(*((query, REST, 20) for query in queries), *((query, f"relevant{LABELLED}", 2) for query in queries))
    guesses_, drawn = {REST: 0.1, f"relevant{LABELLED}": 0.05}, {REST: 800, f"relevant{LABELLED}": 400}
    widths = audit_correction.expected_widths(pairs, guesses_, drawn, queries, seed=1)
    assert widths.false_negatives == pytest.approx(1.96 * 20 * math.sqrt(0.1 * 0.9 / 800), rel=0.05)
    # all labels are read, so only the queries are uncertain
    assert widths.false_positives == pytest.approx(1.96 * math.sqrt(2 * 0.05 * 0.95 / 200), rel=0.1)
    assert widths.precision is None, "the panel claims nothing"
    assert widths.rest_answers == pytest.approx(3.7 * 4_000 / 200)


@dataclass(frozen=True)
class World:
    """Queries with more or fewer relevant documents, labels that miss most of them, and a panel that errs."""

    missed: float = 0.85
    """Chance that a relevant document has no label."""
    mislabelled: float = 0.01
    """Chance that another document has one."""
    hit: float = 0.85
    false_alarm: float = 0.02
    open: float = 0.04
    """Chance that the panel does not agree."""

    @property
    def relevant(self) -> float:
        """Return the mean share of relevant documents: chances are Beta(1, 7)."""
        return 1 / 8

    def draw(self, random: np.random.Generator, queries: int) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return truth, labels, and the panel's yes and doubt, each of shape (queries, depth)."""
        shape = (queries, DEPTH)
        truth = random.random(shape) < random.beta(1, 7, queries)[:, None]
        labelled = random.random(shape) < np.where(truth, 1 - self.missed, self.mislabelled)
        doubt = random.random(shape) < self.open
        yes = random.random(shape) < np.where(truth, self.hit, self.false_alarm)
        return truth, labelled, yes & ~doubt, doubt

    @property
    def false_negatives(self) -> float:
        return DEPTH * self.relevant * self.missed

    @property
    def false_positives(self) -> float:
        return DEPTH * (1 - self.relevant) * self.mislabelled


def say(line: str) -> None:
    """Keep a measured figure where `pytest -s` shows it."""
    sys.stdout.write(f"\n{line}\n")


def audited(world: World, queries: int, size: int, seed: int) -> tuple[audit_correction.Mean, audit_correction.Mean]:
    """Return the corrected false negatives and false positives of one audit with a sample of people's answers."""
    random = np.random.default_rng(seed)
    truth, labelled, yes, doubt = world.draw(random, queries)
    place = 2 * np.where(doubt, 0, np.where(yes, 2, 1)) + ~labelled  # the order of STRATA
    flat = place.ravel()
    sizes = dict(zip(STRATA, np.bincount(flat, minlength=6).tolist(), strict=True))
    known = {name: count for name, count in sizes.items() if count}
    drawn = np.zeros(len(flat), dtype=bool)
    for name, count in allocate(known, guesses(known), size).items():
        drawn[random.choice(np.flatnonzero(flat == STRATA.index(name)), count, replace=False)] = True
    by = np.repeat(np.arange(queries), DEPTH) * 6 + flat

    def table(chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        return np.bincount(by[chosen], minlength=queries * 6).reshape(queries, 6).astype(np.float64)

    whole, answered, hits = table(np.ones_like(drawn)), table(drawn), table(drawn & truth.ravel())
    without, with_ = np.array([1, 3, 5]), np.array([0, 2, 4])
    missed = defined(audit_correction.mean(whole[:, without], answered[:, without], hits[:, without]))
    wrong = defined(audit_correction.mean(whole[:, with_], answered[:, with_], (answered - hits)[:, with_]))
    return missed, wrong


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "size"), [(200, 500), (50, 500)])
def test_corrected_means_are_unbiased_and_their_intervals_cover_the_population(queries: int, size: int) -> None:
    world = World()
    found = [audited(world, queries, size, seed) for seed in range(SEEDS)]
    for place, truth in enumerate((world.false_negatives, world.false_positives)):
        means = [each[place] for each in found]
        values = np.array([each.value for each in means])
        covered = np.mean([each.low <= truth <= each.high for each in means])
        bias = values.mean() - truth
        say(f"{queries} queries, {place}: truth {truth:.3f}, mean {values.mean():.3f}, covered {covered:.4f}")
        assert abs(bias) < 3 * values.std() / math.sqrt(SEEDS)
        assert 0.93 <= covered <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "least"), [(200, 0.93), (50, 0.91)])
def test_plain_means_of_judges_without_errors_cover_the_population(queries: int, least: float) -> None:
    """The interval is `audit.mean`'s, worked out for all seeds at once."""
    world = World(hit=1.0, false_alarm=0.0, open=0.0)
    counts = np.empty((2, queries, SEEDS))
    for seed in range(SEEDS):
        truth, labelled, yes, _ = world.draw(np.random.default_rng(seed), queries)
        assert (truth == yes).all()
        counts[0, :, seed] = (yes & ~labelled).sum(axis=1)
        counts[1, :, seed] = (labelled & ~yes).sum(axis=1)
    weights = np.concatenate(list(resamples(queries, 1000, seed=7)))
    for values, truth_ in zip(counts, (world.false_negatives, world.false_positives), strict=True):
        low, high = np.quantile(weights @ values / queries, [0.025, 0.975], axis=0)
        _, one_low, one_high = labels.mean(values[:, 3], seed=7)
        assert (one_low, one_high) == pytest.approx((low[3], high[3]))
        covered = np.mean((low <= truth_) & (truth_ <= high))
        say(f"{queries} queries, plain: truth {truth_:.3f}, covered {covered:.4f}")
        assert covered >= least
