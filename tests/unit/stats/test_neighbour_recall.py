"""Ranks in blocks are those of a loop over all candidates; silhouettes and AUROC are those of scikit-learn."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.stats import confusion, neighbour_recall
from curate.stats import neighbour_recall as silhouette
from curate.stats.neighbour_recall import Chains, Matrix, NeighbourRanks, ranks


def chains(sizes: list[int], unordered: int = 0) -> Chains:
    group = np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)
    ordered = np.ones(len(group), dtype=np.bool_)
    ordered[len(group) - unordered :] = False
    return Chains(group, ordered)


def rounded(texts: int, seed: int) -> Matrix:
    """Return vectors of few different values, so that many tie."""
    found = np.random.default_rng(seed).integers(-1, 2, size=(texts, 3)).astype(np.float32)
    unit: Matrix = (found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1)).astype(np.float32)
    return unit


def naive(vectors: Matrix, found: Chains, protocol: str) -> list[tuple[int, int, int]]:
    """Return query, candidates above and candidates tied, one loop at a time."""
    group = found.group.tolist()
    pairs = [
        (a, b) for a, b in pairwise(range(len(group))) if group[a] == group[b] and found.ordered[a] and found.ordered[b]
    ]
    similar = np.round(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 5)
    rows = []
    if protocol == "group":
        for a in range(len(group)):
            mates = [b for b in range(len(group)) if group[b] == group[a] and b != a]
            if mates:
                best = max(similar[a, b] for b in mates)
                others = [similar[a, c] for c in range(len(group)) if group[c] != group[a]]
                rows.append((a, sum(each > best for each in others), sum(each == best for each in others)))
        return rows
    for a, b in pairs:
        left = {"card": set(), "card_own_out": {a}, "next": {c for c in range(len(group)) if group[c] == group[a]}}
        others = [similar[a, c] for _, c in pairs if c != b and c not in left[protocol]]
        rows.append((a, sum(each > similar[a, b] for each in others), sum(each == similar[a, b] for each in others)))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("cells", [1, 40, neighbour_recall.CELLS])
@given(sizes=st.lists(st.integers(1, 5), min_size=2, max_size=8), unordered=st.integers(0, 3), seed=st.integers(0, 999))
def test_ranks_are_those_of_a_loop(cells: int, sizes: list[int], unordered: int, seed: int) -> None:
    vectors, given_ = rounded(sum(sizes), seed), chains(sizes, min(unordered, sizes[-1]))
    with patch.object(neighbour_recall, "CELLS", cells):
        found = ranks(vectors, given_)
    for protocol, each in found.items():
        rows = list(zip(each.query.tolist(), each.above.tolist(), each.tied.tolist(), strict=True))
        assert rows == naive(vectors, given_, protocol), protocol


def test_the_ceiling_of_card_is_what_a_perfect_encoder_reaches() -> None:
    """Texts of a group lie so close that the next one is behind the text itself alone, and others are far."""
    given_ = chains([3, 2, 4])
    angles = np.array([0, 0.02, 0.03, 1, 1.02, 2, 2.04, 2.06, 2.07])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = ranks(vectors, given_)
    assert [float(found["card"].hits(depth).mean()) for depth in (1, 5)] == [given_.ceiling(1), given_.ceiling(5)]
    assert given_.ceiling(1) == 3 / 6, "the first text of a group is nobody's next, so it is no candidate"
    assert found["next"].hits(1).all()


def test_vectors_that_are_all_equal_are_right_strictly_and_at_chance_otherwise() -> None:
    given_ = chains([2] * 50)
    found = ranks(np.ones((100, 1), dtype=np.float32), given_)
    assert found["next"].hits(1).all()
    assert found["next"].by_chance(1) == pytest.approx(1 / 50)
    assert found["next"].by_chance(10) == pytest.approx(10 / 50)
    assert NeighbourRanks(np.array([0]), np.array([3]), np.array([0])).by_chance(4).tolist() == [1.0]


@settings(max_examples=25)
@given(texts=st.integers(4, 40), labels=st.integers(2, 3), seed=st.integers(0, 999))
def test_silhouettes_are_those_of_scikit_learn(texts: int, labels: int, seed: int) -> None:
    from sklearn.metrics import silhouette_samples

    random = np.random.default_rng(seed)
    vectors = random.standard_normal((texts, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes = np.r_[np.arange(labels), random.integers(0, labels, texts - labels)].astype(np.int64)
    theirs = silhouette_samples(vectors.astype(np.float64), codes, metric="cosine")
    with patch.object(silhouette, "ROWS", 7):
        assert silhouette.silhouettes(vectors, codes) == pytest.approx(theirs, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=25)
@given(texts=st.integers(6, 30), levels=st.integers(2, 30), seed=st.integers(0, 999))
def test_the_weighted_auroc_is_that_of_texts_that_are_repeated(texts: int, levels: int, seed: int) -> None:
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(seed)
    codes = np.r_[0, 1, 2, random.integers(0, 3, texts - 3)].astype(np.int64)
    scores = random.integers(0, levels, size=(texts, 3)) / levels
    weights = np.stack([np.ones(texts), random.integers(1, 4, texts)]).astype(np.float64)
    with patch.object(confusion, "CELLS", texts):
        ours = confusion.macro_auroc(scores, codes, weights)
    for row, mine in zip(weights.astype(int), ours, strict=True):
        many = np.repeat(np.arange(texts), row)
        each = [roc_auc_score(codes[many] == label, scores[many, label]) for label in range(3)]
        assert mine == pytest.approx(np.mean(each))


def test_a_label_without_weight_is_left_out_of_the_mean() -> None:
    codes, weights = np.array([0, 0, 1, 1, 2]), np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 1]], dtype=np.float64)
    scores = np.eye(3)[codes]
    found = confusion.macro_auroc(scores, codes, weights)
    assert found[0] == 1.0
    assert np.isnan(found[1])
