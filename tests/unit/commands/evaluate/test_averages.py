"""Averages over groups of tasks: the published correlation, missing scores, who is tested, what queries can show."""

from typing import Any

import numpy as np
import pytest

from curate.commands.evaluate import averages
from curate.commands.evaluate.averages import REPLICATES, LackingModel, TaskGroup, TaskScores
from curate.core.errors import ConfigError
from curate.stats import significance
from curate.stats.significance import detectable, means, needed
from tests.support.defined import defined

LEGACY, NEW = TaskGroup("legacy", ["l1", "l2"]), TaskGroup("new", ["n1", "n2", "n3"])


def table(old: list[float], new: list[float]) -> dict[str, TaskScores]:
    """Return five tasks whose group means are these scores, none of which is the mean itself."""
    moved = {"l1": (old, 0.02), "l2": (old, -0.02), "n1": (new, 0.05), "n2": (new, -0.03), "n3": (new, -0.02)}
    return {
        task: TaskScores(task, points={f"m{place}": score + shift for place, score in enumerate(scores)})
        for task, (scores, shift) in moved.items()
    }


def published() -> dict[str, TaskScores]:
    """Return fourteen models whose ranks differ by squares that add up to 294: the one sum that rounds to .354."""
    random = np.random.default_rng(0)
    orders = (random.permutation(14) for _ in range(100_000))
    order = next(each for each in orders if ((each - np.arange(14)) ** 2).sum() == 294)
    return table([0.8 + place / 100 for place in range(14)], [0.5 + float(place) / 100 for place in order])


def test_the_published_correlation_and_its_p_come_out_of_averages() -> None:
    """Two legacy tasks against three new ones, 14 models: .354, p .215, which is that of the t distribution."""
    [found] = averages.of_orders([LEGACY, NEW], published(), seed=7)
    rho: Any = found.spearman
    assert (found.models, round(rho.value, 3), round(rho.p_t, 3)) == (14, 0.354, 0.215)
    assert rho.p == pytest.approx(0.215, abs=0.02)
    assert rho.p_by.startswith("permutation")
    assert rho.low < 0, "fourteen models prove no likeness"
    assert rho.high > 0.5, "and no difference either"


def test_eight_models_have_an_exact_p_and_seven_none() -> None:
    scores = [place / 10 for place in range(8)]
    [found] = averages.of_orders([LEGACY, NEW], table(scores, scores), seed=1)
    exact = defined(found.spearman)
    assert (exact.p, exact.p_by) == (round(2 / 40_320, 6), "exact, all 40,320 orders")
    [few] = averages.of_orders([LEGACY, NEW], table(scores[:7], scores[:7]), seed=1)
    assert (few.spearman, few.models) == (None, 7)


def test_a_missing_score_is_no_0_and_leaves_the_model_out() -> None:
    scores = table([0.5] * 3, [0.5] * 3)
    del scores["l2"].points["m1"]
    found = averages.of_group(LEGACY, scores, None)
    assert [each.model for each in found.models] == ["m0", "m2"]
    assert found.missing == (LackingModel("m1", ("l2",)),)


def test_only_models_with_queries_are_tested_and_holm_counts_the_pairs_asked_for() -> None:
    random = np.random.default_rng(1)
    scores = table([0.5, 0.52, 0.6, 0.4], [0.5] * 4)
    for task in ("l1", "l2"):
        for place in range(3):
            center = scores[task].points[f"m{place}"]
            scores[task].drawn[f"m{place}"] = center + random.normal(0, 0.02, REPLICATES)
    found = averages.of_group(LEGACY, scores, None)
    assert {name for pair in found.pairs for name in (pair.one, pair.other)} == {"m0", "m1", "m2"}
    against = averages.of_group(LEGACY, scores, "m2")
    assert len(against.pairs) == 2
    every = {frozenset((pair.one, pair.other)): pair.adjusted for pair in found.pairs}
    assert all(pair.adjusted <= every[frozenset((pair.one, pair.other))] for pair in against.pairs)
    assert defined(found.detectable).median == pytest.approx(2.8 * 0.02, rel=0.1)


@pytest.mark.parametrize(("spread", "points"), [(0.12, 1.2), (0.20, 2.1), (0.29, 3.0)])
def test_what_734_queries_show(spread: float, points: float) -> None:
    assert round(100 * needed(0.0, spread, 734)[1], 1) == points
    random = np.random.default_rng(3)
    apart = random.normal(0, 1, 734)
    apart = (apart - apart.mean()) / apart.std() * spread
    pairs = significance.compare(["a", "b"], [means(apart), means(np.zeros(734))], significance.mean, 1, draws=100)
    found = detectable(pairs, 734)
    assert found is not None
    assert 100 * found.median == pytest.approx(points, rel=0.08)
    assert found.spread == pytest.approx(spread, rel=0.08)


def test_one_model_has_no_difference_to_detect() -> None:
    assert detectable([], 734) is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["legacy"], "expected NAME=TASK"),
        (["=l1"], "expected NAME=TASK"),
        (["legacy="], "expected NAME=TASK"),
        (["legacy=l1,l1"], "twice"),
        (["legacy=l1,l3"], "no scores of the task l3; known: l1, l2"),
        (["a=l1", "a=l2"], "several groups named a"),
    ],
)
def test_a_wrong_group_is_refused_with_a_reason(given: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        averages.parsed(given, ["l1", "l2"])


def test_kinds_with_several_tasks_are_averaged_by_themselves() -> None:
    groups = averages.of_kinds({"a": "Retrieval", "b": "STS", "c": "Retrieval"})
    assert groups == [TaskGroup("Retrieval", ["a", "c"], given=False)]
