"""Scores of shortcuts and models on labelled texts and pairs, without scikit-learn: for warnings before an export.

Measures and draws are those of stock mteb. Classifier and k-means are other implementations of its methods, so scores
may differ from mteb's in the third digit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curate.stats import replicated
from curate.stats.confusion import confusions, macro_f1
from curate.stats.shortcuts import alike_in_length, commonest, drawn, grams, keyword_rule, overlap
from curate.stats.significance import pearson, products
from curate.stats.tally import Floats, Ints

Encode = Callable[[Sequence[str]], Floats]
"""Texts -> one unit row per text."""
Measure = Callable[[Floats, Floats], float]
"""Similarities and labels -> score."""
SEEDS = (42, 43, 44)
"""Seeds of k-means, whose V-measures are averaged."""


@dataclass(frozen=True)
class ShortcutScores:
    """Scores of one task: of the trivial baseline, of shortcuts by name, and of models by name."""

    floor: float
    shortcuts: Mapping[str, float]
    models: Mapping[str, float]

    @property
    def shortcut(self) -> str:
        """Return the name of the best shortcut."""
        return max(self.shortcuts, key=lambda name: self.shortcuts[name])

    @property
    def model(self) -> str:
        """Return the name of the best model."""
        return max(self.models, key=lambda name: self.models[name])

    @property
    def share(self) -> float | None:
        """Return the best shortcut's share of the best model's lead over the baseline; None without a lead."""
        lead = self.models[self.model] - self.floor
        return (self.shortcuts[self.shortcut] - self.floor) / lead if lead > 0 else None


def of_pairs(
    one: Sequence[str], other: Sequence[str], labels: Sequence[float], models: Mapping[str, Encode], measure: str
) -> ShortcutScores:
    """Return the scores of pairs by a name of `MEASURES`; the baseline of correlations is 0."""
    score, marks, both = MEASURES[measure], np.array(labels, dtype=np.float64), list(zip(one, other, strict=True))
    shortcuts = {
        "length": score(np.array([alike_in_length(*pair) for pair in both]), marks),
        "overlap": score(np.array([overlap(*pair) for pair in both]), marks),
    }
    model_scores = {name: score((encode(one) * encode(other)).sum(axis=1), marks) for name, encode in models.items()}
    return ShortcutScores(
        float(marks.mean()) if measure == "max_ap" else 0.0, _defined(shortcuts), _defined(model_scores)
    )


def _defined(scores: Mapping[str, float]) -> dict[str, float]:
    """Return scores, 0 in place of NaN (correlation with a constant)."""
    return {name: 0.0 if np.isnan(score) else score for name, score in scores.items()}


def _plain_score(score: replicated.Replicated, items: int) -> float:
    return float(score(np.ones((1, items)))[0])


MEASURES: Mapping[str, Measure] = {
    "max_ap": lambda x, y: _plain_score(replicated.average_precision(x, y), len(x)),
    "cosine_spearman": lambda x, y: _plain_score(replicated.spearman(x, y), len(x)),
    "cosine_pearson": lambda x, y: float(pearson(products(x, y).sum(axis=0))),
}
"""mteb's name of a measure of pairs -> the function."""


def of_classes(
    known: tuple[Sequence[str], Sequence[int]], asked: tuple[Sequence[str], Sequence[int]], models: Mapping[str, Encode]
) -> ShortcutScores:
    """Return mean macro-F1 over mteb's draws of training texts; the baseline is the commonest class."""
    (texts, labels), (others, truth) = known, asked
    codes = {label: code for code, label in enumerate(sorted({*labels, *truth}))}
    train_codes, right = [codes[label] for label in labels], np.array([codes[label] for label in truth], dtype=np.int64)
    draws, most = list(drawn(train_codes)), commonest(train_codes)

    def score(predicted: Sequence[Sequence[int]]) -> float:
        predictions = [np.array(labels, dtype=np.int64) for labels in predicted]
        return float(macro_f1(confusions(right, predictions, len(codes)).sum(axis=0)))

    def trained(rows: Floats, new: Floats) -> float:
        return score([logistic(rows[draw], [train_codes[i] for i in draw], new) for draw in draws])

    held, seen = grams(texts), grams(others)
    rules = [keyword_rule([held[i] for i in draw], [train_codes[i] for i in draw], most) for draw in draws]
    shortcuts = {"keyword": score([rule(seen) for rule in rules]), "length": trained(lengths(texts), lengths(others))}
    scores = {name: trained(encode(texts), encode(others)) for name, encode in models.items()}
    return ShortcutScores(score([[most] * len(others)]), shortcuts, scores)


def of_clusters(texts: Sequence[str], labels: Sequence[int], models: Mapping[str, Encode]) -> ShortcutScores:
    """Return mean V-measure of k-means with as many clusters as labels; the baseline, one cluster, has 0."""
    marks, times = np.unique(np.array(labels), return_inverse=True)[1], np.ones(len(texts), dtype=np.int64)

    def score(rows: Floats) -> float:
        measures = [replicated.v_measure(marks, _clusters(rows, len(set(labels)), seed), times) for seed in SEEDS]
        return float(np.mean([_plain_score(measure, len(texts)) for measure in measures]))

    return ShortcutScores(
        0.0, {"length": score(lengths(texts))}, {name: score(encode(texts)) for name, encode in models.items()}
    )


def _clusters(rows: Floats, count: int, seed: int) -> Ints:
    from scipy.cluster.vq import kmeans2

    return np.asarray(kmeans2(rows, min(count, len(rows)), minit="++", seed=seed)[1], dtype=np.int64)


def lengths(texts: Sequence[str]) -> Floats:
    """Return one column: the logarithm of length, standardised over these texts."""
    logarithms = np.log1p([[len(text)] for text in texts])
    return np.asarray((logarithms - logarithms.mean()) / (logarithms.std() or 1.0), dtype=np.float64)


def logistic(rows: Floats, labels: Sequence[int], asked: Floats) -> list[int]:
    """Return the labels of new rows by multinomial logistic regression: scikit-learn's default, to convergence."""
    from scipy.optimize import minimize

    names, code = np.unique(np.array(labels), return_inverse=True)
    if len(names) == 1:
        return [int(names[0])] * len(asked)
    wide, truth = np.column_stack([rows, np.ones(len(rows))]), np.eye(len(names))[code]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(wide.shape[1], -1)
        logits = wide @ weights
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        free = np.vstack([weights[:-1], np.zeros_like(weights[:1])])  # the last row is the intercept
        gradient = wide.T @ (np.exp(logs) - truth) + free
        return float((free**2).sum() / 2 - (truth * logs).sum()), gradient.ravel()

    weights = minimize(loss, np.zeros(wide.shape[1] * len(names)), jac=True, method="L-BFGS-B").x
    best = (np.column_stack([asked, np.ones(len(asked))]) @ weights.reshape(wide.shape[1], -1)).argmax(axis=1)
    return [int(names[index]) for index in best]
