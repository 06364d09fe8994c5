"""Scores without scikit-learn, against scikit-learn."""

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from curate.stats.shortcuts import ShortcutScores, logistic, of_classes, of_clusters, of_pairs
from curate.stats.tally import Floats


def letters(texts: Sequence[str]) -> Floats:
    rows = np.array([[text.count(letter) for letter in "ab"] for text in texts], dtype=np.float64) + 0.01
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("classes", [2, 4])
def test_classifier_predicts_as_scikit_learn_s(classes: int) -> None:
    random = np.random.default_rng(classes)
    rows, labels, asked = random.normal(0, 1, (40, 6)), random.integers(0, classes, 40), random.normal(0, 1, (300, 6))
    expected = LogisticRegression(max_iter=1000, tol=1e-8).fit(rows, labels).predict(asked)
    assert np.mean(np.array(logistic(rows, labels.tolist(), asked)) == expected) > 0.99
    assert logistic(rows, [3] * 40, asked[:2]) == [3, 3]


def test_pairs_by_shared_characters_and_by_length() -> None:
    one, other, labels = ["aab", "abb", "ab", "ba"], ["aab", "b", "ab", "aaaaa"], [1, 0, 1, 0]
    found = of_pairs(one, other, labels, {"letters": letters}, "max_ap")
    assert (found.floor, found.shortcut, found.shortcuts["overlap"]) == (0.5, "length", 1)
    assert found.models["letters"] == pytest.approx(
        average_precision_score(labels, (letters(one) * letters(other)).sum(axis=1))
    )
    equal = of_pairs(["aa", "bb"], ["aa", "bb"], [1, 0], {"letters": letters}, "cosine_spearman")
    assert (equal.floor, equal.shortcuts["length"], equal.share) == (0, 0, None), "what never varies has no correlation"


def test_classes_and_clusters() -> None:
    texts, labels = [" ".join(letter * (2 + n % 5) + "c") for letter in "ab" for n in range(12)], [0] * 12 + [1] * 12
    found = of_classes((texts, labels), (texts, labels), {"letters": letters})
    assert found.shortcuts["keyword"] == found.models["letters"] == 1
    assert found.floor == pytest.approx(1 / 3)
    assert found.share == 1
    assert of_clusters(texts, labels, {"letters": letters}).models["letters"] == pytest.approx(1)


def test_share_is_of_the_distance_from_equal_scores() -> None:
    assert ShortcutScores(0.5, {"a": 0.7, "b": 0.6}, {"x": 0.9}).share == pytest.approx(0.5)
    assert ShortcutScores(0.5, {"a": 0.7}, {"x": 0.5}).share is None
